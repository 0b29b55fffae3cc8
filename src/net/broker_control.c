/* SPDX-License-Identifier: MIT */
/* The job's messages: the configuration, once and first, and sockets. */
#include "net/broker_control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/broker_sockets.h"

#define MESSAGE_FDS_MAX 2

static void close_fds(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
}

static bool is_message(ssize_t length, const struct door_message *message)
{
    return length == (ssize_t)sizeof *message && message->version == DOOR_WIRE_VERSION;
}

/* ---- The configuration ---- */

static int read_text(int fd, char **ret_text, size_t *ret_length, struct brig_error *err)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the door's configuration");
    if (found.st_size > DOOR_CONFIG_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the door's configuration is larger than %u bytes",
                         DOOR_CONFIG_MAX);
    size_t length = (size_t)found.st_size;
    autofree char *text = malloc(length + 1);
    if (!text)
        return brig_fail_nomem(err);
    if (pread(fd, text, length, 0) != (ssize_t)length)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the door's configuration");
    text[length] = 0;
    *ret_text = take_ptr(&text);
    *ret_length = length;
    return 0;
}

static int take_config(struct broker *broker, const int *fds, size_t count, struct brig_error *err)
{
    autofree char *text = NULL;
    size_t length = 0;
    int status = read_text(fds[0], &text, &length, err);
    if (status == 0 && count > 1)
        status = secrets_read(&broker->secrets, fds[1], err);
    return status < 0 ? status : broker_start(broker, text, length, err);
}

int control_wait_config(struct broker *broker, int socket, struct brig_error *err)
{
    struct door_message message = {0};
    struct pollfd waiting = {.fd = socket, .events = POLLIN};
    int fds[MESSAGE_FDS_MAX];
    size_t count = MESSAGE_FDS_MAX;
    while (poll(&waiting, 1, -1) < 0)
        if (errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for the job");
    ssize_t length = socket_receive(socket, &message, sizeof message, fds, &count);
    if (length < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot hear the job");
    int status;
    if (!is_message(length, &message) || message.type != DOOR_CONFIG || count == 0)
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "the job does not begin with a configuration of version %d",
                           DOOR_WIRE_VERSION);
    else
        status = take_config(broker, fds, count, err);
    close_fds(fds, count);
    return status;
}

/* ---- Sockets ---- */

/* False if there is no more to be heard. */
static bool take_message(struct broker *broker)
{
    struct door_message message = {0};
    int fds[1];
    size_t count = 1;
    ssize_t length = socket_receive(broker->control.fd, &message, sizeof message, fds, &count);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length == 0) { /* its last word */
        broker_finish(broker);
        return false;
    }
    bool good = is_message(length, &message) && message.type == DOOR_SOCKET && count == 1 &&
                broker_add_socket(broker, message.kind, message.index, fds[0]);
    if (!good) {
        close_fds(fds, count);
        broker->loop.stop = true;
    }
    return good;
}

static void control_ready(struct watch *watch, uint32_t events)
{
    struct broker *broker = (struct broker *)((char *)watch - offsetof(struct broker, control));
    if (events & EPOLLOUT)
        broker_control_writable(broker);
    while (!broker->finishing && (events & EPOLLIN) && take_message(broker))
        ;
    if (events & (EPOLLHUP | EPOLLERR)) /* and nobody is there to be told anything */
        broker->loop.stop = true;
}

int control_start(struct broker *broker, int socket, struct brig_error *err)
{
    const struct door_message ready = {.version = DOOR_WIRE_VERSION, .type = DOOR_READY};
    broker->control = (struct watch){.fd = socket, .ready = control_ready};
    events_init(&broker->events, socket);
    if (!loop_watch(&broker->loop, &broker->control, EPOLLIN))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    (void)socket_send(socket, &ready, sizeof ready, -1);
    return 0;
}

void control_fail(int socket, const struct brig_error *err)
{
    struct door_failure failure = {
        .head = {.version = DOOR_WIRE_VERSION, .type = DOOR_FAILED},
    };
    (void)snprintf(failure.message, sizeof failure.message, "%s", err->message);
    (void)socket_send(socket, &failure, sizeof failure, -1);
}
