/* SPDX-License-Identifier: MIT */
/* Attempts at namespaces and mounts, each in a process that is thrown away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/confine/landlock.h"
#include "jail/probe/probe_checks.h"
#include "jail/sys.h"

/* Old glibc's <sys/mount.h> and the kernel's <linux/mount.h> cannot be had in one file, and only the
 * kernel's has the new calls. */
#define DETACH 2 /* MNT_DETACH */

static long mount_old(const char *source, const char *target, const char *type, unsigned long flags,
                      const char *data)
{
    return syscall(SYS_mount, source, target, type, flags, data);
}

/* ---- Namespaces ---- */

void check_userns(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter(context, 0, answer) == 0)
        probe_note(answer, "uid %u, gid %u", context->uid, context->gid);
}

void check_ns_mount(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter(context, CLONE_NEWNS, answer) < 0)
        return;
    /* Some systems allow the namespace but no use of its capabilities. */
    if (mount_old(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        probe_failed(answer, errno, "make mounts private");
}

static void report_pid(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    if (getpid() != 1)
        probe_failed(answer, ESRCH, "become pid 1");
}

void check_ns_pid(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter(context, CLONE_NEWPID, answer) == 0)
        probe_in_child(report_pid, context, answer);
}

void check_ns_net(const struct probe_context *context, struct probe_answer *answer)
{
    (void)probe_enter(context, CLONE_NEWNET, answer);
}

void check_ns_ipc(const struct probe_context *context, struct probe_answer *answer)
{
    (void)probe_enter(context, CLONE_NEWIPC, answer);
}

void check_ns_uts(const struct probe_context *context, struct probe_answer *answer)
{
    static const char name[] = "brig";
    if (probe_enter(context, CLONE_NEWUTS, answer) == 0 && sethostname(name, sizeof name - 1) < 0)
        probe_failed(answer, errno, "set the host name");
}

void check_ns_cgroup(const struct probe_context *context, struct probe_answer *answer)
{
    (void)probe_enter(context, CLONE_NEWCGROUP, answer);
}

void check_ns_time(const struct probe_context *context, struct probe_answer *answer)
{
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
    (void)probe_enter(context, CLONE_NEWTIME, answer);
}

void check_nested_limit(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter(context, 0, answer) < 0)
        return;
    if (probe_write("/proc/sys/user/max_user_namespaces", "0") < 0)
        probe_failed(answer, errno, "write user.max_user_namespaces");
    else if (unshare(CLONE_NEWUSER) == 0)
        probe_failed(answer, EINVAL, "the limit is not obeyed");
}

/* ---- Mounts ---- */

/* A detached tmpfs by the new mount API, or -1 with the failure noted. */
static int new_tmpfs(struct probe_answer *answer)
{
    autoclose int context_fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (context_fd < 0) {
        probe_failed(answer, errno, "fsopen");
        return -1;
    }
    if (syscall(SYS_fsconfig, context_fd, FSCONFIG_SET_STRING, "size", "1m", 0) < 0 ||
        syscall(SYS_fsconfig, context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        probe_failed(answer, errno, "fsconfig");
        return -1;
    }
    int fd = (int)syscall(SYS_fsmount, context_fd, FSMOUNT_CLOEXEC, 0);
    if (fd < 0)
        probe_failed(answer, errno, "fsmount");
    return fd;
}

void check_mount_api(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter_scratch(context, 0, answer) < 0)
        return;
    autoclose int made = new_tmpfs(answer);
    if (made < 0)
        return;
    if (syscall(SYS_move_mount, made, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) < 0) {
        probe_failed(answer, errno, "move_mount");
        return;
    }
    autoclose int copy = (int)syscall(SYS_open_tree, AT_FDCWD, "/",
                                      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (copy < 0)
        probe_failed(answer, errno, "open_tree");
}

/* struct mount_attr is in the headers only from 5.12 on. */
struct tree_attr {
    uint64_t set, clear, propagation, userns_fd;
};
#define TREE_RDONLY 0x1u
#define TREE_IDMAP 0x00100000u

static long set_tree_attr(int fd, unsigned flags, const struct tree_attr *attr)
{
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
    return syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, attr, sizeof *attr);
}

void check_mount_setattr(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter_scratch(context, 0, answer) < 0)
        return;
    autoclose int tree = (int)syscall(SYS_open_tree, AT_FDCWD, ".",
                                      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) {
        probe_failed(answer, errno, "open_tree");
        return;
    }
    if (set_tree_attr(tree, AT_RECURSIVE, &(struct tree_attr){.set = TREE_RDONLY}) < 0)
        probe_failed(answer, errno, "mount_setattr");
    else if (mkdirat(tree, "x", 0700) == 0 || errno != EROFS)
        probe_failed(answer, EINVAL, "read-only is not obeyed");
}

void check_tmpfs(const struct probe_context *context, struct probe_answer *answer)
{
    (void)probe_enter_scratch(context, 0, answer);
}

static void mount_proc(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    if (mount_old("proc", "p", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        probe_failed(answer, errno, "mount proc");
    else if (access("p/1/status", R_OK) < 0)
        probe_failed(answer, errno, "read the new proc");
}

void check_proc(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter_scratch(context, CLONE_NEWPID, answer) < 0)
        return;
    if (mkdir("p", 0700) < 0)
        probe_failed(answer, errno, "mkdir");
    else
        probe_in_child(mount_proc, context, answer);
}

void check_devpts(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter_scratch(context, 0, answer) < 0)
        return;
    if (mkdir("pts", 0700) < 0 || mount_old("devpts", "pts", "devpts", MS_NOSUID | MS_NOEXEC,
                                            "newinstance,ptmxmode=0666,mode=0620") < 0) {
        probe_failed(answer, errno, "mount devpts");
        return;
    }
    autoclose int terminal = open("pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        probe_failed(answer, errno, "open a terminal");
}

void check_pivot_root(const struct probe_context *context, struct probe_answer *answer)
{
    struct stat before, after;
    if (probe_enter_scratch(context, 0, answer) < 0)
        return;
    if (stat(".", &before) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        probe_failed(answer, errno, "pivot_root");
    else if (syscall(SYS_umount2, ".", DETACH) < 0)
        probe_failed(answer, errno, "leave the old root");
    else if (stat("/", &after) < 0 || before.st_dev != after.st_dev)
        probe_failed(answer, EINVAL, "pivot_root is not obeyed");
}

/* ---- Overlayfs ---- */

static int make_file(const char *path)
{
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : 0;
}

/* Mounts an overlay of l, u and w in the working directory and does with it what has failed on some
 * kernels: before 6.6 a tmpfs has no user.* xattrs, and removing a directory of the lower layer is an
 * I/O error. */
static void try_overlay(struct probe_answer *answer)
{
    static const char *const directories[] = {"l", "l/d", "u", "w", "m"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
        if (mkdir(directories[i], 0700) < 0) {
            probe_failed(answer, errno, "mkdir");
            return;
        }
    }
    if (make_file("l/d/f") < 0)
        probe_failed(answer, errno, "make a file");
    else if (mount_old("overlay", "m", "overlay", MS_NOSUID | MS_NODEV,
                       "lowerdir=l,upperdir=u,workdir=w,userxattr") < 0)
        probe_failed(answer, errno, "mount overlay");
    else if (make_file("m/d/new") < 0 || unlink("m/d/new") < 0 || unlink("m/d/f") < 0)
        probe_failed(answer, errno, "change a file");
    else if (rmdir("m/d") < 0 || mkdir("m/d", 0700) < 0)
        probe_failed(answer, errno, "replace a directory");
}

void check_overlay_tmpfs(const struct probe_context *context, struct probe_answer *answer)
{
    if (probe_enter_scratch(context, 0, answer) == 0)
        try_overlay(answer);
}

/* The kernel keeps a whiteout of its own naming in the work directory, which nobody may read. */
static void empty_work(void)
{
    const struct dirent *entry;
    if (chmod("w/work", 0700) < 0)
        return;
    autodir DIR *dir = opendir("w/work");
    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
}

/* Removes what try_overlay() may have left; the other names are all known. */
static void remove_overlay(const char *path)
{
    static const struct {
        const char *name;
        int flags;
    } left[] = {
        {"l/d/f", 0},
        {"l/d", AT_REMOVEDIR},
        {"l", AT_REMOVEDIR},
        {"u/d/new", 0},
        {"u/d/f", 0},
        {"u/d", 0},
        {"u/d", AT_REMOVEDIR},
        {"u", AT_REMOVEDIR},
        {"w/work", AT_REMOVEDIR},
        {"w/index", AT_REMOVEDIR},
        {"w", AT_REMOVEDIR},
        {"m", AT_REMOVEDIR},
    };
    (void)syscall(SYS_umount2, "m", DETACH);
    empty_work();
    for (size_t i = 0; i < ARRAY_LENGTH(left); i++)
        (void)unlinkat(AT_FDCWD, left[i].name, left[i].flags);
    (void)rmdir(path);
}

void check_overlay_directory(const struct probe_context *context, struct probe_answer *answer)
{
    char path[4096];
    if (!context->directory) {
        answer->limited = answer->no_remedy = true;
        probe_note(answer, "not tried: no directory");
        return;
    }
    int length = snprintf(path, sizeof path, "%s/.brig-probe.XXXXXX", context->directory);
    if (length < 0 || (size_t)length >= sizeof path) {
        probe_failed(answer, ENAMETOOLONG, "make a directory");
        return;
    }
    if (!mkdtemp(path)) {
        probe_failed(answer, errno, "make a directory");
        return;
    }
    /* The working directory follows into the new mount namespace; an fd would stay in the old one,
     * from which no overlay can be made. */
    if (chdir(path) < 0) {
        probe_failed(answer, errno, "enter a directory");
    } else if (probe_enter(context, CLONE_NEWNS, answer) == 0) {
        (void)mount_old(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        try_overlay(answer);
        remove_overlay(path);
    }
    (void)rmdir(path);
    if (!answer->error)
        probe_note(answer, "%s", context->directory);
}

/* ---- Id-mapped mounts ---- */

void check_idmapped(const struct probe_context *context, struct probe_answer *answer)
{
    char path[64];
    if (context->uid != 0) {
        answer->limited = answer->no_remedy = true;
        probe_note(answer, "for root only");
        return;
    }
    pid_t holder = probe_hold_userns();
    if (holder < 0) {
        probe_failed(answer, EPERM, "make a user namespace");
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)holder);
    if (probe_write(path, "0 65534 1") < 0) {
        probe_failed(answer, errno, "write uid_map");
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)holder);
    if (probe_write(path, "0 65534 1") < 0) {
        probe_failed(answer, errno, "write gid_map");
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)holder);
    autoclose int userns = open(path, O_RDONLY | O_CLOEXEC);
    const char *tried = context->directory ? context->directory : "/tmp";
    autoclose int tree =
        (int)syscall(SYS_open_tree, AT_FDCWD, tried, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (userns < 0 || tree < 0) {
        probe_failed(answer, errno, "open_tree");
        return;
    }
    struct tree_attr attr = {.set = TREE_IDMAP, .userns_fd = (uint64_t)userns};
    if (set_tree_attr(tree, 0, &attr) < 0)
        probe_failed(answer, errno, "mount_setattr");
    else
        probe_note(answer, "%s", tried);
}

/* ---- probe calls ---- */

/* Attempts at single system calls, each in a process that is thrown away. */

/* From here on signals and abstract sockets are scoped as well. */
#define LANDLOCK_ABI_WANTED 6

void check_landlock(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct landlock_attr attr;
    struct brig_unenforced ignored = {0};
    int abi = landlock_abi();
    if (abi == 0) {
        probe_failed(answer, errno, "landlock_create_ruleset");
        return;
    }
    landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &ignored);
    autoclose int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attr, landlock_attr_size(abi), 0);
    if (ruleset < 0) {
        probe_failed(answer, errno, "landlock_create_ruleset");
        return;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) {
        probe_failed(answer, errno, "landlock_restrict_self");
        return;
    }
    autoclose int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0 || errno != EACCES) {
        probe_failed(answer, EINVAL, "the rules are not obeyed");
        return;
    }
    answer->limited = abi < LANDLOCK_ABI_WANTED;
    probe_note(answer, "ABI %d%s", abi,
               answer->limited ? ", signals and abstract sockets need 6" : "");
}

void check_seccomp(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LENGTH(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        probe_failed(answer, errno, "seccomp");
    else if (syscall(SYS_getppid) != -1 || errno != EDOM)
        probe_failed(answer, EINVAL, "the filter is not obeyed");
}

void check_clone3(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct clone_args args = {.exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        probe_failed(answer, errno, "clone3");
    else
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
}

void check_pidfd(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    siginfo_t info = {0};
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        probe_failed(answer, errno, "pidfd_open");
    else if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0)
        probe_failed(answer, errno, "pidfd_send_signal");
    else if (waitid((idtype_t)SYS_WAIT_PIDFD, (id_t)fd, &info, WEXITED) < 0 ||
             info.si_status != SIGKILL)
        probe_failed(answer, errno, "waitid");
}

void check_openat2(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    autoclose int fd = (int)syscall(SYS_openat2, AT_FDCWD, "..", &how, sizeof how);
    if (fd >= 0)
        probe_failed(answer, EINVAL, "RESOLVE_BENEATH is not obeyed");
    else if (errno != EXDEV)
        probe_failed(answer, errno, "openat2");
}

void check_close_range(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
    if (fd < 0)
        fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_close_range, fd, fd, 0) < 0)
        probe_failed(answer, errno, "close_range");
    else if (fcntl(fd, F_GETFD) >= 0)
        probe_failed(answer, EINVAL, "close_range is not obeyed");
}

/* An executable in memory: a copy of a small program of the system, or -1. */
static int copy_of_true(void)
{
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* from 6.3 on; older kernels refuse the flag and need none */
#endif
    static const char *const programs[] = {"/bin/true", "/usr/bin/true"};
    struct stat status;
    autoclose int source = -1;
    for (size_t i = 0; source < 0 && i < ARRAY_LENGTH(programs); i++)
        source = open(programs[i], O_RDONLY | O_CLOEXEC);
    autoclose int fd = memfd_create("brig-probe", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("brig-probe", MFD_CLOEXEC);
    if (fd < 0 || source < 0 || fstat(source, &status) < 0)
        return -1;
    for (off_t left = status.st_size; left > 0;) {
        ssize_t copied = sendfile(fd, source, NULL, (size_t)left);
        if (copied <= 0)
            return -1;
        left -= copied;
    }
    return take_fd(&fd);
}

void check_memfd_exec(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    int status = 0;
    autoclose int fd = copy_of_true();
    if (fd < 0) {
        probe_failed(answer, errno, "memfd_create");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {(char[]){"true"}, NULL};
        char *const envp[] = {NULL};
        (void)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
        _exit(errno);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        probe_failed(answer, errno, "fork");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        probe_failed(answer, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "execveat");
}
