/* SPDX-License-Identifier: MIT */
/* What the parts of jail/cgroup/cgroup.h share: cgroup.c (the interface and the life of a group),
 * cgroup_find.c (where groups may be made), cgroup_v1.c and cgroup_v2.c (limits and counters),
 * cgroup_kill.c, cgroup_file.c (reading and writing), cgroup_text.c (parsing). */
#pragma once

#include "jail/cgroup/cgroup.h"

/* The hierarchies we make groups in. v2 has only the first; v1 one for each controller, of which
 * several may be mounted as one. */
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

#define CGROUP_PATH_MAX 1024 /* of a group, with the NUL; one that lies deeper is not used */
#define CGROUP_NAME_MAX 64
#define CGROUP_TEXT_MAX 4096 /* of a control file, as far as it is read */
#define CGROUP_PREFIX "brig-"
#define CGROUP_MAIN "main"
#define CGROUP_LEAF_PREFIX "tool-"
#define CGROUP_OWN "brig-own" /* the leaf for processes that were in the way */
#define CGROUP_LEFT "left"    /* a leaf that marks a group as given up by its brig */
#define CGROUP_CPU_PERIOD_US 100000

struct cgroup {
    enum cgroup_kind kind;
    struct cgroup *parent; /* of a leaf, borrowed; else NULL */
    char name[CGROUP_NAME_MAX];
    /* The group's directories, locked; -1 where it has none. Of hierarchies that are one, only the
     * first has a directory: ask with cgroup_dir(). */
    int dirs[CGROUP_TREES];
    unsigned char same_as[CGROUP_TREES];
    unsigned trees; /* of a leaf: where it has a directory, as bits; it is open only when used */
    int main_fd;    /* v2: of `main`; else -1 */
    int joins[CGROUP_TREES];
    size_t join_count;
    unsigned widened; /* v1: trees that only leaves are in, as bits */
    unsigned late;    /* v2: resources that were counted only once a leaf wanted them */
    unsigned enabled; /* v2: what subtree_control hands on to the leaves */
    unsigned leaf_count, leaf_next;
    struct cgroup_usage past; /* events in leaves that are gone */
};

/* ---- cgroup_text.c: pure ---- */

/* Our own group in one hierarchy, as a path of this mount namespace. */
struct cgroup_place {
    bool listed;                /* the kernel has this hierarchy */
    bool found;                 /* and it is mounted where we can see our group */
    bool read_only;             /* but so */
    unsigned char same_as;      /* the first tree of the same hierarchy, mostly itself */
    unsigned depth;             /* groups that are mounted above it */
    char path[CGROUP_PATH_MAX]; /* without a slash at its end */
};
/* From the texts of /proc/self/cgroup and /proc/self/mountinfo; the second is changed. */
void cgroup_text_places(const char *own, char *mounts,
                        struct cgroup_place ret_places[CGROUP_TREES]);
/* The CGROUP_… bits in a list of controllers. */
unsigned cgroup_text_controllers(const char *text);
/* The number behind `key` in lines of "key number". */
bool cgroup_text_number(const char *text, const char *key, uint64_t *ret_value);
/* Takes the next number off a list of one a line; false at its end, or at one that is cut off. */
bool cgroup_text_next_pid(const char **text, pid_t *ret_pid);
/* Whether a directory has the name of a brig's group, and whose it is. */
bool cgroup_text_name(const char *name, pid_t *ret_pid, uint64_t *ret_start);
/* Whether a line of /proc/PID/cgroup ends with "/PATH", or goes on below it. */
bool cgroup_text_is_in(const char *text, const char *path);

/* ---- cgroup_file.c ---- */

/* Files of a group, by their name below it. Return 0, or the length read, or -errno. What is read
 * is NUL-terminated and cut where the buffer ends. */
int cgroup_write(int dir_fd, const char *name, const char *text);
int cgroup_write_number(int dir_fd, const char *name, uint64_t value);
int cgroup_read(int dir_fd, const char *name, char *buffer, size_t size);
bool cgroup_read_number(int dir_fd, const char *name, uint64_t *ret_value);
/* The number behind `key` in a file of "key number" lines; 0 where there is none. */
uint64_t cgroup_read_key(int dir_fd, const char *name, const char *key);
/* A file of /proc as a whole, for the caller to free; NULL if it cannot be read. */
char *cgroup_read_proc(const char *path);
/* Start time (0: no such process) of a process. */
uint64_t cgroup_start_time(pid_t pid);

/* The names of the directories below one that begin with `prefix`. Returns how many there are, up
 * to max. */
struct cgroup_part {
    char name[CGROUP_NAME_MAX];
};
size_t cgroup_list(int dir_fd, const char *prefix, struct cgroup_part *parts, size_t max);
/* Removes all directories below one, however deep. 0, or -errno of one that could not be. */
int cgroup_remove_below(int dir_fd);

/* A group's directory in a hierarchy, or -1. */
static inline int cgroup_dir(const struct cgroup *group, enum cgroup_tree tree)
{
    return group->dirs[group->same_as[tree]];
}

/* Where processes of a group can be in a hierarchy: itself (".") and what lies below it. */
#define CGROUP_PARTS_MAX (CGROUP_LEAF_MAX + 3)
size_t cgroup_parts(const struct cgroup *group, enum cgroup_tree tree,
                    struct cgroup_part parts[CGROUP_PARTS_MAX]);
/* Adds up a number of "key number" lines in the files `name` of all parts. */
uint64_t cgroup_sum_key(const struct cgroup *group, enum cgroup_tree tree, const char *name,
                        const char *key);

/* ---- cgroup_find.c ---- */

/* The directories to make groups in. */
struct cgroup_bases {
    struct cgroup_support support; /* without `kill` */
    int dirs[CGROUP_TREES];
    unsigned char same_as[CGROUP_TREES];
    bool crowded; /* v2: processes in it have to move to a leaf before it has controllers */
    bool pin;     /* v2: systemd manages it, see cgroup_v2_limit() */
};
/* `trees` are the hierarchies of v1 that are of interest, as bits. Unless it is CGROUP_ALL_TREES,
 * those are left out that a unified hierarchy makes unnecessary. */
void cgroup_find(unsigned trees, struct cgroup_bases *ret_bases);
void cgroup_bases_done(struct cgroup_bases *bases);

#define autobases __attribute__((cleanup(cgroup_bases_done)))

/* What `limits` asks for, as bits. */
static inline unsigned cgroup_wanted(const struct cgroup_limits *limits)
{
    return (limits->memory_bytes ? CGROUP_MEMORY : 0u) | (limits->cpu_percent ? CGROUP_CPU : 0u) |
           (limits->pids ? CGROUP_PIDS : 0u) |
           (limits->io_read_bytes || limits->io_write_bytes ? CGROUP_IO : 0u);
}

/* ---- cgroup_v2.c, cgroup_v1.c ---- */

/* Makes what is asked for available in a new group (the controllers, from `base` on) and sets it.
 * Adds what cannot be had to *missing. */
int cgroup_v2_limit(struct cgroup *group, const struct cgroup_bases *bases,
                    const struct cgroup_limits *limits, unsigned *missing, struct brig_error *err);
/* The same of a leaf. */
int cgroup_v2_limit_leaf(struct cgroup *leaf, const struct cgroup_limits *limits, unsigned *missing,
                         struct brig_error *err);
/* Hands the controllers of a group on to its leaves. What cannot be is not in group->enabled. */
void cgroup_v2_enable(struct cgroup *group, unsigned controllers);
/* Writes the values of `limits` that are in `which` into the files of a group. */
int cgroup_v2_write(int dir_fd, const struct cgroup_limits *limits, unsigned which,
                    struct brig_error *err);
/* Bounds every disk in the directory `block_fd` (/sys/block). False if any disk stays unbounded. */
bool cgroup_v2_write_io(int dir_fd, int block_fd, const struct cgroup_limits *limits);
/* Moves what lives in a directory that we may divide to the leaf CGROUP_OWN. */
int cgroup_v2_make_room(int dir_fd);
void cgroup_v2_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);
bool cgroup_v2_cpu(int dir_fd, struct cgroup_usage *usage);

/* The hierarchies that these limits need, as bits. */
unsigned cgroup_v1_trees(const struct cgroup_limits *limits);
int cgroup_v1_limit(struct cgroup *group, const struct cgroup_limits *limits, unsigned *missing,
                    struct brig_error *err);
int cgroup_v1_write_cpu(int dir_fd, unsigned percent, struct brig_error *err);
/* Opens what the child joins by. */
int cgroup_v1_open_joins(struct cgroup *group, struct brig_error *err);
void cgroup_v1_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);

/* ---- cgroup.c ---- */

void cgroup_init(struct cgroup *group, enum cgroup_kind kind, const unsigned char *same_as);
/* Opens and locks the directories of an existing group; false if somebody else has locked one. */
bool cgroup_open_dirs(struct cgroup *group, const struct cgroup_bases *bases);
/* Removes a group's directories and what lies below them. 0, or -errno of what could not be. */
int cgroup_remove_dirs(struct cgroup *group);
/* Marks the open directories of a group for the sweep, which otherwise leaves groups alone for as
 * long as the process in their name lives. */
void cgroup_give_up(const struct cgroup *group);
void cgroup_close_fds(struct cgroup *group);
/* A copy of a group in which a leaf's directories are open, for one use; release it after that. Of
 * what is no leaf nothing is opened or closed. */
struct cgroup cgroup_opened(const struct cgroup *group);
void cgroup_opened_done(struct cgroup *opened);
#define autoopened __attribute__((cleanup(cgroup_opened_done)))

/* ---- cgroup_kill.c ---- */

/* Now and then, after a group was made: if there are others, and luck says so. */
void cgroup_sweep_rarely(const struct cgroup_bases *bases, unsigned luck);

/* ---- cgroup_systemd.c ---- */

/* The D-Bus call for a scope of this name with this process in it. Pure; returns its length. */
#define CGROUP_SYSTEMD_MESSAGE_MAX 1024
size_t cgroup_systemd_message(const char *unit, pid_t pid,
                              uint8_t buffer[CGROUP_SYSTEMD_MESSAGE_MAX]);
/* Sends it over a non-blocking socket and waits for the answer. */
int cgroup_systemd_ask(int fd, const char *unit, struct brig_error *err);
