/* SPDX-License-Identifier: MIT */
/* A running jail under supervision: what job.c (its life) and job_start.c (its birth) share. */
#pragma once

#include <brig/brig.h>

#include "jail/cgroup/limits.h"
#include "jail/cgroup/process.h"
#include "jail/confine/denials.h"
#include "jail/job/streams.h"
#include "jail/job/watch.h"
#include "jail/net/door.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

struct attach;
struct brig_template;
struct zygote;

enum job_state {
    JOB_RUNNING,
    JOB_ENDING, /* TERM was sent, the grace runs */
    JOB_KILLED, /* KILL was sent */
    JOB_OVER,
};

/* A jail that a zygote is making: see prepare/zygote.c. */
struct job_building {
    struct zygote *zygote; /* a share in it */
    bool started;          /* init runs */
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
    int gate;                      /* lets a command of a zygote go, or -1 */
    int late, late_input;          /* what job_release() fills, or -1 */
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

/* Where a jail comes from: it is built for a policy, or joins what a template has prepared, is forked by
 * a zygote, or is there already and runs. */
struct job_source {
    const struct brig_policy
        *policy; /* of a template: one that fits it, or NULL; of the others none */
    struct brig_template *template; /* or NULL */
    struct zygote *zygote;          /* or NULL; of the command, only stdio counts then */
    uint32_t host_id;               /* as root: the id that the zygote's child takes */
    const struct attach *attach;    /* or NULL */
};

/* Starts a command. All other ways to start one are this. */
int job_start(const struct job_source *source, const struct brig_command *command,
              struct brig_job **ret_job, struct brig_error *err);

/* What a prepared run is given once it is known what it is for: the content of the policy's late file
 * (policy_late_file()), standard input where policy->late_input is set, and its time. */
struct job_late {
    const void *code;
    size_t code_length;
    const void *input;
    size_t input_length;
    uint64_t wall_ms; /* from now on; 0: no limit */
};

/* Whether everything of the jail is in place, and only job_release() is awaited. */
bool job_is_waiting(const struct brig_job *job);
/* Fills what is late, starts the clock, and lets a zygote's child go; other commands know by themselves
 * how to wait for their file. Once is all. */
int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err);
/* For who has others waiting: the result is there as soon as nobody is left in the jail; what remains of it
 * is cleared away by brig_job_free(), at once after job_is_gone(), of which brig_job_fd() tells. */
void job_answer_early(struct brig_job *job);
bool job_is_gone(const struct brig_job *job);
/* The zygote that should have made the jail, and for as long has made none at all; else NULL. */
const struct zygote *job_stuck_zygote(const struct brig_job *job, uint64_t patience_us);
/* The directory of brig_job_kept_dir(), from now on the caller's to close; -1: there is none. */
int job_take_kept(struct brig_job *job);

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
/* Takes a message of a jail that is being built; 0, or what went wrong. In prepare/zygote.c. */
int job_build(struct brig_job *job, const struct wire_message *message, int fd,
              struct brig_error *err);
void job_building_free(struct job_building *building);

/* Arms the timer for the next thing due. */
void job_arm_timer(struct brig_job *job);

/* ---- the plan that a run would have ---- */

struct effects;
struct str;

/* Appends what brig_start() would make of a policy that has facts and a command, see plan_print(). It
 * thinks as that does, up to where the jail would be made, and makes nothing on the host. */
int job_foresee(const struct brig_policy *policy, const struct brig_command *command,
                struct str *out, struct brig_error *err);

/* What the mounts of that plan come to, for a policy that has facts. Release with effects_done(). */
int job_foresee_effects(const struct brig_policy *policy, struct effects *ret_effects,
                        struct brig_error *err);
