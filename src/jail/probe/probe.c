/* SPDX-License-Identifier: MIT */
/* Tries what this system can do for a jail, each attempt in a throw-away process, and reports
 * it. */
#include "jail/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/mountinfo.h"
#include "base/process.h"
#include "base/str.h"
#include "base/tree.h"
#include "base/users.h"
#include "jail/cgroup/cgroup.h"
#include "jail/confine/identity.h"
#include "jail/confine/landlock.h"
#include "jail/job/result.h"
#include "jail/net/door_netlink.h"
#include "jail/probe/userns.h"
#include "policy/net_address.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since 6.3 */
#endif

#define ATTEMPT_TIMEOUT_MS 20000
#define LANDLOCK_ABI_WANTED 6 /* from this ABI on signals and abstract sockets are scoped, too */
#define CGROUP_NEEDED (CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS)
#define GROUPS_MAX 1024
#define OPEN_FILES_WANTED 1024

static const struct userns_gate *find_gate(void)
{
    return userns_find_gate("", geteuid() == 0);
}

void probe_userns_remedy(char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%s. Run `brig doctor`.", find_gate()->why);
}

/* ---- attempts ---- */

/* The result of an attempt. All zero means that it works. */
struct answer {
    int error;      /* errno of the failed step; 0 if it worked */
    bool limited;   /* it worked in part */
    bool no_remedy; /* and there is no remedy */
    char detail[PROBE_DETAIL_MAX];
    char remedy[PROBE_REMEDY_MAX]; /* if it depends on what was found; else empty */
};

struct attempt {
    uid_t uid;
    gid_t gid;
    const char *directory; /* may be NULL */
    unsigned long argument;
    struct answer answer;
};

/* Runs in a separate process, which it may change in any way. Returns NULL, or the failed step with
 * errno set. */
typedef const char *check_function(struct attempt *attempt);

__attribute__((format(printf, 2, 3))) static void note(struct attempt *attempt, const char *format,
                                                       ...)
{
    struct answer *answer = &attempt->answer;
    size_t used = strlen(answer->detail);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer->detail + used, sizeof answer->detail - used, format, args);
    va_end(args);
}

static const char *failed(int error, const char *step)
{
    errno = error;
    return step;
}

/* Reports that there is no remedy. */
static const char *not_tried(struct attempt *attempt, const char *why)
{
    attempt->answer.limited = attempt->answer.no_remedy = true;
    note(attempt, "%s", why);
    return NULL;
}

static int write_text(const char *path, const char *text)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write_all(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* Creates a user namespace and the ones in `flags` for this process, and maps its ids to
 * themselves. */
static const char *enter(const struct attempt *attempt, int flags)
{
    char uids[64], gids[64];
    (void)snprintf(uids, sizeof uids, "%u %u 1", attempt->uid, attempt->uid);
    (void)snprintf(gids, sizeof gids, "%u %u 1", attempt->gid, attempt->gid);
    if (unshare(CLONE_NEWUSER | flags) < 0)
        return "unshare";
    if (write_text("/proc/self/setgroups", "deny") < 0)
        return "write setgroups";
    if (write_text("/proc/self/uid_map", uids) < 0)
        return "write uid_map";
    return write_text("/proc/self/gid_map", gids) < 0 ? "write gid_map" : NULL;
}

static const char *enter_mounts(const struct attempt *attempt, int flags)
{
    const char *step = enter(attempt, flags | CLONE_NEWNS);
    /* Some systems allow the namespace but not the use of its capabilities. */
    if (!step && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        step = "make mounts private";
    return step;
}

/* The same with a new tmpfs as the working directory. */
static const char *enter_scratch(const struct attempt *attempt, int flags)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/mnt", "/run", "/dev/shm"};
    const char *step = enter_mounts(attempt, flags);
    for (size_t i = 0; !step && i < ARRAY_LENGTH(places); i++) {
        if (mount("tmpfs", places[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") == 0)
            return chdir(places[i]) < 0 ? "chdir" : NULL;
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    return step ? step : "mount tmpfs";
}

/* Returns a process that only holds a user namespace without maps, or -1. It is in the attempt's
 * process group and is killed with it. */
static pid_t hold_userns(void)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER) < 0 || write(ends[1], "", 1) != 1)
            _exit(1);
        (void)pause();
        _exit(0);
    }
    (void)close(ends[1]);
    if (pid > 0 && read(ends[0], &byte, 1) != 1)
        pid = -1;
    (void)close(ends[0]);
    return pid;
}

/* Reads the answer; an attempt that exits without one, or takes too long, has failed. */
static void collect(int fd, struct attempt *attempt)
{
    struct answer got;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ready = poll(&poll_fd, 1, ATTEMPT_TIMEOUT_MS);
    if (ready > 0 && read(fd, &got, sizeof got) == (ssize_t)sizeof got)
        attempt->answer = got;
    else {
        attempt->answer.error = ready == 0 ? ETIMEDOUT : EIO;
        note(attempt, "attempt: %s", strerror(attempt->answer.error));
    }
}

/* Runs a check in a forked process. It leads a process group, so that its children are killed with
 * it. */
static void run_check(check_function *check, struct attempt *attempt)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        attempt->answer.error = errno;
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        const char *step = check(attempt);
        if (step) {
            attempt->answer.error = errno ? errno : EIO;
            attempt->answer.detail[0] = '\0';
            note(attempt, "%s: %s", step, strerror(attempt->answer.error));
        }
        _exit(write(ends[1], &attempt->answer, sizeof(struct answer)) ==
                      (ssize_t)sizeof(struct answer)
                  ? 0
                  : 1);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        attempt->answer.error = errno;
    } else {
        collect(ends[0], attempt);
        if (kill(-pid, SIGKILL) < 0)
            (void)kill(pid, SIGKILL);
        (void)process_wait(pid);
    }
    (void)close(ends[0]);
}

/* Runs the check in another process, the first of a new pid namespace, and uses its answer. */
static const char *in_child(check_function *check, struct attempt *attempt)
{
    run_check(check, attempt);
    return NULL;
}

/* ---- namespaces ---- */

static const char *check_userns_settings(struct attempt *attempt)
{
    const struct userns_gate *gate = find_gate();
    if (gate->setting || gate->detail)
        attempt->answer.error = EPERM;
    if (gate->setting)
        note(attempt, "%s is %ld", gate->setting, gate->closed_at);
    else if (gate->detail)
        note(attempt, "%s", gate->detail);
    else
        note(attempt, "at most %ld", userns_read_number("", userns_settings[0].file));
    return NULL;
}

static const char *check_namespace(struct attempt *attempt)
{
    const char *step = enter(attempt, (int)attempt->argument);
    if (!step && attempt->argument == 0)
        note(attempt, "uid %u, gid %u", attempt->uid, attempt->gid);
    return step;
}

static const char *check_ns_mount(struct attempt *attempt)
{
    return enter_mounts(attempt, 0);
}

static const char *report_pid(struct attempt *attempt)
{
    (void)attempt;
    return getpid() == 1 ? NULL : failed(ESRCH, "become pid 1");
}

static const char *check_ns_pid(struct attempt *attempt)
{
    const char *step = enter(attempt, CLONE_NEWPID);
    return step ? step : in_child(report_pid, attempt);
}

static const char *check_ns_uts(struct attempt *attempt)
{
    const char *step = enter(attempt, CLONE_NEWUTS);
    return step ? step : sethostname("brig", 4) < 0 ? "set the host name" : NULL;
}

static const char *check_nested_limit(struct attempt *attempt)
{
    const char *step = enter(attempt, 0);
    if (!step && write_text("/proc/sys/user/max_user_namespaces", "0") < 0)
        step = "write user.max_user_namespaces";
    return step || unshare(CLONE_NEWUSER) < 0 ? step : failed(EINVAL, "the limit is not obeyed");
}

/* Returns the errno of the kernel's reply about a subject, or 0. */
static int ask_kernel(int protocol, const struct str *message, unsigned subject)
{
    char buffer[8192] __attribute__((aligned(8)));
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (message->failed || fd < 0 || send(fd, message->data, message->length, 0) < 0)
        return message->failed ? ENOMEM : errno;
    for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
        for (struct nlmsghdr *head = (void *)buffer; NLMSG_OK(head, (size_t)got);
             head = NLMSG_NEXT(head, got)) {
            const struct nlmsgerr *answer = NLMSG_DATA(head);
            if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_seq == subject && answer->error < 0)
                return -answer->error;
        }
    return 0;
}

static const char *check_door(struct attempt *attempt)
{
    const struct net_range all = {.base = {.family = NET_V4}};
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    const char *step = enter(attempt, CLONE_NEWNET);
    if (step)
        return step;
    door_write_routes(&routes, &all, 1);
    door_write_redirect(&redirect);
    int error = ask_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_DEVICE);
    if (error)
        return failed(error, "loopback");
    error = ask_kernel(NETLINK_NETFILTER, &redirect, DOOR_ABOUT_REDIRECT);
    return error ? failed(error, "nf_tables") : NULL;
}

/* ---- mounts ---- */

static const char *check_mount_api(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, 0);
    if (step)
        return step;
    autoclose int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context < 0)
        return "fsopen";
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return "fsconfig";
    autoclose int made = fsmount(context, FSMOUNT_CLOEXEC, 0);
    if (made < 0)
        return "fsmount";
    return move_mount(made, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) < 0 ? "move_mount" : NULL;
}

static const char *check_mount_setattr(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, 0);
    if (step)
        return step;
    autoclose int tree =
        open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (tree < 0)
        return "open_tree";
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
        return "mount_setattr";
    return mkdirat(tree, "x", 0700) == 0 || errno != EROFS
               ? failed(EINVAL, "read-only is not obeyed")
               : NULL;
}

static const char *check_tmpfs(struct attempt *attempt)
{
    return enter_scratch(attempt, 0);
}

static const char *mount_proc(struct attempt *attempt)
{
    (void)attempt;
    if (mount("proc", "p", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return "mount proc";
    return access("p/1/status", R_OK) < 0 ? "read the new proc" : NULL;
}

static const char *check_proc(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, CLONE_NEWPID);
    if (!step && mkdir("p", 0700) < 0)
        step = "mkdir";
    return step ? step : in_child(mount_proc, attempt);
}

static const char *check_devpts(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, 0);
    if (step)
        return step;
    if (mkdir("pts", 0700) < 0 || mount("devpts", "pts", "devpts", MS_NOSUID | MS_NOEXEC,
                                        "newinstance,ptmxmode=0666,mode=0620") < 0)
        return "mount devpts";
    autoclose int terminal = open("pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return terminal < 0 ? "open a terminal" : NULL;
}

static const char *check_pivot_root(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, 0);
    if (!step && syscall(SYS_pivot_root, ".", ".") < 0)
        step = "pivot_root";
    return step || umount2(".", MNT_DETACH) == 0 ? step : "leave the old root";
}

/* Mounts an overlay of l, u and w in the working directory and tries operations that failed on some
 * kernels: before 6.6 a tmpfs has no user.* xattrs, and removing a directory of the lower layer is
 * an I/O error. */
static const char *try_overlay(void)
{
    static const char *const directories[] = {"l", "l/d", "u", "w", "m"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        if (mkdir(directories[i], 0700) < 0)
            return "mkdir";
    if (mknod("l/d/f", S_IFREG | 0600, 0) < 0)
        return "make a file";
    if (mount("overlay", "m", "overlay", MS_NOSUID | MS_NODEV,
              "lowerdir=l,upperdir=u,workdir=w,userxattr") < 0)
        return "mount overlay";
    if (mknod("m/d/new", S_IFREG | 0600, 0) < 0 || unlink("m/d/new") < 0 || unlink("m/d/f") < 0)
        return "change a file";
    return rmdir("m/d") < 0 || mkdir("m/d", 0700) < 0 ? "replace a directory" : NULL;
}

static const char *check_overlay_tmpfs(struct attempt *attempt)
{
    const char *step = enter_scratch(attempt, 0);
    return step ? step : try_overlay();
}

static const char *check_overlay_directory(struct attempt *attempt)
{
    char path[4096];
    if (!attempt->directory)
        return not_tried(attempt, "not tried: no directory");
    (void)snprintf(path, sizeof path, "%s/.brig-probe.XXXXXX", attempt->directory);
    if (!mkdtemp(path))
        return "make a directory";
    /* The working directory follows into the new mount namespace; an fd would stay in the old one,
     * which cannot be used for an overlay. */
    const char *step = chdir(path) < 0 ? "enter a directory" : enter_mounts(attempt, 0);
    if (!step)
        step = try_overlay();
    int error = errno;
    (void)umount2("m", MNT_DETACH);
    (void)tree_remove(AT_FDCWD, path, NULL);
    if (!step)
        note(attempt, "%s", attempt->directory);
    return step ? failed(error, step) : NULL;
}

static const char *check_idmapped(struct attempt *attempt)
{
    char uids[64], gids[64], space[64];
    if (attempt->uid != 0)
        return not_tried(attempt, "for root only");
    pid_t holder = hold_userns();
    if (holder < 0)
        return failed(EPERM, "make a user namespace");
    (void)snprintf(uids, sizeof uids, "/proc/%d/uid_map", (int)holder);
    (void)snprintf(gids, sizeof gids, "/proc/%d/gid_map", (int)holder);
    (void)snprintf(space, sizeof space, "/proc/%d/ns/user", (int)holder);
    if (write_text(uids, "0 65534 1") < 0 || write_text(gids, "0 65534 1") < 0)
        return "write an id map";
    const char *tried = attempt->directory ? attempt->directory : "/tmp";
    autoclose int userns = open(space, O_RDONLY | O_CLOEXEC);
    autoclose int tree = open_tree(AT_FDCWD, tried, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (userns < 0 || tree < 0)
        return "open_tree";
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return "mount_setattr";
    note(attempt, "%s", tried);
    return NULL;
}

/* ---- single system calls ---- */

static const char *check_landlock(struct attempt *attempt)
{
    struct landlock_attr attr;
    struct brig_unenforced ignored = {0};
    int abi = landlock_abi();
    if (abi == 0)
        return "landlock_create_ruleset";
    landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &ignored);
    autoclose int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attr, landlock_attr_size(abi), 0);
    if (ruleset < 0)
        return "landlock_create_ruleset";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return "landlock_restrict_self";
    autoclose int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0 || errno != EACCES)
        return failed(EINVAL, "the rules are not obeyed");
    attempt->answer.limited = abi < LANDLOCK_ABI_WANTED;
    note(attempt, "ABI %d%s", abi,
         attempt->answer.limited ? ", signals and abstract sockets need 6" : "");
    return NULL;
}

static const char *check_seccomp(struct attempt *attempt)
{
    (void)attempt;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LENGTH(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return "seccomp";
    return syscall(SYS_getppid) == -1 && errno == EDOM ? NULL
                                                       : failed(EINVAL, "the filter is not obeyed");
}

/* Passes invalid arguments: every supported kernel has the call, but a filter outside may refuse
 * it. */
static const char *check_call(struct attempt *attempt)
{
    return syscall((long)attempt->argument, 1, 0, 0, 0) >= 0 || errno == EINVAL ? NULL : "call";
}

static const char *check_memfd_exec(struct attempt *attempt)
{
    (void)attempt;
    autoclose int fd = memfd_create("brig-probe", MFD_CLOEXEC | MFD_EXEC);
    return fd >= 0 || errno == EINVAL ? NULL : "memfd_create"; /* EINVAL: before 6.3 */
}

/* ---- system settings ---- */

/* Runs `newuidmap PID 0 ID 1 1 START 1`; returns 0 or an errno. */
static int run_map_tool(const char *path, pid_t pid, unsigned id, unsigned start)
{
    char pid_text[16], id_text[16], start_text[16];
    int status = 0;
    (void)snprintf(pid_text, sizeof pid_text, "%d", (int)pid);
    (void)snprintf(id_text, sizeof id_text, "%u", id);
    (void)snprintf(start_text, sizeof start_text, "%u", start);
    pid_t tool = fork();
    if (tool == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0)
            (void)dup2(null, STDERR_FILENO);
        (void)execl(path, path, pid_text, "0", id_text, "1", "1", start_text, "1", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (tool < 0 || waitpid(tool, &status, 0) < 0)
        return errno;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ENOENT : EPERM;
}

static const char *check_subids(struct attempt *attempt)
{
    unsigned uids = 0, gids = 0;
    char line[USERS_LINE_MAX];
    struct users_user user = {0};
    if (attempt->uid == 0) {
        note(attempt, "root needs none");
        return NULL;
    }
    const char *name = users_find(attempt->uid, line, &user) ? user.name : NULL;
    if (!identity_subordinate_id("/etc/subuid", attempt->uid, name, &uids) ||
        !identity_subordinate_id("/etc/subgid", attempt->uid, name, &gids)) {
        attempt->answer.error = ENOENT;
        note(attempt, "no range for uid %u in /etc/subuid and /etc/subgid", attempt->uid);
        (void)snprintf(
            attempt->answer.remedy, PROBE_REMEDY_MAX,
            "sudo apt install uidmap, and give your user a range that nobody has: "
            "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER");
        return NULL;
    }
    pid_t pid = hold_userns();
    if (pid < 0)
        return failed(EPERM, "unshare");
    int error = run_map_tool("/usr/bin/newuidmap", pid, attempt->uid, uids);
    if (error)
        return failed(error, "newuidmap");
    error = run_map_tool("/usr/bin/newgidmap", pid, attempt->gid, gids);
    if (error)
        return failed(error, "newgidmap");
    note(attempt, "uids from %u, gids from %u", uids, gids);
    return NULL;
}

static const char *check_groups(struct attempt *attempt)
{
    gid_t groups[GROUPS_MAX];
    if (attempt->uid == 0) {
        note(attempt, "dropped: run by root");
        return NULL;
    }
    int count = getgroups(GROUPS_MAX, groups);
    for (int i = 0; i < count; i++) {
        if (groups[i] == attempt->gid)
            continue;
        char name[USERS_LINE_MAX];
        if (!users_group(groups[i], name))
            (void)snprintf(name, sizeof name, "%u", groups[i]);
        note(attempt, "%s%s", attempt->answer.limited ? ", " : "stay effective: ", name);
        attempt->answer.limited = true;
    }
    if (!attempt->answer.limited) {
        note(attempt, "there are none");
        return NULL;
    }
    /* With a subordinate range the jail's namespace may call setgroups, and drops the groups. */
    struct attempt subids = {.uid = attempt->uid, .gid = attempt->gid};
    if (!check_subids(&subids) && !subids.answer.error) {
        attempt->answer = (struct answer){0};
        note(attempt, "dropped by way of the subordinate ids");
    }
    return NULL;
}

static void note_resources(struct attempt *attempt, unsigned resources)
{
    static const struct {
        unsigned resource;
        const char *name;
    } names[] = {
        {CGROUP_MEMORY, "memory"}, {CGROUP_CPU, "cpu"}, {CGROUP_PIDS, "pids"}, {CGROUP_IO, "io"}};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (resources & names[i].resource)
            note(attempt, " %s", names[i].name);
    attempt->answer.limited = (resources & CGROUP_NEEDED) != CGROUP_NEEDED;
}

/* Creates a cgroup with every limit and removes it. */
static const char *check_cgroup(struct attempt *attempt)
{
    struct cgroup_support support;
    cgroup_probe(true, &support);
    if (support.kind != CGROUP_NONE) {
        note(attempt, support.kind == CGROUP_V2 ? "v2:" : "v1:");
        note_resources(attempt, support.resources);
    } else if (support.ask_systemd) {
        note(attempt, "v2, from the user's systemd, if limits are asked for:");
        note_resources(attempt, cgroup_user_resources());
    } else {
        attempt->answer.limited = true;
        note(attempt, "%s", support.reason);
        (void)snprintf(attempt->answer.remedy, PROBE_REMEDY_MAX, "%s", support.fix);
    }
    return NULL;
}

static const char *check_open_files(struct attempt *attempt)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return "getrlimit";
    attempt->answer.limited = limit.rlim_max < OPEN_FILES_WANTED;
    if (limit.rlim_max == RLIM_INFINITY)
        note(attempt, "no limit");
    else
        note(attempt, "at most %llu", (unsigned long long)limit.rlim_max);
    return NULL;
}

static const char *check_fuse(struct attempt *attempt)
{
    (void)attempt;
    autoclose int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    return fd < 0 ? "open" : NULL;
}

/* Container engines hide parts of /proc by mounts; the kernel then refuses a new procfs in a user
 * namespace. */
static const char *check_container(struct attempt *attempt)
{
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv",
                                        "/run/systemd/container"};
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    unsigned masks = 0;
    (void)mountinfo_read(0, &table);
    for (size_t i = 0; i < table.count; i++) {
        const char *point = table.mounts[i].point;
        masks += strncmp(point, "/proc/", 6) == 0 && strcmp(point, "/proc/sys/fs/binfmt_misc") != 0;
    }
    attempt->answer.limited = masks > 0;
    if (masks > 0)
        note(attempt, "%u mounts hide parts of /proc", masks);
    for (size_t i = 0; i < ARRAY_LENGTH(marks) && !*attempt->answer.detail; i++)
        if (access(marks[i], F_OK) == 0)
            note(attempt, "a container (%s), with all of /proc", marks[i]);
    return NULL;
}

/* ---- the report ---- */

#define USERNS_FIX NULL /* in the table: the remedy is that of user namespaces */
#define NO_FIX ""
#define UNMASK_FIX                                                                                 \
    "in a container show all of /proc (podman: --security-opt unmask=ALL; docker: "                \
    "--security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked)"

static const struct check {
    const char *id;
    const char *label;
    bool needed; /* for a full jail */
    check_function *check;
    unsigned long argument;
    const char *meaning;
    const char *remedy;
} checks[] = {
    {"userns", "user namespaces", true, check_namespace, 0, "a jail without root", USERNS_FIX},
    {"userns-settings", "user namespace settings", true, check_userns_settings, 0,
     "ordinary users can create them", USERNS_FIX},
    {"ns-mount", "mount namespace", true, check_ns_mount, 0, "a private view of the files",
     USERNS_FIX},
    {"ns-pid", "pid namespace", true, check_ns_pid, 0, "private processes, which end together",
     USERNS_FIX},
    {"ns-net", "network namespace", true, check_namespace, CLONE_NEWNET, "a private network",
     USERNS_FIX},
    {"door", "network redirection", false, check_door, 0,
     "the broker gets connections to every port",
     "Load the kernel modules nf_tables and nft_chain_nat, or build the kernel with them"},
    {"ns-ipc", "ipc namespace", true, check_namespace, CLONE_NEWIPC, "private shared memory",
     USERNS_FIX},
    {"ns-uts", "uts namespace", true, check_ns_uts, 0, "a private host name", USERNS_FIX},
    {"ns-cgroup", "cgroup namespace", true, check_namespace, CLONE_NEWCGROUP,
     "the cgroups of the host are not visible", USERNS_FIX},
    {"ns-time", "time namespace", false, check_namespace, CLONE_NEWTIME, "not used", NO_FIX},
    {"nested-limit", "nested user namespaces", false, check_nested_limit, 0,
     "a sysctl forbids them in the jail, besides seccomp", "mount /proc/sys writable"},
    {"mount-api", "new mount API", true, check_mount_api, 0, "mounts by file descriptor",
     "use kernel 5.15 or later"},
    {"mount-setattr", "mount_setattr", true, check_mount_setattr, 0,
     "read-only mounts, including submounts", "use kernel 5.15 or later"},
    {"tmpfs", "tmpfs", true, check_tmpfs, 0, "private /tmp, /run, /dev/shm with a size limit",
     USERNS_FIX},
    {"proc", "fresh /proc", true, check_proc, 0, "a /proc that shows only the jail", UNMASK_FIX},
    {"devpts", "devpts", true, check_devpts, 0, "private terminals",
     "use a kernel with CONFIG_UNIX98_PTYS"},
    {"pivot-root", "pivot_root", true, check_pivot_root, 0,
     "the jail cannot reach the root of the host",
     "boot from a root filesystem: pivot_root fails in an initramfs"},
    {"overlay-tmpfs", "overlayfs on tmpfs", false, check_overlay_tmpfs, 0,
     "temporary changes over read-only files",
     "use a kernel with CONFIG_OVERLAY_FS, 6.6 or later for tmpfs"},
    {"overlay-directory", "overlayfs on disk", false, check_overlay_directory, 0,
     "copy-on-write home: changes are stored in the jail",
     "keep brig's data on ext4, xfs or btrfs, with kernel 5.11 or later"},
    {"landlock", "Landlock", false, check_landlock, 0,
     "a second check for files, sockets and signals",
     "boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in lsm="},
    {"seccomp", "seccomp filters", true, check_seccomp, 0,
     "fewer system calls for an attack on the kernel", "use a kernel with CONFIG_SECCOMP_FILTER"},
    {"clone3", "clone3", false, check_call, SYS_clone3,
     "a faster start; without it brig uses clone", NO_FIX},
    {"pidfd", "pidfd", false, check_call, SYS_pidfd_open,
     "wait for processes and send signals without races", "use kernel 5.4 or later"},
    {"openat2", "openat2", true, check_call, SYS_openat2, "resolve paths within a directory",
     "use kernel 5.6 or later"},
    {"close-range", "close_range", false, check_call, SYS_close_range,
     "no open files of the caller in the jail", "use kernel 5.9 or later"},
    {"memfd-exec", "executable memfd", false, check_memfd_exec, 0,
     "the init of the jail needs no file", "sudo sysctl -w vm.memfd_noexec=0"},
    {"idmapped", "id-mapped mounts", false, check_idmapped, 0,
     "root grants files to a jail with another uid",
     "use kernel 5.12 or later and a filesystem that has them"},
    {"subids", "subordinate ids", false, check_subids, 0,
     "several ids in the jail; brig can drop groups", "sudo apt install uidmap"},
    {"groups", "supplementary groups", false, check_groups, 0,
     "the jail has no access through your groups",
     "make the subordinate ids above work, or run brig without those groups"},
    {"cgroup", "cgroups", false, check_cgroup, 0, "limits for the whole jail",
     "have the other controllers delegated. For users of systemd: Delegate=cpu io memory pids in "
     "/etc/systemd/system/user@.service.d/50-brig.conf"},
    {"open-files", "open files", false, check_open_files, 0, "enough for the programs in the jail",
     "raise the hard limit of open files (ulimit -Hn)"},
    {"fuse", "/dev/fuse", false, check_fuse, 0, "BRIG_DEVICE can grant it to FUSE programs",
     NO_FIX},
    {"container", "container", false, check_container, 0, "no part of /proc is hidden", UNMASK_FIX},
};
_Static_assert(ARRAY_LENGTH(checks) <= PROBE_ROWS_MAX, "the report has room for every row");

static void fill_row(const struct check *check, const struct answer *answer, struct probe_row *row)
{
    *row = (struct probe_row){.id = check->id, .label = check->label, .meaning = check->meaning};
    if (answer->error)
        row->state = check->needed ? PROBE_MISSING : PROBE_LIMITED;
    else if (answer->limited)
        row->state = PROBE_LIMITED;
    (void)snprintf(row->detail, sizeof row->detail, "%s", answer->detail);
    if (row->state != PROBE_OK && !answer->no_remedy)
        (void)snprintf(row->remedy, sizeof row->remedy, "%s",
                       answer->remedy[0] ? answer->remedy
                       : check->remedy   ? check->remedy
                                         : find_gate()->fix);
}

void probe_run(const char *directory, struct probe_report *ret_report)
{
    struct attempt attempt = {.uid = geteuid(), .gid = getegid(), .directory = directory};
    ret_report->count = ARRAY_LENGTH(checks);
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        attempt.answer = (struct answer){0};
        attempt.argument = checks[i].argument;
        run_check(checks[i].check, &attempt);
        fill_row(&checks[i], &attempt.answer, &ret_report->rows[i]);
    }
    /* If user namespaces are refused, everything that needs one fails; only that row has the
     * remedy. */
    const struct probe_row *userns = &ret_report->rows[0];
    for (size_t i = 1; userns->state != PROBE_OK && i < ret_report->count; i++) {
        struct probe_row *row = &ret_report->rows[i];
        if (row->state == PROBE_OK || strcmp(row->detail, userns->detail) != 0)
            continue;
        (void)snprintf(row->detail, sizeof row->detail, "needs %s", userns->label);
        row->remedy[0] = '\0';
    }
}

const struct probe_row *probe_find(const struct probe_report *report, const char *id)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->rows[i].id, id) == 0)
            return &report->rows[i];
    return NULL;
}

const char *probe_state_name(enum probe_state state)
{
    switch (state) {
    case PROBE_OK:
        return "ok";
    case PROBE_LIMITED:
        return "limited";
    case PROBE_MISSING:
        return "missing";
    }
    return "?";
}
