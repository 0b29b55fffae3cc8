/* SPDX-License-Identifier: MIT */
/* Whether the jail is why a function failed. What the function says is checked: the jail is blamed
 * only for what its policy does not grant. That the caller's own permissions would have refused it as
 * well makes no difference: root and other users are told the same. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "call/call.h"
#include "jail/confine/seccomp.h"

static bool is_write(enum brig_call_access access)
{
    return access == BRIG_CALL_ACCESS_WRITE;
}

/* Cuts the last component off; false if there is none. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return false;
    slash[slash == path] = 0;
    return true;
}

/* The path as the kernel has it, without links. Of what does not exist it is the directory it would be
 * in; of what this user may not reach, the nearest directory above it that can be opened. */
static bool resolve(const char *path, char real[PATH_LENGTH_MAX + 1], bool *ret_exists)
{
    char above[PATH_LENGTH_MAX + 1], link[64];
    if (strlen(path) >= sizeof above)
        return false;
    (void)snprintf(above, sizeof above, "%s", path);
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    *ret_exists = fd >= 0 || errno == EACCES;
    if (fd < 0 && errno == ENOENT && cut_last(above))
        fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EACCES && cut_last(above))
        fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, real, PATH_LENGTH_MAX);
    if (got <= 0)
        return false;
    real[got] = 0;
    return real[0] == '/';
}

static void fill(struct brig_call_denial *denial, enum brig_call_outcome kind,
                 const struct memory_failure *failure, const char *subject, const char *rule)
{
    *denial = (struct brig_call_denial){
        .kind = kind, .access = failure->access, .sys_errno = failure->sys_errno};
    (void)snprintf(denial->subject, sizeof denial->subject, "%s", subject);
    (void)snprintf(denial->rule, sizeof denial->rule, "%s", rule);
}

/* What a jail's filesystem answers: Landlock EACCES, and EXDEV to moves; a view ENOENT and EROFS. */
static bool is_filesystem_error(const struct brig_caller *caller, int sys_errno)
{
    if (!caller->full && caller->ruleset < 0) /* then it refuses nothing */
        return false;
    if (sys_errno == EACCES || sys_errno == EXDEV)
        return true;
    return caller->full && (sys_errno == ENOENT || sys_errno == EROFS);
}

static bool check_path(const struct brig_caller *caller, const struct memory_failure *failure,
                       struct brig_call_denial *ret)
{
    const char *path = failure->texts[MEMORY_PATH];
    char real[PATH_LENGTH_MAX + 1];
    bool exists;
    if (!path || path[0] != '/' || !is_filesystem_error(caller, failure->sys_errno) ||
        !resolve(path, real, &exists))
        return false;
    if (!exists && failure->sys_errno == ENOENT)
        return false; /* it is nowhere */
    struct memory_failure tried = *failure;
    /* Who does not know what was tried was not reading where reading is granted. */
    if (tried.access == BRIG_CALL_ACCESS_UNKNOWN)
        tried.access = exists && !confine_cover(caller->policy, real, false)
                           ? BRIG_CALL_ACCESS_READ
                           : BRIG_CALL_ACCESS_WRITE;
    bool write = !exists || is_write(tried.access);
    if (confine_cover(caller->policy, real, write))
        return false;
    fill(ret, BRIG_CALL_FILESYSTEM, &tried, path,
         write ? "not below any path of fs_allow"
               : "not below a path of fs_allow or fs_read_allow, and not part of the system");
    return true;
}

static bool is_network_error(int sys_errno)
{
    return sys_errno == EACCES || sys_errno == EPERM || sys_errno == ENETUNREACH ||
           sys_errno == EAFNOSUPPORT || sys_errno == EADDRNOTAVAIL;
}

static bool check_network(const struct brig_caller *caller, const struct memory_failure *failure,
                          struct brig_call_denial *ret)
{
    const char *address = failure->texts[MEMORY_ADDRESS];
    if (!address || caller->policy->network != BRIG_NET_NONE ||
        !is_network_error(failure->sys_errno))
        return false;
    fill(ret, BRIG_CALL_NETWORK, failure, address, "the call has no network");
    return true;
}

static const struct sock_fprog *filter_of(const struct brig_caller *caller)
{
    const struct brig_policy *policy = caller->policy;
    if (policy->disabled_layers & BRIG_LAYER_SECCOMP)
        return NULL;
    return caller->full ? seccomp_program(policy->seccomp, policy->network, policy->allow_nested)
                        : caller->plan.seccomp;
}

static bool check_syscall(const struct brig_caller *caller, const struct memory_failure *failure,
                          struct brig_call_denial *ret)
{
    const char *name = failure->texts[MEMORY_SYSCALL];
    const struct sock_fprog *filter = filter_of(caller);
    int number = name ? seccomp_number(name) : -1;
    if (number < 0 || !filter || failure->sys_errno == 0)
        return false;
    bool socket = strcmp(name, "socket") == 0;
    const uint64_t args[6] = {socket ? AF_INET : 0, socket ? SOCK_STREAM : 0};
    const uint64_t local[6] = {AF_UNIX, SOCK_STREAM};
    bool refused = seccomp_verdict(filter, number, args) == failure->sys_errno ||
                   (socket && seccomp_verdict(filter, number, local) == failure->sys_errno);
    if (!refused)
        return false;
    bool network = socket && caller->policy->network == BRIG_NET_NONE;
    fill(ret, network ? BRIG_CALL_NETWORK : BRIG_CALL_SYSCALL, failure, name,
         network ? "the call has no network" : "refused by the syscall filter");
    return true;
}

bool denial_check(const struct brig_caller *caller, const struct memory_failure *failure,
                  struct brig_call_denial *ret)
{
    return check_path(caller, failure, ret) || check_network(caller, failure, ret) ||
           check_syscall(caller, failure, ret);
}
