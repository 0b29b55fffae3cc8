/* SPDX-License-Identifier: MIT */
/* Tracing of files in a call without namespaces. Landlock tells only the kernel's audit log what it
 * refuses, which an ordinary user cannot read. So a traced call asks the supervisor before each system
 * call that uses a path; the supervisor reads the path and records it if the policy does not grant
 * it. The system call then goes on, whatever was found: Landlock alone decides. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "call/call.h"
#include "jail/confine/seccomp.h"

enum use {
    USE_OPEN,    /* as its flags say */
    USE_CREAT,   /* creates or writes */
    USE_EXECUTE, /* reads */
    USE_NAME,    /* makes or removes a name: writes to the directory of the path */
};

/* The arguments of the system calls that Landlock restricts by a path. -1: there is none. */
static const struct path_use {
    const char *name;
    enum use use;
    int dir_arg, path_arg, flags_arg;
} path_uses[] = {
    {"open", USE_OPEN, -1, 0, 1},        {"openat", USE_OPEN, 0, 1, 2},
    {"creat", USE_CREAT, -1, 0, -1},     {"execve", USE_EXECUTE, -1, 0, -1},
    {"execveat", USE_EXECUTE, 0, 1, -1}, {"mkdir", USE_NAME, -1, 0, -1},
    {"mkdirat", USE_NAME, 0, 1, -1},     {"mknod", USE_NAME, -1, 0, -1},
    {"mknodat", USE_NAME, 0, 1, -1},     {"rmdir", USE_NAME, -1, 0, -1},
    {"unlink", USE_NAME, -1, 0, -1},     {"unlinkat", USE_NAME, 0, 1, -1},
    {"symlink", USE_NAME, -1, 1, -1},    {"symlinkat", USE_NAME, 1, 2, -1},
    {"link", USE_NAME, -1, 1, -1},       {"linkat", USE_NAME, 2, 3, -1},
    {"rename", USE_NAME, -1, 0, -1},     {"rename", USE_NAME, -1, 1, -1},
    {"renameat", USE_NAME, 0, 1, -1},    {"renameat", USE_NAME, 2, 3, -1},
    {"renameat2", USE_NAME, 0, 1, -1},   {"renameat2", USE_NAME, 2, 3, -1},
};

/* ---- the filter ---- */

size_t trace_files_filter(struct sock_filter *room)
{
    size_t at = 0, count = ARRAY_LENGTH(path_uses);
    room[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        /* A name that this architecture does not have is -1, which no call has as its number. */
        uint32_t number = (uint32_t)seccomp_number(path_uses[i].name);
        room[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number,
                                                  (uint8_t)(count - i), 0);
    }
    room[at++] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1);
    room[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    _Static_assert(ARRAY_LENGTH(path_uses) + 3 == TRACE_FILES_FILTER, "there is room");
    return at;
}

/* ---- the path ---- */

/* Reads a string of the function's process, page by page, as the next one may not be mapped. */
static bool read_path(pid_t pid, uint64_t address, char path[PATH_LENGTH_MAX + 1])
{
    const size_t page = 4096;
    for (size_t done = 0; done < PATH_LENGTH_MAX;) {
        size_t wanted = page - (size_t)((address + done) % page);
        if (wanted > PATH_LENGTH_MAX - done)
            wanted = PATH_LENGTH_MAX - done;
        struct iovec here = {path + done, wanted};
        struct iovec there = {(void *)(uintptr_t)(address + done), wanted}; /* NOLINT */
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got <= 0)
            return false;
        if (memchr(path + done, 0, (size_t)got))
            return true;
        done += (size_t)got;
    }
    return false;
}

/* Makes the path absolute: what it starts from is the process's. */
static bool find_path(const struct notice *notice, const struct path_use *use,
                      char found[PATH_LENGTH_MAX + 1])
{
    char path[PATH_LENGTH_MAX + 1], link[64], base[PATH_LENGTH_MAX + 1];
    if (!read_path(notice->pid, notice->args[use->path_arg], path) || !path[0])
        return false;
    const char *self = "/proc/self/";
    if (strncmp(path, self, strlen(self)) == 0)
        return snprintf(found, PATH_LENGTH_MAX + 1, "/proc/%d/%s", notice->pid,
                        path + strlen(self)) <= PATH_LENGTH_MAX;
    if (path[0] == '/')
        return snprintf(found, PATH_LENGTH_MAX + 1, "%s", path) <= PATH_LENGTH_MAX;
    int dir = use->dir_arg < 0 ? AT_FDCWD : (int)notice->args[use->dir_arg];
    if (dir == AT_FDCWD)
        (void)snprintf(link, sizeof link, "/proc/%d/cwd", notice->pid);
    else
        (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", notice->pid, dir);
    ssize_t length = readlink(link, base, PATH_LENGTH_MAX);
    return length > 0 && base[0] == '/' &&
           snprintf(found, PATH_LENGTH_MAX + 1, "%.*s/%s", (int)length, base, path) <=
               PATH_LENGTH_MAX;
}

/* ---- what Landlock makes of it ---- */

static bool exists(const char *path)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0;
}

/* Resolves the directory that holds the last name of the path. */
static bool resolve_directory(const char *path, char real[PATH_LENGTH_MAX + 1])
{
    char above[PATH_LENGTH_MAX + 1];
    (void)snprintf(above, sizeof above, "%s", path);
    for (size_t length = strlen(above); length > 1 && above[length - 1] == '/';)
        above[--length] = 0;
    char *slash = strrchr(above, '/');
    if (!slash)
        return false;
    slash[slash == above] = 0;
    return path_resolve(above, real);
}

/* Returns the access that the policy does not grant, or BRIG_CALL_ACCESS_UNKNOWN: it is granted, or
 * the call fails for another reason, such as a file that does not exist. */
static enum brig_call_access find_refused(const struct brig_policy *policy,
                                          const struct notice *notice, const struct path_use *use,
                                          const char *path)
{
    char real[PATH_LENGTH_MAX + 1];
    uint64_t flags = use->flags_arg < 0 ? 0 : notice->args[use->flags_arg];
    bool creates = use->use == USE_CREAT || (use->use == USE_OPEN && flags & O_CREAT);
    if (use->use == USE_OPEN && flags & O_PATH)
        return BRIG_CALL_ACCESS_UNKNOWN;
    bool there = exists(path);
    if (!there && !creates && use->use != USE_NAME)
        return BRIG_CALL_ACCESS_UNKNOWN;
    if (use->use == USE_NAME || !there)
        return resolve_directory(path, real) && !confine_cover(policy, real, true)
                   ? BRIG_CALL_ACCESS_WRITE
                   : BRIG_CALL_ACCESS_UNKNOWN;
    bool write = use->use == USE_CREAT || (use->use == USE_OPEN && (flags & O_ACCMODE) != O_RDONLY);
    if (!path_resolve(path, real) || confine_cover(policy, real, write))
        return BRIG_CALL_ACCESS_UNKNOWN;
    return write                     ? BRIG_CALL_ACCESS_WRITE
           : use->use == USE_EXECUTE ? BRIG_CALL_ACCESS_EXECUTE
                                     : BRIG_CALL_ACCESS_READ;
}

static void note(struct brig_call *call, enum brig_call_access access, const char *path)
{
    struct brig_call_denial denial = {
        .kind = BRIG_CALL_FILESYSTEM, .access = access, .sys_errno = EACCES, .traced = 1};
    (void)snprintf(denial.subject, sizeof denial.subject, "%.*s", (int)sizeof denial.subject - 1,
                   path);
    (void)snprintf(denial.rule, sizeof denial.rule, "%s",
                   denial_path_rule(access == BRIG_CALL_ACCESS_WRITE));
    outcome_note_traced(call, &denial);
}

void trace_files_look(struct brig_call *call, const struct notice *notice)
{
    const char *name = seccomp_name(notice->number);
    for (size_t i = 0; name && i < ARRAY_LENGTH(path_uses); i++) {
        char path[PATH_LENGTH_MAX + 1];
        if (strcmp(path_uses[i].name, name) != 0 || !find_path(notice, &path_uses[i], path))
            continue;
        enum brig_call_access refused =
            find_refused(call->caller->policy, notice, &path_uses[i], path);
        if (refused != BRIG_CALL_ACCESS_UNKNOWN)
            note(call, refused, path);
    }
}
