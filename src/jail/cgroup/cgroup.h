/* SPDX-License-Identifier: MIT */
/* Theory of operation: the kernel's limits on a whole jail, behind one interface with two drivers.
 *
 * A jail gets a group of its own (`brig-PID-START-N`, below whatever group we may make children in),
 * with the limits on it. The jail sees none of it. A jail is not moved by writing a pid from outside,
 * which stalls for milliseconds: on v2 the child is cloned into its group, on v1 it writes itself
 * into `tasks` files that were opened for it. Two are moved: a tool into its leaf (cgroup_move()),
 * and what is in a v2 group that we may divide, as in a container's own, to a leaf `brig-own`, once.
 *
 * v2 is one directory, and below it a leaf `main`, where the command and everything it starts live,
 * as processes and limits must not be on one level there. Tools that the command bounds separately
 * get leaves beside it. v1 is one directory per controller that a limit needs, without `main`: the
 * jail lives in the group itself and tools below it. Where a v2 hierarchy without controllers lies
 * beside v1 (hybrid), the group exists there too, for cgroup.kill and CPU time; else the freezer
 * and cpuacct serve for those.
 *
 * A group's directories are kept open and locked (flock): that, and the pid and start time in the
 * name, tell everybody who sweeps that it is in use, also those who cannot see our pid. Those of
 * leaves are opened when they are used. Nobody but their owner can open, and so lock, them.
 *
 * Groups are independent of each other and may be used from different threads; one group and its
 * leaves only from one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

/* 0 is no limit. */
struct cgroup_limits {
    uint64_t memory_bytes;  /* and no swap beyond it */
    unsigned cpu_percent;   /* of one core: 150 is one and a half */
    uint64_t pids;          /* tasks: processes and threads */
    uint64_t io_read_bytes; /* per second and device, v2 only */
    uint64_t io_write_bytes;
    /* v1 has a hierarchy for everything, and each costs 0.1 ms: for what else the group is wanted. */
    bool kill;       /* cgroup_kill() is all there is to end the jail */
    bool cpu_time;   /* cgroup_cpu_us() will be asked */
    bool pids_spare; /* `pids` only where it costs nothing: something else can stand in for it */
    bool tcp;        /* there can be TCP sockets, whose buffers count apart */
};

/* Bits of what was asked for and cannot be had: the caller decides what that means. */
enum cgroup_resource {
    CGROUP_MEMORY = 1 << 0,
    CGROUP_CPU = 1 << 1,
    CGROUP_PIDS = 1 << 2,
    CGROUP_IO = 1 << 3,
    CGROUP_TIME = 1 << 4, /* not a limit of the kernel's: that CPU time can be asked for */
};

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* What became of a group so far. Counters a kernel does not have stay 0; `has` says which of
 * CGROUP_MEMORY, CGROUP_CPU and CGROUP_PIDS were measured at all. */
struct cgroup_usage {
    unsigned has;
    uint64_t peak_memory_bytes; /* 0: this kernel does not count it (v2 before 5.19) */
    uint64_t oom_kills;         /* processes the kernel killed for want of memory */
    uint64_t peak_pids;         /* 0: this kernel does not count it (before 6.1) */
    uint64_t pids_refused;      /* forks refused for the pids limit */
    uint64_t cpu_user_us, cpu_sys_us;
    uint64_t throttled_us; /* time spent waiting for the cpu limit */
};

struct cgroup;

/* Where groups could be made and what they can do, found by looking (and, with `try`, by making
 * one with all limits and removing it, which may move processes to `brig-own`). */
struct cgroup_support {
    enum cgroup_kind kind;
    unsigned resources; /* CGROUP_… */
    bool kill;          /* cgroup.kill */
    bool ask_systemd;   /* kind CGROUP_NONE, but cgroup_systemd_join() may change that */
    char where[512];    /* the directory groups are made in (v1: the memory controller's) */
    char reason[256];   /* kind CGROUP_NONE: why, with the remedy */
};
void cgroup_probe(bool try, struct cgroup_support *ret_support);
/* A quick look: whether our own group is one we may make groups in. If not, there may still be one
 * above it, which takes longer to find out. */
bool cgroup_is_ours(void);

/* Makes the group of a jail. Nothing of it is the jail's processes', whoever they are: joining is done
 * with what the caller has opened. `ret_missing` gets the bits of what `limits` asks for and this system
 * cannot give; such a group may be of kind CGROUP_NONE, on which everything below works and does
 * nothing. Fails (BRIG_E_SETUP) only where something that should work did not. Sweeps stale groups of
 * dead brigs now and then. */
int cgroup_new(const struct cgroup_limits *limits, struct cgroup **ret_group, unsigned *ret_missing,
               struct brig_error *err);

/* A leaf beside `main` for a tool, with limits of its own; at most CGROUP_LEAF_MAX at a time
 * (BRIG_E_STATE beyond). Of the functions below, cgroup_move(), usage, kill and free work on it. It
 * borrows the group, which must be freed after it, and keeps what was counted in the leaf. On v2 the
 * first leaf of a group may stall for milliseconds. */
#define CGROUP_LEAF_MAX 16
int cgroup_new_leaf(struct cgroup *group, const struct cgroup_limits *limits,
                    struct cgroup **ret_leaf, unsigned *ret_missing, struct brig_error *err);

/* Moves a process into a leaf, with all its threads. It takes up to some ten milliseconds a
 * hierarchy, in which the kernel waits. 0, or -errno: then it may be moved in part. */
int cgroup_move(const struct cgroup *leaf, pid_t pid);

enum cgroup_kind cgroup_kind(const struct cgroup *group);

/* Joining: the child is cloned into cgroup_clone_fd() if there is one, and then writes "0" into each
 * of cgroup_join_fds(); both are needed on hybrid systems. All are borrowed and close-on-exec. A
 * child that shall not see where it is makes its cgroup namespace only after that, with unshare:
 * the kernel takes the cloning process's group for the root of a namespace that comes with a clone.
 *
 * v2 and hybrid: the fd for CLONE_INTO_CGROUP; -1 otherwise. */
int cgroup_clone_fd(const struct cgroup *group);
/* v1: fds the child writes "0" into, one after the other. Returns how many. */
#define CGROUP_JOIN_MAX 8
size_t cgroup_join_fds(const struct cgroup *group, int fds[CGROUP_JOIN_MAX]);
/* Where clone3 is missing: opens what the child can write "0" into instead of being cloned into
 * cgroup_clone_fd(), which then stalls. The caller closes it; -1 if there is nothing to do. */
int cgroup_open_procs(const struct cgroup *group);
/* Nobody will be cloned into the group any more: closes what only joining needed. */
void cgroup_joined(struct cgroup *group);

/* For who joins a group that another process has: under which numbers that one has its directories
 * open, -1 where it has none. */
struct cgroup_numbers {
    int32_t has_main;
    int32_t dirs[CGROUP_JOIN_MAX];
};
void cgroup_publish(const struct cgroup *group, struct cgroup_numbers *ret_numbers);
/* Opens what cgroup_clone_fd() and cgroup_join_fds() would give, of a process whose directory in
 * /proc is given. The caller closes them, also after a failure. */
struct cgroup_joining {
    int clone_fd; /* or -1 */
    int join_fds[CGROUP_JOIN_MAX];
    size_t join_count;
};
int cgroup_open_published(int process, const struct cgroup_numbers *numbers,
                          struct cgroup_joining *ret_joining, struct brig_error *err);

/* Reads the counters: of the whole group, leaves included. */
void cgroup_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);
/* CPU time used so far, in microseconds; false where it is not counted. Cheap. */
bool cgroup_cpu_us(const struct cgroup *group, uint64_t *ret_us);

/* Sets another CPU limit than the group was made with. */
int cgroup_set_cpu(const struct cgroup *group, unsigned percent, struct brig_error *err);
/* Takes the CPU limit off, for those who are to die: they need CPU time for it, and since 6.18 the
 * kernel lets a process that has used up its share wait before it looks at signals. */
void cgroup_unthrottle(const struct cgroup *group);
/* Kills everything in the group: cgroup.kill, or freeze and kill until it is empty. The CPU limit is
 * taken off for it. Gives the dying some 10 ms and does not wait for what cannot die yet. Returns the number of processes still there;
 * it may be called again. */
int cgroup_kill(const struct cgroup *group);
/* A pid (or the id of a thread) in the group that is in uninterruptible sleep, or 0. */
pid_t cgroup_stuck_pid(const struct cgroup *group);

/* Removes the group if it is empty; else it is left for cgroup_sweep(). Accepts NULL. */
void cgroup_free(struct cgroup *group);

/* Removes groups whose brig is gone or has given them up, killing what is left in them. Returns how
 * many. */
int cgroup_sweep(void);

/* Whether there is a systemd of the user's to be asked: a quick look, before cgroup_probe(). */
bool cgroup_can_ask_systemd(void);
/* Moves the calling process into a delegated scope of its own (`brig-PID-START.scope`) by asking the
 * user's systemd, or the system's if the caller is root: from a login's session, no process may
 * enter the groups that its user may divide, except by systemd's hand. For programs, at their start
 * and where cgroup_probe() says `ask_systemd`; the library never moves its caller like that. The
 * scope ends with its processes, and with the user's last session unless the user lingers. Waits
 * for at most some seconds. False with the reason in err (BRIG_E_UNSUPPORTED: there is none to
 * ask). */
bool cgroup_systemd_join(struct brig_error *err);
