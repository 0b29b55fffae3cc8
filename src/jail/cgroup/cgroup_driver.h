/* SPDX-License-Identifier: MIT */
/* Shared by the parts of jail/cgroup/cgroup.h: cgroup.c (the interface and the life of a group),
 * cgroup_find.c (where groups may be created), cgroup_v1.c and cgroup_v2.c (limits and counters),
 * cgroup_kill.c, cgroup_file.c (reading and writing), cgroup_text.c (parsing). */
#pragma once

#include "jail/cgroup/cgroup.h"

/* The hierarchies in which groups are created. v2 has only the first; v1 has one for each
 * controller, and several controllers may be mounted as one hierarchy. */
enum cgroup_tree {
    CGROUP_TREE_UNIFIED,
    CGROUP_TREE_MEMORY,
    CGROUP_TREE_CPU,
    CGROUP_TREE_PIDS,
    CGROUP_TREE_CPUACCT,
    CGROUP_TREE_FREEZER,
    CGROUP_TREES,
};
#define CGROUP_ALL_TREES ((1u << CGROUP_TREES) - 1)

#define CGROUP_PATH_MAX 1024 /* path of a group, with the NUL; a longer path is not used */
#define CGROUP_NAME_MAX 64
#define CGROUP_TEXT_MAX 4096 /* bytes read from a control file */
#define CGROUP_PREFIX "brig-"
#define CGROUP_MAIN "main"
#define CGROUP_LEAF_PREFIX "tool-"
#define CGROUP_OWN "brig-own" /* the leaf for processes that were in the divided group */
#define CGROUP_LEFT "left"    /* a leaf that marks a group as given up by its brig process */
#define CGROUP_CPU_PERIOD_US 100000

struct cgroup {
    enum cgroup_kind kind;
    struct cgroup *parent; /* of a leaf, borrowed; else NULL */
    char name[CGROUP_NAME_MAX];
    /* The group's directories, locked; -1 if it has none. If several controllers share a hierarchy,
     * only the first has a directory: use cgroup_dir(). */
    int dirs[CGROUP_TREES];
    unsigned char same_as[CGROUP_TREES];
    unsigned trees; /* of a leaf: bits of the trees with a directory; opened only while used */
    int main_fd;    /* v2: fd of `main`; else -1 */
    int joins[CGROUP_TREES];
    size_t join_count;
    unsigned widened; /* v1: bits of the trees that only leaves are in */
    unsigned late;    /* v2: resources counted only since a leaf needed them */
    unsigned enabled; /* v2: controllers enabled for the leaves in subtree_control */
    unsigned leaf_count, leaf_next, leaf_most;
    struct cgroup_usage past; /* events in removed leaves */
};

/* ---- cgroup_text.c: pure ---- */

/* The caller's group in one hierarchy, as a path in this mount namespace. */
struct cgroup_place {
    bool listed;                /* the kernel has this hierarchy */
    bool found;                 /* it is mounted, and the group is visible */
    bool read_only;             /* it is mounted read-only */
    unsigned char same_as;      /* the first tree in the same hierarchy, usually itself */
    unsigned depth;             /* number of mounted groups above it */
    char path[CGROUP_PATH_MAX]; /* without trailing slash */
};
/* Parses the texts of /proc/self/cgroup and /proc/self/mountinfo; modifies the second. */
void cgroup_text_places(const char *own, char *mounts,
                        struct cgroup_place ret_places[CGROUP_TREES]);
/* Returns the CGROUP_… bits of a list of controllers. */
unsigned cgroup_text_controllers(const char *text);
/* Finds the number after `key` in lines of "key number". */
bool cgroup_text_number(const char *text, const char *key, uint64_t *ret_value);
/* Takes the next number from a list with one number per line; false at the end, or if it is
 * truncated. */
bool cgroup_text_next_pid(const char **text, pid_t *ret_pid);
/* Returns whether a directory has the name of a brig group, with the pid and start time in it. */
bool cgroup_text_name(const char *name, pid_t *ret_pid, uint64_t *ret_start);
/* Returns whether a line of /proc/PID/cgroup ends with "/PATH" or continues below it. */
bool cgroup_text_is_in(const char *text, const char *path);

/* ---- cgroup_file.c ---- */

/* Files of a group, by name. They return 0, or the length read, or -errno. The text is
 * NUL-terminated and truncated to the buffer. */
int cgroup_write(int dir_fd, const char *name, const char *text);
int cgroup_write_number(int dir_fd, const char *name, uint64_t value);
int cgroup_read(int dir_fd, const char *name, char *buffer, size_t size);
bool cgroup_read_number(int dir_fd, const char *name, uint64_t *ret_value);
/* Reads a whole file of /proc, which the caller frees; NULL if it cannot be read. */
char *cgroup_read_proc(const char *path);
/* Returns the start time of a process; 0: no such process. */
uint64_t cgroup_start_time(pid_t pid);

/* Lists the subdirectories whose names begin with `prefix`. Returns their number, up to max. */
struct cgroup_part {
    char name[CGROUP_NAME_MAX];
};
size_t cgroup_list(int dir_fd, const char *prefix, struct cgroup_part *parts, size_t max);
/* Removes all directories below a directory, at any depth. Returns 0, or the -errno of one that
 * could not be removed. */
int cgroup_remove_below(int dir_fd);

/* Returns a group's directory in a hierarchy, or -1. */
static inline int cgroup_dir(const struct cgroup *group, enum cgroup_tree tree)
{
    return group->dirs[group->same_as[tree]];
}

/* The directories of a group in a hierarchy that can have processes: itself (".") and those
 * below. */
#define CGROUP_PARTS_MAX (CGROUP_COMMANDS_MAX + 3)
size_t cgroup_parts(const struct cgroup *group, enum cgroup_tree tree,
                    struct cgroup_part parts[CGROUP_PARTS_MAX]);
/* Adds up the numbers after `key` in the files `name` of all parts. */
uint64_t cgroup_sum_key(const struct cgroup *group, enum cgroup_tree tree, const char *name,
                        const char *key);

/* ---- cgroup_find.c ---- */

/* The directories in which groups are created. */
struct cgroup_bases {
    struct cgroup_support support; /* without `kill` */
    int dirs[CGROUP_TREES];
    unsigned char same_as[CGROUP_TREES];
    bool crowded; /* v2: its processes have to move to a leaf before controllers can be enabled */
    bool pin;     /* v2: systemd manages it, see cgroup_v2_limit() */
};
/* `trees` are bits of the v1 hierarchies to look at. Unless it is CGROUP_ALL_TREES, hierarchies
 * that a unified hierarchy makes unnecessary are left out. */
void cgroup_find(unsigned trees, struct cgroup_bases *ret_bases);
void cgroup_bases_done(struct cgroup_bases *bases);

#define autobases __attribute__((cleanup(cgroup_bases_done)))

/* Returns the resources that `limits` asks for, as bits. */
static inline unsigned cgroup_wanted(const struct cgroup_limits *limits)
{
    return (limits->memory_bytes ? CGROUP_MEMORY : 0u) | (limits->cpu_percent ? CGROUP_CPU : 0u) |
           (limits->pids ? CGROUP_PIDS : 0u) |
           (limits->io_read_bytes || limits->io_write_bytes ? CGROUP_IO : 0u);
}

/* ---- cgroup_v2.c, cgroup_v1.c ---- */

/* Enables the requested controllers for a new group (from `base` down) and sets the limits. Adds
 * unavailable resources to *missing. */
int cgroup_v2_limit(struct cgroup *group, const struct cgroup_bases *bases,
                    const struct cgroup_limits *limits, unsigned *missing, struct brig_error *err);
/* The same for a leaf. */
int cgroup_v2_limit_leaf(struct cgroup *leaf, const struct cgroup_limits *limits, unsigned *missing,
                         struct brig_error *err);
/* Writes the values of `limits` selected by `which` into the files of a group. */
int cgroup_v2_write(int dir_fd, const struct cgroup_limits *limits, unsigned which,
                    struct brig_error *err);
/* Limits every disk in the directory `block_fd` (/sys/block). Returns false if a disk stays
 * unlimited. */
bool cgroup_v2_write_io(int dir_fd, int block_fd, const struct cgroup_limits *limits);
/* Moves the processes of a directory that brig may divide to the leaf CGROUP_OWN. */
int cgroup_v2_make_room(int dir_fd);
void cgroup_v2_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);
bool cgroup_v2_cpu(int dir_fd, struct cgroup_usage *usage);

/* Returns the hierarchies that these limits need, as bits. */
unsigned cgroup_v1_trees(const struct cgroup_limits *limits);
int cgroup_v1_limit(struct cgroup *group, const struct cgroup_limits *limits, unsigned *missing,
                    struct brig_error *err);
int cgroup_v1_write_cpu(int dir_fd, unsigned percent, struct brig_error *err);
/* Opens the files with which the child joins. */
int cgroup_v1_open_joins(struct cgroup *group, struct brig_error *err);
void cgroup_v1_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);

/* ---- cgroup.c ---- */

void cgroup_init(struct cgroup *group, enum cgroup_kind kind, const unsigned char *same_as);
/* Opens and locks the directories of an existing group; false if another process has locked one. */
bool cgroup_open_dirs(struct cgroup *group, const struct cgroup_bases *bases);
/* Removes a group's directories and all below them. Returns 0, or the -errno of a failed
 * removal. */
int cgroup_remove_dirs(struct cgroup *group);
/* Marks the open directories of a group for the sweep, which otherwise skips groups while the
 * process in their name lives. */
void cgroup_give_up(const struct cgroup *group);
void cgroup_close_fds(struct cgroup *group);
/* Returns a copy of a group with a leaf's directories opened, for one use; release it afterwards.
 * For a group that is not a leaf, nothing is opened or closed. */
struct cgroup cgroup_opened(const struct cgroup *group);
void cgroup_opened_done(struct cgroup *opened);
#define autoopened __attribute__((cleanup(cgroup_opened_done)))

/* ---- cgroup_kill.c ---- */

/* Sometimes sweeps, after a group was created: if other groups exist and the random `luck` says
 * so. */
void cgroup_sweep_rarely(const struct cgroup_bases *bases, unsigned luck);

/* ---- cgroup_systemd.c ---- */

/* Builds the D-Bus call for a scope of this name with the calling process in it. Pure; returns the
 * length. */
#define CGROUP_SYSTEMD_MESSAGE_MAX 1024
size_t cgroup_systemd_message(const char *unit, pid_t pid,
                              uint8_t buffer[CGROUP_SYSTEMD_MESSAGE_MAX]);
/* Sends the call over a non-blocking socket and waits for the reply. */
int cgroup_systemd_ask(int fd, const char *unit, struct brig_error *err);
