/* SPDX-License-Identifier: MIT */
/* Requests to a jail's holder other than for mounts: list its runs, end, add masks. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "home/client.h"
#include "home/home.h"

/* How long the runs of a jail may take to apply a mask. */
#define MASK_PATIENCE_MS 5000

/* Waits until the holder closes its end, after it has released everything. */
static void await_end(int socket)
{
    char byte;
    while (recv(socket, &byte, 1, 0) < 0 && errno == EINTR)
        ;
}

/* Returns 1 with the reply, 0 if there is no holder, or a code. *ret_socket is the connection, also
 * after a failure, or -1. */
static int question(const char *storage, const char *name, uid_t uid, struct home_request request,
                    const struct str *text, const int *fds, size_t fd_count, int *ret_socket,
                    struct home_reply *ret_reply, struct brig_error *err)
{
    struct brig_error local;
    unsigned attempts = 0;
    int status, received[HOME_FD_COUNT];
    *ret_socket = -1;
    do {
        local = (struct brig_error){0};
        close_fd(ret_socket);
        status = talk_connect(storage, name, uid, &local);
        if (status == -ENOENT)
            return 0;
        if (status >= 0) {
            *ret_socket = status;
            status = talk_send(*ret_socket, request, text, fds, fd_count, &local);
        }
        if (status == 0)
            status = talk_receive(*ret_socket, ret_reply, received, &local);
    } while (status < 0 && talk_again(&local, &attempts));
    if (status < 0 && err)
        *err = local;
    return status < 0 ? status : 1;
}

static int ask(enum home_op op, const char *storage, const char *name, uid_t uid,
               struct home_state *ret_state, struct brig_error *err)
{
    const struct home_request request = {.op = op};
    const struct str nothing = {0};
    struct home_reply reply = {0};
    autoclose int socket = -1;
    int status = question(storage, name, uid, request, &nothing, NULL, 0, &socket, &reply, err);
    *ret_state = (struct home_state){.held = socket >= 0};
    if (ret_state->held)
        ret_state->holder = talk_peer(socket);
    if (status == 1 && op == HOME_STOP)
        await_end(socket);
    for (uint32_t i = 0; i < reply.pid_count && i < ARRAY_LENGTH(ret_state->pids); i++)
        ret_state->pids[ret_state->pid_count++] = reply.pids[i];
    return status < 0 ? status : 0;
}

int home_ask(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
             struct brig_error *err)
{
    return ask(HOME_LIST, storage, name, uid, ret_state, err);
}

int home_stop(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
              struct brig_error *err)
{
    return ask(HOME_STOP, storage, name, uid, ret_state, err);
}

/* ---- masks ---- */

/* Every run holds a duplicate of the other end until it has applied the mask or has ended. */
static bool wait_for_runs(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&end, 1, MASK_PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int home_mask(const char *storage, const char *name, uid_t uid, const struct home_masks *masks,
              struct home_masked *ret_masked, struct brig_error *err)
{
    const struct home_request request = {.op = HOME_MASK, .mask_count = (uint32_t)masks->count};
    struct home_reply reply = {0};
    autostr struct str text = {0};
    autoclose int socket = -1;
    int ends[2];
    *ret_masked = (struct home_masked){.done = true};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int ours = ends[0];
    autoclose int theirs = ends[1];
    talk_add_text(&text, masks->user_home);
    for (size_t i = 0; i < masks->count; i++)
        talk_add_text(&text, masks->paths[i]);
    int status = question(storage, name, uid, request, &text, &theirs, 1, &socket, &reply, err);
    if (status <= 0)
        return status;
    close_fd(&theirs);
    ret_masked->runs = reply.told;
    ret_masked->done = wait_for_runs(ours);
    return 0;
}

/* ---- a run's side ---- */

static int take_passed(int lease, struct home_message *message, int *ret_fd)
{
    const struct iovec part = {.iov_base = message, .iov_len = sizeof *message - 1};
    size_t count = 1;
    ssize_t length = fdpass_receive(lease, &part, 1, ret_fd, &count, MSG_DONTWAIT);
    if (length == -EAGAIN)
        return 0;
    const struct home_request *head = &message->head;
    return length >= (ssize_t)sizeof *head && head->version == HOME_WIRE_VERSION &&
                   head->op == HOME_MASK && head->length == (size_t)length - sizeof *head
               ? 1
               : -1;
}

int home_receive_masks(int lease, struct home_message **ret_message, int *ret_done)
{
    autofree struct home_message *message = calloc(1, sizeof *message);
    autoclose int done = -1;
    if (!message)
        return 0;
    int taken = take_passed(lease, message, &done);
    if (taken <= 0)
        return taken;
    *ret_message = take_ptr(&message);
    *ret_done = take_fd(&done);
    return 1;
}
