/* SPDX-License-Identifier: MIT */
/* The syscall filters: what they say, what the kernel then does, and that real programs run. The
 * generator has already run every filter against the tables; the expectations here are written
 * down a second time, independent of them. */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/confine/seccomp.h"
#include "tap.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

/* Not in the headers of every build machine. */
enum {
    NR_FCHMODAT2 = 452,
    NR_MSEAL = 462,
    NR_OPEN_TREE_ATTR = 467,
    NR_FIRST_UNKNOWN = 472,
};

static const struct {
    const char *name;
    enum brig_seccomp profile;
    enum brig_network network;
    bool nested;
} variants[] = {
    {"dev", BRIG_SECCOMP_DEV, BRIG_NET_HOST, false},
    {"code without network", BRIG_SECCOMP_CODE, BRIG_NET_NONE, false},
    {"code with the host's network", BRIG_SECCOMP_CODE, BRIG_NET_HOST, false},
    {"dev, nested", BRIG_SECCOMP_DEV, BRIG_NET_HOST, true},
    {"code without network, nested", BRIG_SECCOMP_CODE, BRIG_NET_NONE, true},
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))
enum { DEV, CODE_NONE, CODE_HOST, DEV_NESTED, CODE_NESTED };

static const struct sock_fprog *program_of(size_t variant)
{
    return seccomp_program(variants[variant].profile, variants[variant].network,
                           variants[variant].nested);
}

/* ---- What the filters say ----------------------------------------------------------------- */

/* As the kernel runs it; bad code ends the test. */
static uint32_t interpret(const struct sock_fprog *program, const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (size_t pc = 0; pc < program->len; pc++) {
        struct sock_filter insn = program->filter[pc];
        switch (insn.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (insn.k % 4 != 0 || insn.k > sizeof(*data) - sizeof(a))
                tap_bail("a load from outside");
            memcpy(&a, (const char *)data + insn.k, sizeof(a));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= insn.k;
            break;
        case BPF_JMP | BPF_JA:
            pc += insn.k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == insn.k ? insn.jt : insn.jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            pc += a > insn.k ? insn.jt : insn.jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= insn.k ? insn.jt : insn.jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += a & insn.k ? insn.jt : insn.jf;
            break;
        case BPF_RET | BPF_K:
            return insn.k;
        default:
            tap_bail("instruction %zu has the unknown code %#x", pc, insn.code);
        }
    }
    tap_bail("the filter runs over its end");
}

/* The errno a call would fail with, 0 if it is allowed. */
static int verdict_on(size_t variant, const struct seccomp_data *data)
{
    uint32_t action = interpret(program_of(variant), data);
    if (action == SECCOMP_RET_ALLOW)
        return 0;
    if ((action & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
        tap_fail("a verdict is neither allowing nor an errno: %#x", action);
    return (int)(action & SECCOMP_RET_DATA);
}

struct expectation {
    const char *what;
    long number;
    uint64_t args[6];
    int verdicts[VARIANTS];
};

/* clang-format off */
#define EVERYWHERE(verdict) { verdict, verdict, verdict, verdict, verdict }
#define BY_PROFILE(dev, code) { dev, code, code, dev, code }
#define UNLESS_NESTED(verdict) { verdict, verdict, verdict, 0, 0 }
#define BY_NETWORK(dev, none, host) { dev, none, host, dev, none }

static const struct expectation expectations[] = {
    { "read", SYS_read, { 0 }, EVERYWHERE(0) },
    { "execve", SYS_execve, { 0 }, EVERYWHERE(0) },
    { "futex", SYS_futex, { 0 }, EVERYWHERE(0) },
    { "getrandom", SYS_getrandom, { 0 }, EVERYWHERE(0) },
    { "landlock_restrict_self", SYS_landlock_restrict_self, { 0 }, EVERYWHERE(0) },
    { "mseal", NR_MSEAL, { 0 }, EVERYWHERE(0) },
    { "io_uring_setup", SYS_io_uring_setup, { 0 }, EVERYWHERE(ENOSYS) },
    { "io_uring_enter", SYS_io_uring_enter, { 0 }, EVERYWHERE(ENOSYS) },
    { "io_uring_register", SYS_io_uring_register, { 0 }, EVERYWHERE(ENOSYS) },
    { "openat2", SYS_openat2, { 0 }, EVERYWHERE(ENOSYS) },
    { "bpf", SYS_bpf, { 0 }, EVERYWHERE(EPERM) },
    { "userfaultfd", SYS_userfaultfd, { 0 }, EVERYWHERE(EPERM) },
    { "perf_event_open", SYS_perf_event_open, { 0 }, EVERYWHERE(EPERM) },
    { "kexec_load", SYS_kexec_load, { 0 }, EVERYWHERE(EPERM) },
    { "kexec_file_load", SYS_kexec_file_load, { 0 }, EVERYWHERE(EPERM) },
    { "init_module", SYS_init_module, { 0 }, EVERYWHERE(EPERM) },
    { "finit_module", SYS_finit_module, { 0 }, EVERYWHERE(EPERM) },
    { "delete_module", SYS_delete_module, { 0 }, EVERYWHERE(EPERM) },
    { "keyctl", SYS_keyctl, { 0 }, EVERYWHERE(ENOSYS) },
    { "add_key", SYS_add_key, { 0 }, EVERYWHERE(ENOSYS) },
    { "request_key", SYS_request_key, { 0 }, EVERYWHERE(ENOSYS) },
    { "swapon", SYS_swapon, { 0 }, EVERYWHERE(EPERM) },
    { "reboot", SYS_reboot, { 0 }, EVERYWHERE(EPERM) },
    { "settimeofday", SYS_settimeofday, { 0 }, EVERYWHERE(EPERM) },
    { "clock_settime", SYS_clock_settime, { 0 }, EVERYWHERE(EPERM) },
    { "acct", SYS_acct, { 0 }, EVERYWHERE(EPERM) },
    { "quotactl", SYS_quotactl, { 0 }, EVERYWHERE(EPERM) },
    { "syslog", SYS_syslog, { 0 }, EVERYWHERE(EPERM) },
    { "open_by_handle_at", SYS_open_by_handle_at, { 0 }, EVERYWHERE(EPERM) },
    { "fanotify_init", SYS_fanotify_init, { 0 }, EVERYWHERE(EPERM) },
    { "pidfd_getfd", SYS_pidfd_getfd, { 0 }, EVERYWHERE(EPERM) },
    { "kcmp", SYS_kcmp, { 0 }, EVERYWHERE(EPERM) },
    { "process_madvise", SYS_process_madvise, { 0 }, EVERYWHERE(EPERM) },
    { "vhangup", SYS_vhangup, { 0 }, EVERYWHERE(EPERM) },
    { "ptrace", SYS_ptrace, { 0 }, BY_PROFILE(0, EPERM) },
    { "process_vm_readv", SYS_process_vm_readv, { 0 }, BY_PROFILE(0, EPERM) },
    { "process_vm_writev", SYS_process_vm_writev, { 0 }, BY_PROFILE(0, EPERM) },
    { "mbind", SYS_mbind, { 0 }, BY_PROFILE(0, EPERM) },
    { "move_pages", SYS_move_pages, { 0 }, BY_PROFILE(0, EPERM) },
    { "migrate_pages", SYS_migrate_pages, { 0 }, BY_PROFILE(0, EPERM) },
    { "set_mempolicy", SYS_set_mempolicy, { 0 }, BY_PROFILE(0, EPERM) },
    { "memfd_create", SYS_memfd_create, { 0 }, BY_PROFILE(0, ENOSYS) },
    { "shmget", SYS_shmget, { 0 }, BY_NETWORK(0, ENOSYS, 0) },
    { "semget", SYS_semget, { 0 }, BY_PROFILE(0, ENOSYS) },
    { "name_to_handle_at", SYS_name_to_handle_at, { 0 }, BY_PROFILE(0, EPERM) },
    { "the first unknown number", NR_FIRST_UNKNOWN, { 0 }, EVERYWHERE(ENOSYS) },
    { "number 599", 599, { 0 }, EVERYWHERE(ENOSYS) },
    { "a hole in the numbering", 400, { 0 }, EVERYWHERE(ENOSYS) },
    { "number -1", -1, { 0 }, EVERYWHERE(ENOSYS) },
    { "read by its x32 number", 0x40000000 | SYS_read, { 0 }, EVERYWHERE(ENOSYS) },

    { "prlimit64 of itself", SYS_prlimit64, { 0, 7 }, EVERYWHERE(0) },
    { "prlimit64 of the command", SYS_prlimit64, { 2, 7 }, EVERYWHERE(0) },
    { "prlimit64 of init", SYS_prlimit64, { 1, 7 }, EVERYWHERE(EPERM) },
    { "prlimit64 of init with high bits", SYS_prlimit64, { UINT64_C(1) << 32 | 1, 7 },
      EVERYWHERE(EPERM) },

    { "mount", SYS_mount, { 0 }, UNLESS_NESTED(EPERM) },
    { "umount2", SYS_umount2, { 0 }, UNLESS_NESTED(EPERM) },
    { "pivot_root", SYS_pivot_root, { 0 }, UNLESS_NESTED(EPERM) },
    { "chroot", SYS_chroot, { 0 }, UNLESS_NESTED(EPERM) },
    { "move_mount", SYS_move_mount, { 0 }, UNLESS_NESTED(EPERM) },
    { "open_tree", SYS_open_tree, { 0 }, UNLESS_NESTED(EPERM) },
    { "open_tree_attr", NR_OPEN_TREE_ATTR, { 0 }, UNLESS_NESTED(EPERM) },
    { "fsopen", SYS_fsopen, { 0 }, UNLESS_NESTED(EPERM) },
    { "fsconfig", SYS_fsconfig, { 0 }, UNLESS_NESTED(EPERM) },
    { "fsmount", SYS_fsmount, { 0 }, UNLESS_NESTED(EPERM) },
    { "fspick", SYS_fspick, { 0 }, UNLESS_NESTED(EPERM) },
    { "mount_setattr", SYS_mount_setattr, { 0 }, UNLESS_NESTED(EPERM) },
    { "setns", SYS_setns, { 0 }, UNLESS_NESTED(EPERM) },
    { "sethostname", SYS_sethostname, { 0 }, UNLESS_NESTED(EPERM) },
    { "clone3", SYS_clone3, { 0 }, UNLESS_NESTED(ENOSYS) },
    { "clone for a thread", SYS_clone, { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND }, EVERYWHERE(0) },
    { "clone with SIGCHLD", SYS_clone, { SIGCHLD }, EVERYWHERE(0) },
    { "clone with every exit signal bit", SYS_clone, { 0xff }, EVERYWHERE(0) },
    { "clone(NEWUSER)", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, UNLESS_NESTED(EPERM) },
    { "clone(NEWNS)", SYS_clone, { CLONE_NEWNS }, UNLESS_NESTED(EPERM) },
    { "clone(NEWCGROUP)", SYS_clone, { CLONE_NEWCGROUP }, UNLESS_NESTED(EPERM) },
    { "clone(NEWPID)", SYS_clone, { CLONE_NEWPID }, UNLESS_NESTED(EPERM) },
    { "unshare(FILES)", SYS_unshare, { CLONE_FILES }, EVERYWHERE(0) },
    { "unshare(NEWUSER)", SYS_unshare, { CLONE_NEWUSER }, UNLESS_NESTED(EPERM) },
    { "unshare(NEWUTS)", SYS_unshare, { CLONE_NEWUTS }, UNLESS_NESTED(EPERM) },
    { "unshare(NEWIPC)", SYS_unshare, { CLONE_NEWIPC }, UNLESS_NESTED(EPERM) },
    { "unshare(NEWNET)", SYS_unshare, { CLONE_NEWNET }, UNLESS_NESTED(EPERM) },
    { "unshare(NEWTIME)", SYS_unshare, { 0x80 }, UNLESS_NESTED(EPERM) },
    { "prctl(CAPBSET_DROP)", SYS_prctl, { 24 }, { 0, EINVAL, EINVAL, 0, 0 } },
    { "prctl(SET_NAME)", SYS_prctl, { PR_SET_NAME }, EVERYWHERE(0) },
    { "prctl(SET_NO_NEW_PRIVS)", SYS_prctl, { PR_SET_NO_NEW_PRIVS }, EVERYWHERE(0) },
    { "prctl(SET_PDEATHSIG)", SYS_prctl, { PR_SET_PDEATHSIG }, EVERYWHERE(0) },
    { "prctl(SET_VMA)", SYS_prctl, { 0x53564d41 }, EVERYWHERE(0) },
    { "prctl(SET_MM)", SYS_prctl, { PR_SET_MM }, { 0, EINVAL, EINVAL, 0, 0 } },
    { "prctl(SET_PTRACER)", SYS_prctl, { PR_SET_PTRACER }, { 0, EINVAL, EINVAL, 0, 0 } },
    { "seccomp with a filter", SYS_seccomp, { 1, 1 }, EVERYWHERE(0) },
    { "seccomp with a listener", SYS_seccomp, { 1, 8 }, EVERYWHERE(EINVAL) },
    { "seccomp with a listener and more", SYS_seccomp, { 1, 0x19 }, EVERYWHERE(EINVAL) },
    { "seccomp asking", SYS_seccomp, { 2, 0 }, EVERYWHERE(0) },

    { "fcntl(F_SETFL)", SYS_fcntl, { 0, F_SETFL }, EVERYWHERE(0) },
    { "fcntl(F_SETLK)", SYS_fcntl, { 0, F_SETLK }, EVERYWHERE(0) },
    { "fcntl(F_GETLEASE)", SYS_fcntl, { 0, F_GETLEASE }, EVERYWHERE(0) },
    { "fcntl(F_SETLEASE)", SYS_fcntl, { 0, F_SETLEASE }, EVERYWHERE(EACCES) },
    { "fcntl(F_SETLEASE) with high bits", SYS_fcntl, { 0, UINT64_C(1) << 32 | F_SETLEASE },
      EVERYWHERE(EACCES) },
    { "fcntl(F_SETDELEG)", SYS_fcntl, { 0, 1040 }, EVERYWHERE(EACCES) },
    { "ioctl(TCGETS)", SYS_ioctl, { 0, TCGETS }, EVERYWHERE(0) },
    { "ioctl(TIOCGWINSZ)", SYS_ioctl, { 0, TIOCGWINSZ }, EVERYWHERE(0) },
    { "ioctl(TIOCSCTTY)", SYS_ioctl, { 0, TIOCSCTTY }, EVERYWHERE(0) },
    { "ioctl(FIONREAD)", SYS_ioctl, { 0, FIONREAD }, EVERYWHERE(0) },
    { "ioctl(FIONBIO)", SYS_ioctl, { 0, FIONBIO }, EVERYWHERE(0) },
    { "ioctl(FIOCLEX)", SYS_ioctl, { 0, FIOCLEX }, EVERYWHERE(0) },
    { "ioctl(TIOCGPTN)", SYS_ioctl, { 0, TIOCGPTN }, EVERYWHERE(0) },
    { "ioctl(TIOCSTI)", SYS_ioctl, { 0, TIOCSTI }, EVERYWHERE(EPERM) },
    { "ioctl(TIOCSTI) with high bits", SYS_ioctl, { 0, UINT64_C(1) << 32 | TIOCSTI },
      EVERYWHERE(EPERM) },
    { "ioctl(TIOCLINUX)", SYS_ioctl, { 0, TIOCLINUX }, EVERYWHERE(EPERM) },
    { "ioctl(TIOCLINUX) with high bits", SYS_ioctl, { 0, UINT64_C(7) << 40 | TIOCLINUX },
      EVERYWHERE(EPERM) },
    { "ioctl(TIOCCONS)", SYS_ioctl, { 0, TIOCCONS }, EVERYWHERE(EPERM) },
    { "ioctl(TIOCSETD)", SYS_ioctl, { 0, TIOCSETD }, EVERYWHERE(EPERM) },
    { "ioctl(FS_IOC_FSSETXATTR)", SYS_ioctl, { 0, 0x401c5820 }, BY_PROFILE(0, ENOTTY) },

    { "socket(UNIX)", SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC }, EVERYWHERE(0) },
    { "socket(INET, STREAM)", SYS_socket, { AF_INET, SOCK_STREAM }, BY_NETWORK(0, EACCES, 0) },
    { "socket(INET6, DGRAM)", SYS_socket, { AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK },
      BY_NETWORK(0, EACCES, 0) },
    { "socket(INET, RAW)", SYS_socket, { AF_INET, SOCK_RAW | SOCK_CLOEXEC },
      BY_NETWORK(EPERM, EACCES, EPERM) },
    { "socket(INET6, RAW)", SYS_socket, { AF_INET6, SOCK_RAW }, BY_NETWORK(EPERM, EACCES, EPERM) },
    { "socket(INET, PACKET)", SYS_socket, { AF_INET, SOCK_PACKET },
      BY_NETWORK(EPERM, EACCES, EPERM) },
    { "socket(INET, DCCP)", SYS_socket, { AF_INET, SOCK_DCCP }, BY_NETWORK(0, EACCES, EPERM) },
    { "socket(NETLINK, RAW, ROUTE)", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 },
      { 0, EAFNOSUPPORT, 0, 0, 0 } },
    { "socket(NETLINK, RAW, NETFILTER)", SYS_socket, { AF_NETLINK, SOCK_RAW, 12 },
      { EPROTONOSUPPORT, EAFNOSUPPORT, EPROTONOSUPPORT, EPROTONOSUPPORT, EPROTONOSUPPORT } },
    { "socket(PACKET)", SYS_socket, { AF_PACKET, SOCK_DGRAM }, EVERYWHERE(EAFNOSUPPORT) },
    { "socket(VSOCK)", SYS_socket, { AF_VSOCK, SOCK_STREAM }, EVERYWHERE(EAFNOSUPPORT) },
    { "socket(ALG)", SYS_socket, { AF_ALG, SOCK_SEQPACKET }, EVERYWHERE(EAFNOSUPPORT) },
    { "socketpair(UNIX)", SYS_socketpair, { AF_UNIX, SOCK_STREAM }, EVERYWHERE(0) },
    { "socketpair(TIPC)", SYS_socketpair, { AF_TIPC, SOCK_STREAM }, EVERYWHERE(EAFNOSUPPORT) },

    { "fchmod 0755", SYS_fchmod, { 3, 0755 }, EVERYWHERE(0) },
    { "fchmod 01777", SYS_fchmod, { 3, 01777 }, EVERYWHERE(0) },
    { "fchmod 04755", SYS_fchmod, { 3, 04755 }, EVERYWHERE(EPERM) },
    { "fchmod 02755", SYS_fchmod, { 3, 02755 }, EVERYWHERE(EPERM) },
    { "fchmodat 0644", SYS_fchmodat, { 3, 0, 0644 }, EVERYWHERE(0) },
    { "fchmodat 04755", SYS_fchmodat, { 3, 0, 04755 }, EVERYWHERE(EPERM) },
    { "fchmodat2 0644", NR_FCHMODAT2, { 3, 0, 0644 }, EVERYWHERE(0) },
    { "fchmodat2 06755", NR_FCHMODAT2, { 3, 0, 06755 }, EVERYWHERE(EPERM) },
    { "openat for reading with garbage as mode", SYS_openat, { 3, 0, O_RDONLY, 0xffff },
      EVERYWHERE(0) },
    { "openat of a directory with garbage as mode", SYS_openat, { 3, 0, O_DIRECTORY, 0xffff },
      EVERYWHERE(0) },
    { "openat creating 0644", SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 0644 }, EVERYWHERE(0) },
    { "openat creating 04755", SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 04755 }, EVERYWHERE(EPERM) },
    { "openat creating 02755", SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 02755 },
      EVERYWHERE(EPERM) },
    { "openat of a temporary 0600", SYS_openat, { 3, 0, O_TMPFILE | O_RDWR, 0600 }, EVERYWHERE(0) },
    { "openat of a temporary 04700", SYS_openat, { 3, 0, O_TMPFILE | O_RDWR, 04700 },
      EVERYWHERE(EPERM) },
    { "mknodat of a pipe", SYS_mknodat, { 3, 0, S_IFIFO | 0600 }, EVERYWHERE(0) },
    { "mknodat of a socket", SYS_mknodat, { 3, 0, S_IFSOCK | 0600 }, EVERYWHERE(0) },
    { "mknodat of a file", SYS_mknodat, { 3, 0, 0644 }, EVERYWHERE(0) },
    { "mknodat of a setuid file", SYS_mknodat, { 3, 0, S_IFREG | 04755 }, EVERYWHERE(EPERM) },
    { "mknodat of a character device", SYS_mknodat, { 3, 0, S_IFCHR | 0600 }, EVERYWHERE(EPERM) },
    { "mknodat of a block device", SYS_mknodat, { 3, 0, S_IFBLK | 0600 }, EVERYWHERE(EPERM) },

    { "personality(query)", SYS_personality, { 0xffffffff }, EVERYWHERE(0) },
    { "personality(0)", SYS_personality, { 0 }, EVERYWHERE(0) },
    { "personality(ADDR_NO_RANDOMIZE)", SYS_personality, { 0x0040000 }, BY_PROFILE(0, EPERM) },
    { "personality(READ_IMPLIES_EXEC)", SYS_personality, { 0x0400000 }, EVERYWHERE(EPERM) },
#ifdef __x86_64__
    { "open for reading with garbage as mode", SYS_open, { 0, O_RDONLY, 04755 }, EVERYWHERE(0) },
    { "open creating 04755", SYS_open, { 0, O_CREAT, 04755 }, EVERYWHERE(EPERM) },
    { "creat 0644", SYS_creat, { 0, 0644 }, EVERYWHERE(0) },
    { "creat 04755", SYS_creat, { 0, 04755 }, EVERYWHERE(EPERM) },
    { "chmod 0755", SYS_chmod, { 0, 0755 }, EVERYWHERE(0) },
    { "chmod 04755", SYS_chmod, { 0, 04755 }, EVERYWHERE(EPERM) },
    { "mknod of a block device", SYS_mknod, { 0, S_IFBLK }, EVERYWHERE(EPERM) },
    { "mknod of a pipe", SYS_mknod, { 0, S_IFIFO }, EVERYWHERE(0) },
    { "arch_prctl", SYS_arch_prctl, { 0 }, EVERYWHERE(0) },
    { "modify_ldt", SYS_modify_ldt, { 0 }, EVERYWHERE(EPERM) },
    { "iopl", SYS_iopl, { 0 }, EVERYWHERE(EPERM) },
    { "ioperm", SYS_ioperm, { 0 }, EVERYWHERE(EPERM) },
    { "uselib", SYS_uselib, { 0 }, EVERYWHERE(EPERM) },
#endif
};
/* clang-format on */

static void test_expectations(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(expectations); i++) {
        const struct expectation *e = &expectations[i];
        bool same = true;
        for (size_t v = 0; v < VARIANTS; v++) {
            struct seccomp_data data = {.nr = (int)e->number, .arch = NATIVE_ARCH};
            memcpy(data.args, e->args, sizeof(data.args));
            int verdict = verdict_on(v, &data);
            if (verdict != e->verdicts[v]) {
                tap_diag("%s: %d instead of %d", variants[v].name, verdict, e->verdicts[v]);
                same = false;
            }
        }
        tap_ok(same, "%s is judged as written down", e->what);
    }
}

static void test_foreign_architectures(void)
{
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE, 0};
    bool same = true;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t i = 0; i < ARRAY_LENGTH(foreign); i++)
            for (int number = 0; number < 600; number++)
                same = same && verdict_on(v, &(struct seccomp_data){.nr = number,
                                                                    .arch = foreign[i]}) == ENOSYS;
    tap_ok(same, "calls of other architectures do not exist");
}

/* The two profiles agree with what they claim: nothing `code` allows is denied by `dev`. */
static void test_code_is_narrower(void)
{
    size_t allowed[2] = {0};
    bool narrower = true;
    for (int number = 0; number < NR_FIRST_UNKNOWN; number++) {
        struct seccomp_data data = {.nr = number, .arch = NATIVE_ARCH};
        bool dev = verdict_on(DEV, &data) == 0, code = verdict_on(CODE_HOST, &data) == 0;
        allowed[0] += dev;
        allowed[1] += code;
        narrower = narrower && (dev || !code);
    }
    tap_ok(narrower, "what code allows, dev allows");
    tap_ok(allowed[1] + 50 < allowed[0], "code allows far less than dev (%zu and %zu)", allowed[1],
           allowed[0]);
}

/* The path to a verdict decides what installing costs (see tools/gen-seccomp.c). */
static void test_length(void)
{
    for (size_t v = 0; v < VARIANTS; v++)
        tap_ok(program_of(v)->len <= 300, "%s has %d instructions, 300 at most", variants[v].name,
               program_of(v)->len);
    tap_ok(seccomp_program(BRIG_SECCOMP_DEV, BRIG_NET_NONE, false)->filter ==
               seccomp_program(BRIG_SECCOMP_DEV, BRIG_NET_HOST, false)->filter,
           "dev is the same filter with and without network");
    tap_ok(seccomp_program(BRIG_SECCOMP_CODE, BRIG_NET_LOOPBACK, false)->filter ==
               seccomp_program(BRIG_SECCOMP_CODE, BRIG_NET_HOST, false)->filter,
           "code has sockets with loopback");
    const uint64_t nothing[6] = {0};
    tap_is_int(seccomp_verdict(seccomp_program_alone(BRIG_SECCOMP_CODE, BRIG_NET_HOST, true),
                               SYS_shmget, nothing),
               ENOSYS, "without an IPC namespace there is no shared memory");
}

/* ---- What the kernel then does ------------------------------------------------------------ */

static void install(size_t variant)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program_of(variant)))
        _exit(250);
}

/* The errno of the call in a child under the filter, 0 if it succeeds, 255 if the child died. */
static int call_under(size_t variant, long number, const uint64_t *args)
{
    pid_t pid = fork();
    if (pid == 0) {
        install(variant);
        long result = syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
        if (result == 0 && (number == SYS_clone || number == SYS_clone3))
            _exit(0); /* the child of the clone */
        _exit(result < 0 ? errno : 0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 255;
    return WEXITSTATUS(status);
}

static void expect_call(size_t variant, int wanted, const char *what, long number, uint64_t a,
                        uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t args[6] = {a, b, c, d};
    tap_is_int(call_under(variant, number, args), wanted, "%s: %s %s", variants[variant].name, what,
               wanted ? "fails" : "works");
}

static void test_files(const char *dir)
{
    uint64_t at = (uint64_t)AT_FDCWD;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    uint64_t file = (uint64_t)(uintptr_t)path, folder = (uint64_t)(uintptr_t)dir;
    for (size_t v = 0; v < VARIANTS; v++) {
        expect_call(v, EPERM, "creating a setuid file", SYS_openat, at, file, O_CREAT | O_WRONLY,
                    04755);
        tap_ok(access(path, F_OK) != 0, "%s: and there is none", variants[v].name);
        expect_call(v, 0, "creating a file", SYS_openat, at, file, O_CREAT | O_WRONLY, 0755);
        expect_call(v, 0, "opening it with garbage as mode", SYS_openat, at, file, O_RDONLY, 07777);
        expect_call(v, EPERM, "making it setuid", SYS_fchmodat, at, file, 04755, 0);
        expect_call(v, EPERM, "making it setgid", SYS_fchmodat, at, file, 02755, 0);
        expect_call(v, 0, "changing its mode", SYS_fchmodat, at, file, 0700, 0);
        expect_call(v, 0, "a temporary file", SYS_openat, at, folder, O_TMPFILE | O_RDWR, 0600);
        expect_call(v, EPERM, "a setuid temporary", SYS_openat, at, folder, O_TMPFILE | O_RDWR,
                    04700);
        (void)unlink(path);
        expect_call(v, EPERM, "a whiteout", SYS_mknodat, at, file, S_IFCHR, 0);
        expect_call(v, 0, "a named pipe", SYS_mknodat, at, file, S_IFIFO | 0600, 0);
        (void)unlink(path);
        expect_call(v, 0, "mkdir with every bit", SYS_mkdirat, at, file, 07755, 0);
        struct stat st = {0};
        tap_ok(stat(path, &st) == 0 && (st.st_mode & S_ISUID) == 0,
               "%s: and the directory is not setuid", variants[v].name);
        (void)rmdir(path);
    }
}

static void test_calls(void)
{
    int pair[2];
    struct itimerval timer;
    uint64_t out = (uint64_t)(uintptr_t)pair, when = (uint64_t)(uintptr_t)&timer;
    for (size_t v = 0; v < VARIANTS; v++) {
        bool nested = variants[v].nested, dev = v == DEV || v == DEV_NESTED;
        int inet = v == CODE_NONE || v == CODE_NESTED ? EACCES : 0;
        int route = v == CODE_NONE ? EAFNOSUPPORT : 0;
        expect_call(v, 0, "getpid", SYS_getpid, 0, 0, 0, 0);
        expect_call(v, 0, "getitimer", SYS_getitimer, 0, when, 0, 0);
        expect_call(v, 0, "clone as fork", SYS_clone, SIGCHLD, 0, 0, 0);
        expect_call(v, 0, "unshare(CLONE_FILES)", SYS_unshare, CLONE_FILES, 0, 0, 0);
        expect_call(v, 0, "socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, out);
        expect_call(v, 0, "a UNIX socket", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0);
        expect_call(v, inet, "an inet socket", SYS_socket, AF_INET, SOCK_DGRAM, 0, 0);
        expect_call(v, route, "a route socket", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0);
        expect_call(v, EAFNOSUPPORT, "a packet socket", SYS_socket, AF_PACKET, SOCK_DGRAM, 0, 0);
        expect_call(v, ENOSYS, "io_uring_setup", SYS_io_uring_setup, 1, 0, 0, 0);
        expect_call(v, EPERM, "bpf", SYS_bpf, 0, 0, 0, 0);
        expect_call(v, EPERM, "TIOCSTI with high bits", SYS_ioctl, 0, UINT64_C(1) << 32 | TIOCSTI,
                    out, 0);
        expect_call(v, ENOSYS, "an unknown number", NR_FIRST_UNKNOWN, 0, 0, 0, 0);
        expect_call(v, dev ? 0 : EPERM, "ptrace(TRACEME)", SYS_ptrace, 0, 0, 0, 0);
        expect_call(v, 0, "naming a thread", SYS_prctl, PR_SET_NAME, (uint64_t)(uintptr_t) "x", 0,
                    0);
        /* EINVAL and EFAULT are the kernel's own: the call came through. */
        expect_call(v, nested ? EINVAL : ENOSYS, "clone3 without arguments", SYS_clone3, 0, 0, 0,
                    0);
        expect_call(v, nested ? EFAULT : EPERM, "chroot to nowhere", SYS_chroot, 1, 0, 0, 0);
        expect_call(v, nested ? EFAULT : EPERM, "umount2 of nothing", SYS_umount2, 1, 0, 0, 0);
        if (!nested)
            expect_call(v, EPERM, "a user namespace", SYS_unshare, CLONE_NEWUSER, 0, 0, 0);
    }
}

/* ---- Real programs ------------------------------------------------------------------------ */

static const char python_script[] =
    "import asyncio, concurrent.futures, ctypes, hashlib, json, multiprocessing, os, shutil\n"
    "import socket, sqlite3, ssl, subprocess, sys, tempfile, threading, time\n"
    "assert json.loads('[1]') == [1] and hashlib.sha256(b'x').hexdigest()\n"
    "ssl.create_default_context(); ssl.RAND_bytes(4)\n"
    "assert subprocess.run(['echo', 'hi'], capture_output=True).stdout == b'hi\\n'\n"
    "subprocess.run('true; ls / | sort', shell=True, check=True, stdout=subprocess.DEVNULL)\n"
    "t = threading.Thread(target=time.sleep, args=(0.001,)); t.start(); t.join()\n"
    "async def work():\n"
    "    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
    "    out, _ = await p.communicate(b'abc')\n"
    "    assert out == b'abc'\n"
    "asyncio.run(work())\n"
    "with concurrent.futures.ThreadPoolExecutor(2) as e: assert list(e.map(len, ['a'])) == [1]\n"
    "with multiprocessing.get_context('fork').Pool(2) as p: assert p.map(len, ['ab']) == [2]\n"
    "call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1); assert call(1) == 2\n"
    "d = tempfile.mkdtemp(dir=os.getcwd())\n"
    "open(d + '/f', 'w').write('x'); os.chmod(d + '/f', 0o755)\n"
    "shutil.copytree(d, d + '2'); shutil.rmtree(d); shutil.rmtree(d + '2')\n"
    "db = sqlite3.connect('db'); db.execute('create table t (x)'); db.commit(); db.close()\n"
    "os.unlink('db')\n"
    "try:\n"
    "    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
    "    assert sys.argv[1] == 'host'\n"
    "    c = socket.create_connection(s.getsockname()); c.close()\n"
    "except PermissionError:\n"
    "    assert sys.argv[1] == 'none'\n";

static const char node_script[] =
    "const cp = require('child_process'), fs = require('fs'), http = require('http');\n"
    "const { Worker } = require('worker_threads');\n"
    "const assert = require('assert'), net = process.argv[1];\n"
    "assert.equal(cp.execSync('echo hi').toString(), 'hi\\n');\n"
    "fs.writeFileSync('n', 'x'); fs.copyFileSync('n', 'm'); fs.chmodSync('m', 0o700);\n"
    "fs.renameSync('m', 'n'); fs.watch('.').close(); fs.unlinkSync('n');\n"
    "require('crypto').randomBytes(4); require('zlib').gzipSync('x'); require('os').cpus();\n"
    "let left = 3; const done = () => { if (--left === 0) process.exit(0); };\n"
    "new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true })\n"
    "    .on('message', done);\n"
    "cp.spawn('cat', [], { stdio: ['pipe', 'pipe', 'inherit'] }).on('exit', done).stdin.end();\n"
    "const s = http.createServer((q, r) => r.end('ok'));\n"
    "s.on('error', (e) => { assert.equal(e.code, 'EACCES'); assert.equal(net, 'none'); done(); "
    "});\n"
    "s.listen(0, '127.0.0.1', () => { assert.equal(net, 'host');\n"
    "    http.get({ port: s.address().port }, (r) => { r.resume(); r.on('end', done); }); });\n";

static const char shell_script[] =
    "set -eo pipefail\n"
    "seq 100 | sort -n | tail -1 | grep -q '^100$'\n"
    "printf 'b\\na\\n' > one; cp -p one two; mv two three; ln -s three link; ln three hard\n"
    "sed -i s/a/c/ three; awk '{print $1}' three | tr a-z A-Z | wc -l > /dev/null\n"
    "mkdir -p d/e; chmod 755 d; touch d/e/f; cp -a d d2; tar cf t.tar d; tar xf t.tar\n"
    "gzip -k t.tar; find . -name 'f' | xargs ls -l > /dev/null; mkfifo p; (echo x > p) & cat p\n"
    "cat < <(echo y) <<< z > /dev/null; diff one one; dd if=/dev/zero of=z bs=1k count=4 2>&1\n"
    "df . > /dev/null; du -s . > /dev/null; stat one > /dev/null; date; nice true; nproc; id; env\n"
    "timeout 60 sleep 0.01; sleep 5 & kill $!; wait $! || true; file=$(mktemp); rm \"$file\"\n"
    "! chmod u+s one 2> /dev/null; chmod 700 one; ulimit -n 64; perl -e 'print 1'\n"
    "rm -rf one three link hard d d2 t.tar t.tar.gz p z\n";

static const char git_script[] =
    "set -e; git init -q r; cd r; echo x > a; git add a\n"
    "git -c user.name=n -c user.email=e@x commit -qm m; git status --porcelain; git log --oneline\n"
    "git checkout -q -b other; git gc -q; cd ..; git clone -q r s; rm -rf r s\n";

static const char gcc_script[] =
    "set -e; printf '#include <stdio.h>\\nint main(void) { return puts(\"hi\") < 0; }\\n' > h.c\n"
    "gcc -O2 -pipe h.c -o h; test \"$(./h)\" = hi; rm h h.c\n";

/* Output goes to a file in the directory, shown if the program fails. */
static void run_program(size_t variant, const char *dir, const char *what, const char *const *argv)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C",
                                              "HOME=/nonexistent", NULL};
    char path[128], output[4096] = "";
    (void)snprintf(path, sizeof(path), "%s.log", dir);
    autoclose int log = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log < 0)
        tap_bail("cannot make %s", path);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(dir) || dup2(log, 1) < 0 || dup2(log, 2) < 0)
            _exit(251);
        install(variant);
        environ = (char **)(uintptr_t)environment;
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(errno == ENOENT ? 127 : 252);
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    (void)unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        tap_skip("not installed", "%s: %s runs", variants[variant].name, what);
        return;
    }
    if (!tap_ok(status == 0, "%s: %s runs", variants[variant].name, what)) {
        ssize_t length = pread(log, output, sizeof(output) - 1, 0);
        tap_diag("wait status %#x\n%.*s", (unsigned)status, length > 0 ? (int)length : 0, output);
    }
}

static void test_programs(const char *dir)
{
    for (size_t v = 0; v <= CODE_HOST; v++) {
        const char *net = variants[v].network == BRIG_NET_HOST ? "host" : "none";
        run_program(v, dir, "bash and coreutils",
                    (const char *const[]){"bash", "-c", shell_script, NULL});
        run_program(v, dir, "python3",
                    (const char *const[]){"python3", "-c", python_script, net, NULL});
        run_program(v, dir, "node", (const char *const[]){"node", "-e", node_script, net, NULL});
        run_program(v, dir, "git", (const char *const[]){"bash", "-c", git_script, NULL});
        run_program(v, dir, "gcc", (const char *const[]){"bash", "-c", gcc_script, NULL});
    }
}

/* A function without namespaces: UNIX sockets go with the network, unless they are asked for. */
static void test_alone(void)
{
    static const struct {
        const char *name;
        long number;
        uint64_t args[6];
        int shut[2], open[2]; /* dev, code: without UNIX sockets, and with them */
    } rows[] = {
        {"socket(UNIX)",
         SYS_socket,
         {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC},
         {EACCES, EACCES},
         {0, 0}},
        {"socket(UNIX, DGRAM)", SYS_socket, {AF_UNIX, SOCK_DGRAM}, {EACCES, EACCES}, {0, 0}},
        {"socket(INET)", SYS_socket, {AF_INET, SOCK_STREAM}, {0, EACCES}, {0, EACCES}},
        {"socket(INET6)", SYS_socket, {AF_INET6, SOCK_DGRAM}, {0, EACCES}, {0, EACCES}},
        {"socket(NETLINK)",
         SYS_socket,
         {AF_NETLINK, SOCK_RAW},
         {0, EAFNOSUPPORT},
         {0, EAFNOSUPPORT}},
        {"socketpair(STREAM)",
         SYS_socketpair,
         {AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK},
         {0, 0},
         {0, 0}},
        {"socketpair(SEQPACKET)", SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET}, {0, 0}, {0, 0}},
        {"socketpair(DGRAM)",
         SYS_socketpair,
         {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC},
         {EACCES, EACCES},
         {0, 0}},
        {"socketpair(RAW)", SYS_socketpair, {AF_UNIX, SOCK_RAW}, {EACCES, EACCES}, {0, 0}},
        {"socketpair(INET)",
         SYS_socketpair,
         {AF_INET, SOCK_STREAM},
         {EAFNOSUPPORT, EAFNOSUPPORT},
         {EAFNOSUPPORT, EAFNOSUPPORT}},
    };
    static const enum brig_seccomp profiles[] = {BRIG_SECCOMP_DEV, BRIG_SECCOMP_CODE};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        for (int k = 0; k < 2; k++) {
            const struct sock_fprog *shut =
                seccomp_program_alone(profiles[k], BRIG_NET_NONE, false);
            const struct sock_fprog *open = seccomp_program_alone(profiles[k], BRIG_NET_NONE, true);
            tap_is_int(seccomp_verdict(shut, (int)rows[i].number, rows[i].args), rows[i].shut[k],
                       "%s without UNIX sockets, %s", rows[i].name, k ? "code" : "dev");
            tap_is_int(seccomp_verdict(open, (int)rows[i].number, rows[i].args), rows[i].open[k],
                       "%s with them, %s", rows[i].name, k ? "code" : "dev");
        }
    const uint64_t local[6] = {AF_UNIX, SOCK_STREAM}, inet[6] = {AF_INET, SOCK_STREAM};
    for (int k = 0; k < 2; k++) {
        const struct sock_fprog *host = seccomp_program_alone(profiles[k], BRIG_NET_HOST, false);
        tap_is_int(seccomp_verdict(host, SYS_socket, local), EACCES,
                   "the host's network brings no UNIX sockets, %s", k ? "code" : "dev");
        tap_is_int(seccomp_verdict(host, SYS_socket, inet), 0, "but others, %s",
                   k ? "code" : "dev");
    }
}

int main(void)
{
    char dir[] = "/tmp/test_seccomp.XXXXXX";
    test_expectations();
    test_foreign_architectures();
    test_code_is_narrower();
    test_length();
    test_alone();
    if (!mkdtemp(dir))
        tap_bail("mkdtemp: %s", strerror(errno));
    test_files(dir);
    test_calls();
    test_programs(dir);
    if (!tap_ok(rmdir(dir) == 0, "nothing is left behind"))
        tap_diag("%s: %s", dir, strerror(errno));
    return tap_done();
}
