/* SPDX-License-Identifier: MIT */
/* Becoming somebody else: ids, capabilities, setuid programs, user namespaces;
 * and leaving a setuid file behind in a grant. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static int become_root(void)
{
    int answer = judge("setuid(0)", setuid(0));
    return answer == THROUGH ? answer : judge("setresuid(0)", setresuid(0, 0, 0));
}

static int become_root_group(void)
{
    int answer = judge("setgid(0)", setgid(0));
    return answer == THROUGH ? answer : judge("setresgid(0)", setresgid(0, 0, 0));
}

static int join_groups(void)
{
    gid_t groups[] = {0};
    return judge("setgroups", setgroups(1, groups));
}

/* An empty list is more than it seems: files may deny a group what they grant
 * to others. */
static int leave_groups(void)
{
    return judge("setgroups(0)", setgroups(0, NULL));
}

static int raise_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = ~0U, .permitted = ~0U, .inheritable = ~0U}};
    if (syscall(SYS_capget, &header, data) < 0)
        return judge("capget", -1);
    data[0].permitted |= 1U << CAP_SYS_ADMIN;
    data[0].effective = data[0].permitted;
    return judge("capset", syscall(SYS_capset, &header, data));
}

static int capabilities_left(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    int answer = status ? REFUSED : MISUSED;
    while (status && fgets(line, sizeof(line), status)) {
        unsigned long long value = 0;
        char name[8];
        if (sscanf(line, "Cap%3s: %llx", name, &value) != 2)
            continue;
        say("Cap%s %llx", name, value);
        if (value != 0)
            answer = THROUGH;
    }
    if (status)
        (void)fclose(status);
    return answer;
}

static int lose_no_new_privs(void)
{
    (void)prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
    int value = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    say("no_new_privs is %d", value);
    return value == 1 ? REFUSED : THROUGH;
}

/* ---- setuid programs ---- */

/* A copy of this program, setuid root or with file capabilities, reads what
 * only root may. */
static int exec_reader(const char *program)
{
    char argument[4096];
    (void)snprintf(argument, sizeof(argument), "root_only=%s", arg("root_only"));
    (void)execl(program, "attempt", "read-root-only", argument, (char *)NULL);
    return judge(program, -1);
}

static int setuid_copy(void)
{
    return exec_reader(arg_path("work", "setuid-copy"));
}

static int filecaps_copy(void)
{
    return exec_reader(arg_path("work", "filecaps-copy"));
}

/* Ids of a process stay readable while it is a zombie. */
static int setuid_system_program(void)
{
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execl(arg("setuid_program"), "su", "--version", (char *)NULL);
        _exit(126);
    }
    siginfo_t info;
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
        return MISUSED;
    char path[64], line[256];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", child);
    FILE *status = fopen(path, "re");
    int answer = MISUSED;
    while (status && fgets(line, sizeof(line), status)) {
        unsigned real, effective;
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) {
            say("exit %d, uid %u, effective %u", info.si_status, real, effective);
            answer = real == effective ? REFUSED : THROUGH;
        }
    }
    if (status)
        (void)fclose(status);
    (void)waitpid(child, NULL, 0);
    return answer;
}

/* ---- planting a setuid file: the harness looks at the mode of `planted` ----
 */

static const char *planted(void)
{
    return arg_path("work", "planted");
}

static int make_planted(void)
{
    (void)unlink(planted());
    return open(planted(), O_RDWR | O_CREAT | O_CLOEXEC, 0755);
}

static int plant_by_chmod(void)
{
    (void)make_planted();
    return judge("chmod", chmod(planted(), 04755));
}

static int plant_by_fchmod(void)
{
    return judge("fchmod", fchmod(make_planted(), 04755));
}

static int plant_by_fchmodat2(void)
{
    (void)make_planted();
    return judge("fchmodat2", syscall(SYS_fchmodat2, AT_FDCWD, planted(), 04755, 0));
}

static int plant_by_open(void)
{
    (void)unlink(planted());
    (void)umask(0);
    return judge("open", open(planted(), O_WRONLY | O_CREAT | O_CLOEXEC, 04755));
}

static int plant_by_openat2(void)
{
    struct open_how how = {.flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = 04755};
    (void)unlink(planted());
    return judge("openat2", syscall(SYS_openat2, AT_FDCWD, planted(), &how, sizeof(how)));
}

static int plant_by_creat(void)
{
    (void)unlink(planted());
#ifdef SYS_creat
    return judge("creat", syscall(SYS_creat, planted(), 04755));
#else
    return plant_by_open();
#endif
}

static int plant_by_mknod(void)
{
    (void)unlink(planted());
    return judge("mknod", mknodat(AT_FDCWD, planted(), S_IFREG | 04755, 0));
}

static int plant_by_tmpfile(void)
{
    (void)unlink(planted());
    int fd = open(arg("work"), O_WRONLY | O_TMPFILE | O_CLOEXEC, 04755);
    if (fd < 0)
        return judge("O_TMPFILE", -1);
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return judge("linkat", linkat(AT_FDCWD, path, AT_FDCWD, planted(), AT_SYMLINK_FOLLOW));
}

/* Argument registers are 64 bits wide, the mode is not. */
static int plant_by_high_bits(void)
{
    (void)make_planted();
    return judge("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, planted(), 0xdead00000009edL));
}

static int plant_device(void)
{
    (void)unlink(planted());
    return judge("mknod", mknodat(AT_FDCWD, planted(), S_IFBLK | 0666, (dev_t)arg_number("disk")));
}

/* ---- user namespaces ---- */

static int unshare_user(void)
{
    return judge("unshare", unshare(CLONE_NEWUSER));
}

static long raw_clone(unsigned long flags)
{
#ifdef __aarch64__
    return syscall(SYS_clone, flags, NULL, NULL, 0, NULL);
#else
    return syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
#endif
}

static int finish_clone(const char *what, long pid)
{
    if (pid == 0)
        _exit(0);
    int answer = judge(what, pid);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    return answer;
}

static int clone_user(void)
{
    return finish_clone("clone", raw_clone(CLONE_NEWUSER | SIGCHLD));
}

static int clone3_user(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    return finish_clone("clone3", syscall(SYS_clone3, &args, sizeof(args)));
}

static int nested_mount(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return judge("unshare", -1);
    return judge("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int write_uid_map(void)
{
    int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    char map[64];
    (void)snprintf(map, sizeof(map), "0 %ld 1\n", has_arg("map_from") ? arg_number("map_from") : 0);
    return judge("uid_map", fd < 0 ? -1 : write(fd, map, strlen(map)));
}

static int raise_user_namespaces(void)
{
    if (!in_own_userns())
        return judge_writable("/proc/sys/user/max_user_namespaces");
    int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    return judge("max_user_namespaces", fd < 0 ? -1 : write(fd, "1000\n", 5));
}

/* The harness looks at the ids the processes of the jail have on the host. */
static int be_looked_at(void)
{
    wait_for_harness();
    return REFUSED;
}

const struct attempt attempts_ids[] = {
    {"become-root", become_root},
    {"become-root-group", become_root_group},
    {"join-groups", join_groups},
    {"leave-groups", leave_groups},
    {"raise-capabilities", raise_capabilities},
    {"capabilities-left", capabilities_left},
    {"lose-no-new-privs", lose_no_new_privs},
    {"setuid-copy", setuid_copy},
    {"filecaps-copy", filecaps_copy},
    {"setuid-system-program", setuid_system_program},
    {"plant-by-chmod", plant_by_chmod},
    {"plant-by-fchmod", plant_by_fchmod},
    {"plant-by-fchmodat2", plant_by_fchmodat2},
    {"plant-by-open", plant_by_open},
    {"plant-by-openat2", plant_by_openat2},
    {"plant-by-creat", plant_by_creat},
    {"plant-by-mknod", plant_by_mknod},
    {"plant-by-tmpfile", plant_by_tmpfile},
    {"plant-by-high-bits", plant_by_high_bits},
    {"plant-device", plant_device},
    {"unshare-user", unshare_user},
    {"clone-user", clone_user},
    {"clone3-user", clone3_user},
    {"nested-mount", nested_mount},
    {"write-uid-map", write_uid_map},
    {"raise-user-namespaces", raise_user_namespaces},
    {"uid-on-the-host", be_looked_at},
    {NULL, NULL},
};
