/* SPDX-License-Identifier: MIT */
/* What this system can do for a jail: the table of attempts, and the running of them. */
#include "jail/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/probe/probe_checks.h"

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
