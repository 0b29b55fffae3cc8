/* SPDX-License-Identifier: MIT */
/* Confines the http process: see server/confine.h. */
#include "server/http/http.h"

#include <brig/brig.h>
#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "server/confine.h"

/* All other calls fail with ENOSYS. Calls with restricted arguments are below. */
static const int allowed[] = {
    /* clients, messages, the log, and copies of sockets */
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(close), SCMP_SYS(fcntl), SCMP_SYS(getpeername),
    SCMP_SYS(getsockname), SCMP_SYS(getsockopt), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(read),
    SCMP_SYS(readv), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(sendto),
    SCMP_SYS(setsockopt), SCMP_SYS(shutdown), SCMP_SYS(write), SCMP_SYS(writev),
    /* the event loop, with any libc */
    SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(epoll_wait),
    /* malloc, and locks in libraries */
    SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mremap), SCMP_SYS(munmap), SCMP_SYS(futex),
    SCMP_SYS(sched_yield), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
    /* the time, where there is no vDSO */
    SCMP_SYS(clock_getres), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    /* stdio, and libmicrohttpd's choice for files, which are not used */
    SCMP_SYS(fstat), SCMP_SYS(lseek), SCMP_SYS(sendfile),
    /* random ids and TLS; GnuTLS checks for set-uid and fork, and gathers entropy */
    SCMP_SYS(getrandom), SCMP_SYS(getegid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getpid),
    SCMP_SYS(getrusage), SCMP_SYS(getuid),
    /* exit, abort(), sanitizers, and continuing after a stop */
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(gettid), SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall)};

static int add_rules(void *filter, const void *unused)
{
    int status = 0;
    (void)unused;
    for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++)
        status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    /* No executable memory. */
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return status;
}

/* No files and no network. */
int confine_http(uint64_t open_files, struct brig_error *err)
{
    const struct confine_filter filter = {.otherwise = SCMP_ACT_ERRNO(ENOSYS),
                                          .add_rules = add_rules};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return brig_fail_nomem(err);
    int result = brig_policy_view(policy, BRIG_VIEW_EMPTY, NULL, err);
    if (result == 0)
        result = brig_policy_network(policy, BRIG_NET_NONE, err);
    if (result == 0)
        result = confine_process("http", policy, open_files, &filter, err);
    brig_policy_free(policy);
    return result;
}
