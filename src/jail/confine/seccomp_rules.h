/* SPDX-License-Identifier: MIT */
/* The syscall profiles as tables, one row a syscall with its reason; read by tools/gen-seccomp. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* How a verdict is found: the rule of the syscall is taken from the first of these that names it:
 *
 *     SECCOMP_ALONE_CODE  only in the variants of `code` that stand without namespaces
 *     SECCOMP_ALONE       in all variants that do
 *     SECCOMP_ALONE_SHUT  in those of them that have no network, and no UNIX sockets either
 *     SECCOMP_ALONE_SHUT_CODE  the same, only in the variants of `code`
 *     SECCOMP_NESTED      only in the variants that let a program build a sandbox of its own
 *     SECCOMP_CODE_HOST   or SECCOMP_CODE_NESTED, whichever fits, and only in `code`
 *     SECCOMP_DEV         or SECCOMP_CODE, whichever profile it is
 *     SECCOMP_FLOOR       denied, or narrowed, in every profile
 *
 * What none of them names is allowed in `dev` and EPERM in `code`. A number that has no name at all
 * (a syscall younger than this file, a hole in the numbering, x32) is ENOSYS in both: programs know
 * how to do without a call the kernel does not have. So are calls made for another architecture.
 *
 * Only the low 32 bits of an argument are ever looked at. Every argument tested here is an int or
 * an unsigned int to the kernel, or (clone, unshare) has all its tested flags there, so a program
 * cannot hide a value from the test by setting bits above. */

/* ---- What a rule is ----------------------------------------------------------------------- */

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

/* ---- The numbers tested for --------------------------------------------------------------- */

/* Written out instead of included: the generator runs on one architecture for both, and the headers
 * of a build machine may be older than the kernel. All are the same on x86_64 and aarch64. */
enum {
    /* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
    SECCOMP_CLONE_NEW = 0x7e020000,
    SECCOMP_CLONE_PARENT = 0x8000,
    SECCOMP_SETLEASE = 1024,                 /* F_SETLEASE */
    SECCOMP_SETDELEG = 1040,                 /* F_SETDELEG, of 6.19 */
    SECCOMP_CLONE_NEWTIME = 0x80,            /* in clone these bits are the exit signal */
    SECCOMP_OPEN_CREATES = 0100 | 020000000, /* O_CREAT, __O_TMPFILE: only then is there a mode */
    SECCOMP_MODE_SUID_SGID = 06000,
    SECCOMP_MODE_TYPE = 0170000,  /* S_IFMT */
    SECCOMP_MODE_CHAR = 0020000,  /* S_IFCHR */
    SECCOMP_MODE_BLOCK = 0060000, /* S_IFBLK */
    SECCOMP_FAMILY_UNIX = 1,
    SECCOMP_FAMILY_INET = 2,
    SECCOMP_FAMILY_INET6 = 10,
    SECCOMP_FAMILY_NETLINK = 16,
    SECCOMP_NETLINK_ROUTE = 0,
    SECCOMP_TYPE_MASK = 0xf, /* above it SOCK_CLOEXEC and SOCK_NONBLOCK */
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
/* setpriority and ioprio_set: of a process or a group, where 0 is the caller's own. Of a user, 0 is all
 * the user has. */
SECCOMP_RULE(PRIORITY_OF_SELF, "allowed for the caller itself and its group, else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0), SECCOMP_RANGE(0, 0, 1)));
SECCOMP_RULE(IO_PRIORITY_OF_SELF, "allowed for the caller itself and its group, else EPERM", EPERM,
    SECCOMP_WHEN(0, SECCOMP_IS(1, 0), SECCOMP_RANGE(0, 1, 2)));
SECCOMP_RULE(UNSHARE_PLAIN, "allowed without CLONE_NEW* flags, else EPERM", 0,
    SECCOMP_WHEN(EPERM, SECCOMP_ANY_BIT(0, SECCOMP_CLONE_NEW | SECCOMP_CLONE_NEWTIME)));

/* As the kernel answers who does not own the file. Delegations are leases on directories. */
SECCOMP_RULE(FCNTL_NO_LEASE, "allowed; F_SETLEASE and F_SETDELEG are EACCES", 0,
    SECCOMP_WHEN(EACCES, SECCOMP_IS(1, SECCOMP_SETLEASE)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(1, SECCOMP_SETDELEG)));

/* Older kernels answer a flag they do not know with EINVAL. */
SECCOMP_RULE(FILTER_WITHOUT_LISTENER, "allowed; SECCOMP_FILTER_FLAG_NEW_LISTENER is EINVAL", 0,
    SECCOMP_WHEN(EINVAL, SECCOMP_IS(0, SECCOMP_SET_FILTER),
                         SECCOMP_ANY_BIT(1, SECCOMP_NEW_LISTENER)));

/* A jailed program must not leave a setuid file behind in a granted directory. `dev` lets setgid
 * pass: build tools keep it on directories of shared projects. mkdir is not here: the kernel takes
 * both bits out of its mode itself. */
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

/* Netlink for anything but routes, and raw sockets, are privileged or reach kernel code no program
 * needs. Route sockets are opened as SOCK_RAW by libc itself. */
SECCOMP_RULE(SOCKET_DEV,
    "AF_UNIX, AF_INET, AF_INET6, NETLINK_ROUTE; raw sockets EPERM, other netlink EPROTONOSUPPORT, "
    "other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_RAW)),
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_PACKET)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
SECCOMP_RULE(SOCKET_CODE_HOST,
    "AF_UNIX, NETLINK_ROUTE, and streams and datagrams of AF_INET and AF_INET6; raw sockets and "
    "other types EPERM, other netlink EPROTONOSUPPORT, other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 1)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 2)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 1)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6), SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, 2)),
    SECCOMP_WHEN(EPERM, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(EPERM, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
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
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK), SECCOMP_IS(2, SECCOMP_NETLINK_ROUTE)),
    SECCOMP_WHEN(EPROTONOSUPPORT, SECCOMP_IS(0, SECCOMP_FAMILY_NETLINK)),
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_RAW)),
    SECCOMP_WHEN(EPERM, SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_PACKET)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
SECCOMP_RULE(SOCKET_CODE_SHUT,
    "AF_UNIX, AF_INET and AF_INET6 EACCES, other families EAFNOSUPPORT", EAFNOSUPPORT,
    SECCOMP_WHEN(EACCES, SECCOMP_RANGE(0, SECCOMP_FAMILY_UNIX, SECCOMP_FAMILY_INET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_INET6)));
/* The ends of such a pair are connected for ever. Datagram sockets, which SOCK_RAW makes as well, can
 * be connected anew and send to any name. */
SECCOMP_RULE(PAIR_SHUT,
    "streams and SOCK_SEQPACKET of AF_UNIX; other types EACCES, other families EAFNOSUPPORT",
    EAFNOSUPPORT,
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX),
                 SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_STREAM)),
    SECCOMP_WHEN(0, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX),
                 SECCOMP_MASKED(1, SECCOMP_TYPE_MASK, SECCOMP_TYPE_SEQPACKET)),
    SECCOMP_WHEN(EACCES, SECCOMP_IS(0, SECCOMP_FAMILY_UNIX)));

SECCOMP_RULE(IOCTL_DEV, "allowed; TIOCSTI, TIOCLINUX, TIOCCONS and TIOCSETD are EPERM", 0,
    SECCOMP_WHEN(EPERM, SECCOMP_IS(1, 0x5412)),            /* TIOCSTI: types into the terminal */
    SECCOMP_WHEN(EPERM, SECCOMP_RANGE(1, 0x541c, 0x541d)), /* TIOCLINUX pastes; TIOCCONS takes the
                                                            * console's output */
    SECCOMP_WHEN(EPERM, SECCOMP_IS(1, 0x5423)));           /* TIOCSETD: loads line disciplines, a
                                                            * long-standing source of kernel bugs */

/* By list: the devices and filesystems a grant brings along answer to hundreds of others. ENOTTY is
 * what a file says to a request it does not know. */
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

/* Not here: PR_SET_MM, KEEPCAPS, CAPBSET_DROP, SECUREBITS, CAP_AMBIENT (privileged), PTRACER (there
 * is no ptrace), SYSCALL_USER_DISPATCH, SCHED_CORE, IO_FLUSHER, MCE_KILL, MEMORY_MERGE (page
 * merging tells what is in other processes' memory), SPECULATION_CTRL (would switch mitigations
 * off), TSC, TIMING, UNALIGN, ENDIAN, FPEMU, FPEXC. EINVAL, as on a kernel without them. */
#define SECCOMP_PRCTL_CODE \
    SECCOMP_WHEN(0, SECCOMP_RANGE(0, 1, 4)),   /* PDEATHSIG, DUMPABLE: its own; get and set */ \
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

/* ---- Denied or narrowed in every profile -------------------------------------------------- */

#define SECCOMP_FLOOR(X) \
    X(_sysctl, NOT_PERMITTED, "writes kernel parameters; gone since 5.5") \
    X(acct, NOT_PERMITTED, "switches process accounting of the host") \
    X(add_key, NOT_THERE, "keyrings are not separated by any namespace but the user's") \
    X(adjtimex, NOT_PERMITTED, "adjusts the host's clock") \
    X(bpf, NOT_PERMITTED, "loads programs into the kernel") \
    X(chroot, NOT_PERMITTED, "part of leaving a root directory") \
    X(clock_adjtime, NOT_PERMITTED, "adjusts the host's clock") \
    X(clock_settime, NOT_PERMITTED, "sets the host's clock") \
    X(clone, CLONE_PLAIN, "a namespace inside opens kernel code meant for root") \
    X(clone3, NOT_THERE, "its flags are behind a pointer; libc falls back to clone") \
    X(create_module, NOT_PERMITTED, "loads code into the kernel") \
    X(delete_module, NOT_PERMITTED, "unloads code from the kernel") \
    X(fanotify_init, NOT_PERMITTED, "watches whole filesystems") \
    X(fcntl, FCNTL_NO_LEASE, "a lease makes whoever opens the file wait, another jail or the host") \
    X(finit_module, NOT_PERMITTED, "loads code into the kernel") \
    X(fsconfig, NOT_PERMITTED, "mounts") \
    X(fsmount, NOT_PERMITTED, "mounts") \
    X(fsopen, NOT_PERMITTED, "mounts") \
    X(fspick, NOT_PERMITTED, "mounts") \
    X(get_kernel_syms, NOT_PERMITTED, "tells where kernel code is") \
    X(init_module, NOT_PERMITTED, "loads code into the kernel") \
    X(io_uring_enter, NOT_THERE, "does what filters forbid, unseen by them") \
    X(io_uring_register, NOT_THERE, "does what filters forbid, unseen by them") \
    X(io_uring_setup, NOT_THERE, "does what filters forbid, unseen by them") \
    X(ioperm, NOT_PERMITTED, "reaches hardware ports") \
    X(iopl, NOT_PERMITTED, "reaches hardware ports") \
    X(kcmp, NOT_PERMITTED, "compares kernel objects of processes, leaks their order") \
    X(kexec_file_load, NOT_PERMITTED, "replaces the kernel") \
    X(kexec_load, NOT_PERMITTED, "replaces the kernel") \
    X(keyctl, NOT_THERE, "keyrings are not separated by any namespace but the user's") \
    X(listns, NOT_THERE, "enumerates namespaces, those of others too") \
    X(lookup_dcookie, NOT_PERMITTED, "profiling of the whole system; gone since 6.7") \
    X(lsm_set_self_attr, NOT_PERMITTED, "changes the security label of the process") \
    X(modify_ldt, NOT_PERMITTED, "16-bit segments, a source of kernel bugs") \
    X(mount, NOT_PERMITTED, "mounts") \
    X(mount_setattr, NOT_PERMITTED, "would make read-only mounts writable") \
    X(move_mount, NOT_PERMITTED, "mounts") \
    X(nfsservctl, NOT_PERMITTED, "the kernel's file server; gone since 3.1") \
    X(open_by_handle_at, NOT_PERMITTED, "opens files by number, past every directory") \
    X(open_tree, NOT_PERMITTED, "mounts") \
    X(open_tree_attr, NOT_PERMITTED, "mounts") \
    X(openat2, NOT_THERE, "its mode is behind a pointer; programs fall back to openat") \
    X(perf_event_open, NOT_PERMITTED, "measures the kernel and other processes") \
    X(pidfd_getfd, NOT_PERMITTED, "takes file descriptors out of other processes") \
    X(pivot_root, NOT_PERMITTED, "changes the root directory") \
    X(prlimit64, PRLIMIT_NOT_INIT, "init has the same uid: it could be starved to death") \
    X(process_madvise, NOT_PERMITTED, "tells the kernel to drop other processes' memory") \
    X(query_module, NOT_PERMITTED, "tells what is loaded into the kernel") \
    X(quotactl, NOT_PERMITTED, "reads and sets disk quotas of the host") \
    X(quotactl_fd, NOT_PERMITTED, "reads and sets disk quotas of the host") \
    X(reboot, NOT_PERMITTED, "stops the machine") \
    X(request_key, NOT_THERE, "keyrings are not separated by any namespace but the user's") \
    X(seccomp, FILTER_WITHOUT_LISTENER, "filters only narrow; a listener answers for the kernel") \
    X(setdomainname, NOT_PERMITTED, "names belong to whoever made the jail") \
    X(sethostname, NOT_PERMITTED, "names belong to whoever made the jail") \
    X(setns, NOT_PERMITTED, "joins namespaces") \
    X(settimeofday, NOT_PERMITTED, "sets the host's clock") \
    X(socketpair, PAIR_UNIX, "only UNIX sockets come in pairs that programs use") \
    X(swapoff, NOT_PERMITTED, "manages the host's memory") \
    X(swapon, NOT_PERMITTED, "manages the host's memory") \
    X(sysfs, NOT_PERMITTED, "obsolete list of filesystem types") \
    X(syslog, NOT_PERMITTED, "reads and clears the kernel's log") \
    X(umount2, NOT_PERMITTED, "would uncover what a mount hides") \
    X(unshare, UNSHARE_PLAIN, "a namespace inside opens kernel code meant for root") \
    X(uselib, NOT_PERMITTED, "obsolete loader, a source of kernel bugs") \
    X(userfaultfd, NOT_PERMITTED, "stops the kernel at a chosen point, a tool for exploits") \
    X(ustat, NOT_PERMITTED, "obsolete query of devices") \
    X(vhangup, NOT_PERMITTED, "hangs up a terminal") \
    X(vserver, NOT_PERMITTED, "never in the kernel")

/* ---- dev: what else is denied; everything not named is allowed ---------------------------- */

#define SECCOMP_DEV(X) \
    X(chmod, CHMOD_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(creat, CREAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(fchmod, CHMOD_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(fchmodat, CHMODAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(fchmodat2, CHMODAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(ioctl, IOCTL_DEV, "some requests type into a terminal or load kernel modules") \
    X(mknod, MKNOD_NO_SUID_SGID, "no device node may be left in a granted directory") \
    X(mknodat, MKNODAT_NO_SUID_SGID, "no device node may be left in a granted directory") \
    X(open, OPEN_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(openat, OPENAT_NO_SUID_SGID, "no setuid or setgid file may be left in a granted directory") \
    X(personality, PERSONALITY_DEV, "debuggers switch randomisation off; the rest weakens mmap") \
    X(socket, SOCKET_DEV, "other families are rarely used kernel code, loaded on demand")

/* ---- code: what is allowed; everything not named is EPERM --------------------------------- */

#define SECCOMP_CODE(X) \
    X(accept, ALLOWED, "servers") \
    X(accept4, ALLOWED, "servers") \
    X(access, ALLOWED, "asking about files") \
    X(alarm, ALLOWED, "timers") \
    X(arch_prctl, ALLOWED, "thread pointer, shadow stacks, AMX: of the thread itself") \
    X(bind, ALLOWED, "servers") \
    X(brk, ALLOWED, "memory") \
    X(capget, ALLOWED, "asking about capabilities: there are none") \
    X(capset, ALLOWED, "can only give up capabilities") \
    X(chdir, ALLOWED, "working directory") \
    X(chmod, CHMOD_NO_SUID_SGID, "file modes; nothing may run as somebody else") \
    X(chown, ALLOWED, "archives restore owners; only to ids the jail has") \
    X(clock_getres, ALLOWED, "clocks") \
    X(clock_gettime, ALLOWED, "clocks") \
    X(clock_nanosleep, ALLOWED, "clocks") \
    X(close, ALLOWED, "files") \
    X(close_range, ALLOWED, "files; before starting programs") \
    X(connect, ALLOWED, "clients") \
    X(copy_file_range, ALLOWED, "copying files") \
    X(creat, CREAT_NO_SUID_SGID, "creating files; nothing may run as somebody else") \
    X(dup, ALLOWED, "files") \
    X(dup2, ALLOWED, "files") \
    X(dup3, ALLOWED, "files") \
    X(epoll_create, ALLOWED, "event loops") \
    X(epoll_create1, ALLOWED, "event loops") \
    X(epoll_ctl, ALLOWED, "event loops") \
    X(epoll_pwait, ALLOWED, "event loops") \
    X(epoll_pwait2, ALLOWED, "event loops") \
    X(epoll_wait, ALLOWED, "event loops") \
    X(eventfd, ALLOWED, "event loops") \
    X(eventfd2, ALLOWED, "event loops") \
    X(execve, ALLOWED, "starting programs") \
    X(execveat, ALLOWED, "starting programs") \
    X(exit, ALLOWED, "ending a thread") \
    X(exit_group, ALLOWED, "ending a program") \
    X(faccessat, ALLOWED, "asking about files") \
    X(faccessat2, ALLOWED, "asking about files") \
    X(fadvise64, ALLOWED, "reading files") \
    X(fallocate, ALLOWED, "writing files") \
    X(fchdir, ALLOWED, "working directory") \
    X(fchmod, CHMOD_NO_SUID_SGID, "file modes; nothing may run as somebody else") \
    X(fchmodat, CHMODAT_NO_SUID_SGID, "file modes; nothing may run as somebody else") \
    X(fchmodat2, CHMODAT_NO_SUID_SGID, "file modes; nothing may run as somebody else") \
    X(fchown, ALLOWED, "archives restore owners; only to ids the jail has") \
    X(fchownat, ALLOWED, "archives restore owners; only to ids the jail has") \
    X(fdatasync, ALLOWED, "databases") \
    X(fgetxattr, ALLOWED, "attributes, for copying files") \
    X(flistxattr, ALLOWED, "attributes, for copying files") \
    X(flock, ALLOWED, "locks") \
    X(fork, ALLOWED, "starting programs") \
    X(fremovexattr, ALLOWED, "attributes, for copying files") \
    X(fsetxattr, ALLOWED, "attributes, for copying files") \
    X(fstat, ALLOWED, "asking about files") \
    X(fstatfs, ALLOWED, "asking about files") \
    X(fsync, ALLOWED, "databases") \
    X(ftruncate, ALLOWED, "writing files") \
    X(futex, ALLOWED, "threads") \
    X(futex_requeue, ALLOWED, "threads") \
    X(futex_wait, ALLOWED, "threads") \
    X(futex_waitv, ALLOWED, "threads") \
    X(futex_wake, ALLOWED, "threads") \
    X(futimesat, ALLOWED, "file times") \
    X(get_mempolicy, ALLOWED, "numeric libraries ask for the memory layout") \
    X(get_robust_list, ALLOWED, "threads") \
    X(getcpu, ALLOWED, "threads") \
    X(getcwd, ALLOWED, "working directory") \
    X(getdents, ALLOWED, "reading directories") \
    X(getdents64, ALLOWED, "reading directories") \
    X(getegid, ALLOWED, "who am I") \
    X(geteuid, ALLOWED, "who am I") \
    X(getgid, ALLOWED, "who am I") \
    X(getgroups, ALLOWED, "who am I") \
    X(getitimer, ALLOWED, "timers") \
    X(getpeername, ALLOWED, "sockets") \
    X(getpgid, ALLOWED, "job control") \
    X(getpgrp, ALLOWED, "job control") \
    X(getpid, ALLOWED, "who am I") \
    X(getppid, ALLOWED, "who am I") \
    X(getpriority, ALLOWED, "nice") \
    X(getrandom, ALLOWED, "random numbers") \
    X(getresgid, ALLOWED, "who am I") \
    X(getresuid, ALLOWED, "who am I") \
    X(getrlimit, ALLOWED, "limits") \
    X(getrusage, ALLOWED, "limits") \
    X(getsid, ALLOWED, "job control") \
    X(getsockname, ALLOWED, "sockets") \
    X(getsockopt, ALLOWED, "sockets") \
    X(gettid, ALLOWED, "who am I") \
    X(gettimeofday, ALLOWED, "clocks") \
    X(getuid, ALLOWED, "who am I") \
    X(getxattr, ALLOWED, "attributes, for copying files") \
    X(getxattrat, ALLOWED, "attributes, for copying files") \
    X(inotify_add_watch, ALLOWED, "watching files") \
    X(inotify_init, ALLOWED, "watching files") \
    X(inotify_init1, ALLOWED, "watching files") \
    X(inotify_rm_watch, ALLOWED, "watching files") \
    X(io_cancel, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(io_destroy, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(io_getevents, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(io_pgetevents, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(io_setup, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(io_submit, NOT_THERE, "asynchronous I/O is kernel code few programs need") \
    X(ioctl, IOCTL_CODE, "by list: grants bring devices and filesystems along") \
    X(kill, ALLOWED, "signals; only inside the jail's pid namespace") \
    X(landlock_add_rule, ALLOWED, "can only narrow") \
    X(landlock_create_ruleset, ALLOWED, "can only narrow") \
    X(landlock_restrict_self, ALLOWED, "can only narrow") \
    X(lchown, ALLOWED, "archives restore owners; only to ids the jail has") \
    X(lgetxattr, ALLOWED, "attributes, for copying files") \
    X(link, ALLOWED, "files") \
    X(linkat, ALLOWED, "files") \
    X(listen, ALLOWED, "servers") \
    X(listxattr, ALLOWED, "attributes, for copying files") \
    X(listxattrat, ALLOWED, "attributes, for copying files") \
    X(llistxattr, ALLOWED, "attributes, for copying files") \
    X(lremovexattr, ALLOWED, "attributes, for copying files") \
    X(lseek, ALLOWED, "files") \
    X(lsetxattr, ALLOWED, "attributes, for copying files") \
    X(lstat, ALLOWED, "asking about files") \
    X(madvise, ALLOWED, "memory") \
    X(map_shadow_stack, ALLOWED, "threads on processors with shadow stacks") \
    X(membarrier, ALLOWED, "threads") \
    X(memfd_create, NOT_THERE, "programs that lie in no filesystem; no runtime needs it") \
    X(mincore, ALLOWED, "memory") \
    X(mkdir, ALLOWED, "files") \
    X(mkdirat, ALLOWED, "files") \
    X(mknod, MKNOD_NO_SUID_SGID, "pipes with a name; no devices") \
    X(mknodat, MKNODAT_NO_SUID_SGID, "pipes with a name; no devices") \
    X(mlock, ALLOWED, "memory; bounded by the limit on locked memory") \
    X(mlock2, ALLOWED, "memory; bounded by the limit on locked memory") \
    X(mmap, ALLOWED, "memory") \
    X(mprotect, ALLOWED, "memory") \
    X(mq_getsetattr, NOT_THERE, "message queues are kernel code few programs need") \
    X(mq_notify, NOT_THERE, "message queues are kernel code few programs need") \
    X(mq_open, NOT_THERE, "message queues are kernel code few programs need") \
    X(mq_timedreceive, NOT_THERE, "message queues are kernel code few programs need") \
    X(mq_timedsend, NOT_THERE, "message queues are kernel code few programs need") \
    X(mq_unlink, NOT_THERE, "message queues are kernel code few programs need") \
    X(mremap, ALLOWED, "memory") \
    X(mseal, ALLOWED, "memory; can only narrow") \
    X(msgctl, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(msgget, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(msgrcv, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(msgsnd, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(msync, ALLOWED, "memory") \
    X(munlock, ALLOWED, "memory") \
    X(munmap, ALLOWED, "memory") \
    X(nanosleep, ALLOWED, "clocks") \
    X(newfstatat, ALLOWED, "asking about files") \
    X(open, OPEN_NO_SUID_SGID, "files; nothing may run as somebody else") \
    X(openat, OPENAT_NO_SUID_SGID, "files; nothing may run as somebody else") \
    X(pause, ALLOWED, "signals") \
    X(personality, PERSONALITY_CODE, "programs ask; the rest weakens mmap") \
    X(pidfd_open, ALLOWED, "waiting for children") \
    X(pidfd_send_signal, ALLOWED, "signals; only inside the jail's pid namespace") \
    X(pipe, ALLOWED, "pipes") \
    X(pipe2, ALLOWED, "pipes") \
    X(pkey_alloc, ALLOWED, "memory; V8 protects its code with it") \
    X(pkey_free, ALLOWED, "memory; V8 protects its code with it") \
    X(pkey_mprotect, ALLOWED, "memory; V8 protects its code with it") \
    X(poll, ALLOWED, "event loops") \
    X(ppoll, ALLOWED, "event loops") \
    X(prctl, PRCTL_CODE, "names, signals and queries; the rest is for privileged programs") \
    X(pread64, ALLOWED, "reading files") \
    X(preadv, ALLOWED, "reading files") \
    X(preadv2, ALLOWED, "reading files") \
    X(pselect6, ALLOWED, "event loops") \
    X(pwrite64, ALLOWED, "writing files") \
    X(pwritev, ALLOWED, "writing files") \
    X(pwritev2, ALLOWED, "writing files") \
    X(read, ALLOWED, "reading files") \
    X(readahead, ALLOWED, "reading files") \
    X(readlink, ALLOWED, "asking about files") \
    X(readlinkat, ALLOWED, "asking about files") \
    X(readv, ALLOWED, "reading files") \
    X(recvfrom, ALLOWED, "sockets") \
    X(recvmmsg, ALLOWED, "sockets") \
    X(recvmsg, ALLOWED, "sockets") \
    X(removexattr, ALLOWED, "attributes, for copying files") \
    X(removexattrat, ALLOWED, "attributes, for copying files") \
    X(rename, ALLOWED, "files") \
    X(renameat, ALLOWED, "files") \
    X(renameat2, ALLOWED, "files") \
    X(restart_syscall, ALLOWED, "the kernel's own, after a stop") \
    X(rmdir, ALLOWED, "files") \
    X(rseq, ALLOWED, "threads; libc registers it at start") \
    X(rseq_slice_yield, ALLOWED, "threads") \
    X(rt_sigaction, ALLOWED, "signals") \
    X(rt_sigpending, ALLOWED, "signals") \
    X(rt_sigprocmask, ALLOWED, "signals") \
    X(rt_sigqueueinfo, ALLOWED, "signals; only inside the jail's pid namespace") \
    X(rt_sigreturn, ALLOWED, "signals") \
    X(rt_sigsuspend, ALLOWED, "signals") \
    X(rt_sigtimedwait, ALLOWED, "signals") \
    X(rt_tgsigqueueinfo, ALLOWED, "signals; only inside the jail's pid namespace") \
    X(sched_get_priority_max, ALLOWED, "threads ask at start") \
    X(sched_get_priority_min, ALLOWED, "threads ask at start") \
    X(sched_getaffinity, ALLOWED, "how many processors there are") \
    X(sched_getattr, ALLOWED, "threads ask at start") \
    X(sched_getparam, ALLOWED, "threads ask at start") \
    X(sched_getscheduler, ALLOWED, "threads ask at start") \
    X(sched_rr_get_interval, ALLOWED, "threads ask at start") \
    X(sched_setaffinity, ALLOWED, "numeric libraries pin their threads") \
    X(sched_yield, ALLOWED, "threads") \
    X(select, ALLOWED, "event loops") \
    X(semctl, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(semget, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(semop, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(semtimedop, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(sendfile, ALLOWED, "copying files") \
    X(sendmmsg, ALLOWED, "sockets") \
    X(sendmsg, ALLOWED, "sockets") \
    X(sendto, ALLOWED, "sockets") \
    X(set_robust_list, ALLOWED, "threads; libc registers it at start") \
    X(set_tid_address, ALLOWED, "threads; libc registers it at start") \
    X(setgid, ALLOWED, "without capabilities only to ids already held") \
    X(setitimer, ALLOWED, "timers") \
    X(setpgid, ALLOWED, "job control") \
    X(setpriority, ALLOWED, "nice") \
    X(setregid, ALLOWED, "without capabilities only to ids already held") \
    X(setresgid, ALLOWED, "without capabilities only to ids already held") \
    X(setresuid, ALLOWED, "without capabilities only to ids already held") \
    X(setreuid, ALLOWED, "without capabilities only to ids already held") \
    X(setrlimit, ALLOWED, "limits; can only lower the hard ones") \
    X(setsid, ALLOWED, "job control") \
    X(setsockopt, ALLOWED, "sockets") \
    X(setuid, ALLOWED, "without capabilities only to ids already held") \
    X(setxattr, ALLOWED, "attributes, for copying files") \
    X(setxattrat, ALLOWED, "attributes, for copying files") \
    X(shmat, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(shmctl, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(shmdt, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(shmget, NOT_THERE, "System V IPC is kernel code few programs need") \
    X(shutdown, ALLOWED, "sockets") \
    X(sigaltstack, ALLOWED, "signals") \
    X(signalfd, ALLOWED, "event loops") \
    X(signalfd4, ALLOWED, "event loops") \
    X(socket, SOCKET_CODE_NONE, "which families depends on the network policy") \
    X(splice, ALLOWED, "copying files; cat and pv use it") \
    X(stat, ALLOWED, "asking about files") \
    X(statfs, ALLOWED, "asking about files") \
    X(statx, ALLOWED, "asking about files") \
    X(symlink, ALLOWED, "files") \
    X(symlinkat, ALLOWED, "files") \
    X(sync_file_range, ALLOWED, "databases") \
    X(sysinfo, ALLOWED, "how much memory there is") \
    X(tee, ALLOWED, "pipes") \
    X(tgkill, ALLOWED, "signals; abort() uses it") \
    X(time, ALLOWED, "clocks") \
    X(timer_create, ALLOWED, "timers") \
    X(timer_delete, ALLOWED, "timers") \
    X(timer_getoverrun, ALLOWED, "timers") \
    X(timer_gettime, ALLOWED, "timers") \
    X(timer_settime, ALLOWED, "timers") \
    X(timerfd_create, ALLOWED, "event loops") \
    X(timerfd_gettime, ALLOWED, "event loops") \
    X(timerfd_settime, ALLOWED, "event loops") \
    X(times, ALLOWED, "limits") \
    X(tkill, ALLOWED, "signals; only inside the jail's pid namespace") \
    X(truncate, ALLOWED, "writing files") \
    X(umask, ALLOWED, "file modes") \
    X(uname, ALLOWED, "which system this is") \
    X(unlink, ALLOWED, "files") \
    X(unlinkat, ALLOWED, "files") \
    X(uprobe, ALLOWED, "made by the kernel when the host traces a program") \
    X(uretprobe, ALLOWED, "made by the kernel when the host traces a program") \
    X(utime, ALLOWED, "file times") \
    X(utimensat, ALLOWED, "file times") \
    X(utimes, ALLOWED, "file times") \
    X(vfork, ALLOWED, "starting programs") \
    X(vmsplice, NOT_THERE, "shares pages with pipes, a source of kernel bugs") \
    X(wait4, ALLOWED, "waiting for children") \
    X(waitid, ALLOWED, "waiting for children") \
    X(write, ALLOWED, "writing files") \
    X(writev, ALLOWED, "writing files")

/* With the host's network these stand in place of the rows of `code`. */
#define SECCOMP_CODE_HOST(X) \
    X(socket, SOCKET_CODE_HOST, "the host's network is granted")

/* Without network, but nested. */
#define SECCOMP_CODE_NESTED(X) \
    X(socket, SOCKET_CODE_NESTED, "bringing up loopback in the new namespace")

/* ---- nested: what a program with a sandbox of its own needs besides ----------------------- */

#define SECCOMP_NESTED(X) \
    X(chroot, ALLOWED, "leaving the old root") \
    X(clone, ALLOWED, "namespaces") \
    X(clone3, ALLOWED, "namespaces") \
    X(fsconfig, ALLOWED, "mounts") \
    X(fsmount, ALLOWED, "mounts") \
    X(fsopen, ALLOWED, "mounts") \
    X(fspick, ALLOWED, "mounts") \
    X(mount, ALLOWED, "mounts") \
    X(mount_setattr, ALLOWED, "mounts") \
    X(move_mount, ALLOWED, "mounts") \
    X(open_tree, ALLOWED, "mounts") \
    X(open_tree_attr, ALLOWED, "mounts") \
    X(pivot_root, ALLOWED, "leaving the old root") \
    X(prctl, ALLOWED, "dropping the capabilities the new namespace gave") \
    X(setdomainname, ALLOWED, "names in the new namespace") \
    X(setfsgid, ALLOWED, "ids in the new namespace") \
    X(setfsuid, ALLOWED, "ids in the new namespace") \
    X(setgroups, ALLOWED, "ids in the new namespace") \
    X(sethostname, ALLOWED, "names in the new namespace") \
    X(setns, ALLOWED, "namespaces") \
    X(umount2, ALLOWED, "leaving the old root") \
    X(unshare, ALLOWED, "namespaces")

/* ---- alone: a function in its caller's namespaces ------------------------------------------ */

/* Its processes are ended as one process group, which they must not leave, and are its caller's
 * neighbours: the same user's, with the same view of processes. */
#define SECCOMP_ALONE(X) \
    X(clone, CLONE_ALONE, "a child of the caller would outlive the call") \
    X(ioprio_set, IO_PRIORITY_OF_SELF, "the caller's processes have the same uid") \
    X(prctl, PRCTL_ALONE, "dying with the caller is not the function's to change") \
    X(prlimit64, FIRST_IS_SELF, "the caller could be starved to death") \
    X(sched_setaffinity, FIRST_IS_SELF, "the caller's processes have the same uid") \
    X(sched_setattr, FIRST_IS_SELF, "the caller's processes have the same uid") \
    X(sched_setparam, FIRST_IS_SELF, "the caller's processes have the same uid") \
    X(sched_setscheduler, FIRST_IS_SELF, "the caller's processes have the same uid") \
    X(setpgid, NOT_PERMITTED, "who leaves the group would outlive the call") \
    X(setpriority, PRIORITY_OF_SELF, "the caller's processes have the same uid") \
    X(setsid, NOT_PERMITTED, "who leaves the group would outlive the call")

#define SECCOMP_ALONE_CODE(X) \
    X(ioprio_set, NOT_PERMITTED, "as in `code`") \
    X(prctl, PRCTL_CODE_ALONE, "dying with the caller is not the function's to change") \
    X(sched_setattr, NOT_PERMITTED, "as in `code`") \
    X(sched_setparam, NOT_PERMITTED, "as in `code`") \
    X(sched_setscheduler, NOT_PERMITTED, "as in `code`")

/* Without a network, sockets of the host's other programs are out of reach, too, unless the caller
 * asks for them: Landlock governs them by path only from ABI 9 on. */
#define SECCOMP_ALONE_SHUT(X) \
    X(socket, SOCKET_DEV_SHUT, "the host's sockets would be in reach") \
    X(socketpair, PAIR_SHUT, "a datagram socket can send to any other")

#define SECCOMP_ALONE_SHUT_CODE(X) \
    X(socket, SOCKET_CODE_SHUT, "the host's sockets would be in reach")

/* ---- Numbers the build machine's libseccomp may not know ---------------------------------- */

/* Since 424 a syscall has the same number everywhere. */
#define SECCOMP_NUMBERS(X) \
    X(process_madvise, 440) \
    X(epoll_pwait2, 441) \
    X(mount_setattr, 442) \
    X(quotactl_fd, 443) \
    X(landlock_create_ruleset, 444) \
    X(landlock_add_rule, 445) \
    X(landlock_restrict_self, 446) \
    X(memfd_secret, 447) \
    X(process_mrelease, 448) \
    X(futex_waitv, 449) \
    X(set_mempolicy_home_node, 450) \
    X(cachestat, 451) \
    X(fchmodat2, 452) \
    X(map_shadow_stack, 453) \
    X(futex_wake, 454) \
    X(futex_wait, 455) \
    X(futex_requeue, 456) \
    X(statmount, 457) \
    X(listmount, 458) \
    X(lsm_get_self_attr, 459) \
    X(lsm_set_self_attr, 460) \
    X(lsm_list_modules, 461) \
    X(mseal, 462) \
    X(setxattrat, 463) \
    X(getxattrat, 464) \
    X(listxattrat, 465) \
    X(removexattrat, 466) \
    X(open_tree_attr, 467) \
    X(file_getattr, 468) \
    X(file_setattr, 469) \
    X(listns, 470) \
    X(rseq_slice_yield, 471)

/* Only on x86_64. */
#define SECCOMP_NUMBERS_X86_64(X) \
    X(uretprobe, 335) \
    X(uprobe, 336)
/* clang-format on */

/* The first number nobody here has heard of. */
#define SECCOMP_FIRST_UNKNOWN 472

/* ---- The tables as arrays ----------------------------------------------------------------- */

struct seccomp_row {
    const char *name;
    const struct seccomp_rule *rule;
    const char *reason;
};

#define SECCOMP_ROW(syscall, rule, reason) {#syscall, &rule, reason},

static const struct seccomp_row seccomp_floor[] = {SECCOMP_FLOOR(SECCOMP_ROW)};
static const struct seccomp_row seccomp_dev[] = {SECCOMP_DEV(SECCOMP_ROW)};
static const struct seccomp_row seccomp_code[] = {SECCOMP_CODE(SECCOMP_ROW)};
static const struct seccomp_row seccomp_code_host[] = {SECCOMP_CODE_HOST(SECCOMP_ROW)};
static const struct seccomp_row seccomp_code_nested[] = {SECCOMP_CODE_NESTED(SECCOMP_ROW)};
static const struct seccomp_row seccomp_nested[] = {SECCOMP_NESTED(SECCOMP_ROW)};
static const struct seccomp_row seccomp_alone[] = {SECCOMP_ALONE(SECCOMP_ROW)};
static const struct seccomp_row seccomp_alone_code[] = {SECCOMP_ALONE_CODE(SECCOMP_ROW)};
static const struct seccomp_row seccomp_alone_shut[] = {SECCOMP_ALONE_SHUT(SECCOMP_ROW)};
static const struct seccomp_row seccomp_alone_shut_code[] = {SECCOMP_ALONE_SHUT_CODE(SECCOMP_ROW)};

#define SECCOMP_ROWS(table) (table), sizeof(table) / sizeof((table)[0])
