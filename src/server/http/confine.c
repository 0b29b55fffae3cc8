/* SPDX-License-Identifier: MIT */
/* The jail of the http process: see server/confine.h. */
#include "server/http/confine.h"

#include <brig/brig.h>
#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "server/confine.h"

/* Sorted; what is not here does not exist. Those with arguments that matter are below. */
static const int allowed[] = {
    SCMP_SYS(accept),          /* */
    SCMP_SYS(accept4),         /* clients */
    SCMP_SYS(brk),             /* malloc */
    SCMP_SYS(clock_getres),    /* where there is no vDSO */
    SCMP_SYS(clock_gettime),   /* the same */
    SCMP_SYS(close),           /* */
    SCMP_SYS(epoll_ctl),       /* the loop */
    SCMP_SYS(epoll_pwait),     /* the loop */
    SCMP_SYS(epoll_pwait2),    /* the loop, of a later libc */
    SCMP_SYS(epoll_wait),      /* the loop */
    SCMP_SYS(exit),            /* */
    SCMP_SYS(exit_group),      /* */
    SCMP_SYS(fcntl),           /* non-blocking sockets, copies of them */
    SCMP_SYS(fstat),           /* stdio */
    SCMP_SYS(futex),           /* locks of the libraries */
    SCMP_SYS(getegid),         /* GnuTLS: is this set-gid */
    SCMP_SYS(geteuid),         /* the same */
    SCMP_SYS(getgid),          /* the same */
    SCMP_SYS(getpeername),     /* */
    SCMP_SYS(getpid),          /* GnuTLS: was there a fork */
    SCMP_SYS(getrandom),       /* ids, TLS */
    SCMP_SYS(getrusage),       /* GnuTLS: entropy */
    SCMP_SYS(getsockname),     /* */
    SCMP_SYS(getsockopt),      /* errors of sockets */
    SCMP_SYS(gettid),          /* abort() */
    SCMP_SYS(gettimeofday),    /* where there is no vDSO */
    SCMP_SYS(getuid),          /* GnuTLS: is this set-uid */
    SCMP_SYS(lseek),           /* stdio */
    SCMP_SYS(madvise),         /* malloc */
    SCMP_SYS(memfd_create),    /* messages that are large */
    SCMP_SYS(mremap),          /* malloc */
    SCMP_SYS(munmap),          /* malloc */
    SCMP_SYS(poll),            /* is there room in the log's pipe */
    SCMP_SYS(ppoll),           /* the same */
    SCMP_SYS(pread64),         /* messages that are large */
    SCMP_SYS(read),            /* */
    SCMP_SYS(readv),           /* */
    SCMP_SYS(recvfrom),        /* */
    SCMP_SYS(recvmsg),         /* messages */
    SCMP_SYS(restart_syscall), /* after a stop */
    SCMP_SYS(rseq),            /* libc */
    SCMP_SYS(rt_sigaction),    /* abort() */
    SCMP_SYS(rt_sigprocmask),  /* abort() */
    SCMP_SYS(rt_sigreturn),    /* */
    SCMP_SYS(sched_yield),     /* locks of the libraries */
    SCMP_SYS(sendfile),        /* the library's own choice for files; there are none */
    SCMP_SYS(sendmsg),         /* messages, answers */
    SCMP_SYS(sendto),          /* answers */
    SCMP_SYS(set_robust_list), /* libc */
    SCMP_SYS(setsockopt),      /* no delay */
    SCMP_SYS(shutdown),        /* who is too slow */
    SCMP_SYS(sigaltstack),     /* of sanitizers, at the end */
    SCMP_SYS(time),            /* where there is no vDSO */
    SCMP_SYS(write),           /* the log */
    SCMP_SYS(writev),          /* */
};

static int add_rules(void *filter, const void *unused)
{
    int status = 0;
    (void)unused;
    for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++)
        status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    /* Memory without code. */
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return status;
}

/* Nothing of the filesystem, and no network of its own. */
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
