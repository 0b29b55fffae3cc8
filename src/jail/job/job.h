/* SPDX-License-Identifier: MIT */
/* A running jail under supervision: what job.c (its life) and job_start.c (its birth) share. */
#pragma once

#include "jail/cgroup/limits.h"
#include "jail/confine/denials.h"
#include "jail/job/capture.h"
#include "jail/job/watch.h"
#include "jail/net/door.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

struct job_late;
struct zygote;

enum job_state {
    JOB_RUNNING,
    JOB_ENDING, /* TERM was sent, the grace runs */
    JOB_KILLED, /* KILL was sent */
    JOB_OVER,
};

/* A jail that somebody else is making: job_build.c. */
struct job_building {
    struct zygote *zygote; /* a share in it */
    bool started;          /* init runs */
    struct job_late *late; /* for the release, as soon as all is there; or NULL */
};

struct brig_job {
    enum job_state state;
    struct plan plan;
    struct limits limits;
    struct cgroup_usage group_usage;     /* when it was over */
    struct nested_limits *nested_limits; /* bounded apart, or NULL */
    struct door *door;                   /* of its network, or NULL */
    struct denials denials;
    pid_t pid;
    int pidfd, wire, terminal, epoll, timer;
    int kept;                      /* the directory of brig_policy_keep(), or -1 */
    int gate;                      /* lets a held command go, or -1 */
    int late, late_input;          /* what job_release() fills, or -1 */
    bool waiting;                  /* the command is held until then, */
    bool leased;                   /* or by the late file, */
    bool at_file;                  /* and has been let go that far */
    struct job_building *building; /* by a zygote, until init says that it runs; or NULL */
    int entry_fd;                  /* what is published for job_enter(), or -1 */
    bool usage_known;              /* of the group, before init ended */
    struct capture captures[2];
    struct watch watch;
    struct brig_unenforced notices;
    int stop_signal;
    struct wire_message end; /* how the command ended and what was used, from init */
    pid_t stuck_pid;         /* of what was given up because it does not die; else 0 */
    bool is_early;           /* its result does not wait for its first process to be gone */
    bool has_reason;         /* we ended it, and this is why */
    enum brig_outcome reason;
    uint64_t started_us, ended_us;
    uint64_t watch_due_us; /* when names are watched, 0: at once or never */
    uint64_t wall_deadline_us, kill_deadline_us, stuck_deadline_us, cpu_check_us; /* 0: none */
    uint64_t cpu_limit_us, grace_us;
    uint64_t own_peak_kb; /* ours at the start, which the kernel counts into the child's */
};

/* When the time of a job is over, by the monotonic clock; 0: it may run for ever. And whether it has
 * any limit on time, also of the CPU's. */
uint64_t job_deadline_us(const struct brig_job *job);
bool job_is_timed(const struct brig_job *job);
/* Whether its first process has a pid namespace to itself, so that with it everything ends. */
bool job_has_namespace(const struct brig_job *job);
/* Whether nobody is left in the jail, and its first process has only to be cleared away. */
bool job_is_empty(const struct brig_job *job);
/* Whether its command waits for something, and its clock with it. */
bool job_is_awaited(const struct brig_job *job);
/* Starts the clock for limits on time; job_arm_timer() is to follow. */
void job_start_clock(struct brig_job *job, uint64_t wall_ms);
/* Lets a held command begin, if it will wait again at the late file. In held.c. */
void job_let_in(struct brig_job *job);
/* Takes a message of a jail that is being built; 0, or what went wrong. In job_build.c. */
int job_build(struct brig_job *job, const struct wire_message *message, int fd,
              struct brig_error *err);
/* What its socket's end means then. */
int job_build_lost(struct brig_job *job, struct brig_error *err);
/* Remembers a release until it can be. */
int job_build_release(struct brig_job *job, const struct job_late *late, struct brig_error *err);
void job_building_free(struct job_building *building);

/* Arms the timer for the next thing due; one is made when there is something. */
int job_arm_timer(struct brig_job *job, struct brig_error *err);

/* CPU time used so far by a process and everything below it, from /proc. In tree_cpu.c. */
uint64_t tree_cpu_us(pid_t root);

/* One of them that is in uninterruptible sleep, or 0. */
pid_t tree_stuck_pid(pid_t root);

/* Kills everything below a process, but not the process itself. */
void tree_kill(pid_t root);
