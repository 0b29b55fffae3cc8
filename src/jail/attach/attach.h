/* SPDX-License-Identifier: MIT */
/* Theory of operation: starts one more command in a running jail.
 *
 * The supervisor of a run that may be entered keeps a record in a sealed memfd: the jail's name,
 * the rules for commands in it, and the pid of its first process. The record is not announced. A
 * process that may read the supervisor's /proc/PID/fd finds it there: a process of the same user or
 * of root, but none in a jail, which cannot see the supervisor. There is nothing to clean up.
 *
 * To enter, brig reads the record and trusts it if the process that holds it is not in a jail: it
 * must be in brig's user and pid namespaces, and must not have no_new_privs set unless brig has.
 * The namespaces to join are those of the jail's first process, which the jail cannot change. The
 * plan then joins these namespaces instead of creating new ones; the same code as in a run
 * (child*.c) does everything else: groups, capabilities, no_new_privs, the filter, Landlock,
 * limits, a terminal inside the jail, and an init that is the parent of this command only. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "jail/cgroup/cgroup.h"
#include "jail/confine/landlock.h"
#include "policy/policy.h"

struct brig_job;
struct limits;
struct plan;
struct str;

#define ENTRY_RULES_MAX 4096
#define ENTRY_RECORD_MAX (4 << 20) /* bytes; a run whose record is larger cannot be entered */
#define ENTRY_NAME_MAX 64          /* length of a jail's name */

/* The published facts. */
struct attach_facts {
    int32_t init; /* pid of the jail's first process, as its supervisor sees it */
    uint32_t host_uid, host_gid;
    uint32_t owner; /* the user of the jail: the one root acts for, or the supervisor's */
    uint32_t has_namespaces, become, drop_groups, drop_caps, has_seccomp, has_landlock;
    uint32_t limits_missing; /* bits of enum cgroup_resource */
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
    struct brig_policy *policy; /* the part that concerns commands; owned */
    struct attach_rule *rules;  /* Landlock rules, owned */
    size_t rule_count;
};
void attach_record_done(struct attach_record *record);

/* ---- attach.c: pure ---- */

/* Encodes the record. Only the part of the policy that concerns commands is encoded. */
void attach_record_write(const struct attach_record *record, struct str *ret_bytes);
/* Decodes a record; anything malformed is BRIG_E_INVALID. */
int attach_record_read(const void *bytes, size_t length, struct attach_record *ret_record,
                       struct brig_error *err);

/* ---- attach.c: system calls ---- */

/* Publishes a run that has just started and whose plan is still complete. Returns an fd, which
 * keeps the run enterable until it is closed, or -1 if there is no memory for it. */
int attach_publish(const struct plan *plan, const struct brig_policy *policy, pid_t init,
                   const struct cgroup *group);

/* A run that can be entered. */
struct attach {
    pid_t supervisor;
    uint64_t start_time; /* of init, in clock ticks since boot */
    struct attach_record record;
    int process; /* the supervisor's directory in /proc */
};
#define ENTRY_INIT                                                                                 \
    (struct attach)                                                                                \
    {                                                                                              \
        .process = -1                                                                              \
    }
void attach_done(struct attach *entry);

/* job_start() starts a command in the jail. The caller should ignore SIGCHLD: the jail cannot end
 * before all its processes are reaped, and the parent of this one is outside and may be stopped. */

/* Finds the run that a process supervises. Only a process of the same user is trusted: root that
 * acts for a user takes that user's ids first. Returns BRIG_E_NOT_FOUND if the process supervises
 * no run or is in a jail, BRIG_E_SYSTEM if it belongs to another user. */
int attach_find(pid_t supervisor, struct attach *ret_entry, struct brig_error *err);
/* The same for a run of the calling process, by the fd that attach_publish() returned. */
int attach_own(int record, struct attach *ret_entry, struct brig_error *err);
/* Returns whether the supervisor still runs. */
bool attach_is_alive(const struct attach *entry);

/* ---- attach_plan.c ---- */

/* Makes the plan for a command in the jail, without the command. The plan owns its fds. The command
 * joins the jail's cgroup, or with limits of its own the leaf of `leaf`, which may be NULL. */
int attach_plan(const struct attach *entry, const struct limits *leaf, struct plan *ret_plan,
                struct brig_error *err);

/* ---- the name of the record ---- */

/* The memfd's name, and the link that /proc/PID/fd shows for it. */

#define ENTRY_FILE "brig-run"
#define ENTRY_FILE_LINK "/memfd:" ENTRY_FILE " (deleted)"

/* ---- /proc ---- */

/* A process is read through its directory in /proc, whose fd keeps referring to the same process
 * when the pid is reused. In attach.c. */

#define ENTRY_STATUS_MAX 16384

/* Reads a file of the process, NUL-terminated and truncated to the buffer. Returns the length or
 * -errno. */
ssize_t attach_proc_read(int process, const char *name, char *buffer, size_t size);
/* Returns the value of a key in the text of /proc/PID/status, or NULL. */
const char *attach_proc_line(const char *status, const char *key);
/* Returns 1 if the namespace at "ns/…" is the caller's, 0 if not, or -errno. */
int attach_proc_same_namespace(int process, const char *path);
