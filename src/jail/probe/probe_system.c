/* SPDX-License-Identifier: MIT */
/* Attempts at what depends on how the system is set up: ids, groups, cgroups, limits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mountinfo.h"
#include "base/users.h"
#include "jail/cgroup/cgroup.h"
#include "jail/probe/probe_checks.h"

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
