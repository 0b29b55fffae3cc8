/* SPDX-License-Identifier: MIT */
/* What this system can do for a jail: the table of attempts, and the running of them. */
#include "jail/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mountinfo.h"
#include "base/str.h"
#include "base/users.h"
#include "jail/cgroup/cgroup.h"
#include "jail/net/door_netlink.h"
#include "jail/probe/probe_checks.h"
#include "policy/net_address.h"

#define ATTEMPT_TIMEOUT_MS 5000

/* What refuses user namespaces, most certain first. */
struct userns_gate {
    const char *path;
    long closed_at;  /* the value that refuses */
    bool root_too;   /* also for root */
    const char *why; /* ends an error message */
    const char *fix; /* what doctor says */
};

static const struct userns_gate userns_gates[] = {
    {"/proc/sys/user/max_user_namespaces", 0, true,
     "User namespaces are switched off on this system (user.max_user_namespaces is 0)",
     "sudo sysctl -w user.max_user_namespaces=65536"},
    {"/proc/sys/kernel/unprivileged_userns_clone", 0, false,
     "Unprivileged user namespaces are switched off on this system "
     "(kernel.unprivileged_userns_clone is 0)",
     "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1, false,
     "Unprivileged user namespaces are restricted on this system (AppArmor)",
     "give brig an AppArmor profile that allows userns, or for all programs: "
     "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
};

static const struct userns_gate jail_gate = {
    .why = "This is a jail of brig's, in which no other is made unless it was started with "
           "--allow-nested",
    .fix = "start the jail around it with --seccomp dev --allow-nested",
};
static const struct userns_gate filter_gate = {
    .why = "User namespaces are refused by a syscall filter this process is under, as in many "
           "containers",
    .fix = "run outside the container, or give it a seccomp profile that allows unshare, clone and "
           "mount",
};
static const struct userns_gate unknown_gate = {
    .why = "User namespaces are not available here",
    .fix = "use a kernel with CONFIG_USER_NS, outside of any chroot",
};

#define USERNS_FIX NULL /* in the table: the remedy is that of user namespaces */
#define NO_FIX ""

static const struct probe_check {
    const char *id;
    const char *label;
    bool needed; /* by a full jail */
    void (*check)(const struct probe_context *, struct probe_answer *);
    const char *meaning;
    const char *remedy;
} checks[] = {
    {"userns", "user namespaces", true, check_userns, "a jail without root", USERNS_FIX},
    {"userns-settings", "user namespace settings", true, check_userns_settings,
     "the system lets ordinary users have them", USERNS_FIX},
    {"ns-mount", "mount namespace", true, check_ns_mount, "its own view of files", USERNS_FIX},
    {"ns-pid", "pid namespace", true, check_ns_pid, "its own processes, ended together",
     USERNS_FIX},
    {"ns-net", "network namespace", true, check_ns_net, "no network but its own", USERNS_FIX},
    {"door", "network door", false, check_door,
     "every port goes through it, not only the usual ones",
     "Load the kernel modules nf_tables and nft_chain_nat, or build the kernel with them"},
    {"ns-ipc", "ipc namespace", true, check_ns_ipc, "its own shared memory", USERNS_FIX},
    {"ns-uts", "uts namespace", true, check_ns_uts, "its own host name", USERNS_FIX},
    {"ns-cgroup", "cgroup namespace", true, check_ns_cgroup, "the host's cgroups are not seen",
     USERNS_FIX},
    {"ns-time", "time namespace", false, check_ns_time, "not used", NO_FIX},
    {"nested-limit", "nested user namespaces", false, check_nested_limit,
     "can be refused inside by a second, independent guard", "mount /proc/sys writable"},
    {"mount-api", "new mount API", true, check_mount_api, "mounts by fd, not by name",
     "use kernel 5.15 or later"},
    {"mount-setattr", "mount_setattr", true, check_mount_setattr,
     "read-only trees, submounts included", "use kernel 5.15 or later"},
    {"tmpfs", "tmpfs", true, check_tmpfs, "private /tmp, /run, /dev/shm with a size", USERNS_FIX},
    {"proc", "fresh /proc", true, check_proc, "a /proc that shows only the jail",
     "in a container: unmask /proc (docker: --security-opt systempaths=unconfined)"},
    {"devpts", "devpts", true, check_devpts, "its own terminals",
     "use a kernel with CONFIG_UNIX98_PTYS"},
    {"pivot-root", "pivot_root", true, check_pivot_root, "the host's root is left for good",
     "boot from a real root filesystem: an initramfs cannot be left"},
    {"overlay-tmpfs", "overlayfs on tmpfs", false, check_overlay_tmpfs,
     "throw-away changes over read-only files",
     "use a kernel with CONFIG_OVERLAY_FS, 6.6 or later for tmpfs"},
    {"overlay-directory", "overlayfs on disk", false, check_overlay_directory,
     "changes kept apart from the real files",
     "keep brig's data on ext4, xfs or btrfs, with kernel 5.11 or later"},
    {"landlock", "Landlock", false, check_landlock, "files, sockets and signals, a second time",
     "boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in lsm="},
    {"seccomp", "seccomp filters", true, check_seccomp,
     "fewer system calls to attack the kernel by", "use a kernel with CONFIG_SECCOMP_FILTER"},
    {"clone3", "clone3", false, check_clone3, "a faster start; without it clone is used", NO_FIX},
    {"pidfd", "pidfd", false, check_pidfd, "processes waited for and signalled without races",
     "use kernel 5.4 or later"},
    {"openat2", "openat2", false, check_openat2, "paths resolved without leaving a directory",
     "use kernel 5.6 or later"},
    {"close-range", "close_range", false, check_close_range, "no file descriptor leaks inside",
     "use kernel 5.9 or later"},
    {"memfd-exec", "executable memfd", false, check_memfd_exec, "the jail's init needs no file",
     "sudo sysctl -w vm.memfd_noexec=0"},
    {"idmapped", "id-mapped mounts", false, check_idmapped, "grants of root's files to another uid",
     "use kernel 5.12 or later and a filesystem that has them"},
    {"subids", "subordinate ids", false, check_subids, "more than one id inside, groups dropped",
     "sudo apt install uidmap, and sudo usermod --add-subuids 100000-165535 --add-subgids "
     "100000-165535 $USER"},
    {"groups", "supplementary groups", false, check_groups, "what a group opens stays closed",
     "make the subordinate ids above work, or run brig without those groups"},
    {"cgroup", "cgroups", false, check_cgroup, "limits for the whole jail together",
     "run brig where a subtree of cgroups is delegated (systemd-run --user --scope -p "
     "Delegate=yes)"},
    {"open-files", "open files", false, check_open_files, "room for the jail's programs",
     "raise the hard limit of open files (ulimit -Hn)"},
    {"fuse", "/dev/fuse", false, check_fuse, "can be granted to programs that mount", NO_FIX},
    {"container", "surroundings", false, check_container, "nothing outside hides parts of /proc",
     "run on the host, or unmask /proc for the container"},
};
_Static_assert(ARRAY_LENGTH(checks) <= PROBE_ROWS_MAX, "the report has room for every row");

/* ---- Helpers of the attempts ---- */

void probe_note(struct probe_answer *answer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer->detail, sizeof answer->detail, format, args);
    va_end(args);
}

void probe_failed(struct probe_answer *answer, int error, const char *step)
{
    answer->error = error ? error : EIO;
    probe_note(answer, "%s: %s", step, strerror(answer->error));
}

int probe_write(const char *path, const char *text)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = strlen(text);
    return write(fd, text, length) == (ssize_t)length ? 0 : -1;
}

long probe_read_number(const char *path)
{
    char text[32] = "";
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return -1;
    char *end = text;
    long number = strtol(text, &end, 10);
    return end == text ? -1 : number;
}

int probe_enter(const struct probe_context *context, int flags, struct probe_answer *answer)
{
    char map[64];
    if (unshare(CLONE_NEWUSER | flags) < 0) {
        probe_failed(answer, errno, "unshare");
        return -1;
    }
    /* Missing before 3.19 only, and then there is nothing to deny. */
    (void)probe_write("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%u %u 1", context->uid, context->uid);
    if (probe_write("/proc/self/uid_map", map) < 0) {
        probe_failed(answer, errno, "write uid_map");
        return -1;
    }
    (void)snprintf(map, sizeof map, "%u %u 1", context->gid, context->gid);
    if (probe_write("/proc/self/gid_map", map) < 0) {
        probe_failed(answer, errno, "write gid_map");
        return -1;
    }
    return 0;
}

int probe_enter_scratch(const struct probe_context *context, int flags, struct probe_answer *answer)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/mnt", "/run", "/dev/shm"};
    if (probe_enter(context, flags | CLONE_NEWNS, answer) < 0)
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        probe_failed(answer, errno, "make mounts private");
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        if (mount("tmpfs", places[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") == 0)
            return chdir(places[i]);
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    probe_failed(answer, errno, "mount tmpfs");
    return -1;
}

pid_t probe_hold_userns(void)
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

/* ---- Running an attempt ---- */

/* Reads the answer; an attempt that ends without one, or not in time, failed. */
static void collect(int fd, struct probe_answer *answer)
{
    struct probe_answer got;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&poll_fd, 1, ATTEMPT_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        probe_failed(answer, ETIMEDOUT, "attempt");
        return;
    }
    ssize_t length;
    do
        length = read(fd, &got, sizeof got);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof got) {
        probe_failed(answer, EIO, "attempt");
        return;
    }
    *answer = got;
}

void probe_in_child(void (*check)(const struct probe_context *, struct probe_answer *),
                    const struct probe_context *context, struct probe_answer *answer)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        probe_failed(answer, errno, "pipe");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        /* A group of its own, so that whatever it forked ends with it. */
        (void)setpgid(0, 0);
        check(context, answer);
        _exit(write(ends[1], answer, sizeof *answer) == (ssize_t)sizeof *answer ? 0 : 1);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        probe_failed(answer, errno, "fork");
    } else {
        collect(ends[0], answer);
        if (kill(-pid, SIGKILL) < 0)
            (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    (void)close(ends[0]);
}

/* ---- What refuses user namespaces ---- */

static bool under_filter(void)
{
    char line[256];
    autofile FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "Seccomp:\t2", strlen("Seccomp:\t2")) == 0)
            return true;
    return false;
}

/* By the name of pid 1, which decides only what remedy is named. Until init has named itself, newer kernels
 * name it after the file it was executed from. */
static bool in_jail(void)
{
    char line[32];
    autofile FILE *file = fopen("/proc/1/comm", "re");
    return file && fgets(line, sizeof line, file) &&
           (strcmp(line, "brig-init\n") == 0 || strcmp(line, "memfd:brig-init\n") == 0);
}

static const struct userns_gate *find_gate(void)
{
    bool root = geteuid() == 0;
    if (in_jail())
        return &jail_gate;
    for (size_t i = 0; i < ARRAY_LENGTH(userns_gates); i++) {
        const struct userns_gate *gate = &userns_gates[i];
        if ((gate->root_too || !root) && probe_read_number(gate->path) == gate->closed_at)
            return gate;
    }
    return under_filter() ? &filter_gate : &unknown_gate;
}

void probe_userns_remedy(char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%s. Run `brig doctor`.", find_gate()->why);
}

void check_userns_settings(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    const struct userns_gate *gate = find_gate();
    if (gate == &filter_gate || gate == &unknown_gate) {
        probe_note(answer, "at most %ld", probe_read_number(userns_gates[0].path));
        return;
    }
    answer->error = EPERM;
    probe_note(answer, "%s is %ld", gate->path + strlen("/proc/sys/"), gate->closed_at);
}

/* ---- The report ---- */

static void fill_row(const struct probe_check *check, const struct probe_answer *answer,
                     struct probe_row *row)
{
    row->id = check->id;
    row->label = check->label;
    row->meaning = check->meaning;
    row->state = PROBE_OK;
    if (answer->error)
        row->state = check->needed ? PROBE_MISSING : PROBE_LIMITED;
    else if (answer->limited)
        row->state = PROBE_LIMITED;
    (void)snprintf(row->detail, sizeof row->detail, "%s", answer->detail);
    row->remedy[0] = '\0';
    if (row->state != PROBE_OK && !answer->no_remedy)
        (void)snprintf(row->remedy, sizeof row->remedy, "%s",
                       check->remedy ? check->remedy : find_gate()->fix);
}

void probe_run(const char *directory, struct probe_report *ret_report)
{
    struct probe_context context = {.uid = geteuid(), .gid = getegid(), .directory = directory};
    ret_report->count = ARRAY_LENGTH(checks);
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        struct probe_answer answer = {0};
        probe_in_child(checks[i].check, &context, &answer);
        fill_row(&checks[i], &answer, &ret_report->rows[i]);
    }
    /* Where user namespaces are refused, everything in one is; the remedy is said once, there. */
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

/* ---- probe net ---- */

/* The attempt at a network door. */

/* The errno the kernel answers with about a subject, or 0. */
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

void check_door(const struct probe_context *context, struct probe_answer *answer)
{
    const struct net_range all = {.base = {.family = NET_V4}};
    autostr struct str routes = {0};
    autostr struct str redirect = {0};
    if (probe_enter(context, CLONE_NEWNET, answer) < 0)
        return;
    door_write_routes(&routes, &all, 1);
    door_write_redirect(&redirect);
    int error = ask_kernel(NETLINK_ROUTE, &routes, DOOR_ABOUT_DEVICE);
    if (error) {
        probe_failed(answer, error, "loopback");
        return;
    }
    error = ask_kernel(NETLINK_NETFILTER, &redirect, DOOR_ABOUT_REDIRECT);
    if (error)
        probe_failed(answer, error, "nf_tables");
}

/* ---- probe system ---- */

/* Attempts at what depends on how the system is set up: ids, groups, cgroups, limits. */

#define CGROUP_NEEDED (CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS)
#define GROUPS_MAX 1024
#define OPEN_FILES_WANTED 1024
#define PATH_SIZE 4096

/* ---- Subordinate ids ---- */

/* The first range of the user in a file of lines "name-or-uid:start:count". */
static bool find_range(const char *path, uid_t uid, unsigned *ret_start)
{
    char line[256], by_number[16], user_line[USERS_LINE_MAX];
    struct users_user user;
    bool known = users_find(uid, user_line, &user);
    (void)snprintf(by_number, sizeof by_number, "%u", uid);
    autofile FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        if (strcmp(line, by_number) != 0 && !(known && strcmp(line, user.name) == 0))
            continue;
        char *end = colon + 1;
        unsigned long start = strtoul(colon + 1, &end, 10);
        if (end != colon + 1 && *end == ':' && start > 0 && start < UINT32_MAX) {
            *ret_start = (unsigned)start;
            return true;
        }
    }
    return false;
}

/* Runs `newuidmap PID 0 ID 1 1 START 1` and says what came of it: 0, or an errno. */
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

void check_subids(const struct probe_context *context, struct probe_answer *answer)
{
    unsigned uids = 0, gids = 0;
    if (context->uid == 0) {
        probe_note(answer, "root needs none");
        return;
    }
    if (!find_range("/etc/subuid", context->uid, &uids) ||
        !find_range("/etc/subgid", context->uid, &gids)) {
        answer->error = ENOENT;
        probe_note(answer, "no range for uid %u in /etc/subuid and /etc/subgid", context->uid);
        return;
    }
    pid_t pid = probe_hold_userns();
    if (pid < 0) {
        probe_failed(answer, EPERM, "unshare");
        return;
    }
    int error = run_map_tool("/usr/bin/newuidmap", pid, context->uid, uids);
    if (error) {
        probe_failed(answer, error, "newuidmap");
        return;
    }
    error = run_map_tool("/usr/bin/newgidmap", pid, context->gid, gids);
    if (error)
        probe_failed(answer, error, "newgidmap");
    else
        probe_note(answer, "uids from %u, gids from %u", uids, gids);
}

/* ---- Groups ---- */

static void append(struct probe_answer *answer, const char *text)
{
    size_t used = strlen(answer->detail);
    (void)snprintf(answer->detail + used, sizeof answer->detail - used, "%s", text);
}

void check_groups(const struct probe_context *context, struct probe_answer *answer)
{
    gid_t groups[GROUPS_MAX];
    struct probe_answer subids = {0};
    if (context->uid == 0) {
        probe_note(answer, "dropped: run by root");
        return;
    }
    int count = getgroups(GROUPS_MAX, groups);
    for (int i = 0; i < count; i++) {
        if (groups[i] == context->gid)
            continue;
        char name[USERS_LINE_MAX];
        if (!users_group(groups[i], name))
            (void)snprintf(name, sizeof name, "%u", groups[i]);
        append(answer, answer->limited ? ", " : "stay effective: ");
        append(answer, name);
        answer->limited = true;
    }
    if (!answer->limited) {
        probe_note(answer, "there are none");
        return;
    }
    /* With a range of its own the jail's namespace may call setgroups, and drops them. */
    check_subids(context, &subids);
    if (!subids.error) {
        answer->limited = false;
        probe_note(answer, "dropped by way of the subordinate ids");
    }
}

/* ---- Cgroups ---- */

/* By making one with every limit, and removing it. */
void check_cgroup(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    static const struct {
        unsigned resource;
        const char *name;
    } names[] = {
        {CGROUP_MEMORY, "memory"}, {CGROUP_CPU, "cpu"}, {CGROUP_PIDS, "pids"}, {CGROUP_IO, "io"}};
    struct cgroup_support support;
    cgroup_probe(true, &support);
    answer->limited = (support.resources & CGROUP_NEEDED) != CGROUP_NEEDED;
    if (support.kind == CGROUP_NONE) {
        probe_note(answer, "%s",
                   support.ask_systemd ? "by asking the user's systemd, where limits are asked for"
                                       : support.reason);
        return;
    }
    probe_note(answer, support.kind == CGROUP_V2 ? "v2:" : "v1:");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (!(support.resources & names[i].resource))
            continue;
        append(answer, " ");
        append(answer, names[i].name);
    }
}

/* ---- Limits and surroundings ---- */

void check_open_files(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        probe_failed(answer, errno, "getrlimit");
        return;
    }
    answer->limited = limit.rlim_max < OPEN_FILES_WANTED;
    if (limit.rlim_max == RLIM_INFINITY)
        probe_note(answer, "no limit");
    else
        probe_note(answer, "at most %llu", (unsigned long long)limit.rlim_max);
}

void check_fuse(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    autoclose int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        probe_failed(answer, errno, "open");
}

/* How many mounts lie below /proc: container engines hide parts of it so, and the kernel then
 * refuses a fresh proc in a user namespace. */
static unsigned count_masks(void)
{
    unsigned count = 0;
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    (void)mountinfo_read(0, &table);
    for (size_t i = 0; i < table.count; i++) {
        const char *point = table.mounts[i].point;
        count += strncmp(point, "/proc/", 6) == 0 && strcmp(point, "/proc/sys/fs/binfmt_misc") != 0;
    }
    return count;
}

void check_container(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv",
                                        "/run/systemd/container"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < ARRAY_LENGTH(marks); i++)
        if (access(marks[i], F_OK) == 0)
            found = marks[i];
    unsigned masks = count_masks();
    answer->limited = masks > 0;
    if (masks > 0)
        probe_note(answer, "%u mounts hide parts of /proc", masks);
    else if (found)
        probe_note(answer, "a container (%s), with all of /proc", found);
}
