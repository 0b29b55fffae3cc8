/* SPDX-License-Identifier: MIT */
/* Called by the function in the child: returning a value or a failure. */
#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sized.h"
#include "call/call.h"

#define SMALL_ROOM (MEMORY_SMALL_BYTES - MEMORY_HEAD_BYTES)

static void forget_large(struct brig_call_child *child)
{
    if (child->large)
        (void)munmap(child->large, child->large_length);
    child->large = NULL;
}

static int refuse(struct brig_call_child *child, enum memory_state state, int code)
{
    child->head->state = state;
    return code;
}

/* Returns memory for `length` bytes after the head, in the first mapping or in one made for it. */
static void *make_room(struct brig_call_child *child, size_t length)
{
    forget_large(child);
    if (length <= SMALL_ROOM)
        return child->small;
    void *large =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, child->fd, MEMORY_HEAD_BYTES);
    if (large == MAP_FAILED)
        return NULL;
    child->large = large;
    child->large_length = length;
    return large;
}

void *brig_call_reserve(struct brig_call_child *child, size_t length)
{
    if (length > child->limit) {
        (void)refuse(child, MEMORY_TOO_LARGE, 0);
        return NULL;
    }
    void *room = make_room(child, length);
    if (!room) {
        (void)refuse(child, MEMORY_NO_ROOM, 0);
        return NULL;
    }
    if (child->used)
        memset(room, 0, length);
    child->used = true;
    child->head->length = length;
    child->head->state = MEMORY_RETURNED;
    return room;
}

int brig_call_shrink(struct brig_call_child *child, size_t length)
{
    if (child->head->state != MEMORY_RETURNED || length > child->head->length)
        return BRIG_E_INVALID;
    child->head->length = length;
    return 0;
}

/* Writing is faster than mapping, because the kernel need not clear pages that are overwritten
 * completely. But with an RLIMIT_FSIZE it would raise SIGXFSZ. */
static bool write_large(const struct brig_call_child *child, const char *bytes, size_t length)
{
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) < 0 || size.rlim_cur != RLIM_INFINITY)
        return false;
    for (size_t done = 0; done < length;) {
        ssize_t count =
            pwrite(child->fd, bytes + done, length - done, (off_t)(MEMORY_HEAD_BYTES + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

int brig_call_return(struct brig_call_child *child, const void *bytes, size_t length)
{
    if (length > child->limit)
        return refuse(child, MEMORY_TOO_LARGE, BRIG_E_INVALID);
    if (length > SMALL_ROOM && write_large(child, bytes, length)) {
        forget_large(child);
    } else {
        void *room = make_room(child, length);
        if (!room)
            return refuse(child, MEMORY_NO_ROOM, BRIG_E_NOMEM);
        if (length > 0)
            memcpy(room, bytes, length);
    }
    child->used = true;
    child->head->length = length;
    child->head->state = MEMORY_RETURNED;
    return 0;
}

/* ---- failures ---- */

/* A relative path is resolved here, because only the child knows its working directory. */
static const char *make_absolute(const char *path, char buffer[PATH_LENGTH_MAX + 1])
{
    char directory[PATH_LENGTH_MAX + 1];
    if (!path || path[0] == '/' || !getcwd(directory, sizeof directory))
        return path;
    int length = snprintf(buffer, PATH_LENGTH_MAX + 1, "%s/%s", directory, path);
    return length > 0 && length <= PATH_LENGTH_MAX ? buffer : path;
}

int brig_call_fail(struct brig_call_child *child, const struct brig_call_failure *given)
{
    struct brig_call_failure known;
    const struct brig_call_failure *failure = &known;
    if (sized_read(&known, sizeof known, given, "BRIG_CALL_FAILURE_INIT", NULL) < 0)
        return BRIG_E_INVALID;
    char buffer[PATH_LENGTH_MAX + 1];
    const char *texts[MEMORY_TEXTS] = {
        [MEMORY_CLASS] = failure->class_name,
        [MEMORY_MESSAGE] = failure->message,
        [MEMORY_BACKTRACE] = failure->backtrace,
        [MEMORY_PATH] = make_absolute(failure->path, buffer),
        [MEMORY_ADDRESS] = failure->address,
        [MEMORY_SYSCALL] = failure->syscall,
    };
    /* The backtrace comes last: it may be long and is cut off first. */
    static const enum memory_text order[] = {MEMORY_CLASS,   MEMORY_PATH,    MEMORY_ADDRESS,
                                             MEMORY_SYSCALL, MEMORY_MESSAGE, MEMORY_BACKTRACE};
    size_t lengths[MEMORY_TEXTS] = {0}, left = BRIG_CALL_TEXT_MAX;
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
        size_t length = texts[order[i]] ? strlen(texts[order[i]]) : 0;
        lengths[order[i]] = length < left ? length : left;
        left -= lengths[order[i]];
    }
    char *room = make_room(child, BRIG_CALL_TEXT_MAX - left);
    struct memory_head *head = child->head;
    memset(head->text_lengths, 0, sizeof head->text_lengths);
    for (size_t i = 0; i < MEMORY_TEXTS && room; i++) { /* no room: numbers only */
        if (texts[i] && lengths[i] > 0)
            memcpy(room, texts[i], lengths[i]);
        head->text_lengths[i] = (uint32_t)lengths[i];
        room += lengths[i];
    }
    head->sys_errno = failure->sys_errno;
    head->access = failure->access;
    head->out_of_memory = failure->out_of_memory;
    child->used = true;
    head->state = MEMORY_FAILED;
    return -1;
}

int brig_call_fail_errno(struct brig_call_child *child, int sys_errno, const char *path,
                         enum brig_call_access access)
{
    static const char *const verbs[] = {
        [BRIG_CALL_ACCESS_UNKNOWN] = "use",        [BRIG_CALL_ACCESS_READ] = "read",
        [BRIG_CALL_ACCESS_WRITE] = "write",        [BRIG_CALL_ACCESS_EXECUTE] = "execute",
        [BRIG_CALL_ACCESS_CONNECT] = "connect to", [BRIG_CALL_ACCESS_BIND] = "bind to",
    };
    char message[512], text[ERROR_TEXT_MAX];
    size_t verb = (size_t)access < ARRAY_LENGTH(verbs) ? (size_t)access : 0;
    if (path)
        (void)snprintf(message, sizeof message, "cannot %s '%s': %s", verbs[verb], path,
                       error_text(sys_errno, text));
    else
        (void)snprintf(message, sizeof message, "%s", error_text(sys_errno, text));
    bool network = access == BRIG_CALL_ACCESS_CONNECT || access == BRIG_CALL_ACCESS_BIND;
    return brig_call_fail(child, &(struct brig_call_failure){
                                     .size = sizeof(struct brig_call_failure),
                                     .message = message,
                                     .path = network ? NULL : path,
                                     .address = network ? path : NULL,
                                     .sys_errno = sys_errno,
                                     .access = access,
                                 });
}

int child_fail_number(struct brig_call_child *child, int number)
{
    char message[32];
    (void)snprintf(message, sizeof message, "%d", number);
    return brig_call_fail(child, &(struct brig_call_failure){
                                     .size = sizeof(struct brig_call_failure), .message = message});
}

void brig_call_leave(struct brig_call_child *child)
{
    if (__fpending(stdout) > 0)
        (void)fflush(stdout);
    if (__fpending(stderr) > 0)
        (void)fflush(stderr);
    child->head->left = 1;
    _exit(0);
}
