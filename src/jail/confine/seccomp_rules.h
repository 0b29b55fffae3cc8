/* SPDX-License-Identifier: MIT */
/* The syscall profiles as tables: syscalls, rules and reasons; compiled by tools/gen-seccomp. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* A syscall's rule is taken from the first of these tables that names it:
 *
 *     seccomp_alone_code       in variants of `code` without namespaces
 *     seccomp_alone            in all variants without namespaces
 *     seccomp_alone_shut       in variants without namespaces and UNIX sockets
 *     seccomp_alone_shut_host  or seccomp_alone_shut_none, with or without a network, only in `code`
 *     seccomp_nested           in variants that let a program build a sandbox
 *     seccomp_code_host        or seccomp_code_nested, as fits, only in `code`
 *     seccomp_dev              or seccomp_code, depending on the profile
 *     seccomp_floor            denied or restricted in every profile
 *
 * A syscall that no table names is allowed in `dev` and EPERM in `code`. An unknown number (a
 * syscall newer than this file, a hole in the numbering, x32) is ENOSYS in both: programs have a
 * fallback for calls that the kernel does not have. Calls for another architecture are ENOSYS, too.
 *
 * Only the low 32 bits of an argument are tested. Every tested argument is an int or an unsigned
 * int to the kernel, or (clone, unshare) has all its tested flags there, so a program cannot hide a
 * value from the test by setting higher bits. */

/* ---- The form of a rule ------------------------------------------------------------------- */

enum seccomp_test_kind {
    SECCOMP_TEST_END,     /* no more tests in this clause */
    SECCOMP_TEST_ANY_BIT, /* (arg & mask) != 0 */
    SECCOMP_TEST_MASKED,  /* (arg & mask) == low */
    SECCOMP_TEST_RANGE,   /* low <= arg && arg <= high */
};

struct seccomp_test {
    enum seccomp_test_kind kind;
    uint8_t arg;
    uint32_t mask;
    uint32_t low;
    uint32_t high;
};

#define SECCOMP_TESTS_MAX 3

/* A verdict is 0 (allowed) or the errno the call fails with. */
struct seccomp_clause {
    int verdict;
    struct seccomp_test tests[SECCOMP_TESTS_MAX]; /* all must hold */
};

struct seccomp_rule {
    const char *text; /* for people */
    int otherwise;    /* the verdict when no clause holds */
    size_t count;
    const struct seccomp_clause *clauses; /* the first that holds decides */
};

/* Syscalls, separated by blanks, that share a rule and its reason. */
struct seccomp_group {
    const char *names;
    const struct seccomp_rule *rule;
    const char *reason;
};

/* clang-format off */
#define SECCOMP_ANY_BIT(arg, bits) { SECCOMP_TEST_ANY_BIT, arg, bits, 0, 0 }
#define SECCOMP_MASKED(arg, bits, value) { SECCOMP_TEST_MASKED, arg, bits, value, 0 }
#define SECCOMP_RANGE(arg, low, high) { SECCOMP_TEST_RANGE, arg, 0, low, high }
#define SECCOMP_IS(arg, value) SECCOMP_RANGE(arg, value, value)
#define SECCOMP_WHEN(verdict, ...) { verdict, { __VA_ARGS__ } }
/* clang-format on */

#define SECCOMP_PLAIN(name, text, verdict)                                                         \
    __attribute__((unused)) static const struct seccomp_rule name = {text, verdict, 0, NULL}
#define SECCOMP_RULE(name, text, otherwise, ...)                                                   \
    static const struct seccomp_clause name##_clauses[] = {__VA_ARGS__};                           \
    __attribute__((unused)) static const struct seccomp_rule name = {                              \
        text, otherwise, sizeof(name##_clauses) / sizeof(name##_clauses[0]), name##_clauses}

/* ---- The tested numbers ------------------------------------------------------------------- */

/* Written out instead of included: the generator runs on one architecture for both, and the headers
 * of a build machine may be older than the kernel. All are the same on x86_64 and aarch64. */
enum {
    /* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
    SECCOMP_CLONE_NEW = 0x7e020000,
    SECCOMP_CLONE_PARENT = 0x8000,
    SECCOMP_SETLEASE = 1024,                 /* F_SETLEASE */
    SECCOMP_SETDELEG = 1040,                 /* F_SETDELEG, since 6.19 */
    SECCOMP_CLONE_NEWTIME = 0x80,            /* in clone these bits are the exit signal */
    SECCOMP_OPEN_CREATES = 0100 | 020000000, /* O_CREAT, __O_TMPFILE: these use the mode */
    SECCOMP_OPEN_ACCESS = 03,                /* O_ACCMODE; 3 opens for neither, see open(2) */
    SECCOMP_OPEN_TRUNC = 01000,              /* O_TRUNC */
    SECCOMP_MODE_SUID_SGID = 06000,
    SECCOMP_MODE_TYPE = 0170000,  /* S_IFMT */
    SECCOMP_MODE_CHAR = 0020000,  /* S_IFCHR */
    SECCOMP_MODE_BLOCK = 0060000, /* S_IFBLK */
    SECCOMP_FAMILY_UNIX = 1,
    SECCOMP_FAMILY_INET = 2,
    SECCOMP_FAMILY_INET6 = 10,
    SECCOMP_FAMILY_NETLINK = 16,
    SECCOMP_NETLINK_ROUTE = 0,
    SECCOMP_TYPE_MASK = 0xf, /* the bits above are SOCK_CLOEXEC and SOCK_NONBLOCK */
    SECCOMP_TYPE_STREAM = 1,
    SECCOMP_TYPE_RAW = 3,
    SECCOMP_TYPE_SEQPACKET = 5,
    SECCOMP_TYPE_PACKET = 10,
    SECCOMP_SET_FILTER = 1,           /* SECCOMP_SET_MODE_FILTER */
    SECCOMP_NEW_LISTENER = 8,         /* SECCOMP_FILTER_FLAG_NEW_LISTENER */
    SECCOMP_NO_RANDOMIZE = 0x0040000, /* ADDR_NO_RANDOMIZE */
    SECCOMP_PER_LINUX32 = 0x0008,
    SECCOMP_UNAME26 = 0x0020000,
};
#define SECCOMP_PERSONALITY_QUERY 0xffffffffU

/* ---- Rules -------------------------------------------------------------------------------- */

/* clang-format off */
SECCOMP_PLAIN(ALLOWED, "allowed", 0);
SECCOMP_PLAIN(NOT_PERMITTED, "EPERM", EPERM);
SECCOMP_PLAIN(NOT_THERE, "ENOSYS", ENOSYS);

SECCOMP_RULE(PRLIMIT_NOT_INIT, "allowed; of pid 1 EPERM", 0,
             { EPERM, { SECCOMP_IS(0, 1) } });
SECCOMP_RULE(CLONE_PLAIN, "allowed without CLONE_NEW* flags, else EPERM", 0,
    SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(0, SECCOMP_CLONE_NEW)));
SECCOMP_RULE(CLONE_ALONE, "allowed without CLONE_NEW* and CLONE_PARENT flags, else EPERM", 0,
    SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(0, SECCOMP_CLONE_NEW | SECCOMP_CLONE_PARENT)));
SECCOMP_RULE(FIRST_IS_SELF, "allowed for 0, the caller itself, else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(0, 0)));
/* setpriority and ioprio_set: for a process or a process group 0 is the caller's; for a user, 0
 * means all processes of the user. */
SECCOMP_RULE(PRIORITY_OF_SELF, "allowed for the caller itself and its group, else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0), SECCOMP_RANGE(0, 0, 1)));
SECCOMP_RULE(IO_PRIORITY_OF_SELF, "allowed for the caller itself and its group, else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0), SECCOMP_RANGE(0, 1, 2)));
SECCOMP_RULE(UNSHARE_PLAIN, "allowed without CLONE_NEW* flags, else EPERM", 0,
    SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(0, SECCOMP_CLONE_NEW | SECCOMP_CLONE_NEWTIME)));

/* The kernel returns the same to a process that does not own the file. Delegations are leases on
 * directories. */
SECCOMP_RULE(FCNTL_NO_LEASE, "allowed; F_SETLEASE and F_SETDELEG are EACCES", 0,
    SECCOMP_WHEN(EACCES, SECCOMP_IS(1, SECCOMP_SETLEASE)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(1, SECCOMP_SETDELEG)));

/* Older kernels return EINVAL for an unknown flag. */
SECCOMP_RULE(FILTER_WITHOUT_LISTENER, "allowed; SECCOMP_FILTER_FLAG_NEW_LISTENER is EINVAL", 0,
    SECCOMP_WHEN(EINVAL, SECCOMP_IS(0, SECCOMP_SET_FILTER),
                         SECCOMP_ANY_BIT(1, SECCOMP_NEW_LISTENER)));

/* A jailed program must not leave a setuid file in a granted directory. `dev` allows setgid: build
 * tools keep it on directories of shared projects. mkdir is not listed: the kernel removes both
 * bits from its mode. */
#define SECCOMP_MODE_RULES(suffix, bits, bits_text)                                                \
    SECCOMP_RULE(CREAT_##suffix, "allowed; a " bits_text " mode is EPERM", 0,                      \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(1, bits)));                                            \
    SECCOMP_RULE(CHMODAT_##suffix, "allowed; a " bits_text " mode is EPERM", 0,                    \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(2, bits)));                                            \
    SECCOMP_RULE(OPEN_##suffix, "allowed; creating with a " bits_text " mode is EPERM", 0,         \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(2, bits), SECCOMP_ANY_BIT(1, SECCOMP_OPEN_CREATES)));  \
    SECCOMP_RULE(OPENAT_##suffix, "allowed; creating with a " bits_text " mode is EPERM", 0,       \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(3, bits), SECCOMP_ANY_BIT(2, SECCOMP_OPEN_CREATES)));  \
    SECCOMP_RULE(MKNOD_##suffix, "allowed; a " bits_text " mode or a device is EPERM", 0,          \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(1, bits)),                                             \
        SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_MODE_TYPE, SECCOMP_MODE_CHAR)),              \
        SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_MODE_TYPE, SECCOMP_MODE_BLOCK)));            \
    SECCOMP_RULE(MKNODAT_##suffix, "allowed; a " bits_text " mode or a device is EPERM", 0,        \
        SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(2, bits)),                                             \
        SECCOMP_WHEN(EPERM, SECCOMP_MASKED(2, SECCOMP_MODE_TYPE, SECCOMP_MODE_CHAR)),              \
        SECCOMP_WHEN(EPERM, SECCOMP_MASKED(2, SECCOMP_MODE_TYPE, SECCOMP_MODE_BLOCK)))

SECCOMP_MODE_RULES(NO_SUID_SGID, SECCOMP_MODE_SUID_SGID, "setuid or setgid");
#define CHMOD_NO_SUID_SGID CREAT_NO_SUID_SGID

/* Landlock decides about a file that is opened by what it is opened for. With O_TRUNC a file is
 * truncated that is not opened for writing, which Landlock sees from ABI 3 on. */
#define SECCOMP_OPEN_ALONE(flags, mode)                                                            \
    SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(mode, SECCOMP_MODE_SUID_SGID),                             \
                        SECCOMP_ANY_BIT(flags, SECCOMP_OPEN_CREATES)),                             \
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(flags, SECCOMP_OPEN_TRUNC | SECCOMP_OPEN_ACCESS,            \
                                       SECCOMP_OPEN_TRUNC)),                                       \
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(flags, SECCOMP_OPEN_TRUNC | SECCOMP_OPEN_ACCESS,            \
                                       SECCOMP_OPEN_TRUNC | SECCOMP_OPEN_ACCESS))
SECCOMP_RULE(OPEN_ALONE,
    "allowed; creating with a setuid or setgid mode, and truncating what is not opened for writing, "
    "are EPERM", 0, SECCOMP_OPEN_ALONE(1, 2));
SECCOMP_RULE(OPENAT_ALONE,
    "allowed; creating with a setuid or setgid mode, and truncating what is not opened for writing, "
    "are EPERM", 0, SECCOMP_OPEN_ALONE(2, 3));

/* Netlink except for routes, and raw sockets, are privileged or reach kernel code that no program
 * needs. libc opens route sockets as SOCK_RAW. */
#define SECCOMP_SOCKETS_DEV                                                                        \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),  \
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),                          \
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_RAW)),                   \
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_PACKET)),                \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),                                           \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6))
#define SECCOMP_SOCKETS_CODE                                                                       \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),  \
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),                          \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 1)),  \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 2)),  \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 1)), \
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 2)), \
    SECCOMP_WHEN(EPERM, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),                                       \
    SECCOMP_WHEN(EPERM, SECCOMP_IS(0, SECCOMP_FAMILY_INET6))
SECCOMP_RULE(SOCKET_DEV,
    "AF_UNIX, AF_INET, AF_INET6, NETLINK_ROUTE; raw sockets EPERM, other netlink EPROTONOSUPPORT, "
    "other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_SOCKETS_DEV);
SECCOMP_RULE(SOCKET_CODE_HOST,
    "AF_UNIX, NETLINK_ROUTE, and streams and datagrams of AF_INET and AF_INET6; raw sockets and "
    "other types EPERM, other netlink EPROTONOSUPPORT, other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_SOCKETS_CODE);
SECCOMP_RULE(SOCKET_CODE_NONE, "AF_UNIX; AF_INET and AF_INET6 EACCES, other families EAFNOSUPPORT",
    EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
SECCOMP_RULE(SOCKET_CODE_NESTED,
    "AF_UNIX and NETLINK_ROUTE; AF_INET and AF_INET6 EACCES, other netlink EPROTONOSUPPORT, other "
    "families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
SECCOMP_RULE(PAIR_UNIX, "AF_UNIX; other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)));
SECCOMP_RULE(SOCKET_DEV_SHUT,
    "as in `dev`, but for AF_UNIX, which is EACCES", EAFNOSUPPORT,
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_SOCKETS_DEV);
SECCOMP_RULE(SOCKET_CODE_HOST_SHUT,
    "as in `code` with a network, but for AF_UNIX, which is EACCES", EAFNOSUPPORT,
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_SOCKETS_CODE);
SECCOMP_RULE(SOCKET_CODE_SHUT,
    "AF_UNIX, AF_INET and AF_INET6 EACCES, other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(EACCES, SECCOMP_RANGE(0, SECCOMP_FAMILY_UNIX, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
/* The ends of a stream pair stay connected for ever. Datagram sockets, which SOCK_RAW creates as
 * well, can be connected again and send to any name. */
SECCOMP_RULE(PAIR_SHUT,
    "streams and SOCK_SEQPACKET of AF_UNIX; other types EACCES, other families EAFNOSUPPORT",
    EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX),
                 SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_STREAM)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX),
                 SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_SEQPACKET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)));

#define SECCOMP_IOCTL_DEV \
    SECCOMP_WHEN(EPERM, SECCOMP_IS(1, 0x5412)),            /* TIOCSTI: types into the terminal */ \
    SECCOMP_WHEN(EPERM, SECCOMP_RANGE(1, 0x541c, 0x541d)), /* TIOCLINUX pastes; TIOCCONS takes the \
                                                            * console's output */ \
    SECCOMP_WHEN(EPERM, SECCOMP_IS(1, 0x5423))             /* TIOCSETD: loads line disciplines, a \
                                                            * long-standing source of kernel bugs */
SECCOMP_RULE(IOCTL_DEV, "allowed; TIOCSTI, TIOCLINUX, TIOCCONS and TIOCSETD are EPERM", 0,
    SECCOMP_IOCTL_DEV);
/* A file that is open for reading is enough for these. */
SECCOMP_RULE(IOCTL_DEV_ALONE, "as in `dev`, but attributes of files cannot be set (ENOTTY)", 0,
    SECCOMP_IOCTL_DEV,
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x40086602)),  /* FS_IOC_SETFLAGS */
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x40046602)),  /* FS_IOC32_SETFLAGS */
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x40087602)),  /* FS_IOC_SETVERSION */
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x40047602)),  /* FS_IOC32_SETVERSION */
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x401c5820)),  /* FS_IOC_FSSETXATTR */
    SECCOMP_WHEN(ENOTTY, SECCOMP_IS(1, 0x40806685))); /* FS_IOC_ENABLE_VERITY */

/* An allowlist: devices and filesystems in a grant handle hundreds of other requests. ENOTTY is
 * what a file returns for an unknown request. */
SECCOMP_RULE(IOCTL_CODE,
    "terminals, ptys, FIONREAD and its kind, cloning of files, interface queries; the terminal's "
    "dangerous requests are EPERM, all else ENOTTY", ENOTTY,
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x5401, 0x5411)), /* TCGETS … TIOCOUTQ: modes, job control */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x5413, 0x541b)), /* TIOCGWINSZ … FIONREAD */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x5420, 0x5422)), /* TIOCPKT, FIONBIO, TIOCNOTTY */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x5424, 0x5429)), /* TIOCGETD … TIOCGSID */
    SECCOMP_WHEN(EPERM, SECCOMP_RANGE(1, 0x5412, 0x5423)), /* TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD
                                                            * (and the serial port's) */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x5450, 0x5452)), /* FIONCLEX, FIOCLEX, FIOASYNC */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x5441)),            /* TIOCGPTPEER */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x80045430)),        /* TIOCGPTN */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x40045431)),        /* TIOCSPTLCK */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x802c542a)),        /* TCGETS2 */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x402c542b, 0x402c542d)), /* TCSETS2, TCSETSW2, TCSETSF2 */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x40049409)),        /* FICLONE */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x4020940d)),        /* FICLONERANGE */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x80086601)),        /* FS_IOC_GETFLAGS */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x8910)),            /* SIOCGIFNAME */
    SECCOMP_WHEN(0, SECCOMP_RANGE(1, 0x8912, 0x8913)), /* SIOCGIFCONF, SIOCGIFFLAGS */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x8915)),            /* SIOCGIFADDR */
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0x8933)));           /* SIOCGIFINDEX */

SECCOMP_RULE(PERSONALITY_DEV,
    "asking, and PER_LINUX or PER_LINUX32 with ADDR_NO_RANDOMIZE or UNAME26; else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_MASKED(0, (uint32_t)~(SECCOMP_NO_RANDOMIZE | SECCOMP_PER_LINUX32 |
                                                  SECCOMP_UNAME26), 0)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_PERSONALITY_QUERY)));
SECCOMP_RULE(PERSONALITY_CODE, "asking, and PER_LINUX; else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(0, 0)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_PERSONALITY_QUERY)));

/* Not listed: PR_SET_MM, KEEPCAPS, CAPBSET_DROP, SECUREBITS, CAP_AMBIENT (privileged), PTRACER
 * (there is no ptrace), SYSCALL_USER_DISPATCH, SCHED_CORE, IO_FLUSHER, MCE_KILL, MEMORY_MERGE (page
 * merging reveals the content of other processes' memory), SPECULATION_CTRL (could disable
 * mitigations), TSC, TIMING, UNALIGN, ENDIAN, FPEMU, FPEXC. They return EINVAL, as on a kernel
 * without them. */
#define SECCOMP_PRCTL_CODE \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 1, 4)),   /* PDEATHSIG, DUMPABLE: get and set */ \
    SECCOMP_WHEN(0, SECCOMP_IS(0, 7)),         /* GET_KEEPCAPS */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 15, 16)), /* SET_NAME, GET_NAME */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 21, 23)), /* SECCOMP: can only narrow; CAPBSET_READ */ \
    SECCOMP_WHEN(0, SECCOMP_IS(0, 27)),        /* GET_SECUREBITS */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 29, 30)), /* TIMERSLACK */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 36, 42)), /* CHILD_SUBREAPER, NO_NEW_PRIVS, GET_TID_ADDRESS, \
                                                * THP_DISABLE */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 50, 52)), /* SVE vector length, GET_SPECULATION_CTRL */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 54, 56)), /* PAC_RESET_KEYS, TAGGED_ADDR_CTRL */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 60, 61)), /* PAC enabled keys */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 63, 66)), /* SME vector length, MDWE: only tightens */ \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 74, 76)), /* shadow stack status: only of the thread */ \
    SECCOMP_WHEN(0, SECCOMP_IS(0, 0x53564d41)),  /* SET_VMA: names for mappings; malloc, V8 */ \
    SECCOMP_WHEN(0, SECCOMP_IS(0, 0x41555856)) /* GET_AUXV */
SECCOMP_RULE(PRCTL_CODE, "names, signals and queries of the process itself; else EINVAL", EINVAL,
    SECCOMP_PRCTL_CODE);
SECCOMP_RULE(PRCTL_CODE_ALONE, "as without, but for PR_SET_PDEATHSIG, which is EINVAL", EINVAL,
    SECCOMP_WHEN(EINVAL, SECCOMP_IS(0, 1)),
    SECCOMP_PRCTL_CODE);
SECCOMP_RULE(PRCTL_ALONE, "allowed; PR_SET_PDEATHSIG is EINVAL", 0,
    SECCOMP_WHEN(EINVAL, SECCOMP_IS(0, 1)));

/* ---- Denied or restricted in every profile ------------------------------------------------ */

static const struct seccomp_group seccomp_floor[] = {
    {"_sysctl", &NOT_PERMITTED, "writes kernel parameters; gone since 5.5"},
    {"acct", &NOT_PERMITTED, "switches process accounting of the host"},
    {"add_key keyctl request_key",
     &NOT_THERE, "keyrings are not separated by any namespace but the user's"},
    {"adjtimex clock_adjtime", &NOT_PERMITTED, "adjusts the host's clock"},
    {"bpf", &NOT_PERMITTED, "loads programs into the kernel"},
    {"chroot", &NOT_PERMITTED, "part of leaving a root directory"},
    {"clock_settime settimeofday", &NOT_PERMITTED, "sets the host's clock"},
    {"clone", &CLONE_PLAIN, "a namespace inside opens kernel code meant for root"},
    {"clone3", &NOT_THERE, "its flags are behind a pointer; libc falls back to clone"},
    {"create_module finit_module init_module", &NOT_PERMITTED, "loads code into the kernel"},
    {"delete_module", &NOT_PERMITTED, "unloads code from the kernel"},
    {"fanotify_init", &NOT_PERMITTED, "watches whole filesystems"},
    {"fcntl",
     &FCNTL_NO_LEASE, "a lease makes whoever opens the file wait, another jail or the host"},
    {"fsconfig fsmount fsopen fspick mount move_mount open_tree open_tree_attr",
     &NOT_PERMITTED, "mounts"},
    {"get_kernel_syms", &NOT_PERMITTED, "tells where kernel code is"},
    {"io_uring_enter io_uring_register io_uring_setup",
     &NOT_THERE, "does what filters forbid, unseen by them"},
    {"ioperm iopl", &NOT_PERMITTED, "reaches hardware ports"},
    {"kcmp", &NOT_PERMITTED, "compares kernel objects of processes, leaks their order"},
    {"kexec_file_load kexec_load", &NOT_PERMITTED, "replaces the kernel"},
    {"listns", &NOT_THERE, "enumerates namespaces, those of others too"},
    {"lookup_dcookie", &NOT_PERMITTED, "profiling of the whole system; gone since 6.7"},
    {"lsm_set_self_attr", &NOT_PERMITTED, "changes the security label of the process"},
    {"modify_ldt", &NOT_PERMITTED, "16-bit segments, a source of kernel bugs"},
    {"mount_setattr", &NOT_PERMITTED, "would make read-only mounts writable"},
    {"nfsservctl", &NOT_PERMITTED, "the kernel's file server; gone since 3.1"},
    {"open_by_handle_at", &NOT_PERMITTED, "opens files by number, past every directory"},
    {"openat2", &NOT_THERE, "its mode is behind a pointer; programs fall back to openat"},
    {"perf_event_open", &NOT_PERMITTED, "measures the kernel and other processes"},
    {"pidfd_getfd", &NOT_PERMITTED, "takes file descriptors out of other processes"},
    {"pivot_root", &NOT_PERMITTED, "changes the root directory"},
    {"prlimit64", &PRLIMIT_NOT_INIT, "init has the same uid: it could be starved to death"},
    {"process_madvise", &NOT_PERMITTED, "tells the kernel to drop other processes' memory"},
    {"query_module", &NOT_PERMITTED, "tells what is loaded into the kernel"},
    {"quotactl quotactl_fd", &NOT_PERMITTED, "reads and sets disk quotas of the host"},
    {"reboot", &NOT_PERMITTED, "stops the machine"},
    {"seccomp", &FILTER_WITHOUT_LISTENER, "filters only narrow; a listener answers for the kernel"},
    {"setdomainname sethostname", &NOT_PERMITTED, "names belong to whoever made the jail"},
    {"setns", &NOT_PERMITTED, "joins namespaces"},
    {"socketpair", &PAIR_UNIX, "only UNIX sockets come in pairs that programs use"},
    {"swapoff swapon", &NOT_PERMITTED, "manages the host's memory"},
    {"sysfs", &NOT_PERMITTED, "obsolete list of filesystem types"},
    {"syslog", &NOT_PERMITTED, "reads and clears the kernel's log"},
    {"umount2", &NOT_PERMITTED, "would uncover what a mount hides"},
    {"unshare", &UNSHARE_PLAIN, "a namespace inside opens kernel code meant for root"},
    {"uselib", &NOT_PERMITTED, "obsolete loader, a source of kernel bugs"},
    {"userfaultfd", &NOT_PERMITTED, "stops the kernel at a chosen point, a tool for exploits"},
    {"ustat", &NOT_PERMITTED, "obsolete query of devices"},
    {"vhangup", &NOT_PERMITTED, "hangs up a terminal"},
    {"vserver", &NOT_PERMITTED, "never in the kernel"},
};

/* ---- dev: additional denials; all other calls are allowed --------------------------------- */

static const struct seccomp_group seccomp_dev[] = {
    {"chmod fchmod",
     &CHMOD_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory"},
    {"creat", &CREAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory"},
    {"fchmodat fchmodat2",
     &CHMODAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory"},
    {"ioctl", &IOCTL_DEV, "some requests type into a terminal or load kernel modules"},
    {"mknod", &MKNOD_NO_SUID_SGID, "no device node may be left in a granted directory"},
    {"mknodat", &MKNODAT_NO_SUID_SGID, "no device node may be left in a granted directory"},
    {"open", &OPEN_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory"},
    {"openat", &OPENAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory"},
    {"personality", &PERSONALITY_DEV, "debuggers switch randomisation off; the rest weakens mmap"},
    {"socket", &SOCKET_DEV, "other families are rarely used kernel code, loaded on demand"},
};

/* ---- code: allowed calls; all other calls are EPERM --------------------------------------- */

static const struct seccomp_group seccomp_code[] = {
    {"accept accept4 bind listen", &ALLOWED, "servers"},
    {"access faccessat faccessat2 fstat fstatfs lstat newfstatat readlink readlinkat stat statfs "
     "statx",
     &ALLOWED, "asking about files"},
    {"alarm getitimer setitimer timer_create timer_delete timer_getoverrun timer_gettime "
     "timer_settime",
     &ALLOWED, "timers"},
    {"arch_prctl", &ALLOWED, "thread pointer, shadow stacks, AMX: of the thread itself"},
    {"brk madvise mincore mmap mprotect mremap msync munlock munmap", &ALLOWED, "memory"},
    {"capget", &ALLOWED, "asking about capabilities: there are none"},
    {"capset", &ALLOWED, "can only give up capabilities"},
    {"chdir fchdir getcwd", &ALLOWED, "working directory"},
    {"chmod fchmod", &CHMOD_NO_SUID_SGID, "file modes; nothing may run as somebody else"},
    {"chown fchown fchownat lchown", &ALLOWED, "archives restore owners; only to ids the jail has"},
    {"clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time", &ALLOWED, "clocks"},
    {"close dup dup2 dup3 link linkat lseek mkdir mkdirat rename renameat renameat2 rmdir symlink "
     "symlinkat unlink unlinkat",
     &ALLOWED, "files"},
    {"close_range", &ALLOWED, "files; before starting programs"},
    {"connect", &ALLOWED, "clients"},
    {"copy_file_range sendfile", &ALLOWED, "copying files"},
    {"creat", &CREAT_NO_SUID_SGID, "creating files; nothing may run as somebody else"},
    {"epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 "
     "poll ppoll pselect6 select signalfd signalfd4 timerfd_create timerfd_gettime "
     "timerfd_settime",
     &ALLOWED, "event loops"},
    {"execve execveat fork vfork", &ALLOWED, "starting programs"},
    {"exit", &ALLOWED, "ending a thread"},
    {"exit_group", &ALLOWED, "ending a program"},
    {"fadvise64 pread64 preadv preadv2 read readahead readv", &ALLOWED, "reading files"},
    {"fallocate ftruncate pwrite64 pwritev pwritev2 truncate write writev",
     &ALLOWED, "writing files"},
    {"fchmodat fchmodat2", &CHMODAT_NO_SUID_SGID, "file modes; nothing may run as somebody else"},
    {"fdatasync fsync sync_file_range", &ALLOWED, "databases"},
    {"fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr "
     "listxattrat llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat",
     &ALLOWED, "attributes, for copying files"},
    {"flock", &ALLOWED, "locks"},
    {"futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list getcpu membarrier "
     "rseq_slice_yield sched_yield",
     &ALLOWED, "threads"},
    {"futimesat utime utimensat utimes", &ALLOWED, "file times"},
    {"get_mempolicy", &ALLOWED, "numeric libraries ask for the memory layout"},
    {"getdents getdents64", &ALLOWED, "reading directories"},
    {"getegid geteuid getgid getgroups getpid getppid getresgid getresuid gettid getuid",
     &ALLOWED, "who am I"},
    {"getpeername getsockname getsockopt recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto "
     "setsockopt shutdown",
     &ALLOWED, "sockets"},
    {"getpgid getpgrp getsid setpgid setsid", &ALLOWED, "job control"},
    {"getpriority setpriority", &ALLOWED, "nice"},
    {"getrandom", &ALLOWED, "random numbers"},
    {"getrlimit getrusage times", &ALLOWED, "limits"},
    {"inotify_add_watch inotify_init inotify_init1 inotify_rm_watch", &ALLOWED, "watching files"},
    {"io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit",
     &NOT_THERE, "asynchronous I/O is kernel code few programs need"},
    {"ioctl", &IOCTL_CODE, "by list: grants bring devices and filesystems along"},
    {"kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tkill",
     &ALLOWED, "signals; only inside the jail's pid namespace"},
    {"landlock_add_rule landlock_create_ruleset landlock_restrict_self",
     &ALLOWED, "can only narrow"},
    {"map_shadow_stack", &ALLOWED, "threads on processors with shadow stacks"},
    {"memfd_create", &NOT_THERE, "programs that lie in no filesystem; no runtime needs it"},
    {"mknod", &MKNOD_NO_SUID_SGID, "pipes with a name; no devices"},
    {"mknodat", &MKNODAT_NO_SUID_SGID, "pipes with a name; no devices"},
    {"mlock mlock2", &ALLOWED, "memory; bounded by the limit on locked memory"},
    {"mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink",
     &NOT_THERE, "message queues are kernel code few programs need"},
    {"mseal", &ALLOWED, "memory; can only narrow"},
    {"msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget",
     &NOT_THERE, "System V IPC is kernel code few programs need"},
    {"open", &OPEN_NO_SUID_SGID, "files; nothing may run as somebody else"},
    {"openat", &OPENAT_NO_SUID_SGID, "files; nothing may run as somebody else"},
    {"pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait "
     "sigaltstack",
     &ALLOWED, "signals"},
    {"personality", &PERSONALITY_CODE, "programs ask; the rest weakens mmap"},
    {"pidfd_open wait4 waitid", &ALLOWED, "waiting for children"},
    {"pipe pipe2 tee", &ALLOWED, "pipes"},
    {"pkey_alloc pkey_free pkey_mprotect", &ALLOWED, "memory; V8 protects its code with it"},
    {"prctl", &PRCTL_CODE, "names, signals and queries; the rest is for privileged programs"},
    {"restart_syscall", &ALLOWED, "the kernel's own, after a stop"},
    {"rseq set_robust_list set_tid_address", &ALLOWED, "threads; libc registers it at start"},
    {"sched_get_priority_max sched_get_priority_min sched_getattr sched_getparam "
     "sched_getscheduler sched_rr_get_interval",
     &ALLOWED, "threads ask at start"},
    {"sched_getaffinity", &ALLOWED, "how many processors there are"},
    {"sched_setaffinity", &ALLOWED, "numeric libraries pin their threads"},
    {"setgid setregid setresgid setresuid setreuid setuid",
     &ALLOWED, "without capabilities only to ids already held"},
    {"setrlimit", &ALLOWED, "limits; can only lower the hard ones"},
    {"socket", &SOCKET_CODE_NONE, "which families depends on the network policy"},
    {"splice", &ALLOWED, "copying files; cat and pv use it"},
    {"sysinfo", &ALLOWED, "how much memory there is"},
    {"tgkill", &ALLOWED, "signals; abort() uses it"},
    {"umask", &ALLOWED, "file modes"},
    {"uname", &ALLOWED, "which system this is"},
    {"uprobe uretprobe", &ALLOWED, "made by the kernel when the host traces a program"},
    {"vmsplice", &NOT_THERE, "shares pages with pipes, a source of kernel bugs"},
};

/* With any network but `none` these rows replace the rows of `code`. */
static const struct seccomp_group seccomp_code_host[] = {
    {"shmat shmctl shmdt shmget", &ALLOWED, "databases; the jail has an IPC namespace"},
    {"socket", &SOCKET_CODE_HOST, "a network is granted, or loopback"},
};

/* Without network, nested. */
static const struct seccomp_group seccomp_code_nested[] = {
    {"socket", &SOCKET_CODE_NESTED, "bringing up loopback in the new namespace"},
};

/* ---- nested: additional calls for a program that builds a sandbox ------------------------- */

static const struct seccomp_group seccomp_nested[] = {
    {"chroot pivot_root umount2", &ALLOWED, "leaving the old root"},
    {"clone clone3 setns unshare", &ALLOWED, "namespaces"},
    {"fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree open_tree_attr",
     &ALLOWED, "mounts"},
    {"prctl", &ALLOWED, "dropping the capabilities the new namespace gave"},
    {"setdomainname sethostname", &ALLOWED, "names in the new namespace"},
    {"setfsgid setfsuid setgroups", &ALLOWED, "ids in the new namespace"},
};

/* ---- alone: a function in its caller's namespaces ------------------------------------------ */

/* The function's processes are killed as one process group, which they must not leave. They run
 * beside the caller's processes, as the same user and in the same pid namespace. The user's files are
 * in reach by their paths, and Landlock is the only layer around them: what it does not restrict is
 * refused for all files, granted ones as well. That a file is open says nothing, as a file that may
 * only be read can be opened, too. */
static const struct seccomp_group seccomp_alone[] = {
    {"chmod fchmod fchmodat fchmodat2", &NOT_PERMITTED, "Landlock does not restrict modes"},
    {"chown fchown fchownat lchown", &NOT_PERMITTED, "Landlock does not restrict owners"},
    {"clone", &CLONE_ALONE, "a child of the caller would outlive the call"},
    {"file_setattr fremovexattr fsetxattr lremovexattr lsetxattr removexattr removexattrat setxattr "
     "setxattrat",
     &NOT_PERMITTED, "Landlock does not restrict attributes"},
    {"futimesat utime utimensat utimes", &NOT_PERMITTED, "Landlock does not restrict file times"},
    {"ioctl", &IOCTL_DEV_ALONE, "Landlock does not restrict attributes"},
    {"ioprio_set", &IO_PRIORITY_OF_SELF, "the caller's processes have the same uid"},
    {"open", &OPEN_ALONE, "Landlock restricts truncating from ABI 3 on"},
    {"openat", &OPENAT_ALONE, "Landlock restricts truncating from ABI 3 on"},
    {"prctl", &PRCTL_ALONE, "dying with the caller is not the function's to change"},
    {"prlimit64", &FIRST_IS_SELF, "the caller could be starved to death"},
    {"sched_setaffinity sched_setattr sched_setparam sched_setscheduler",
     &FIRST_IS_SELF, "the caller's processes have the same uid"},
    {"setpgid setsid", &NOT_PERMITTED, "who leaves the group would outlive the call"},
    {"setpriority", &PRIORITY_OF_SELF, "the caller's processes have the same uid"},
    {"truncate", &NOT_PERMITTED, "Landlock restricts it from ABI 3 on; ftruncate is allowed"},
};

static const struct seccomp_group seccomp_alone_code[] = {
    {"ioctl", &IOCTL_CODE, "as in `code`"},
    {"ioprio_set sched_setattr sched_setparam sched_setscheduler", &NOT_PERMITTED, "as in `code`"},
    {"prctl", &PRCTL_CODE_ALONE, "dying with the caller is not the function's to change"},
    {"shmat shmctl shmdt shmget", &NOT_THERE, "the IPC namespace is the caller's"},
};

/* Sockets of other host programs are denied unless the caller asks for them, as some start programs
 * (systemd, Docker): Landlock controls them by path only from ABI 9 on. */
static const struct seccomp_group seccomp_alone_shut[] = {
    {"socket", &SOCKET_DEV_SHUT, "the host's sockets would be in reach"},
    {"socketpair", &PAIR_SHUT, "a datagram socket can send to any other"},
};

static const struct seccomp_group seccomp_alone_shut_host[] = {
    {"socket", &SOCKET_CODE_HOST_SHUT, "the host's sockets would be in reach"},
};

static const struct seccomp_group seccomp_alone_shut_none[] = {
    {"socket", &SOCKET_CODE_SHUT, "the host's sockets would be in reach"},
};

/* ---- Numbers that the build machine's libseccomp may lack --------------------------------- */

/* From 424 on, syscalls have the same number on all architectures. This list starts at 440. */
#define SECCOMP_NUMBERS_FIRST 440
static const char seccomp_numbers[] =
    "process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset "
    "landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv "
    "set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait "
    "futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal "
    "setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr "
    "listns rseq_slice_yield";

/* Only on x86_64. */
#define SECCOMP_NUMBERS_X86_64_FIRST 335
static const char seccomp_numbers_x86_64[] = "uretprobe uprobe";
/* clang-format on */

/* The first number that these tables do not know. */
#define SECCOMP_FIRST_UNKNOWN 472
