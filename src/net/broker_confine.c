/* SPDX-License-Identifier: MIT */
/* The sandbox of the broker. */
#include "net/broker_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/certificates.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "net/broker_config.h"

/* Missing in the kernel headers of the oldest supported distribution. */
#define LL_TRUNCATE (1ull << 14)
#define LL_IOCTL_DEV (1ull << 15)
#define LL_NET_BIND_TCP (1ull << 0)
#define LL_SCOPE_ALL 3ull /* abstract sockets, signals */

#define CAPABILITIES_MAX 64

/* The kernel's struct landlock_ruleset_attr. A kernel accepts a larger struct if the members that
 * it does not know are zero. */
struct ruleset {
    uint64_t handled_fs;
    uint64_t handled_net; /* ABI 4 */
    uint64_t scoped;      /* ABI 6 */
};

void confine_early(int last_fd)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)syscall(SYS_close_range, (unsigned)last_fd + 1, ~0u, 0u);
    (void)setsid();
    /* Without CAP_SETPCAP this fails, which does not matter, because no_new_privs is set as
     * well. */
    for (unsigned long i = 0; i < CAPABILITIES_MAX; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
            break; /* not permitted, or past the last capability */
    /* Keyboard signals are for the jail; the broker ends when the job does. */
    static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTOU, SIGTTIN};
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

int confine_user(bool has_user, uid_t uid, gid_t gid, struct brig_error *err)
{
    if (geteuid() != 0)
        return 0;
    if (!has_user)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the broker was started as root without a user to change to");
    if (uid == 0)
        return 0; /* in a user namespace without another id */
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot become uid %u, gid %u", uid,
                         gid);
    (void)prctl(PR_SET_DUMPABLE, 0);
    return 0;
}

/* ---- Capabilities and limits ---- */

static int drop_capabilities(struct brig_error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}, {0}};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot drop its capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot set no_new_privs");
    return 0;
}

static int lower_limits(struct brig_error *err)
{
    static const int resources[] = {RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_FSIZE};
    const struct rlimit none = {0, 0};
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++)
        if (setrlimit((__rlimit_resource_t)resources[i], &none) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot lower its limits");
    return 0;
}

/* ---- Landlock ---- */

static struct ruleset ruleset_at(long abi)
{
    struct ruleset ruleset = {.handled_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    if (abi >= 2)
        ruleset.handled_fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        ruleset.handled_fs |= LL_TRUNCATE;
    if (abi >= 4)
        ruleset.handled_net = LL_NET_BIND_TCP;
    if (abi >= 5)
        ruleset.handled_fs |= LL_IOCTL_DEV;
    if (abi >= 6)
        ruleset.scoped = LL_SCOPE_ALL;
    return ruleset;
}

static void allow_reading(int ruleset, const char *path)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    const struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                                    .parent_fd = fd};
    if (fd >= 0)
        (void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int raise_landlock(const char *const *files, struct brig_error *err)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return 0; /* no Landlock in this kernel: the filter below remains */
    const struct ruleset attr = ruleset_at(abi);
    autoclose int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (ruleset < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot make Landlock rules");
    for (; *files; files++)
        allow_reading(ruleset, *files);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot restrict itself");
    return 0;
}

/* ---- System calls ---- */

#define FOR_BROKER (1u << CONFINE_BROKER)
#define FOR_CONNECTOR (1u << CONFINE_CONNECTOR)
#define FOR_BOTH (FOR_BROKER | FOR_CONNECTOR)

/* Sorted. Calls that are neither here nor below fail with ENOSYS, for which libraries have
 * fallbacks. */
static const struct filter_row {
    int number;
    unsigned roles;
} rows[] = {
    {SCMP_SYS(accept4), FOR_BROKER},         /* connections from the jail */
    {SCMP_SYS(brk), FOR_BOTH},               /* malloc */
    {SCMP_SYS(clock_getres), FOR_BROKER},    /* without a vDSO */
    {SCMP_SYS(clock_gettime), FOR_BOTH},     /* the same */
    {SCMP_SYS(close), FOR_BOTH},             /* */
    {SCMP_SYS(connect), FOR_BOTH},           /* upstream; the jail's loopback */
    {SCMP_SYS(epoll_ctl), FOR_BROKER},       /* the loop */
    {SCMP_SYS(epoll_pwait), FOR_BROKER},     /* the loop */
    {SCMP_SYS(epoll_pwait2), FOR_BROKER},    /* the loop, newer libc */
    {SCMP_SYS(epoll_wait), FOR_BROKER},      /* the loop */
    {SCMP_SYS(exit), FOR_BOTH},              /* */
    {SCMP_SYS(exit_group), FOR_BOTH},        /* */
    {SCMP_SYS(fcntl), FOR_BROKER},           /* non-blocking sockets */
    {SCMP_SYS(fstat), FOR_BROKER},           /* stdio on resolv.conf, secrets */
    {SCMP_SYS(futex), FOR_BROKER},           /* locks of the libraries */
    {SCMP_SYS(getegid), FOR_BROKER},         /* OpenSSL: setgid check */
    {SCMP_SYS(geteuid), FOR_BROKER},         /* the same */
    {SCMP_SYS(getgid), FOR_BROKER},          /* the same */
    {SCMP_SYS(getpeername), FOR_BROKER},     /* whether a socket is connected */
    {SCMP_SYS(getpid), FOR_BROKER},          /* OpenSSL: fork detection */
    {SCMP_SYS(getrandom), FOR_BROKER},       /* ids of queries, TLS */
    {SCMP_SYS(getsockname), FOR_BROKER},     /* the destination of a connection */
    {SCMP_SYS(getsockopt), FOR_BROKER},      /* the same, if redirected; errors of connect */
    {SCMP_SYS(gettid), FOR_BOTH},            /* abort() */
    {SCMP_SYS(gettimeofday), FOR_BROKER},    /* without a vDSO */
    {SCMP_SYS(getuid), FOR_BROKER},          /* OpenSSL: setuid check */
    {SCMP_SYS(lseek), FOR_BROKER},           /* stdio */
    {SCMP_SYS(madvise), FOR_BROKER},         /* malloc, secrets */
    {SCMP_SYS(mlock), FOR_BROKER},           /* secrets */
    {SCMP_SYS(mremap), FOR_BROKER},          /* malloc */
    {SCMP_SYS(munlock), FOR_BROKER},         /* secrets */
    {SCMP_SYS(munmap), FOR_BOTH},            /* malloc */
    {SCMP_SYS(newfstatat), FOR_BROKER},      /* to detect changes of resolv.conf */
    {SCMP_SYS(poll), FOR_BOTH},              /* libcurl, for one socket; the connector */
    {SCMP_SYS(ppoll), FOR_BOTH},             /* the same */
    {SCMP_SYS(pread64), FOR_BROKER},         /* secrets */
    {SCMP_SYS(read), FOR_BROKER},            /* */
    {SCMP_SYS(readv), FOR_BROKER},           /* */
    {SCMP_SYS(recvfrom), FOR_BROKER},        /* */
    {SCMP_SYS(recvmsg), FOR_BOTH},           /* the job's messages, the broker's */
    {SCMP_SYS(restart_syscall), FOR_BOTH},   /* after a stop */
    {SCMP_SYS(rseq), FOR_BROKER},            /* libc */
    {SCMP_SYS(rt_sigaction), FOR_BROKER},    /* libcurl for SIGPIPE, abort() */
    {SCMP_SYS(rt_sigprocmask), FOR_BOTH},    /* abort() */
    {SCMP_SYS(rt_sigreturn), FOR_BOTH},      /* */
    {SCMP_SYS(sched_yield), FOR_BROKER},     /* locks of the libraries */
    {SCMP_SYS(sendmsg), FOR_BOTH},           /* requests to the connector, its answers */
    {SCMP_SYS(sendto), FOR_BOTH},            /* */
    {SCMP_SYS(set_robust_list), FOR_BROKER}, /* libc */
    {SCMP_SYS(setsockopt), FOR_BROKER},      /* no delay, resets */
    {SCMP_SYS(shutdown), FOR_BROKER},        /* half-closed connections */
    {SCMP_SYS(stat), FOR_BROKER},            /* to detect changes of resolv.conf */
    {SCMP_SYS(statx), FOR_BROKER},           /* the same, newer libc */
    {SCMP_SYS(time), FOR_BROKER},            /* without a vDSO */
    {SCMP_SYS(uname), FOR_BROKER},           /* c-ares: the host name */
    {SCMP_SYS(write), FOR_BOTH},             /* messages of a library that aborts */
    {SCMP_SYS(writev), FOR_BROKER},          /* the same; libcurl */
};

/* Calls that are allowed only with these arguments; a comparison covers the bits in its mask. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_PATH)
#define TYPES (SOCK_STREAM | SOCK_DGRAM | SOCK_RAW | SOCK_SEQPACKET | SOCK_PACKET)
#define ARGUMENT(number, mask, value)                                                              \
    {                                                                                              \
        number, SCMP_CMP_MASKED_EQ, mask, value                                                    \
    }
#define SOCKET(family, type)                                                                       \
    {                                                                                              \
        ARGUMENT(0, UINT32_MAX, family), ARGUMENT(1, TYPES, type)                                  \
    }
static const struct narrowed_row {
    int number;
    unsigned roles;
    unsigned count; /* of arguments */
    struct scmp_arg_cmp arguments[2];
} narrowed_rows[] = {
    {SCMP_SYS(mmap), FOR_BOTH, 1, {ARGUMENT(2, PROT_EXEC, 0)}},         /* no executable memory */
    {SCMP_SYS(mprotect), FOR_BOTH, 1, {ARGUMENT(2, PROT_EXEC, 0)}},     /* the same */
    {SCMP_SYS(open), FOR_BROKER, 1, {ARGUMENT(1, WRITES, 0)}},          /* read-only */
    {SCMP_SYS(openat), FOR_BROKER, 1, {ARGUMENT(2, WRITES, 0)}},        /* the same */
    {SCMP_SYS(prlimit64), FOR_BROKER, 1, {ARGUMENT(2, UINT64_MAX, 0)}}, /* sysconf() reads limits */
    {SCMP_SYS(socket), FOR_BOTH, 2, SOCKET(AF_INET, SOCK_STREAM)},      /* TCP */
    {SCMP_SYS(socket), FOR_BOTH, 2, SOCKET(AF_INET6, SOCK_STREAM)},     /* the same */
    {SCMP_SYS(socket), FOR_BROKER, 2, SOCKET(AF_INET, SOCK_DGRAM)},     /* UDP, for resolvers */
    {SCMP_SYS(socket), FOR_BROKER, 2, SOCKET(AF_INET6, SOCK_DGRAM)},    /* the same */
};

static int fill(scmp_filter_ctx filter, enum confine_role role)
{
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].roles & (1u << role))
            status |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, rows[i].number, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(narrowed_rows); i++) {
        const struct narrowed_row *row = &narrowed_rows[i];
        if (row->roles & (1u << role))
            status |= seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, row->number, row->count,
                                             row->arguments);
    }
    return status;
}

static int install_filter(enum confine_role role, struct brig_error *err)
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

int confine(enum confine_role role, const char *const *files, struct brig_error *err)
{
    int status = drop_capabilities(err);
    if (status == 0)
        status = lower_limits(err);
    if (status == 0)
        status = raise_landlock(files, err);
    return status < 0 ? status : install_filter(role, err);
}

/* ---- Files that are read while the broker runs ---- */

#define RESOLV_CONF "/etc/resolv.conf"

/* Files that configure name resolution; c-ares reads all of these. If a program replaces
 * resolv.conf, its directory is listed instead of the file: a Landlock rule for a file does not
 * apply to the file that replaces it. */
static const char *const resolving[] = {
    RESOLV_CONF,
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/svc.conf",
    "/dev/urandom", /* for the ids of queries, when c-ares is reinitialised */
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/connman",
};

const char *confine_certificates(const struct broker_config *config)
{
    return config->ca ? config->ca : certificates_of_system();
}

/* The directory that really contains resolv.conf. For a plain file in /etc it is /etc, with the
 * files that are world-readable. */
static const char *resolv_directory(struct broker_config *config)
{
    autofree char *path = realpath(RESOLV_CONF, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash || slash == path)
        return NULL;
    *slash = 0;
    return arena_strdup(&config->arena, path);
}

void confine_files(struct broker_config *config, const char *files[CONFINE_FILES_MAX + 1])
{
    size_t count = 0;
    const char *directory = resolv_directory(config);
    for (size_t i = 0; i < ARRAY_LENGTH(resolving); i++)
        files[count++] = resolving[i];
    if (directory && config->resolver_count == 0)
        files[count++] = directory;
    const char *ca = config->inject_count > 0 ? confine_certificates(config) : NULL;
    if (ca)
        files[count++] = ca;
    files[count] = NULL;
}
