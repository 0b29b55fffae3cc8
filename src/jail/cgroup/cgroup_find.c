/* SPDX-License-Identifier: MIT */
/* Finds where brig may create groups: in its current group, or in one above that it may divide. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/cgroup/cgroup_driver.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY)

void cgroup_bases_done(struct cgroup_bases *bases)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        close_fd(&bases->dirs[tree]);
}

/* ---- one directory ---- */

static bool may_write(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, W_OK, 0) == 0;
}

/* Walks from the current group up to the mounted root. It does not go above a group that brig has
 * created: a brig inside a jail shares the jail's limits. */
struct climb {
    const struct cgroup_place *place;
    int fd;
    size_t length; /* of the current path */
    unsigned left; /* number of levels above */
    bool kept;     /* the fd was handed to the caller */
    bool is_bounded, bounded_known;
};

static bool climb_begin(const struct cgroup_place *place, long magic, struct climb *ret_climb)
{
    autoclose int fd = openat(AT_FDCWD, place->path, OPEN_DIR | O_CLOEXEC);
    struct statfs system;
    if (fd < 0 || fstatfs(fd, &system) < 0 || system.f_type != (typeof(system.f_type))magic)
        return false;
    *ret_climb = (struct climb){
        .place = place, .fd = take_fd(&fd), .length = strlen(place->path), .left = place->depth};
    return true;
}

/* Returns the last component of the current path. */
static const char *climb_name(const struct climb *climb, char buffer[CGROUP_NAME_MAX])
{
    const char *path = climb->place->path;
    size_t begin = climb->length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    (void)snprintf(buffer, CGROUP_NAME_MAX, "%.*s", (int)(climb->length - begin), path + begin);
    return buffer;
}

/* systemd marks delegated groups with two attributes: trusted.delegate is visible to root only, and
 * user.delegate exists since version 254. So a scope from cgroup_systemd_join() is recognised by
 * name. */
static bool is_delegated(const struct climb *climb)
{
    char value[4], name[CGROUP_NAME_MAX];
    if ((fgetxattr(climb->fd, "user.delegate", value, sizeof value) == 1 && value[0] == '1') ||
        (fgetxattr(climb->fd, "trusted.delegate", value, sizeof value) == 1 && value[0] == '1'))
        return true;
    const char *end = strrchr(climb_name(climb, name), '.');
    return str_starts_with(name, CGROUP_PREFIX) && end && str_equal(end, ".scope");
}

/* Closes the current directory and opens its parent; false at the top. */
static bool climb_up(struct climb *climb)
{
    char name[CGROUP_NAME_MAX];
    pid_t pid;
    uint64_t start;
    bool top = climb->left == 0 || cgroup_text_name(climb_name(climb, name), &pid, &start);
    int below = take_fd(&climb->fd);
    if (!top)
        climb->fd = openat(below, "..", OPEN_DIR | O_CLOEXEC);
    if (!climb->kept)
        (void)close(below);
    if (top)
        return false;
    climb->kept = climb->bounded_known = false;
    climb->left--;
    while (climb->length > 0 && climb->place->path[climb->length - 1] != '/')
        climb->length--;
    climb->length--;
    return climb->fd >= 0;
}

static void note_where(struct cgroup_bases *bases, const struct cgroup_place *place, size_t length)
{
    (void)snprintf(bases->support.where, sizeof bases->support.where, "%.*s", (int)length,
                   place->path);
}

/* ---- v2 ---- */

/* How suitable a directory is for creating groups, apart from its controllers. */
enum fitness {
    UNFIT,
    FIT_IF_EMPTIED, /* processes have to be moved, without explicit delegation */
    FIT,            /* empty, or the root */
    FIT_BEST,       /* delegated to brig, or the root and brig's current group */
};

/* Returns whether the calling process is the only one in the group. */
static bool is_alone(const char *procs)
{
    pid_t pid;
    return cgroup_text_next_pid(&procs, &pid) && pid == getpid() && *procs == '\0';
}

static bool has_limit(int dir_fd, const char *file)
{
    char text[64];
    return cgroup_read(dir_fd, file, text, sizeof text) > 0 && !str_starts_with(text, "max");
}

/* A limit on this group is meant for brig's children, too, so brig does not leave the group. The
 * limit on tasks is ignored, because systemd sets one everywhere. */
static bool is_bounded(struct climb *climb)
{
    if (!climb->bounded_known)
        climb->is_bounded = has_limit(climb->fd, "memory.max") || has_limit(climb->fd, "cpu.max");
    climb->bounded_known = true;
    return climb->is_bounded;
}

/* The current group has processes in it, at least this one. Moving them within the group is
 * harmless if the group belongs to this user, if it is the top of what a container sees, if this
 * process is alone in it, or if a limit forbids leaving it. It is not harmless for root in a
 * systemd session. */
static enum fitness judge_crowded(struct climb *climb, const char *procs)
{
    if (climb->length != strlen(climb->place->path))
        return UNFIT;
    if (is_delegated(climb))
        return FIT_BEST;
    struct stat status;
    bool ours = fstat(climb->fd, &status) == 0 && status.st_uid == geteuid() && geteuid() != 0;
    return ours || climb->left == 0 || is_alone(procs) || is_bounded(climb) ? FIT_IF_EMPTIED
                                                                            : UNFIT;
}

static enum fitness judge(struct climb *climb, bool *ret_crowded)
{
    char text[CGROUP_TEXT_MAX], name[CGROUP_NAME_MAX];
    int fd = climb->fd;
    *ret_crowded = false;
    if (strcmp(climb_name(climb, name), CGROUP_OWN) == 0) /* brig moved here: use the parent */
        return UNFIT;
    if (!may_write(fd, ".") || !may_write(fd, "cgroup.procs") ||
        !may_write(fd, "cgroup.subtree_control"))
        return UNFIT;
    int length = cgroup_read(fd, "cgroup.type", text, sizeof text);
    if (length == -ENOENT) /* the real root, which may have processes and controllers */
        return climb->length == strlen(climb->place->path) ? FIT_BEST : FIT;
    if (length < 0 || strcmp(text, "domain\n") != 0)
        return UNFIT;
    length = cgroup_read(fd, "cgroup.procs", text, sizeof text);
    if (length < 0)
        return UNFIT;
    *ret_crowded = length > 0;
    return length > 0 ? judge_crowded(climb, text) : FIT;
}

static unsigned controllers_of(int dir_fd)
{
    char text[CGROUP_TEXT_MAX];
    return cgroup_read(dir_fd, "cgroup.controllers", text, sizeof text) > 0
               ? cgroup_text_controllers(text)
               : 0;
}

static int count_bits(unsigned bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

/* Takes the directory with the most controllers; among equals the most suitable; among these the
 * nearest. A directory has all controllers of the directories below it. */
static void find_v2(const struct cgroup_place *place, struct cgroup_bases *bases)
{
    const unsigned all = CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS;
    struct climb climb;
    int best = 0, *base = &bases->dirs[CGROUP_TREE_UNIFIED];
    if (!place->found || !climb_begin(place, CGROUP2_SUPER_MAGIC, &climb))
        return;
    do {
        bool crowded;
        enum fitness fitness = judge(&climb, &crowded);
        unsigned controllers = fitness > UNFIT ? controllers_of(climb.fd) : 0;
        int score = (int)fitness + (FIT_BEST + 1) * count_bits(controllers & all);
        if (fitness == UNFIT || score <= best)
            continue;
        if (*base >= 0)
            (void)close(*base);
        *base = climb.fd;
        climb.kept = true;
        best = score;
        bases->support.kind = CGROUP_V2;
        bases->support.resources = controllers;
        bases->crowded = crowded;
        bases->pin = !is_delegated(&climb);
        note_where(bases, place, climb.length);
        if (fitness >= FIT && (controllers & all) == all)
            break;
    } while (!is_bounded(&climb) && climb_up(&climb));
    if (climb.fd >= 0 && !climb.kept)
        (void)close(climb.fd);
    /* systemd may change groups that it manages and has not delegated. */
    bases->pin = bases->pin && access("/run/systemd/system", F_OK) == 0;
}

/* ---- v1 ---- */

/* Finds the nearest writable directory. */
static int find_in_tree(const struct cgroup_place *place, enum cgroup_tree tree,
                        struct cgroup_bases *bases)
{
    bool unified = tree == CGROUP_TREE_UNIFIED;
    struct climb climb;
    if (!place->found ||
        !climb_begin(place, unified ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC, &climb))
        return -1;
    do {
        if (!may_write(climb.fd, ".") || (unified && !may_write(climb.fd, "cgroup.procs")))
            continue;
        if (tree == CGROUP_TREE_MEMORY || bases->support.where[0] == '\0')
            note_where(bases, place, climb.length);
        return climb.fd;
    } while (climb_up(&climb));
    return -1;
}

static void find_v1(const struct cgroup_place places[CGROUP_TREES], unsigned trees,
                    struct cgroup_bases *bases)
{
    static const unsigned resources[CGROUP_TREES] = {
        [CGROUP_TREE_MEMORY] = CGROUP_MEMORY,
        [CGROUP_TREE_CPU] = CGROUP_CPU,
        [CGROUP_TREE_PIDS] = CGROUP_PIDS,
    };
    const unsigned spare = 1u << CGROUP_TREE_FREEZER | 1u << CGROUP_TREE_CPUACCT;
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++) {
        unsigned first = places[tree].same_as;
        bases->same_as[tree] = (unsigned char)first;
        if (bases->dirs[CGROUP_TREE_UNIFIED] >= 0 && trees != CGROUP_ALL_TREES)
            trees &= ~spare;
        if (!(trees & 1u << tree))
            continue;
        if (bases->dirs[first] < 0)
            bases->dirs[first] = find_in_tree(&places[first], first, bases);
        if (bases->dirs[first] < 0)
            continue;
        bases->support.kind = CGROUP_V1;
        bases->support.resources |= resources[tree];
    }
}

/* ---- both ---- */

bool cgroup_can_ask_systemd(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/run/user/%u/systemd/private", geteuid());
    return geteuid() != 0 && access(path, W_OK) == 0;
}

unsigned cgroup_user_resources(void)
{
    char path[128];
    unsigned uid = geteuid();
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service",
                   uid, uid);
    autoclose int fd = open(path, OPEN_DIR | O_CLOEXEC);
    return fd < 0 ? 0 : controllers_of(fd);
}

/* What to do where brig's group is not its user's. */
static void find_fix(const struct cgroup_place *place, bool v2, struct cgroup_support *support)
{
    unsigned uid = geteuid();
    char *fix = support->fix;
    const size_t size = sizeof support->fix;
    if (v2 && (support->ask_systemd = cgroup_can_ask_systemd()))
        (void)snprintf(fix, size, "Run: systemd-run --user --scope -p Delegate=yes brig …");
    else if (v2 && uid != 0 && access("/run/systemd/system", F_OK) == 0)
        (void)snprintf(fix, size, "Let it run without a login: sudo loginctl enable-linger %u",
                       uid);
    else if (v2 && uid != 0 && place->depth == 0)
        (void)snprintf(fix, size,
                       "Run as root of the container: (cd /sys/fs/cgroup && chown %u . "
                       "cgroup.procs cgroup.threads cgroup.subtree_control)",
                       uid);
    else
        (void)snprintf(fix, size, "Have a cgroup delegated to your user%s",
                       v2 ? "" : "; with systemd, boot with systemd.unified_cgroup_hierarchy=1");
}

static void explain(const struct cgroup_place places[CGROUP_TREES], struct cgroup_bases *bases)
{
    const struct cgroup_place *unified = &places[CGROUP_TREE_UNIFIED], *place = unified;
    struct cgroup_support *support = &bases->support;
    for (int tree = 0; tree < CGROUP_TREES && !place->found; tree++)
        place = &places[tree];
    bool v2 = place == unified && !places[CGROUP_TREE_MEMORY].listed;
    if (!place->found) {
        (void)snprintf(support->reason, sizeof support->reason,
                       "brig's cgroup is not in any mounted hierarchy");
        (void)snprintf(support->fix, sizeof support->fix, "Mount cgroup2 at /sys/fs/cgroup");
        return;
    }
    if (place->read_only || (access(place->path, W_OK) < 0 && errno == EROFS)) {
        (void)snprintf(support->reason, sizeof support->reason,
                       "the cgroup hierarchy is mounted read-only");
        (void)snprintf(support->fix, sizeof support->fix,
                       "Start the container with a writable one (podman: --security-opt "
                       "unmask=ALL; docker: --security-opt writable-cgroups=true)");
        return;
    }
    find_fix(place, v2, support);
    if (support->ask_systemd)
        (void)snprintf(support->reason, sizeof support->reason,
                       "only your user's systemd can move brig out of its cgroup");
    else
        (void)snprintf(support->reason, sizeof support->reason,
                       "your user has no cgroup of its own%s%.100s%s", *place->path ? " ('" : "",
                       str_shown(place->path).text, *place->path ? "' belongs to another)" : "");
}

static void find_in(const struct cgroup_place places[CGROUP_TREES], unsigned trees,
                    struct cgroup_bases *bases)
{
    if (places[CGROUP_TREE_MEMORY].listed || places[CGROUP_TREE_CPU].listed ||
        places[CGROUP_TREE_PIDS].listed)
        find_v1(places, trees, bases);
    else
        find_v2(&places[CGROUP_TREE_UNIFIED], bases);
}

void cgroup_find(unsigned trees, struct cgroup_bases *ret_bases)
{
    struct cgroup_bases bases = {.support.kind = CGROUP_NONE};
    struct cgroup_place places[CGROUP_TREES];
    for (unsigned tree = 0; tree < CGROUP_TREES; tree++) {
        bases.dirs[tree] = -1;
        bases.same_as[tree] = (unsigned char)tree;
    }
    autofree char *own = cgroup_read_proc("/proc/self/cgroup");
    autofree char *mounts = cgroup_read_proc("/proc/self/mountinfo");
    char none[] = "";
    cgroup_text_places(own ? own : "", mounts ? mounts : none, places);
    find_in(places, trees, &bases);
    if (bases.support.kind == CGROUP_NONE)
        explain(places, &bases);
    *ret_bases = bases;
}

/* Called on every launch, so it takes a shortcut: it looks only for the line of v1's memory
 * controller or of v2, and assumes the usual mount points. */
bool cgroup_is_ours(void)
{
    char text[CGROUP_TEXT_MAX], path[CGROUP_PATH_MAX];
    autoclose int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *own = strstr(text, ":memory:"), *unified = strstr(text, "0::");
    const char *root = own ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    if (!own && !unified)
        return false;
    own = own ? own + strlen(":memory:") : unified + strlen("0::");
    size_t root_length = strlen(root), own_length = strcspn(own, "\n");
    if (root_length + own_length >= sizeof path)
        return false;
    memcpy(path, root, root_length);
    memcpy(path + root_length, own, own_length);
    path[root_length + own_length] = '\0';
    return access(path, W_OK) == 0;
}
