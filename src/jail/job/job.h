/* SPDX-License-Identifier: MIT */
/* A running jail under supervision: the state shared by job.c (supervision) and job_start.c
 * (start). */
#pragma once

#include <brig/brig.h>

#include "jail/cgroup/limits.h"
#include "jail/cgroup/process.h"
#include "jail/confine/denials.h"
#include "jail/job/result.h"
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
    JOB_ENDING, /* SIGTERM was sent, the grace period runs */
    JOB_KILLED, /* SIGKILL was sent */
    JOB_OVER,
};

/* A jail that a zygote is making: see prepare/zygote.c. */
struct job_building {
    struct zygote *zygote; /* a counted reference */
    bool started;          /* init runs */
};

struct brig_job {
    enum job_state state;
    struct plan plan;
    struct limits limits;
    struct cgroup_usage group_usage;     /* read when the job ended */
    struct nested_limits *nested_limits; /* separately limited tools, or NULL */
    struct door *door;                   /* the network door, or NULL */
    struct denials denials;
    pid_t owner; /* the process that started it; one forked from that must leave the jail alone */
    pid_t pid;
    int pidfd, wire, terminal, epoll, timer;
    int kept;                      /* the directory of brig_policy_keep(), or -1 */
    int gate;                      /* writing here lets a zygote's command start, or -1 */
    int late, late_input;          /* the file and the pipe that job_release() fills, or -1 */
    struct job_building *building; /* while a zygote builds the jail, until init runs; or NULL */
    int entry_fd;                  /* the record published for `brig enter`, or -1 */
    bool usage_known;              /* group_usage was read before init ended */
    struct capture captures[2];
    struct watch watch;
    struct brig_unenforced notices;
    int stop_signal;
    struct wire_message end; /* from init: the command's wait status and resource usage */
    pid_t stuck_pid;         /* a process that did not die after SIGKILL, or 0 */
    bool is_early;           /* the result does not wait until the first process is reaped */
    bool has_reason;         /* the supervisor ended the job, and `reason` says why */
    enum brig_outcome reason;
    uint64_t started_us, ended_us;
    uint64_t watch_due_us; /* when watch_rest() is due; 0: not due */
    uint64_t wall_deadline_us, kill_deadline_us, stuck_deadline_us, cpu_check_us; /* 0: none */
    uint64_t wall_left_us; /* while job_pause_clock() holds: what was left; 0: not held */
    uint64_t cpu_limit_us, grace_us;
    bool is_taken;                     /* the result was moved out */
    int streams[3];                    /* the caller's ends of BRIG_STDIO_PIPE, or -1 */
    struct brig_net_event taken_event; /* the last of brig_job_take_net_event() */
    uint64_t own_peak_kb; /* the caller's peak RSS, which the kernel counts into the child's */
};

/* Where a jail comes from: built for a policy, joined to a template's namespaces, forked by a
 * zygote, or already running. */
struct job_source {
    const struct brig_policy
        *policy; /* with a template: a policy that fits it, or NULL; with attach: a variant of the
                  * record's with other limits, environment or directory, or NULL; NULL for a
                  * zygote */
    struct brig_template *template; /* or NULL */
    struct zygote *zygote;          /* or NULL; if set, only the command's stdio is used */
    uint32_t host_id;               /* as root: the host uid for the zygote's child */
    const struct attach *attach;    /* or NULL */
    /* With attach, the job that supervises the jail, if that is in this process, or NULL: the
     * command gets a cgroup of its own, with the policy's limits, below the jail's. The jail's job
     * has to be freed after the command's. */
    const struct brig_job *jail;
};

/* Starts a command. Every public function that starts a command calls this. */
int job_start(const struct job_source *source, const struct brig_command *command,
              struct brig_job **ret_job, struct brig_error *err);

/* brig_run(), brig_job_result() and brig_job_take_net_event() for a result or an event that the caller
 * owns. job_run() always fills *ret_result, which wants result_done(). */
int job_run(const struct brig_policy *policy, const struct brig_command *command,
            struct brig_result *ret_result, struct brig_error *err);
int job_take_result(struct brig_job *job, struct brig_result *ret_result, struct brig_error *err);
bool job_take_net_event(struct brig_job *job, struct brig_net_event *ret_event);

/* Input for a jail that was started in advance: the content of the policy's late file
 * (policy_late_file()), standard input if policy->late_input is set, and the time limit. */
struct job_late {
    const void *code;
    size_t code_length;
    const void *input;
    size_t input_length;
    uint64_t wall_ms; /* counted from job_release(); 0: no limit */
};

/* Returns whether the jail is complete and waits only for job_release(). */
bool job_is_waiting(const struct brig_job *job);
/* Fills the late file and standard input, starts the clock, and lets a zygote's child start; other
 * commands have to wait for their file themselves. May be called once. */
int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err);
/* For a caller that has clients waiting: the result is available as soon as no process is left in
 * the jail. brig_job_free() releases the jail, and does not block once job_is_gone() is true, at
 * which point brig_job_fd() becomes readable. */
void job_answer_early(struct brig_job *job);
bool job_is_gone(const struct brig_job *job);
/* Returns the zygote that is building the jail if it has not completed any jail for patience_us
 * since the job started; else NULL. */
const struct zygote *job_stuck_zygote(const struct brig_job *job, uint64_t patience_us);
/* Returns the descriptor of brig_job_kept_dir(), which the caller must close, or -1 if there is
 * none. */
int job_take_kept(struct brig_job *job);

/* The wall-clock deadline of a job by the monotonic clock, or 0 if it has none; and whether the job
 * has any time limit, wall-clock or CPU. */
uint64_t job_deadline_us(const struct brig_job *job);
/* Adds a rule to the network of a job whose policy is to ask: "allow RULE" or "deny RULE". */
int job_add_net_rule(struct brig_job *job, const char *line, struct brig_error *err);
/* Replaces the rules of the network of a job. Connections that they do not allow are ended. */
int job_set_net_rules(struct brig_job *job, const struct net_rules *rules, struct brig_error *err);
bool job_is_timed(const struct brig_job *job);
/* Returns whether no process but the first is left in the jail, and only that one has to be
 * reaped. */
bool job_is_empty(const struct brig_job *job);
/* Returns whether the command waits for late input; its clock has not started then. */
bool job_is_awaited(const struct brig_job *job);
/* Stops the clock for the wall-clock limit while the jail is frozen, and lets it go on. */
void job_pause_clock(struct brig_job *job, bool paused);
/* Starts the clock for time limits; the caller calls job_arm_timer() afterwards. */
void job_start_clock(struct brig_job *job, uint64_t wall_ms);
/* Handles a message from a jail that a zygote is building; returns 0 or an error. In
 * prepare/zygote.c. */
int job_build(struct brig_job *job, const struct wire_message *message, int fd,
              struct brig_error *err);
void job_building_free(struct job_building *building);

/* Arms the timer for the earliest deadline. */
void job_arm_timer(struct brig_job *job);
/* Makes brig_job_fd() readable, once. */
void job_wake(const struct brig_job *job);

/* ---- the plan that a run would have ---- */

struct effects;
struct str;

/* Appends the plan that brig_start() would use for a command and a policy with facts, in the format
 * of plan_print(). It takes the same decisions as brig_start(), and changes nothing on the host. */
int job_foresee(const struct brig_policy *policy, const struct brig_command *command,
                struct str *out, struct brig_error *err);

/* Computes the effects of that plan's mounts, for a policy with facts. Release with
 * effects_done(). */
int job_foresee_effects(const struct brig_policy *policy, struct effects *ret_effects,
                        struct brig_error *err);
