/* SPDX-License-Identifier: MIT */
/* The plan: everything a run will do in the child, thought out in the parent. The child (child.c)
 * only walks it. All memory is in the plan's arena, all fds are in its table. */
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "jail/cgroup/cgroup.h"
#include "jail/confine/landlock.h"
#include "jail/nested_limits/nested_limits.h"
#include "jail/plan/plan_door.h"
#include "policy/policy.h"

/* How much of a jail the plan builds. A lower rung is never taken unasked. */
enum plan_rung {
    PLAN_FULL,     /* namespaces, view, Landlock, seccomp, limits */
    PLAN_LANDLOCK, /* no namespaces: Landlock, seccomp, limits */
    PLAN_LIMITS,   /* seccomp and limits only */
};

/* What a step does. `slot` names a mount or directory made by an earlier step. */
enum plan_op {
    PLAN_WRITE, /* write data into the existing file at path (host side: /proc/self/…), or, with
                       * a slot, at path in that */
    PLAN_SETGROUPS, /* drop all supplementary groups */
    PLAN_HOSTNAME,  /* data = the name */
    PLAN_PRIVATE,   /* make the mount namespace's tree private */
    PLAN_TMPFS,     /* slot = new tmpfs, detached; path = its options "key=value", NUL-separated */
    PLAN_PROC,      /* slot = new procfs, detached; flags as for PLAN_ATTR */
    PLAN_DEVPTS,    /* slot = new devpts instance, detached */
    PLAN_TREE,      /* slot = recursive clone of the host tree at path, checked by dev and ino */
    PLAN_PREPARED,  /* slot = the detached tree the parent made, fd */
    PLAN_SUBTREE,   /* slot = clone of the directory or file `path` in slot `from`; data: as for
                       * PLAN_ATTACH */
    PLAN_ATTR,      /* set flags (PLAN_ATTR_…) on the mount in slot */
    PLAN_ROOT,      /* slot becomes the tree that the others are attached in */
    PLAN_DEVICE, /* the host's device at path, at the same name in slot, which begins at length; what
                       * the host does not have is left out */
    PLAN_MKDIR,  /* in slot: path, mode; existing is fine */
    PLAN_MKFILE,  /* in slot: path, mode, data */
    PLAN_SYMLINK, /* in slot: path → data */
    PLAN_MKPATH,  /* in slot: the directories of path, following no symlink; mode: the last name is
                       * one too, else it is a file */
    PLAN_ATTACH,  /* slot at path in the root `from`; mode: the way there is all ours; data: the
                       * directory (of length bytes) above it that others can write to; flags: with
                       * PLAN_ATTACH_NAME `from` is the directory right above, and the name begins
                       * at length */
    PLAN_OPEN_ROOT, /* slot = / as it is now, to attach in */
    PLAN_OPEN,   /* slot = what is at path in the root `from`, a directory if mode says so; data: as
                       * for PLAN_ATTACH. What is not there leaves a slot without anything */
    PLAN_PIVOT,  /* the root becomes /, with the host's tree stacked on it */
    PLAN_DETACH, /* the host's tree is gone */
    PLAN_KEEP,   /* send out the directory in slot */
    PLAN_LATE,   /* send out the file at path in slot, open for writing */
    PLAN_LISTEN, /* make the socket for tools at path, send it out */
    PLAN_PTY,    /* open the jail's pty, send its master out; the slave is for fds 0–2 */
};

enum plan_attr {
    PLAN_ATTR_RDONLY = 1 << 0,
    PLAN_ATTR_NOSUID = 1 << 1,
    PLAN_ATTR_NODEV = 1 << 2,
    PLAN_ATTR_NOEXEC = 1 << 3,
    PLAN_ATTR_RECURSIVE = 1 << 4,
    PLAN_ATTACH_NAME = 1 << 5,
};

struct limits;

#define PLAN_NO_SLOT (-1)
#define PLAN_PTY_SLOT 0 /* reserved in every plan */

struct plan_step {
    enum plan_op op;
    bool soft;         /* failing is reported, not fatal */
    bool if_reachable; /* what we are not let to, nobody in the jail is */
    bool fresh;        /* made anew for each run of a template, see plan_template.c */
    bool alone;        /* left out of templates, whose runs share a user namespace */
    int slot, from;
    int fd;
    unsigned flags;
    unsigned mode;
    const char *path;
    const void *data;
    size_t length;
    bool check_identity;
    dev_t dev;
    ino_t ino;
    const char *what; /* for the message: "cannot <what>" */
    const char *hint; /* the remedy, or what is lost where the step is soft; may be NULL */
};

/* A Landlock rule: on the root of a slot, or on a path inside the jail. */
struct plan_rule {
    int slot;         /* PLAN_NO_SLOT: use the path */
    const char *path; /* where the slot is attached */
    uint64_t access;
};

struct plan_rlimit {
    int resource;
    struct rlimit limit;
};

/* An fd of the caller and the number it has in the command. -1: the pty's slave; -2: /dev/null. */
struct plan_fd {
    int fd;
    int number;
};
enum { PLAN_FD_PTY = -1, PLAN_FD_NULL = -2 };

#define PLAN_FD_MAX (3 + BRIG_PASS_FD_MAX)
#define PLAN_RLIMIT_MAX 8
#define PLAN_JOIN_MAX 4 /* namespaces for pids, IPC, the host name and groups */

/* What is mounted over a path, and is lost when the host replaces it. */
enum plan_cover {
    PLAN_COVER_MASK,    /* something empty */
    PLAN_COVER_PROTECT, /* itself, read-only */
    PLAN_COVER_PIN,     /* itself: only to be held in place */
    PLAN_COVER_PRIVATE, /* a private git directory: it cannot be mounted again, so the run ends */
};

/* A name on the host whose appearance can lay a covered path bare: the path itself, or a directory
 * above it. */
struct plan_mask {
    enum plan_cover cover;
    const char *host_dir; /* the directory the name is in */
    const char *name;
    const char *host_path; /* what is covered, on the host */
    const char *path;      /* and inside the jail */
    const char *writable;  /* the directory of the jail below which others can write */
};

/* A directory of the jail and what is behind it, for what is to be covered once it runs. */
struct plan_place {
    const char *dest; /* inside the jail */
    const char *host; /* the host's tree behind it, "" for the whole; NULL: none of the host's */
    bool writable;    /* the command can change it */
};

/* Besides enum brig_layer: in a jail there can be no more cgroup namespaces. */
#define PLAN_NO_CGROUP_NAMESPACE (1U << 31)

struct plan {
    struct arena arena;
    enum plan_rung rung;
    unsigned missing;          /* layers this system turned out not to have, and PLAN_NO_… */
    int failed_step;           /* of the last attempt to start it */
    unsigned long clone_flags; /* CLONE_NEW… */
    /* The group the jail is cloned into, or writes itself into; borrowed: */
    int cgroup_fd; /* or -1 */
    int join_fds[CGROUP_JOIN_MAX];
    size_t join_count;
    uint64_t tool_token;     /* or 0: the leaf it joins, of the jail we are in */
    unsigned limits_missing; /* enum cgroup_resource: resource limits have to do */
    /* Before the namespaces are made: */
    bool become;        /* as root: take these ids first, */
    bool become_joined; /* or, of a range that is mapped, once the user namespace was joined */
    uid_t host_uid;
    gid_t host_gid;
    uid_t inside_uid;
    gid_t inside_gid;
    uint32_t range_first, range_count; /* instead: ids the parent maps to themselves, as root */
    int join_userns, join_mntns, join_netns; /* of a template, else -1 */
    bool enters;                             /* a jail that runs already; those, and: */
    int join_more[PLAN_JOIN_MAX];
    size_t join_more_count;
    bool parent_maps; /* the parent runs newgidmap while the child waits, with these: */
    gid_t map_inside_gid, map_host_gid, map_subordinate_gid;
    bool loopback;                /* to be brought up in the network namespace */
    const struct plan_door *door; /* what else is made in it, or NULL */
    bool only_steps; /* run the steps in the joined namespaces and end: no jail of its own */
    /* The build, in order, by the jail's first process: */
    struct plan_step *steps;
    size_t step_count, step_room;
    struct plan_step spare_step; /* see plan_add() */
    int slot_count;
    int *slots; /* filled by the child */
    /* The command: */
    struct plan_fd fds[PLAN_FD_MAX];
    size_t fd_count;
    bool wants_pty; /* a step opens one, into slot PLAN_PTY_SLOT */
    int pty_fd;     /* else: the slave of a pty of the host's, or -1 */
    const char *workdir;
    bool landlock;
    struct landlock_attr landlock_attr;
    size_t landlock_attr_size;
    struct plan_rule *rules;
    size_t rule_count, rule_room;
    const struct sock_fprog *seccomp;
    const struct sock_fprog *seccomp_told; /* the same, which asks before it refuses; or NULL */
    bool drop_caps;
    bool keep_caps; /* of the user namespace it has joined: who makes jails in it needs them */
    struct plan_rlimit rlimits[PLAN_RLIMIT_MAX];
    size_t rlimit_count;
    const char *const *programs; /* candidates for exec, NULL-terminated */
    const char *const *argv;
    const char *const *script_argv; /* "/bin/sh", program slot, rest: for ENOEXEC */
    const char *const *envp;
    char **environment; /* envp, to be freed */
    /* Init: */
    int init_fd;           /* -1: plan_open_init() is still to come */
    const char *init_mode; /* see wire.h */
    const char *home;      /* where the command starts if nothing else is said */
    /* For the parent after the start: */
    struct plan_mask *masks;
    size_t mask_count, mask_room;
    struct plan_place *places;
    size_t place_count;
    int *owned_fds; /* closed by plan_done */
    size_t owned_count, owned_room;
    struct brig_unenforced unenforced;
};

/* Steps of the command's own part, for failure reports; they follow the build steps' numbers. */
enum plan_command_step {
    PLAN_STEP_IDS = -100, /* taking the jail's ids, as root */
    PLAN_STEP_JOIN,       /* joining a template's namespaces */
    PLAN_STEP_CGROUP,     /* joining the group that has the limits */
    PLAN_STEP_CLONE,      /* making the namespaces */
    PLAN_STEP_LOOPBACK,
    PLAN_STEP_ROUTES,   /* the way to addresses through the door */
    PLAN_STEP_REDIRECT, /* of every port to it */
    PLAN_STEP_DOOR,     /* its sockets */
    PLAN_STEP_COMMAND,  /* cloning the command */
    PLAN_STEP_INIT,     /* executing init */
    PLAN_STEP_SESSION,
    PLAN_STEP_FDS,
    PLAN_STEP_RLIMIT,
    PLAN_STEP_WORKDIR,
    PLAN_STEP_CAPS,
    PLAN_STEP_NO_NEW_PRIVS,
    PLAN_STEP_LANDLOCK,
    PLAN_STEP_KEYRING,
    PLAN_STEP_SECCOMP,
    PLAN_STEP_TRACE, /* a listener for what the filter refuses */
    PLAN_STEP_EXEC,
};

/* Compiles the jail of a policy for a rung; `missing` are layers (enum brig_layer) found not to work
 * here. `limits` are the job's, or NULL where plan_use_limits() comes later: a template's. The host's
 * paths are looked up here and again, as fds, in the child. */
int plan_compile(const struct brig_policy *policy, enum plan_rung rung, unsigned missing,
                 const struct limits *limits, struct plan *ret_plan, struct brig_error *err);
/* Takes over what the child has to know of the job's group, and lists what that cannot limit. */
void plan_use_limits(struct plan *plan, const struct brig_policy *policy,
                     const struct limits *limits);
/* Makes the fd of the init program, unless there is one. */
int plan_open_init(struct plan *plan, struct brig_error *err);
void plan_done(struct plan *plan);
/* Releases what was only needed until the jail runs: a job may live for days. */
int plan_trim(struct plan *plan, struct brig_error *err);

/* What runs in it. fds in `stdio_fds` are what 0–2 shall be in the command (PLAN_FD_…). Borrows the
 * command's strings until the jail is started. */
struct plan_input {
    const struct brig_policy *policy;
    const struct brig_command *command;
    int stdio_fds[3];
    bool wants_pty;
    int host_terminal; /* whose settings and size the pty takes, or -1 */
    int pty_fd;        /* without namespaces: the slave the parent made, or -1 */
};
/* The resource limits alone. */
void plan_rlimits(struct plan *plan, const struct brig_policy *policy);
int plan_add_command(struct plan *plan, const struct plan_input *input, struct brig_error *err);

/* Splits a compiled plan in two, in plan_template.c: what a template makes once, and what each of
 * its runs adds. Both keep pointing into the plan's arena. With PLAN_NESTED each run has a user
 * namespace of its own below the template's, with the ids of the
 * policy. BRIG_E_UNSUPPORTED where it has a mount that cannot wait and cannot be made ahead. */
#define PLAN_UID_MAP "self/uid_map" /* where a nested run writes its maps, in its procfs */
#define PLAN_GID_MAP "self/gid_map"
enum plan_split_kind {
    PLAN_SHARED,
    PLAN_NESTED,
};
int plan_split(const struct plan *plan, enum plan_split_kind kind, struct arena *arena,
               struct plan *ret_held, struct plan *ret_fresh, struct brig_error *err);

/* Remembers what is mounted over a host tree, to be put back when the host replaces what it covers,
 * or one of the directories between it and the tree's root. In plan_watch.c. */
void plan_watch_cover(struct plan *plan, enum plan_cover cover, const struct plan_place *place,
                      const char *host_path, const char *dest);

/* A plan at rest: no fds, nothing joined. */
#define PLAN_INIT                                                                                  \
    (struct plan)                                                                                  \
    {                                                                                              \
        .cgroup_fd = -1, .init_fd = -1, .join_userns = -1, .join_mntns = -1, .join_netns = -1,     \
        .pty_fd = -1                                                                               \
    }

/* Says in words what a failed step was about and returns its code: BRIG_E_UNSUPPORTED where the
 * system cannot do it at all (a lower rung may), else BRIG_E_SETUP, _NOT_FOUND or _NOT_EXEC. */
int plan_explain_failure(const struct plan *plan, int step, int sys_errno, struct brig_error *err);
/* The line for a soft step that failed. */
void plan_note_soft_failure(struct plan *plan, int step, int sys_errno);

/* ---- For the files that build a plan ---- */

/* A new step with everything at rest, to be filled in at once. When memory is short (the arena remembers)
 * it is not part of the plan. */
struct plan_step *plan_add(struct plan *plan, enum plan_op op, const char *what);
int plan_new_slot(struct plan *plan);
void plan_add_rule(struct plan *plan, int slot, const char *path, uint64_t access);
void plan_own_fd(struct plan *plan, int fd);
/* Grows an arena array; true if there is room for one more. */
bool plan_reserve(struct plan *plan, void **items, size_t count, size_t *room, size_t item_size);
