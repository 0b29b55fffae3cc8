/* SPDX-License-Identifier: MIT */
/* The files of a sandbox: requests for the program of ours in it (guest/guest.c), which is started
 * when it is needed and ended when it is idle. Nothing that it answers is believed: messages have
 * bounds, must fit the request, and end the program otherwise. One that does not answer is killed.
 * Requests are worked on one after the other; each watched directory has a program of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "jail/job/job.h"
#include "server/executor/executor.h"
#include "server/guest/guest_wire.h"

#define IDLE_MS 10000     /* without a request, after which the program is ended */
#define PATIENCE_MS 20000 /* for a program that has a request and says nothing */
#define REQUESTS_MAX 64   /* that wait, in one sandbox */
#define WATCHES_MAX 8     /* in one sandbox */
#define MESSAGES_AT_ONCE 64
#define FILE_BYTES_MAX ((size_t)256 << 20) /* on their way, in all sandboxes */
#define ENTRIES_FIRST 64
#define ENTRIES_BYTES_MAX ((size_t)16 << 20) /* of the paths of one list */

/* ---- requests ---- */

static void count_bytes(struct sandbox *sandbox, size_t more)
{
    share_add(&sandbox->executor->sandboxes.files, &sandbox->file_bytes, sandbox->request.domain,
              more);
}

static void free_request(struct files *files, struct file_request *request)
{
    share_drop(&files->sandbox->executor->sandboxes.files, &files->sandbox->file_bytes,
               request->bytes.length + request->entry_bytes + request->request.bytes.length);
    str_done(&request->bytes);
    arena_done(&request->arena);
    free(request->entries);
    sandbox_request_done(&request->request);
    free(request);
}

static struct file_request *take_first(struct files *files)
{
    struct file_request *request = files->first;
    files->first = request->next;
    if (!files->first)
        files->last = &files->first;
    files->count--;
    return request;
}

/* The request is over; an answer of a client that has left has no tag. */
static void answer_first(struct files *files, const struct sandbox_answer *answer)
{
    struct file_request *request = take_first(files);
    if (request->caller.tag)
        executor_sandbox_answer(files->sandbox->executor, request->caller, answer);
    free_request(files, request);
}

static enum sandbox_fault fault_of(int error)
{
    switch (error) {
    case 0:
        return SANDBOX_OK;
    case ENOENT:
        return SANDBOX_NO_FILE;
    case EEXIST:
    case ENOTEMPTY:
        return SANDBOX_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return SANDBOX_REFUSED;
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case ENXIO:
        return SANDBOX_KIND;
    case ENOSPC:
    case EDQUOT:
        return SANDBOX_NO_SPACE;
    case EFBIG:
        return SANDBOX_LARGE;
    default:
        return SANDBOX_REFUSED;
    }
}

/* ---- the program ---- */

/* It is freed after this round of the loop, because other events may refer to it. */
static void close_program(struct files *files, enum sandbox_fault fault, const char *message)
{
    struct executor *executor = files->sandbox->executor;
    if (files->over)
        return;
    files->over = true;
    executor_unwatch(executor, &files->socket);
    executor_unwatch(executor, &files->source);
    close_fd(&files->socket.fd);
    executor->sandboxes.due_ms = 0;
    while (files->first)
        answer_first(files, &(struct sandbox_answer){.fault = fault, .message = message});
}

static void give_up(struct files *files)
{
    close_program(files, SANDBOX_NO_FILES,
                  "the program that serves the sandbox's files was killed, or does not answer");
}

static void free_program(struct files *files)
{
    brig_job_free(files->job);
    files->sandbox->watch_count -= files->watches;
    free(files);
}

static void job_ready(void *owner, uint32_t events)
{
    struct files *files = owner;
    (void)events;
    if (!files->over && brig_job_process(files->job, NULL) != 0)
        give_up(files);
}

/* ---- sending ---- */

static void fill_request(const struct sandbox_request *from, struct guest_request *ret)
{
    static const uint32_t operations[SANDBOX_OPERATIONS_] = {
        [SANDBOX_READ] = GUEST_READ,     [SANDBOX_WRITE] = GUEST_WRITE,
        [SANDBOX_REMOVE] = GUEST_REMOVE, [SANDBOX_ENTRIES] = GUEST_LIST,
        [SANDBOX_STAT] = GUEST_STAT,     [SANDBOX_MOVE] = GUEST_MOVE,
        [SANDBOX_MAKE] = GUEST_MAKE,     [SANDBOX_WATCH] = GUEST_WATCH,
    };
    *ret = (struct guest_request){
        .version = GUEST_VERSION,
        .operation = operations[from->operation],
        .flags = (from->append ? GUEST_APPEND : 0) | (from->recursive ? GUEST_RECURSIVE : 0),
        .mode = from->mode ? (uint32_t)from->mode : 0644,
        .offset = from->offset,
        .length = from->operation == SANDBOX_WRITE ? from->bytes.length : from->length,
        .depth = from->depth,
    };
    _Static_assert(sizeof ret->path == SANDBOX_PATH_MAX + 1, "both have the longest path");
    sandbox_tidy_path(from->path, ret->path);
    if (from->target)
        sandbox_tidy_path(from->target, ret->target);
    if (from->operation == SANDBOX_WRITE && str_ends_with(from->path, "/"))
        (void)str_fill(ret->path, sizeof ret->path, from->path); /* a directory, which is refused */
}

/* Returns 1 if it was sent, 0 if there is no room, negative if the program is gone. */
static int send_piece(const struct files *files, const void *bytes, size_t length)
{
    ssize_t sent;
    do
        sent = send(files->socket.fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? 1 : errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
}

/* Sends the first request, and the content that belongs to it. */
static int send_first(struct files *files)
{
    struct file_request *request = files->first;
    const struct execution_bytes *bytes = &request->request.bytes;
    if (!request->asked) {
        struct guest_request message;
        fill_request(&request->request, &message);
        int sent = send_piece(files, &message, sizeof message);
        if (sent <= 0)
            return sent;
        request->asked = true;
    }
    while (request->sent < bytes->length) {
        size_t left = bytes->length - request->sent;
        size_t part = left < GUEST_PIECE_MAX ? left : GUEST_PIECE_MAX;
        int sent = send_piece(files, bytes->data + request->sent, part);
        if (sent <= 0)
            return sent;
        request->sent += part;
        files->progress_ms = clock_now_ms();
    }
    return 1;
}

static void feed(struct files *files)
{
    int sent = files->first ? send_first(files) : 1;
    if (sent < 0) {
        give_up(files);
        return;
    }
    if ((sent == 0) == files->writing)
        return;
    files->writing = sent == 0;
    struct epoll_event event = {.events = EPOLLIN | (files->writing ? (uint32_t)EPOLLOUT : 0),
                                .data.ptr = &files->socket};
    (void)epoll_ctl(files->sandbox->executor->epoll, EPOLL_CTL_MOD, files->socket.fd, &event);
}

/* ---- replies: each returns false if it cannot be one ---- */

static bool take_data(struct files *files, struct file_request *request, const char *bytes,
                      size_t length)
{
    if (request->request.operation != SANDBOX_READ ||
        length > request->request.length - request->bytes.length)
        return false;
    size_t before = request->bytes.length;
    str_append_bytes(&request->bytes, bytes, length);
    count_bytes(files->sandbox, request->bytes.length - before);
    return !request->bytes.failed;
}

/* Texts of the jail must not have a NUL, which would end them early. */
static char *copy_text(struct arena *arena, const char *bytes, size_t length)
{
    return memchr(bytes, 0, length) ? NULL : arena_strndup(arena, bytes, length);
}

static bool take_entry(struct files *files, struct file_request *request,
                       const struct guest_reply *head, const char *bytes, size_t length)
{
    bool one = request->request.operation == SANDBOX_STAT;
    if ((!one && request->request.operation != SANDBOX_ENTRIES) || head->path_length == 0 ||
        head->path_length > SANDBOX_PATH_MAX || head->target_length > SANDBOX_PATH_MAX ||
        (size_t)head->path_length + head->target_length != length || head->kind > GUEST_OTHER ||
        head->mode > 07777 || request->entry_count >= (one ? 1 : SANDBOX_LIST_MAX))
        return false;
    if (length > ENTRIES_BYTES_MAX - request->entry_bytes) {
        request->cut = true;
        return true;
    }
    if (request->entry_count == request->entry_room) {
        size_t room = request->entry_room ? 2 * request->entry_room : ENTRIES_FIRST;
        struct sandbox_entry *more = realloc(request->entries, room * sizeof *more);
        if (!more)
            return false;
        request->entries = more;
        request->entry_room = room;
    }
    struct sandbox_entry entry = {
        .path = copy_text(&request->arena, bytes, head->path_length),
        .target = head->kind == GUEST_LINK
                      ? copy_text(&request->arena, bytes + head->path_length, head->target_length)
                      : NULL,
        .kind = (enum sandbox_kind)head->kind,
        .mode = head->mode,
        .uid = head->uid,
        .gid = head->gid,
        .size = head->size,
        .modified_ns = head->modified_ns};
    if (!entry.path || (head->kind == GUEST_LINK && !entry.target))
        return false;
    request->entries[request->entry_count++] = entry;
    request->entry_bytes += length;
    count_bytes(files->sandbox, length);
    return true;
}

/* Events of a flood are dropped while the http process is slow. */
static bool take_event(struct files *files, const struct guest_reply *head, const char *bytes,
                       size_t length)
{
    struct executor *executor = files->sandbox->executor;
    char piece[2 + GUEST_PATH_MAX];
    if (!files->watches || head->kind > GUEST_LOST || length != head->path_length ||
        length >= GUEST_PATH_MAX || memchr(bytes, 0, length))
        return false;
    struct caller caller = files->first->caller;
    if (!files->began) {
        files->began = true;
        executor_sandbox_answer(executor, caller, &(struct sandbox_answer){.more = true});
    }
    if (head->kind == 0 || executor_http_is_full(executor))
        return true;
    piece[0] = SANDBOX_CHANGE;
    piece[1] = (char)head->kind;
    memcpy(piece + 2, bytes, length);
    executor_tell_http(executor, caller.http, MESSAGE_SANDBOX_PIECE, caller.tag, piece, length + 2);
    return true;
}

static bool take_done(struct files *files, struct file_request *request,
                      const struct guest_reply *head)
{
    bool incomplete = head->incomplete != 0 || request->cut;
    if (!request->asked || request->sent < request->request.bytes.length || head->error < 0)
        return false;
    if (request->request.operation == SANDBOX_STAT && head->error == 0 && request->entry_count != 1)
        return false;
    enum sandbox_fault fault = fault_of(head->error);
    char message[STR_SHOWN_MAX + 96] = "";
    if (fault != SANDBOX_OK)
        (void)snprintf(message, sizeof message, "'%s': %s", str_shown(request->request.path).text,
                       strerror(head->error));
    const struct sandbox_answer answer = {
        .fault = fault,
        .message = message,
        .field = fault == SANDBOX_OK ? "" : "path",
        .entries = request->entries,
        .entry_count = fault == SANDBOX_OK ? request->entry_count : 0,
        .incomplete = incomplete,
        .bytes = {request->bytes.data ? request->bytes.data : "", request->bytes.length},
        .file_size = head->bytes,
    };
    answer_first(files, &answer);
    return true;
}

static bool take_reply(struct files *files, const char *message, size_t length)
{
    struct guest_reply head;
    struct file_request *request = files->first;
    if (!request || length < sizeof head)
        return false;
    memcpy(&head, message, sizeof head);
    message += sizeof head;
    length -= sizeof head;
    if (head.version != GUEST_VERSION)
        return false;
    switch (head.type) {
    case GUEST_DATA:
        return take_data(files, request, message, length);
    case GUEST_ENTRY:
        return take_entry(files, request, &head, message, length);
    case GUEST_EVENT:
        return take_event(files, &head, message, length);
    case GUEST_DONE:
        return take_done(files, request, &head);
    default:
        return false;
    }
}

static void socket_ready(void *owner, uint32_t events)
{
    static char message[sizeof(struct guest_reply) + GUEST_PIECE_MAX + 1];
    struct files *files = owner;
    (void)events;
    for (int i = 0; i < MESSAGES_AT_ONCE && !files->over; i++) {
        ssize_t got = recv(files->socket.fd, message, sizeof message, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0 || !take_reply(files, message, (size_t)got)) {
            give_up(files);
            return;
        }
        files->progress_ms = clock_now_ms();
    }
    if (!files->over && files->watches && !files->first)
        close_program(files, SANDBOX_OK, ""); /* the directory could not be watched */
    if (!files->over)
        feed(files);
}

/* ---- starting the program ---- */

static int start_program(struct files *files, struct brig_error *err)
{
    static const char *const argv[] = {JAIL_GUEST, "serve", NULL};
    struct sandbox *sandbox = files->sandbox;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
    autoclose int theirs = pair[1];
    files->socket = (struct executor_source){socket_ready, files, fds_keep_high(pair[0])};
    struct sandbox_request plain = {0};
    const struct brig_policy *policy = executor_command_policy(sandbox, &plain, err);
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = theirs};
    const struct job_source source = {
        .policy = policy, .attach = &sandbox->attach, .jail = sandbox->job};
    int result = policy ? job_start(&source, &command, &files->job, err) : BRIG_E_NOMEM;
    sandbox_request_done(&plain);
    if (result < 0)
        return result;
    files->source = (struct executor_source){job_ready, files, brig_job_fd(files->job)};
    result = executor_watch(sandbox->executor, &files->source, EPOLLIN, err);
    return result < 0 ? result : executor_watch(sandbox->executor, &files->socket, EPOLLIN, err);
}

static struct files *new_program(struct sandbox *sandbox, bool watches, struct brig_error *err)
{
    struct files *files = malloc(sizeof *files);
    if (!files) {
        (void)brig_fail_nomem(err);
        return NULL;
    }
    *files = (struct files){.sandbox = sandbox,
                            .source = {.fd = -1},
                            .socket = {.fd = -1},
                            .watches = watches,
                            .progress_ms = clock_now_ms()};
    files->last = &files->first;
    sandbox->watch_count += watches;
    if (start_program(files, err) < 0) {
        close_fd(&files->socket.fd);
        free_program(files);
        return NULL;
    }
    files->next = sandbox->files;
    sandbox->files = files;
    sandbox->executor->sandboxes.due_ms = 0;
    return files;
}

static struct files *find_program(struct sandbox *sandbox, bool watches, struct brig_error *err)
{
    for (struct files *files = sandbox->files; files && !watches; files = files->next)
        if (!files->watches && !files->over)
            return files;
    return new_program(sandbox, watches, err);
}

/* ---- requests of clients ---- */

static bool is_refused(struct sandbox *sandbox, const struct sandbox_request *request,
                       struct caller caller)
{
    struct executor *executor = sandbox->executor;
    bool watches = request->operation == SANDBOX_WATCH;
    if (!request->path || !*request->path ||
        (request->operation == SANDBOX_MOVE && (!request->target || !*request->target))) {
        executor_sandbox_refuse(executor, caller, SANDBOX_INVALID, "path", "path is missing");
        return true;
    }
    if (!share_has_room(&executor->sandboxes.files, sandbox->request.domain, FILE_BYTES_MAX)) {
        executor_sandbox_refuse(executor, caller, SANDBOX_BUSY, "",
                                "too many large files are on their way");
        return true;
    }
    if (watches && sandbox->watch_count >= WATCHES_MAX) {
        executor_sandbox_refuse(executor, caller, SANDBOX_LIMIT, "",
                                "%d directories of the sandbox are watched, and there may not be "
                                "more",
                                WATCHES_MAX);
        return true;
    }
    return false;
}

void executor_files_asked(struct sandbox *sandbox, struct sandbox_request *request,
                          struct caller caller)
{
    struct executor *executor = sandbox->executor;
    struct brig_error err = {0};
    if (is_refused(sandbox, request, caller))
        return;
    struct files *files = find_program(sandbox, request->operation == SANDBOX_WATCH, &err);
    struct file_request *waiting =
        files && files->count < REQUESTS_MAX ? calloc(1, sizeof *waiting) : NULL;
    if (!waiting) {
        executor_sandbox_refuse(executor, caller, files ? SANDBOX_BUSY : SANDBOX_NO_FILES, "", "%s",
                                files ? "too many requests for files wait" : err.message);
        return;
    }
    waiting->caller = caller;
    waiting->request = *request;
    *request = (struct sandbox_request){0};
    count_bytes(sandbox, waiting->request.bytes.length);
    *files->last = waiting;
    files->last = &waiting->next;
    if (files->count++ == 0)
        files->progress_ms = clock_now_ms();
    if (files->first == waiting)
        feed(files);
}

bool executor_files_left(struct sandbox *sandbox, struct caller caller)
{
    for (struct files *files = sandbox->files; files; files = files->next)
        for (struct file_request *request = files->first; request; request = request->next) {
            if (request->caller.tag != caller.tag || request->caller.http != caller.http)
                continue;
            request->caller.tag = 0; /* it is carried out, and not answered */
            if (files->watches)
                close_program(files, SANDBOX_NO_FILES, "");
            return true;
        }
    return false;
}

void executor_files_settle(struct sandbox *sandbox, uint64_t now_ms)
{
    for (struct files **at = &sandbox->files; *at;) {
        struct files *files = *at;
        uint64_t most = files->first ? PATIENCE_MS : IDLE_MS;
        bool gone = files->watches && files->first &&
                    files->first->caller.http != sandbox->executor->http_processes;
        bool late = !(files->watches && files->began) && now_ms > files->progress_ms &&
                    now_ms - files->progress_ms > most;
        if (!files->over && (gone || (late && sandbox->state != SANDBOX_PAUSED)))
            give_up(files);
        bool frozen = sandbox->state == SANDBOX_PAUSED; /* the program cannot end now */
        if (!files->over || frozen) {
            at = &files->next;
            continue;
        }
        *at = files->next;
        free_program(files);
    }
}

void executor_files_end(struct sandbox *sandbox, enum sandbox_fault fault)
{
    for (struct files *files = sandbox->files; files; files = files->next)
        close_program(files, fault, "the sandbox has ended");
}
