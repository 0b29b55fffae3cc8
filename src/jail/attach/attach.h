/* SPDX-License-Identifier: MIT */
/* Theory of operation: one more command in a jail that runs.
 *
 * Who supervises a run that may be entered keeps a record in a sealed file in memory: the jail's
 * name, the rules a command in it is started with, and its first process. Nobody is told of it. Who
 * may read the supervisor's /proc/PID/fd finds it there: the same user, or root, and nobody in a
 * jail, where that process is not to be seen. There is nothing to clean up.
 *
 * To enter, the record is read and believed if the process that has it is no jail's: it must live in
 * our own user and pid namespaces, under no tighter no_new_privs than ours. The namespaces are those
 * of the jail's first process, which nothing in the jail can change. Then a plan is made that joins
 * them instead of making its own; everything else is done as in a run, by the same code
 * (child*.c): groups, capabilities, no_new_privs, the filter, Landlock, limits, a terminal of the
 * jail's own, and an init, above the command alone. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "jail/cgroup/cgroup.h"
#include "jail/confine/landlock.h"
#include "policy/policy.h"

struct brig_job;
struct plan;
struct str;

#define ENTRY_RULES_MAX 4096
#define ENTRY_RECORD_MAX (4 << 20) /* bytes; a run with more rules than that cannot be entered */
#define ENTRY_NAME_MAX 64          /* of a jail */

/* What is published. */
struct attach_facts {
    int32_t init; /* the jail's first process, as its supervisor sees it */
    uint32_t host_uid, host_gid;
    uint32_t owner; /* whose jail it is: the user root acted for, or the supervisor's own */
    uint32_t has_namespaces, become, drop_groups, drop_caps, has_seccomp, has_landlock;
    uint32_t limits_missing; /* enum cgroup_resource */
    struct landlock_attr landlock;
    uint64_t landlock_size;
    struct cgroup_numbers group;
};

struct attach_rule {
    uint64_t access;
    char *path;
};

struct attach_record {
    struct attach_facts facts;
    char jail[ENTRY_NAME_MAX + 1];
    struct brig_policy *policy; /* as far as it is about commands; owned */
    struct attach_rule *rules;  /* Landlock's, owned */
    size_t rule_count;
};
void attach_record_done(struct attach_record *record);

/* ---- attach.c: pure ---- */

/* The record as bytes. The policy is read only as far as a command is concerned. */
void attach_record_write(const struct attach_record *record, struct str *ret_bytes);
/* Takes it apart; anything that is not such a record is BRIG_E_INVALID. */
int attach_record_read(const void *bytes, size_t length, struct attach_record *ret_record,
                       struct brig_error *err);

/* ---- attach.c ---- */

/* Publishes a run that was just started, with its plan still whole: an fd for as long as it may be
 * entered, or -1, if there is no memory for it. */
int attach_publish(const struct plan *plan, const struct brig_policy *policy, pid_t init,
                   const struct cgroup *group);

/* ---- attach.c ---- */

/* A run that can be entered. */
struct attach {
    pid_t supervisor;
    uint64_t start_time; /* of it, in clock ticks since the machine was booted */
    struct attach_record record;
    int process; /* the supervisor's directory in /proc */
};
#define ENTRY_INIT                                                                                 \
    (struct attach)                                                                                \
    {                                                                                              \
        .process = -1                                                                              \
    }
void attach_done(struct attach *entry);

/* A command is started in the jail by job_start(). The caller should be ignoring SIGCHLD: a jail cannot end
 * before all its processes are reaped, and this one has its parent outside, who may be stopped. */

/* The run that a process supervises. Only a process of our own user is believed: root that acts for
 * another becomes that user first. BRIG_E_NOT_FOUND if it supervises none, or is a jail's;
 * BRIG_E_SYSTEM if it is somebody else's. */
int attach_find(pid_t supervisor, struct attach *ret_entry, struct brig_error *err);
/* Whether its supervisor is still there. */
bool attach_is_alive(const struct attach *entry);

/* ---- attach_plan.c ---- */

/* The plan of a command in the jail, but for the command. It owns the fds it is made of. */
int attach_plan(const struct attach *entry, struct plan *ret_plan, struct brig_error *err);

/* ---- attach name ---- */

/* What the file in memory with the record of a run is called, and seen as in /proc/PID/fd. */

#define ENTRY_FILE "brig-run"
#define ENTRY_FILE_LINK "/memfd:" ENTRY_FILE " (deleted)"

/* ---- attach proc ---- */

/* Looking at a process by its directory in /proc, which stays that process's when its pid is
 * given to another. In attach.c. */

#define ENTRY_STATUS_MAX 16384

/* A file of it, NUL-terminated and cut where the buffer ends: its length, or -errno. */
ssize_t attach_proc_read(int process, const char *name, char *buffer, size_t size);
/* What follows a key in the text of its status, or NULL. */
const char *attach_proc_line(const char *status, const char *key);
/* Whether the namespace at "ns/…" is our own: 1 or 0, or -errno. */
int attach_proc_same_namespace(int process, const char *path);
