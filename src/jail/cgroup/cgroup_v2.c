/* SPDX-License-Identifier: MIT */
/* Limits and counters of cgroup v2. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/cgroup/cgroup_driver.h"

/* Processes may fork while they are moved, and each round moves only as many as one read lists. */
#define ROOM_ROUNDS 256

/* ---- controllers ---- */

static const struct {
    unsigned bit;
    const char *enable;
} CONTROLLERS[] = {
    {CGROUP_MEMORY, "+memory"}, {CGROUP_CPU, "+cpu"}, {CGROUP_PIDS, "+pids"}, {CGROUP_IO, "+io"}};

/* Enables controllers for child groups: all at once if possible, else one by one. The child's
 * cgroup.controllers shows which were enabled. */
static void hand_on(int dir_fd, const char *file, unsigned controllers)
{
    char all[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(CONTROLLERS); i++)
        if (controllers & CONTROLLERS[i].bit)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", used ? " " : "",
                                     CONTROLLERS[i].enable);
    if (used == 0 || cgroup_write(dir_fd, file, all) == 0)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(CONTROLLERS); i++)
        if (controllers & CONTROLLERS[i].bit)
            (void)cgroup_write(dir_fd, file, CONTROLLERS[i].enable);
}

static unsigned controllers_in(int dir_fd, const char *file)
{
    char text[CGROUP_TEXT_MAX];
    return cgroup_read(dir_fd, file, text, sizeof text) > 0 ? cgroup_text_controllers(text) : 0;
}

/* Enables controllers of a group for its leaves. group->enabled gets those that could be
 * enabled. */
static void cgroup_v2_enable(struct cgroup *group, unsigned controllers)
{
    int dir = cgroup_dir(group, CGROUP_TREE_UNIFIED);
    if (controllers & ~group->enabled) {
        hand_on(dir, "cgroup.subtree_control", controllers & ~group->enabled);
        group->enabled = controllers_in(dir, "cgroup.subtree_control");
    }
}

int cgroup_v2_make_room(int dir_fd)
{
    if (mkdirat(dir_fd, CGROUP_OWN, 0755) < 0 && errno != EEXIST)
        return -errno;
    for (int round = 0; round < ROOM_ROUNDS; round++) {
        char text[CGROUP_TEXT_MAX], number[16];
        int length = cgroup_read(dir_fd, "cgroup.procs", text, sizeof text);
        if (length <= 0)
            return length;
        const char *at = text;
        pid_t pid;
        while (cgroup_text_next_pid(&at, &pid)) {
            if (pid == 0) /* in another pid namespace, so it has no pid here */
                return -EBUSY;
            (void)snprintf(number, sizeof number, "%d", (int)pid);
            int result = cgroup_write(dir_fd, CGROUP_OWN "/cgroup.procs", number);
            if (result < 0 && result != -ESRCH)
                return result;
        }
    }
    return -EBUSY;
}

/* ---- limits ---- */

static int write_limit(int dir_fd, const char *file, const char *text, struct brig_error *err)
{
    int result = cgroup_write(dir_fd, file, text);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot write '%s' to the cgroup's %s", text,
                         file);
    return 0;
}

static int write_memory(int dir_fd, uint64_t bytes, bool kill_one, struct brig_error *err)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    int result = write_limit(dir_fd, "memory.max", text, err);
    if (result < 0)
        return result;
    result = cgroup_write(dir_fd, "memory.swap.max", "0");
    if (result < 0 && result != -ENOENT) /* a kernel without swap accounting */
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot keep the cgroup from swapping");
    /* The kernel kills all processes of the group, or the largest one. */
    return write_limit(dir_fd, "memory.oom.group", kill_one ? "0" : "1", err);
}

int cgroup_v2_write(int dir_fd, const struct cgroup_limits *limits, unsigned which,
                    struct brig_error *err)
{
    char text[64];
    int result = 0;
    if (which & CGROUP_MEMORY)
        result = write_memory(dir_fd, limits->memory_bytes, limits->kill_one, err);
    if (result == 0 && which & CGROUP_PIDS) {
        (void)snprintf(text, sizeof text, "%" PRIu64, limits->pids);
        result = write_limit(dir_fd, "pids.max", text, err);
    }
    if (result == 0 && which & CGROUP_CPU) {
        /* The kernel's minimum is 1000 µs, which is one percent. */
        (void)snprintf(text, sizeof text, "%" PRIu64 " %d",
                       (uint64_t)limits->cpu_percent * (CGROUP_CPU_PERIOD_US / 100),
                       CGROUP_CPU_PERIOD_US);
        result = write_limit(dir_fd, "cpu.max", text, err);
    }
    return result;
}

/* Empty devices, and devices backed by memory or by another file, are not disks. */
static bool is_disk(int block_fd, const char *name, char device[64])
{
    static const char *const others[] = {"loop", "ram", "zram", "sr", "fd"};
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (str_starts_with(name, others[i]))
            return false;
    char path[2 * CGROUP_NAME_MAX];
    uint64_t size = 0;
    (void)snprintf(path, sizeof path, "%s/size", name);
    if (!cgroup_read_number(block_fd, path, &size) || size == 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/dev", name);
    if (cgroup_read(block_fd, path, device, 64) <= 0)
        return false;
    device[strcspn(device, "\n")] = '\0';
    return true;
}

bool cgroup_v2_write_io(int dir_fd, int block_fd, const struct cgroup_limits *limits)
{
    int fd = openat(block_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        (void)close(fd);
    bool bounded = false;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) { /* the entries are symbolic links */
        char device[64], text[160];
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= CGROUP_NAME_MAX ||
            !is_disk(block_fd, entry->d_name, device))
            continue;
        size_t used = (size_t)snprintf(text, sizeof text, "%s", device);
        if (limits->io_read_bytes)
            used += (size_t)snprintf(text + used, sizeof text - used, " rbps=%" PRIu64,
                                     limits->io_read_bytes);
        if (limits->io_write_bytes)
            (void)snprintf(text + used, sizeof text - used, " wbps=%" PRIu64,
                           limits->io_write_bytes);
        if (cgroup_write(dir_fd, "io.max", text) < 0)
            return false;
        bounded = true;
    }
    return bounded;
}

/* Sets the limits whose controllers are available. */
static int set_limits(int dir_fd, const struct cgroup_limits *limits, unsigned have,
                      unsigned *missing, struct brig_error *err)
{
    unsigned wanted = cgroup_wanted(limits);
    if (wanted & have & CGROUP_IO) {
        autoclose int block = open("/sys/block", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (block < 0 || !cgroup_v2_write_io(dir_fd, block, limits))
            have &= ~(unsigned)CGROUP_IO;
    }
    *missing |= wanted & ~have;
    return cgroup_v2_write(dir_fd, limits, wanted & have, err);
}

/* Enables missing controllers for the groups in a directory. */
static void bring_down(const struct cgroup_bases *bases, unsigned lacking)
{
    int base = bases->dirs[CGROUP_TREE_UNIFIED];
    lacking &= bases->support.resources;
    if (base >= 0 && lacking && (!bases->crowded || cgroup_v2_make_room(base) == 0))
        hand_on(base, "cgroup.subtree_control", lacking);
}

int cgroup_v2_limit(struct cgroup *group, const struct cgroup_bases *bases,
                    const struct cgroup_limits *limits, unsigned *missing, struct brig_error *err)
{
    int dir = cgroup_dir(group, CGROUP_TREE_UNIFIED);
    unsigned wanted = cgroup_wanted(limits), have = controllers_in(dir, "cgroup.controllers");
    /* With the io controller enabled, too, the kernel writes back a group's dirty pages before it
     * kills because of them; see "Writeback" in its cgroup-v2 document. */
    unsigned wish = wanted | (wanted & CGROUP_MEMORY ? CGROUP_IO : 0);
    if (wish & ~have & bases->support.resources) {
        bring_down(bases, wish & ~have);
        have = controllers_in(dir, "cgroup.controllers");
    }
    int result = set_limits(dir, limits, have, missing, err);
    /* The manager of the group above could disable a controller, and the limit with it. The kernel
     * refuses that while the controller is enabled for this group's children. */
    if (result == 0 && bases->pin)
        cgroup_v2_enable(group, wanted & have);
    return result;
}

int cgroup_v2_limit_leaf(struct cgroup *leaf, const struct cgroup_limits *limits, unsigned *missing,
                         struct brig_error *err)
{
    struct cgroup *group = leaf->parent;
    unsigned wanted = cgroup_wanted(limits);
    int dir = cgroup_dir(group, CGROUP_TREE_UNIFIED);
    unsigned lacking = wanted & ~controllers_in(dir, "cgroup.controllers");
    if (lacking) { /* the jail itself has no such limit */
        autobases struct cgroup_bases bases;
        cgroup_find(0, &bases);
        bring_down(&bases, lacking);
        group->late |= lacking;
    }
    cgroup_v2_enable(group, wanted);
    return set_limits(cgroup_dir(leaf, CGROUP_TREE_UNIFIED), limits, group->enabled, missing, err);
}

/* ---- counters ---- */

bool cgroup_v2_cpu(int dir_fd, struct cgroup_usage *usage)
{
    char text[CGROUP_TEXT_MAX];
    if (cgroup_read(dir_fd, "cpu.stat", text, sizeof text) <= 0 ||
        !cgroup_text_number(text, "user_usec", &usage->cpu_user_us) ||
        !cgroup_text_number(text, "system_usec", &usage->cpu_sys_us))
        return false;
    (void)cgroup_text_number(text, "throttled_usec", &usage->throttled_us);
    return true;
}

/* Sums up events below a group that are not counted in it. If a controller is not enabled for the
 * children, the group itself counts all processes. */
static uint64_t count_below(const struct cgroup *group, unsigned controller, const char *file,
                            const char *key)
{
    return group->enabled & controller ? cgroup_sum_key(group, CGROUP_TREE_UNIFIED, file, key) : 0;
}

void cgroup_v2_usage(const struct cgroup *group, struct cgroup_usage *ret_usage)
{
    struct cgroup_usage usage = {0};
    int dir = cgroup_dir(group, CGROUP_TREE_UNIFIED);
    char text[CGROUP_TEXT_MAX];
    if (cgroup_v2_cpu(dir, &usage))
        usage.has |= CGROUP_CPU;
    usage.throttled_us += group->past.throttled_us;
    if (cgroup_read(dir, "memory.events", text, sizeof text) > 0) {
        (void)cgroup_text_number(text, "oom_kill", &usage.oom_kills);
        if (!(group->late & CGROUP_MEMORY)) {
            usage.has |= CGROUP_MEMORY;
            (void)cgroup_read_number(dir, "memory.peak", &usage.peak_memory_bytes);
        }
        /* With the mount option memory_localevents, events are counted only in the group they
         * happened in. */
        if (usage.oom_kills == 0)
            usage.oom_kills = group->past.oom_kills +
                              count_below(group, CGROUP_MEMORY, "memory.events", "oom_kill");
    }
    if (cgroup_read(dir, "pids.events", text, sizeof text) > 0) {
        (void)cgroup_text_number(text, "max", &usage.pids_refused);
        if (!(group->late & CGROUP_PIDS)) {
            usage.has |= CGROUP_PIDS;
            (void)cgroup_read_number(dir, "pids.peak", &usage.peak_pids);
        }
        /* Before 6.11 a refused fork is counted only in the group of the forking process. */
        if (usage.pids_refused == 0)
            usage.pids_refused =
                group->past.pids_refused + count_below(group, CGROUP_PIDS, "pids.events", "max");
    }
    *ret_usage = usage;
}
