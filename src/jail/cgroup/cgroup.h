/* SPDX-License-Identifier: MIT */
/* Theory of operation: the kernel's limits on a whole jail, as one interface with two drivers.
 *
 * A jail gets a cgroup (`brig-PID-START-N`, below any cgroup in which brig may create children)
 * with the limits on it. The jail does not see it. brig does not move a jail by writing a pid from
 * outside, because that stalls for milliseconds: on v2 the child is cloned into its group, on v1 it
 * writes itself into `tasks` files that the parent opened. There are two exceptions: a tool is
 * moved into its leaf (cgroup_move()), and the processes of a v2 group that brig may divide, such
 * as a container's root, are moved once to a leaf `brig-own`.
 *
 * On v2 a group is one directory with a leaf `main` for the command and all its children, because
 * v2 does not allow processes and limits on the same level. Tools that the command limits
 * separately get leaves beside `main`. On v1 a group is one directory per controller that a limit
 * needs, without `main`: the jail is in the group itself and tools are below it. On hybrid systems,
 * where a v2 hierarchy without controllers is mounted beside v1, the group has a v2 directory, too,
 * for cgroup.kill and CPU time; otherwise the freezer and cpuacct controllers provide these.
 *
 * A group's directories are kept open and locked with flock(). The lock, and the pid and start time
 * in the name, tell every process that sweeps stale groups that the group is in use, even if it
 * cannot see that pid. Directories of leaves are opened only while they are used. Only their owner
 * can open, and so lock, these directories.
 *
 * Groups are independent of each other and may be used from different threads; one group and its
 * leaves must be used from one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

/* 0 means no limit. */
struct cgroup_limits {
    uint64_t memory_bytes;  /* memory; no swap in addition */
    unsigned cpu_percent;   /* of one core: 150 is one and a half cores */
    uint64_t pids;          /* tasks: processes and threads */
    uint64_t io_read_bytes; /* per second and device, v2 only */
    uint64_t io_write_bytes;
    /* Other uses of the group. v1 has a hierarchy for each, which costs 0.1 ms. */
    bool kill;       /* cgroup_kill() is the only way to end the jail */
    bool cpu_time;   /* cgroup_cpu_us() will be called */
    bool pids_spare; /* set `pids` only if it costs nothing: another limit can replace it */
    bool kill_one; /* v2: out of memory ends a process, not the whole group; v1 can only do that */
    bool tcp;      /* TCP sockets are possible; v1 counts their buffers separately */
    bool freeze;   /* cgroup_freeze() will be called */
};

/* Requested resources that are not available, as bits; the caller decides what that means. */
enum cgroup_resource {
    CGROUP_MEMORY = 1 << 0,
    CGROUP_CPU = 1 << 1,
    CGROUP_PIDS = 1 << 2,
    CGROUP_IO = 1 << 3,
    CGROUP_TIME = 1 << 4, /* not a kernel limit: CPU time can be read */
};

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* Counters of a group. Counters that the kernel lacks stay 0; `has` says which of CGROUP_MEMORY,
 * CGROUP_CPU and CGROUP_PIDS were measured at all. */
struct cgroup_usage {
    unsigned has;
    uint64_t peak_memory_bytes; /* 0: not counted by this kernel (v2 before 5.19) */
    uint64_t oom_kills;         /* processes killed because memory ran out */
    uint64_t peak_pids;         /* 0: not counted by this kernel (before 6.1) */
    uint64_t pids_refused;      /* forks refused because of the pids limit */
    uint64_t cpu_user_us, cpu_sys_us;
    uint64_t throttled_us; /* time spent waiting because of the CPU limit */
};

struct cgroup;

/* Where groups can be created and what they can limit, found by reading files and, with `try`, by
 * creating and removing a group with all limits, which may move processes to `brig-own`. */
struct cgroup_support {
    enum cgroup_kind kind;
    unsigned resources; /* CGROUP_… bits */
    bool kill;          /* cgroup.kill exists */
    bool ask_systemd;   /* kind is CGROUP_NONE, but cgroup_systemd_join() may help */
    char where[512];    /* where groups are created (v1: for the memory controller) */
    char reason[256];   /* if kind is CGROUP_NONE: why, without a full stop */
    char fix[256];      /* and what to do; may be empty */
};
void cgroup_probe(bool try, struct cgroup_support *ret_support);
/* Returns the CGROUP_… bits of what the user's systemd can limit: the controllers that the system's
 * systemd delegates to it. */
unsigned cgroup_user_resources(void);
/* A quick check whether brig may create groups in its current group. If not, a group above it may
 * still work, which takes longer to find out. */
bool cgroup_is_ours(void);

/* Creates the group of a jail. The jail's processes never own it, whatever their ids: joining uses
 * files that the caller opened. `ret_missing` gets the bits of requested limits that this system
 * cannot set; the group may then be of kind CGROUP_NONE, on which all functions below work and do
 * nothing. Fails (BRIG_E_SETUP) only if an operation that should work did not. Sometimes sweeps
 * stale groups of dead brig processes. */
int cgroup_new(const struct cgroup_limits *limits, struct cgroup **ret_group, unsigned *ret_missing,
               struct brig_error *err);

/* Creates a leaf beside `main` for a tool, with separate limits; at most CGROUP_LEAF_MAX at a time
 * (BRIG_E_STATE beyond). Of the functions below, cgroup_move(), usage, kill and free work on a
 * leaf. It borrows the group, which must be freed after it; the group keeps the leaf's counters. On
 * v2 creating the first leaf of a group may stall for milliseconds. */
#define CGROUP_LEAF_MAX 16
#define CGROUP_COMMANDS_MAX 64 /* in a group for which `freeze` was set: commands in a held jail */
int cgroup_new_leaf(struct cgroup *group, const struct cgroup_limits *limits,
                    struct cgroup **ret_leaf, unsigned *ret_missing, struct brig_error *err);

/* Opens what a child needs to start in a leaf, see cgroup_joining below. */
struct cgroup_joining;
int cgroup_join_leaf(const struct cgroup *leaf, struct cgroup_joining *ret_joining,
                     struct brig_error *err);

/* Moves a process with all its threads into a leaf. The kernel blocks for up to some ten
 * milliseconds per hierarchy. Returns 0, or -errno; the process may then be moved in some
 * hierarchies only. */
int cgroup_move(const struct cgroup *leaf, pid_t pid);

enum cgroup_kind cgroup_kind(const struct cgroup *group);

/* Joining: the child is cloned into cgroup_clone_fd() if there is one, and then writes "0" into
 * each of cgroup_join_fds(); hybrid systems need both. All fds are borrowed and close-on-exec. A
 * child that must not see its position in the tree creates its cgroup namespace after joining, with
 * unshare: with CLONE_NEWCGROUP the kernel makes the cloning process's group the root of the
 * namespace.
 *
 * v2 and hybrid: the fd for CLONE_INTO_CGROUP; -1 otherwise. */
int cgroup_clone_fd(const struct cgroup *group);
/* v1: the fds into which the child writes "0", in order. Returns their number. */
#define CGROUP_JOIN_MAX 8
size_t cgroup_join_fds(const struct cgroup *group, int fds[CGROUP_JOIN_MAX]);
/* Without clone3: opens the file into which the child writes "0" instead of being cloned into
 * cgroup_clone_fd(); that write stalls. The caller closes it; -1 if there is nothing to do. */
int cgroup_open_procs(const struct cgroup *group);
/* Called when no more process will be cloned into the group: closes the fds that only joining
 * needs. */
void cgroup_joined(struct cgroup *group);

/* For a process that joins a group of another process: the fd numbers of the group's directories in
 * that process, -1 if it has none. */
struct cgroup_numbers {
    int32_t has_main;
    int32_t dirs[CGROUP_JOIN_MAX];
};
void cgroup_publish(const struct cgroup *group, struct cgroup_numbers *ret_numbers);
/* Opens the equivalents of cgroup_clone_fd() and cgroup_join_fds() of the process whose /proc
 * directory is given. The caller closes them, also after a failure. */
struct cgroup_joining {
    int clone_fd; /* or -1 */
    int join_fds[CGROUP_JOIN_MAX];
    size_t join_count;
};
int cgroup_open_published(int process, const struct cgroup_numbers *numbers,
                          struct cgroup_joining *ret_joining, struct brig_error *err);

/* Reads the counters of the whole group, including leaves. */
void cgroup_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);
/* Reads the CPU time used so far, in microseconds; false if it is not counted. Cheap. */
bool cgroup_cpu_us(const struct cgroup *group, uint64_t *ret_us);

/* Replaces the CPU limit of the group. */
int cgroup_set_cpu(const struct cgroup *group, unsigned percent, struct brig_error *err);
/* Removes the CPU limit, before processes are killed: dying takes CPU time, and since 6.18 the
 * kernel lets a throttled process wait before it handles signals. */
void cgroup_unthrottle(const struct cgroup *group);
/* Stops all processes of the group, also new ones, or lets them go on. Frozen processes of v1 do not
 * die: they have to go on before they are killed. Returns 0, or -errno: -EOPNOTSUPP if this group
 * cannot be frozen. */
int cgroup_freeze(const struct cgroup *group, bool on);
/* Reads the memory and the number of tasks of the group now; 0 if it is not counted. */
void cgroup_current(const struct cgroup *group, uint64_t *ret_memory_bytes, uint64_t *ret_pids);
/* Kills all processes of the group: by cgroup.kill, or by freezing and killing until it is empty.
 * It removes the CPU limit first. It waits some 10 ms, but not for processes that cannot die yet.
 * Returns the number of processes left; it may be called again. */
int cgroup_kill(const struct cgroup *group);
/* Returns a pid (or thread id) in the group that is in uninterruptible sleep, or 0. */
pid_t cgroup_stuck_pid(const struct cgroup *group);

/* Removes the group if it is empty; otherwise leaves it to cgroup_sweep(). Accepts NULL. */
void cgroup_free(struct cgroup *group);

/* Removes groups whose brig process exited or gave them up, and kills the processes in them.
 * Returns the number of removed groups. */
int cgroup_sweep(void);

/* A quick check, before cgroup_probe(), whether the user has a systemd instance to ask. */
bool cgroup_can_ask_systemd(void);
/* Moves the calling process into a new delegated scope (`brig-PID-START.scope`) by asking the
 * user's systemd, or the system's if the caller is root: a process in a login session may not enter
 * the groups that its user may divide, except through systemd. For programs, at their start, if
 * cgroup_probe() says `ask_systemd`; the library never moves its caller this way. The scope ends
 * with its processes, and with the user's last session unless the user lingers. Waits at most some
 * seconds. Returns false with the reason in err (BRIG_E_UNSUPPORTED: no systemd to ask). */
bool cgroup_systemd_join(struct brig_error *err);
