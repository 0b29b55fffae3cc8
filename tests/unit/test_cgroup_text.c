/* SPDX-License-Identifier: MIT */
/* What is read about cgroups and what is written to them, on texts and directories that are made up:
 * of systems that are not this one, too. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/cgroup/process.h"
#include "tap.h"

/* ---- where we are ---- */

#define V2_MOUNT                                                                                   \
    "23 28 0:21 / /proc rw,nosuid - proc proc rw\n"                                                \
    "29 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "      \
    "rw,nsdelegate,memory_recursiveprot\n"
#define V1_MOUNTS                                                                                  \
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                          \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup "       \
    "rw,cpu,cpuacct\n"                                                                             \
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"                   \
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                   \
    "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"                 \
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
#define UNIFIED_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

static void places_of(const char *own, const char *mounts,
                      struct cgroup_place ret_places[CGROUP_TREES])
{
    char *copy = strdup(mounts);
    cgroup_text_places(own, copy, ret_places);
    free(copy);
}

static void test_places_v2(void)
{
    struct cgroup_place places[CGROUP_TREES], *v2 = &places[CGROUP_TREE_UNIFIED];
    places_of("0::/\n", V2_MOUNT, places);
    tap_ok(v2->listed && v2->found && !v2->read_only, "v2: the root is found");
    tap_is_str(v2->path, "/sys/fs/cgroup", "v2: the root is the mount point");
    tap_is_int(v2->depth, 0, "v2: nothing lies above the root");
    tap_ok(!places[CGROUP_TREE_MEMORY].listed, "v2: there is no other hierarchy");

    places_of("0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n", V2_MOUNT,
              places);
    tap_is_str(v2->path,
               "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope",
               "v2: a scope of a user's systemd is found");
    tap_is_int(v2->depth, 5, "v2: five groups lie above it");

    places_of("0::/user.slice (deleted)\n", V2_MOUNT, places);
    tap_ok(v2->listed && !v2->found, "v2: a group that was removed is not found");
    places_of("0::/../elsewhere\n", V2_MOUNT, places);
    tap_ok(!v2->found, "v2: a group outside our namespace is not found");
    places_of("0::/\n", "23 28 0:21 / /proc rw,nosuid - proc proc rw\n", places);
    tap_ok(v2->listed && !v2->found, "v2: what is not mounted is not found");
    places_of("", "", places);
    tap_ok(!v2->listed && !v2->found, "without texts there is nothing");
    places_of("0::/", "29 24 0:26 / /c rw - cgroup2 none rw", places);
    tap_is_str(v2->path, "/c", "a last line needs no newline");
}

static void test_places_containers(void)
{
    struct cgroup_place places[CGROUP_TREES], *v2 = &places[CGROUP_TREE_UNIFIED];
    places_of("0::/\n", "900 899 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n",
              places);
    tap_ok(v2->found && v2->read_only, "a container's read-only hierarchy is seen as such");
    places_of("0::/docker/abc\n",
              "900 899 0:26 /docker/abc /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n", places);
    tap_is_str(v2->path, "/sys/fs/cgroup", "a container in the host's cgroup namespace is found");
    tap_is_int(v2->depth, 0, "and sees nothing above it");
    places_of("0::/docker/abc/x\n",
              "900 899 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", places);
    tap_is_str(v2->path, "/sys/fs/cgroup/x", "what lies below its root is found there");
    places_of("0::/docker/abcd\n",
              "900 899 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", places);
    tap_ok(!v2->found, "a name that only begins the same is another group");
    places_of("0::/\n", "900 899 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", places);
    tap_ok(!v2->found, "a mount from above our namespace is not mistaken for it");
    places_of("0::/a\n",
              "900 899 0:26 / /ro ro - cgroup2 cgroup rw\n"
              "901 899 0:26 /a /inner rw - cgroup2 cgroup rw\n"
              "902 899 0:26 / /outer rw - cgroup2 cgroup rw\n",
              places);
    tap_is_str(v2->path, "/outer/a",
               "of several mounts, the writable one that shows most is taken");
}

static void test_places_v1(void)
{
    struct cgroup_place places[CGROUP_TREES];
    const char own[] = "9:name=systemd:/\n"
                       "8:pids:/user.slice\n"
                       "6:freezer:/\n"
                       "4:memory:/with space/x:y\n"
                       "3:cpuset:/\n"
                       "2:cpu,cpuacct:/deep/er\n"
                       "0::/\n";
    places_of(own, V1_MOUNTS UNIFIED_MOUNT, places);
    tap_is_str(places[CGROUP_TREE_MEMORY].path, "/sys/fs/cgroup/memory/with space/x:y",
               "v1: colons and blanks are part of a path");
    tap_is_str(places[CGROUP_TREE_CPU].path, "/sys/fs/cgroup/cpu,cpuacct/deep/er",
               "v1: a controller mounted with another is found");
    tap_is_str(places[CGROUP_TREE_CPUACCT].path, places[CGROUP_TREE_CPU].path,
               "v1: and so is the other");
    tap_is_int(places[CGROUP_TREE_CPUACCT].same_as, CGROUP_TREE_CPU, "v1: as the same");
    tap_is_int(places[CGROUP_TREE_CPU].depth, 2, "v1: two groups lie above");
    tap_is_str(places[CGROUP_TREE_PIDS].path, "/sys/fs/cgroup/pids/user.slice", "v1: pids");
    tap_is_str(places[CGROUP_TREE_FREEZER].path, "/sys/fs/cgroup/freezer", "v1: freezer");
    tap_is_str(places[CGROUP_TREE_UNIFIED].path, "/sys/fs/cgroup/unified",
               "hybrid: v2 is found beside v1");
    places_of(own, V1_MOUNTS, places);
    tap_ok(places[CGROUP_TREE_UNIFIED].listed && !places[CGROUP_TREE_UNIFIED].found,
           "v1: a v2 hierarchy that is not mounted is not found");
}

static void test_places_escapes(void)
{
    struct cgroup_place places[CGROUP_TREES], *v2 = &places[CGROUP_TREE_UNIFIED];
    places_of("0::/a b/c\n", "29 24 0:26 /a\\040b /mnt/my\\040groups\\134x rw - cgroup2 none rw\n",
              places);
    tap_is_str(v2->path, "/mnt/my groups\\x/c", "blanks and backslashes in mounts are read");
    places_of("0::/\n", "29 24 0:26 / /mnt\\04 rw - cgroup2 none rw\n", places);
    tap_is_str(v2->path, "/mnt\\04", "what is no escape stays");

    char own[CGROUP_PATH_MAX + 64], deep[CGROUP_PATH_MAX + 64];
    memset(deep, 'x', sizeof deep);
    const size_t mount = sizeof "/c" - 1;
    (void)snprintf(own, sizeof own, "0::/%.*s\n", (int)(CGROUP_PATH_MAX - 2 - mount), deep);
    places_of(own, "29 24 0:26 / /c rw - cgroup2 none rw\n", places);
    tap_is_int(strlen(v2->path), CGROUP_PATH_MAX - 1, "the longest path is found");
    (void)snprintf(own, sizeof own, "0::/%.*s\n", (int)(CGROUP_PATH_MAX - 1 - mount), deep);
    places_of(own, "29 24 0:26 / /c rw - cgroup2 none rw\n", places);
    tap_ok(!v2->found, "one that is longer by a byte is not");
}

/* ---- other texts ---- */

static void test_text(void)
{
    tap_is_int(cgroup_text_controllers("cpuset cpu io memory hugetlb pids rdma misc\n"),
               CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS | CGROUP_IO, "controllers are read");
    tap_is_int(cgroup_text_controllers("cpuset hugetlb\n"), 0, "cpuset is not cpu");
    tap_is_int(cgroup_text_controllers("\n"), 0, "no controllers are none");
    tap_is_int(cgroup_text_controllers(""), 0, "nor is an empty text one");

    const char events[] = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 18446744073709551615\n"
                          "oom_group_kill 1\n";
    uint64_t value = 7;
    tap_ok(cgroup_text_number(events, "oom_kill", &value) && value == UINT64_MAX,
           "a key is found, and not another that begins with it");
    tap_ok(cgroup_text_number(events, "max", &value) && value == 12, "and one in the middle");
    tap_ok(!cgroup_text_number(events, "oom_ki", &value) && value == 12,
           "a part of a key is not found, and the value is left alone");
    tap_ok(!cgroup_text_number("max\nmax", "max", &value), "a key without a number is none");

    const char *pids = "17\n4194303\n12";
    pid_t pid = 0;
    tap_ok(cgroup_text_next_pid(&pids, &pid) && pid == 17, "the first pid of a list is taken");
    tap_ok(cgroup_text_next_pid(&pids, &pid) && pid == 4194303, "and the second");
    tap_ok(!cgroup_text_next_pid(&pids, &pid), "one that is cut off is not");
    pids = "";
    tap_ok(!cgroup_text_next_pid(&pids, &pid), "an empty list has none");

    struct process_stat process;
    const char stat[] = "12 (a) D) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 100 200\n";
    tap_ok(process_stat_parse(stat, &process), "a process's stat is read");
    tap_ok(process.state == 'S' && process.start == 98765,
           "its state and start, whatever its name");
    tap_ok(process.parent == 1 && process.group == 12 && process.ticks == 5 + 6 + 7 + 8,
           "its parent, its group and its CPU time");
    tap_ok(!process_stat_parse("12 (x) S 1 2 3", &process), "half a line is refused");
    tap_ok(!process_stat_parse("", &process), "so is none");
}

static void test_is_in(void)
{
    static const char own[] = "4:memory:/a/brig-1-2-3/tool-30\n0::/a/brig-1-2-33\n";
    tap_ok(cgroup_text_is_in(own, "brig-1-2-3/tool-30"), "a process is in its leaf");
    tap_ok(cgroup_text_is_in(own, "brig-1-2-3"), "and in the group above it");
    tap_ok(cgroup_text_is_in(own, "brig-1-2-33"), "and in the one of another hierarchy");
    tap_ok(!cgroup_text_is_in(own, "brig-1-2-3/tool-3"), "but not in one that begins like it");
    tap_ok(!cgroup_text_is_in(own, "rig-1-2-33"), "nor in one that ends like it");
    tap_ok(!cgroup_text_is_in("", "brig-1-2-3") && !cgroup_text_is_in("brig-1-2-3", "brig-1-2-3"),
           "and what is no path is none");
}

static void test_names(void)
{
    pid_t pid = 0;
    uint64_t start = 0;
    tap_ok(cgroup_text_name("brig-123-456-7", &pid, &start) && pid == 123 && start == 456,
           "a group's name says whose it is");
    static const char *const others[] = {
        "brig-own",
        "brig-123-456",
        "brig-123-456-7-8",
        "brig-123-456-",
        "brig--456-7",
        "brig-12x-456-7",
        "xbrig-1-2-3",
        "brig-123-456.scope",
        "brig-1-2-3 ",
        "brig-2147483648-456-7",
        "",
        "brig-",
        "brig-1-99999999999999999999-3",
        "brig-1--3",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        tap_ok(!cgroup_text_name(others[i], &pid, &start), "'%s' is not one", others[i]);
}

/* ---- directories that look like groups ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

struct fake {
    char path[64];
    int fd;
};

static void fake_init(struct fake *fake)
{
    (void)snprintf(fake->path, sizeof fake->path, "/tmp/brig-test-cgroup.XXXXXX");
    if (!mkdtemp(fake->path))
        tap_bail("mkdtemp: %s", strerror(errno));
    fake->fd = open(fake->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void fake_done(struct fake *fake)
{
    (void)close(fake->fd);
    (void)nftw(fake->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void fake_file(const struct fake *fake, const char *name, const char *text)
{
    int fd = openat(fake->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        tap_bail("cannot write %s", name);
    (void)close(fd);
}

static const char *fake_text(const struct fake *fake, const char *name, char buffer[256])
{
    return cgroup_read(fake->fd, name, buffer, 256) < 0 ? NULL : buffer;
}

static const struct cgroup_limits LIMITS = {
    .memory_bytes = 64 << 20,
    .cpu_percent = 150,
    .pids = 32,
    .io_read_bytes = 1000,
    .io_write_bytes = 2000,
};

static void test_v2_write(void)
{
    char text[256];
    struct brig_error err = {0};
    struct fake fake;
    fake_init(&fake);
    const unsigned most = CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS;
    tap_is_int(cgroup_wanted(&LIMITS), most | CGROUP_IO, "all limits want all controllers");
    tap_is_int(cgroup_wanted(&(struct cgroup_limits){0}), 0, "no limits want none");
    tap_is_int(cgroup_v2_write(fake.fd, &LIMITS, most, &err), BRIG_E_SETUP,
               "v2: a limit without its file is a failure");
    tap_has_str(err.message, "memory.max", "v2: which is named");
    static const char *const files[] = {"memory.max", "pids.max", "cpu.max"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        fake_file(&fake, files[i], "");
    fake_file(&fake, "memory.oom.group", "");
    tap_is_int(cgroup_v2_write(fake.fd, &LIMITS, most, NULL), 0,
               "v2: a kernel without swap will do");
    fake_file(&fake, "memory.swap.max", "");
    tap_is_int(cgroup_v2_write(fake.fd, &LIMITS, most, NULL), 0, "v2: the limits are written");
    tap_is_str(fake_text(&fake, "memory.max", text), "67108864", "v2: memory.max in bytes");
    tap_is_str(fake_text(&fake, "memory.swap.max", text), "0", "v2: no swap");
    tap_is_str(fake_text(&fake, "memory.oom.group", text), "1", "v2: all die together");
    tap_is_str(fake_text(&fake, "pids.max", text), "32", "v2: pids.max");
    tap_is_str(fake_text(&fake, "cpu.max", text), "150000 100000", "v2: cpu.max of 150 %%");
    fake_file(&fake, "cpu.max", "");
    const struct cgroup_limits least = {.cpu_percent = 1};
    tap_is_int(cgroup_v2_write(fake.fd, &least, CGROUP_CPU, NULL), 0, "v2: 1 %% is written");
    tap_is_str(fake_text(&fake, "cpu.max", text), "1000 100000",
               "v2: as the shortest quota the kernel takes");
    fake_done(&fake);
}

static void test_v2_io(void)
{
    char text[256];
    struct fake fake, block;
    fake_init(&fake);
    fake_init(&block);
    tap_ok(!cgroup_v2_write_io(fake.fd, block.fd, &LIMITS), "io: without disks nothing is bounded");
    static const char *const dirs[] = {"loop0", "ram0", "sr0", "vda", "nbd0"};
    for (size_t i = 0; i < ARRAY_LENGTH(dirs); i++) {
        char name[64];
        (void)mkdirat(block.fd, dirs[i], 0700);
        (void)snprintf(name, sizeof name, "%s/dev", dirs[i]);
        fake_file(&block, name, "254:0\n");
        (void)snprintf(name, sizeof name, "%s/size", dirs[i]);
        fake_file(&block, name, strcmp(dirs[i], "nbd0") == 0 ? "0\n" : "2048\n");
    }
    tap_ok(!cgroup_v2_write_io(fake.fd, block.fd, &LIMITS), "io: without io.max neither");
    fake_file(&fake, "io.max", "");
    tap_ok(cgroup_v2_write_io(fake.fd, block.fd, &LIMITS), "io: the one disk is bounded");
    tap_is_str(fake_text(&fake, "io.max", text), "254:0 rbps=1000 wbps=2000", "io: both ways");
    fake_file(&fake, "io.max", "");
    tap_ok(cgroup_v2_write_io(fake.fd, block.fd, &(struct cgroup_limits){.io_write_bytes = 5}),
           "io: or one way");
    tap_is_str(fake_text(&fake, "io.max", text), "254:0 wbps=5", "io: and only that");
    fake_done(&fake);
    fake_done(&block);
}

static void fake_group(struct cgroup *group, enum cgroup_kind kind, int fd)
{
    unsigned char same_as[CGROUP_TREES];
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++)
        same_as[tree] = (unsigned char)tree;
    cgroup_init(group, kind, same_as);
    group->dirs[CGROUP_TREE_UNIFIED] = kind == CGROUP_V2 ? fd : -1;
    for (int tree = CGROUP_TREE_MEMORY; tree < CGROUP_TREES && kind == CGROUP_V1; tree++)
        group->dirs[tree] = fd;
}

static void test_v2_usage(void)
{
    struct fake fake;
    struct cgroup group;
    struct cgroup_usage usage;
    uint64_t used = 0;
    fake_init(&fake);
    fake_group(&group, CGROUP_V2, fake.fd);
    group.enabled = CGROUP_PIDS; /* in leaves, too */
    (void)mkdirat(fake.fd, CGROUP_MAIN, 0700);
    cgroup_usage(&group, &usage);
    tap_is_int(usage.has, 0, "v2: an empty directory has no counters");
    tap_ok(!cgroup_cpu_us(&group, &used), "v2: nor CPU time");
    fake_file(&fake, "cpu.stat",
              "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnr_periods 1\n"
              "nr_throttled 1\nthrottled_usec 99\n");
    fake_file(&fake, "memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 3\n");
    fake_file(&fake, "pids.events", "max 0\n");
    fake_file(&fake, "main/pids.events", "max 4\n");
    cgroup_usage(&group, &usage);
    tap_is_int(usage.has, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS, "v2: what there is is read");
    tap_ok(usage.cpu_user_us == 10 && usage.cpu_sys_us == 20 && usage.throttled_us == 99,
           "v2: CPU");
    tap_is_int(usage.oom_kills, 3, "v2: kills for memory");
    tap_is_int(usage.peak_memory_bytes, 0, "v2: an older kernel knows no peak");
    tap_is_int(usage.pids_refused, 4, "v2: and counts refused forks in the leaf");
    fake_file(&fake, "memory.peak", "4096\n");
    fake_file(&fake, "pids.peak", "9\n");
    fake_file(&fake, "pids.events", "max 5\n");
    cgroup_usage(&group, &usage);
    tap_ok(usage.peak_memory_bytes == 4096 && usage.peak_pids == 9, "v2: a newer knows the peaks");
    tap_is_int(usage.pids_refused, 5, "v2: and counts refused forks in the group");
    tap_ok(cgroup_cpu_us(&group, &used) && used == 30, "v2: CPU time alone");
    fake_file(&fake, "cpu.max", "");
    cgroup_unthrottle(&group);
    char text[256];
    tap_is_str(fake_text(&fake, "cpu.max", text), "max", "v2: CPU for who is to die");
    fake_done(&fake);
}

static void test_v1(void)
{
    char text[256];
    struct fake fake;
    struct cgroup group;
    struct cgroup_usage usage;
    unsigned missing = 0;
    uint64_t used = 0;
    fake_init(&fake);
    fake_group(&group, CGROUP_V1, fake.fd);
    static const char *const files[] = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
                                        "pids.max", "cpu.cfs_quota_us"};
    static const char tcp[] = "memory.kmem.tcp.limit_in_bytes";
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        fake_file(&fake, files[i], "");
    tap_is_int(cgroup_v1_limit(&group, &LIMITS, &missing, NULL), 0, "v1: the limits are written");
    tap_is_int(missing, CGROUP_IO, "v1: but for io, which it has not");
    tap_is_str(fake_text(&fake, files[0], text), "67108864", "v1: memory");
    tap_is_str(fake_text(&fake, files[1], text), "67108864", "v1: memory with swap");
    tap_is_str(fake_text(&fake, files[2], text), "32", "v1: pids");
    tap_is_str(fake_text(&fake, files[3], text), "150000", "v1: CPU");
    fake_file(&fake, tcp, "");
    (void)cgroup_v1_limit(&group, &LIMITS, &missing, NULL);
    tap_is_str(fake_text(&fake, tcp, text), "", "v1: nothing for TCP where there can be none");
    struct cgroup_limits with_tcp = LIMITS;
    with_tcp.tcp = true;
    (void)cgroup_v1_limit(&group, &with_tcp, &missing, NULL);
    tap_is_str(fake_text(&fake, tcp, text), "67108864", "v1: else the same again");
    fake_file(&fake, files[3], "");
    cgroup_unthrottle(&group);
    tap_is_str(fake_text(&fake, files[3], text), "-1", "v1: CPU for who is to die");
    fake_file(&fake, "cpuacct.usage", "30000\n");
    fake_file(&fake, "cpuacct.usage_user", "10000\n");
    fake_file(&fake, "cpuacct.usage_sys", "20000\n");
    fake_file(&fake, "cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 7000\n");
    fake_file(&fake, "memory.max_usage_in_bytes", "8192\n");
    fake_file(&fake, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    fake_file(&fake, "pids.events", "max 1\n");
    (void)mkdirat(fake.fd, "tool-0", 0700);
    fake_file(&fake, "tool-0/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    fake_file(&fake, "tool-0/pids.events", "max 2\n");
    cgroup_usage(&group, &usage);
    tap_ok(usage.cpu_user_us == 10 && usage.cpu_sys_us == 20 && usage.throttled_us == 7, "v1: CPU");
    tap_ok(usage.peak_memory_bytes == 8192 && usage.oom_kills == 1, "v1: memory");
    group.leaf_count = 1;
    cgroup_usage(&group, &usage);
    tap_ok(usage.oom_kills == 3 && usage.pids_refused == 3, "v1: with what happened in the leaves");
    tap_ok(cgroup_cpu_us(&group, &used) && used == 30, "v1: CPU time alone");
    fake_done(&fake);
}

/* ---- systemd ---- */

/* The body of the call as busctl of systemd 252 writes it. */
static void test_systemd_message(void)
{
    static const char body[] =
        "\016\000\000\000brig-1-2.scope\000\000\004\000\000\000fail\000\000\000\000{\000"
        "\000\000\000\000\000\000\013\000\000\000Description\000\001s\000\000\004\000\000"
        "\000brig\000\000\000\000\004\000\000\000PIDs\000\002au\000\000\000\000\004\000"
        "\000\000\004\003\002\001\010\000\000\000Delegate\000\001b\000\001\000\000\000"
        "\000\000\000\000\013\000\000\000CollectMode\000\001s\000\000\022\000\000\000inac"
        "tive-or-failed\000\000\000\000\000\000";
    uint8_t bytes[CGROUP_SYSTEMD_MESSAGE_MAX];
    size_t length = cgroup_systemd_message("brig-1-2.scope", 0x01020304, bytes);
    size_t size = sizeof body - 1;
    tap_is_int(bytes[0], 'l', "the call is little-endian");
    tap_is_int(bytes[1], 1, "and a call");
    tap_is_int(bytes[4] | bytes[5] << 8, size, "it says how long its body is");
    size_t fields = bytes[12] | (size_t)bytes[13] << 8;
    tap_is_int(16 + ((fields + 7) & ~(size_t)7) + size, length, "and its lengths add up");
    tap_ok(length > size && memcmp(bytes + length - size, body, size) == 0,
           "the body is as another program writes it");
}

/* A stand-in that speaks as systemd does: takes the greeting, then a call, and answers. */
static int serve(int fd, const void *answer, size_t answer_length)
{
    char text[2048] = "";
    ssize_t got = recv(fd, text, sizeof text - 1, 0);
    if (got < 2 || text[0] != '\0' || strncmp(text + 1, "AUTH EXTERNAL 3", 15) != 0)
        return 1;
    (void)send(fd, "OK 1234\r\n", 9, 0);
    size_t have = 0;
    while (have < 300 && (got = recv(fd, text + have, sizeof text - have, 0)) > 0)
        have += (size_t)got;
    if (strncmp(text, "BEGIN\r\n", 7) != 0 ||
        !memmem(text, have, "StartTransientUnit", sizeof "StartTransientUnit"))
        return 2;
    (void)send(fd, answer, answer_length, 0);
    return 0;
}

static int ask(const void *answer, size_t answer_length, struct brig_error *err, int *ret_server)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        tap_bail("socketpair: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        _exit(serve(pair[1], answer, answer_length));
    }
    (void)close(pair[1]);
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    int result = cgroup_systemd_ask(pair[0], "brig-1-2.scope", err), status = 0;
    (void)close(pair[0]);
    (void)waitpid(pid, &status, 0);
    *ret_server = WEXITSTATUS(status);
    return result;
}

static void test_systemd_ask(void)
{
    /* A signal with 8 bytes of fields and 8 of body, then the answer. */
    static const uint8_t good[] = {'l', 4, 1, 1, 8, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0,
                                   1,   2, 3, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7,
                                   'l', 2, 1, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t bad[] = {'l', 3, 1, 1, 9, 0, 0, 0,   9,   0,   0,    0, 0,
                                  0,   0, 0, 4, 0, 0, 0, 'N', 'o', '!', '\n', 0};
    struct brig_error err = {0};
    int server;
    tap_is_int(ask(good, sizeof good, &err, &server), 0,
               "systemd's answer is found behind signals");
    tap_is_int(server, 0, "and it was asked properly");
    tap_is_int(ask(bad, sizeof bad, &err, &server), BRIG_E_SYSTEM, "its refusal is a failure");
    tap_has_str(err.message, "No!\\n", "and passed on");
    tap_is_int(ask(good, 20, &err, &server), BRIG_E_SYSTEM, "half an answer is one, too");
    tap_is_int(ask("X234567890123456", 16, &err, &server), BRIG_E_SYSTEM, "and so is nonsense");
}

int main(void)
{
    test_places_v2();
    test_places_containers();
    test_places_v1();
    test_places_escapes();
    test_text();
    test_names();
    test_is_in();
    test_v2_write();
    test_v2_io();
    test_v2_usage();
    test_v1();
    test_systemd_message();
    test_systemd_ask();
    return tap_done();
}
