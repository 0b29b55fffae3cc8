/* SPDX-License-Identifier: MIT */
/* The system calls of brig-broker: what is not in the table does not exist (ENOSYS, which libraries
 * know how to do without). */
#include "net/broker_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/error.h"

#define FOR_BROKER (1u << CONFINE_BROKER)
#define FOR_CONNECTOR (1u << CONFINE_CONNECTOR)
#define FOR_BOTH (FOR_BROKER | FOR_CONNECTOR)

/* Sorted. Those with arguments that matter are below. */
static const struct filter_row {
    int number;
    unsigned roles;
} rows[] = {
    {SCMP_SYS(accept4), FOR_BROKER},         /* connections from the jail */
    {SCMP_SYS(brk), FOR_BOTH},               /* malloc */
    {SCMP_SYS(clock_getres), FOR_BROKER},    /* where there is no vDSO */
    {SCMP_SYS(clock_gettime), FOR_BOTH},     /* the same */
    {SCMP_SYS(close), FOR_BOTH},             /* */
    {SCMP_SYS(connect), FOR_BOTH},           /* upstream; the jail's loopback */
    {SCMP_SYS(epoll_ctl), FOR_BROKER},       /* the loop */
    {SCMP_SYS(epoll_pwait), FOR_BROKER},     /* the loop */
    {SCMP_SYS(epoll_pwait2), FOR_BROKER},    /* the loop, of a later libc */
    {SCMP_SYS(epoll_wait), FOR_BROKER},      /* the loop */
    {SCMP_SYS(exit), FOR_BOTH},              /* */
    {SCMP_SYS(exit_group), FOR_BOTH},        /* */
    {SCMP_SYS(fcntl), FOR_BROKER},           /* non-blocking sockets, sizes of pipes */
    {SCMP_SYS(fstat), FOR_BROKER},           /* stdio on resolv.conf, secrets */
    {SCMP_SYS(futex), FOR_BROKER},           /* locks of the libraries */
    {SCMP_SYS(getegid), FOR_BROKER},         /* OpenSSL: is this set-gid */
    {SCMP_SYS(geteuid), FOR_BROKER},         /* the same */
    {SCMP_SYS(getgid), FOR_BROKER},          /* the same */
    {SCMP_SYS(getpeername), FOR_BROKER},     /* is a socket connected */
    {SCMP_SYS(getpid), FOR_BROKER},          /* OpenSSL: was there a fork */
    {SCMP_SYS(getrandom), FOR_BROKER},       /* ids of queries, TLS */
    {SCMP_SYS(getsockname), FOR_BROKER},     /* which address was meant */
    {SCMP_SYS(getsockopt), FOR_BROKER},      /* the same, redirected; errors of connect */
    {SCMP_SYS(gettid), FOR_BOTH},            /* abort() */
    {SCMP_SYS(gettimeofday), FOR_BROKER},    /* where there is no vDSO */
    {SCMP_SYS(getuid), FOR_BROKER},          /* OpenSSL: is this set-uid */
    {SCMP_SYS(lseek), FOR_BROKER},           /* stdio */
    {SCMP_SYS(madvise), FOR_BROKER},         /* malloc, secrets */
    {SCMP_SYS(mlock), FOR_BROKER},           /* secrets */
    {SCMP_SYS(mremap), FOR_BROKER},          /* malloc */
    {SCMP_SYS(munlock), FOR_BROKER},         /* secrets */
    {SCMP_SYS(munmap), FOR_BOTH},            /* malloc */
    {SCMP_SYS(newfstatat), FOR_BROKER},      /* has resolv.conf changed */
    {SCMP_SYS(pipe2), FOR_BROKER},           /* for splice */
    {SCMP_SYS(poll), FOR_BOTH},              /* libcurl asks about one socket; the connector */
    {SCMP_SYS(ppoll), FOR_BOTH},             /* the same */
    {SCMP_SYS(pread64), FOR_BROKER},         /* secrets */
    {SCMP_SYS(read), FOR_BROKER},            /* */
    {SCMP_SYS(readv), FOR_BROKER},           /* */
    {SCMP_SYS(recvfrom), FOR_BROKER},        /* */
    {SCMP_SYS(recvmsg), FOR_BOTH},           /* the job's messages, the broker's */
    {SCMP_SYS(restart_syscall), FOR_BOTH},   /* after a stop */
    {SCMP_SYS(rseq), FOR_BROKER},            /* libc */
    {SCMP_SYS(rt_sigaction), FOR_BROKER},    /* libcurl about SIGPIPE, abort() */
    {SCMP_SYS(rt_sigprocmask), FOR_BOTH},    /* abort() */
    {SCMP_SYS(rt_sigreturn), FOR_BOTH},      /* */
    {SCMP_SYS(sched_yield), FOR_BROKER},     /* locks of the libraries */
    {SCMP_SYS(sendmsg), FOR_BOTH},           /* requests to the connector, its answers */
    {SCMP_SYS(sendto), FOR_BOTH},            /* */
    {SCMP_SYS(set_robust_list), FOR_BROKER}, /* libc */
    {SCMP_SYS(setsockopt), FOR_BROKER},      /* no delay, resets */
    {SCMP_SYS(shutdown), FOR_BROKER},        /* half-closed connections */
    {SCMP_SYS(splice), FOR_BROKER},          /* */
    {SCMP_SYS(stat), FOR_BROKER},            /* has resolv.conf changed */
    {SCMP_SYS(statx), FOR_BROKER},           /* the same, of a later libc */
    {SCMP_SYS(time), FOR_BROKER},            /* where there is no vDSO */
    {SCMP_SYS(uname), FOR_BROKER},           /* c-ares: the name of this machine */
    {SCMP_SYS(write), FOR_BOTH},             /* messages of a library that gives up */
    {SCMP_SYS(writev), FOR_BROKER},          /* the same; libcurl */
};

static const int families[] = {AF_INET, AF_INET6};

/* TCP, and for the broker UDP to ask resolvers. */
static int allow_sockets(scmp_filter_ctx filter, enum confine_role role)
{
    const unsigned type_bits = SOCK_STREAM | SOCK_DGRAM | SOCK_RAW | SOCK_SEQPACKET | SOCK_PACKET;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
        const scmp_datum_t family = (scmp_datum_t)families[i];
        status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                                   SCMP_A0_32(SCMP_CMP_EQ, family, 0),
                                   SCMP_A1_32(SCMP_CMP_MASKED_EQ, type_bits, SOCK_STREAM));
        if (role == CONFINE_BROKER)
            status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                                       SCMP_A0_32(SCMP_CMP_EQ, family, 0),
                                       SCMP_A1_32(SCMP_CMP_MASKED_EQ, type_bits, SOCK_DGRAM));
    }
    return status;
}

/* Files for reading, memory without code. */
static int allow_narrowed(scmp_filter_ctx filter, enum confine_role role)
{
    const unsigned writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_PATH;
    int status = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                                  SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (role != CONFINE_BROKER)
        return status;
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                               SCMP_A2_32(SCMP_CMP_MASKED_EQ, writes, 0));
    /* sysconf(): limits are read, not set. */
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                               SCMP_A2_64(SCMP_CMP_EQ, 0, 0));
    status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                               SCMP_A1_32(SCMP_CMP_MASKED_EQ, writes, 0));
    return status;
}

static int fill(scmp_filter_ctx filter, enum confine_role role)
{
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].roles & (1u << role))
            status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, rows[i].number, 0);
    status |= allow_sockets(filter, role);
    status |= allow_narrowed(filter, role);
    return status;
}

int filter_install(enum confine_role role, struct brig_error *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!filter)
        return brig_fail_nomem(err);
    int status = fill(filter, role);
    if (status == 0)
        status = seccomp_load(filter);
    seccomp_release(filter);
    if (status != 0)
        return brig_fail(err, BRIG_E_SYSTEM, status < 0 ? -status : 0,
                         "the broker cannot install its syscall filter");
    return 0;
}
