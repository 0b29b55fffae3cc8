/* SPDX-License-Identifier: MIT */
/* The plan: everything the child does for a run, decided in the parent. The child (child.c) only
 * executes it. All memory is in the plan's arena, all fds are in its table. */
#pragma once

#include <linux/filter.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "jail/cgroup/cgroup.h"
#include "jail/confine/landlock.h"
#include "jail/job/result.h"
#include "jail/nested_limits/nested_limits.h"
#include "jail/plan/plan_door.h"
#include "policy/policy.h"

/* How complete the jail is. A lower rung is used only if the policy allows it. */
enum plan_rung {
    PLAN_FULL,     /* namespaces, view, Landlock, seccomp, limits */
    PLAN_LANDLOCK, /* no namespaces: Landlock, seccomp, limits */
    PLAN_LIMITS,   /* seccomp and limits only */
};

/* The operation of a step. `slot` is the index of a mount or directory made by an earlier step. */
enum plan_op {
    PLAN_WRITE, /* write data into the existing file at path (host side: /proc/self/…), or, with a
                 * slot, at path in the slot */
    PLAN_SETGROUPS, /* drop all supplementary groups */
    PLAN_HOSTNAME,  /* data = the name */
    PLAN_PRIVATE,   /* make the mount namespace's tree private */
    PLAN_TMPFS,     /* slot = new tmpfs, detached; path = its options "key=value", NUL-separated */
    PLAN_PROC,      /* slot = new procfs, detached; flags as for PLAN_ATTR */
    PLAN_DEVPTS,    /* slot = new devpts instance, detached */
    PLAN_MQUEUE,    /* slot = the message queues of the jail's IPC namespace, detached */
    PLAN_OVERLAY,   /* slot = new overlay, detached; made in the filesystem of slot `from`, at the
                     * directory `path` in it; data = its options, as for mount(2) */
    PLAN_TREE,      /* slot = recursive clone of the host tree at path, checked by dev and ino */
    PLAN_PREPARED,  /* slot = fd, a detached tree that the parent made */
    PLAN_SUBTREE,   /* slot = clone of the directory or file `path` in slot `from`; data: as in
                     * PLAN_ATTACH */
    PLAN_ATTR,      /* set flags (PLAN_ATTR_…) on the mount in slot */
    PLAN_ROOT,      /* slot becomes the root in which later steps attach */
    PLAN_DEVICE,    /* bind the host's device at path at the same name in slot; the name starts at
                     * length; a device that the host lacks is skipped */
    PLAN_MKDIR,     /* in slot: path, mode; an existing directory is fine */
    PLAN_MKFILE,    /* in slot: path, mode, data */
    PLAN_SYMLINK,   /* in slot: path → data */
    PLAN_MKPATH, /* in slot: the directories of path, without following symlinks; the last name is
                  * a directory if mode is set, else a file */
    PLAN_ATTACH, /* slot at path in the root `from`; mode: every directory of path is brig's; data:
                  * the directory (length bytes) above it that a jail can write to; flags: with
                  * PLAN_ATTACH_NAME `from` is the parent directory, and the name starts at
                  * length */
    PLAN_OPEN_ROOT, /* slot = the current /, to attach in */
    PLAN_OPEN,   /* slot = the file at path in the root `from`, a directory if mode is set; data: as
                  * in PLAN_ATTACH. If the file is missing, the slot stays empty */
    PLAN_PIVOT,  /* the root becomes /, with the host tree mounted on top of it */
    PLAN_DETACH, /* unmount the host tree */
    PLAN_KEEP,   /* send the directory in slot to the supervisor */
    PLAN_LATE,   /* send the file at path in slot to the supervisor, open for writing */
    PLAN_LISTEN, /* create the socket for tools at path, send it to the supervisor */
    PLAN_PTY, /* open the jail's pty, send the master to the supervisor; the slave is for 0–2 */
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
    bool soft;         /* a failure is reported, but not fatal */
    bool if_reachable; /* EACCES is not a failure: the jail has no access either. Nor is ENOENT:
                        * the name was removed meanwhile; if it comes back, it is covered then */
    bool fresh;        /* done again for each run of a template, see template.c */
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
    const char *hint; /* the remedy, or for a soft step the consequence; may be NULL */
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

/* An fd of the caller and its number in the command. -1: the pty's slave; -2: /dev/null. */
struct plan_fd {
    int fd;
    int number;
};
enum { PLAN_FD_PTY = -1, PLAN_FD_NULL = -2 };

#define PLAN_FD_MAX (3 + BRIG_PASS_FD_MAX)
#define PLAN_RLIMIT_MAX 8
#define PLAN_JOIN_MAX 4 /* pid, IPC, UTS and cgroup namespaces */

/* The kind of mount over a path; the mount is lost when the host replaces the file. */
enum plan_cover {
    PLAN_COVER_MASK,    /* an empty file or directory */
    PLAN_COVER_PROTECT, /* the file, read-only */
    PLAN_COVER_PIN,     /* the file, mounted on itself to keep it in place */
    PLAN_COVER_PRIVATE, /* a private git directory: it cannot be mounted again, so the run ends */
};

/* A name on the host whose creation can uncover a covered path: the path itself, or a directory
 * above it. */
struct plan_mask {
    enum plan_cover cover;
    const char *host_dir; /* the directory of the name */
    const char *name;
    const char *host_path; /* the covered path on the host */
    const char *path;      /* the covered path in the jail */
    const char *writable;  /* the directory of the jail that a jail can write to */
};

/* A directory of the jail and its source, used to cover paths while the jail runs. */
struct plan_place {
    const char *dest; /* inside the jail */
    const char *host; /* its host tree, "" for /; NULL: not from the host */
    bool writable;    /* the command can change it */
};

/* In addition to enum brig_layer: no cgroup namespace can be created, as inside a jail. */
#define PLAN_NO_CGROUP_NAMESPACE (1U << 31)

/* So often a start is repeated because files of the host were replaced while the jail was built. */
#define PLAN_REPEATS 10

struct plan {
    struct arena arena;
    enum plan_rung rung;
    unsigned missing;          /* layers that failed on this system, and PLAN_NO_… */
    int failed_step;           /* in the last attempt to start */
    unsigned long clone_flags; /* CLONE_NEW… */
    /* The cgroup the jail is cloned into, or the files it writes itself into; borrowed: */
    int cgroup_fd; /* or -1 */
    int join_fds[CGROUP_JOIN_MAX];
    size_t join_count;
    uint64_t tool_token;     /* the leaf to join in the surrounding jail's cgroup, or 0 */
    unsigned limits_missing; /* enum cgroup_resource bits to replace by rlimits */
    /* Before the namespaces are created: */
    bool become;        /* as root: take these ids first */
    bool become_joined; /* or take them, from a mapped range, after joining the user namespace */
    uid_t host_uid;
    gid_t host_gid;
    uid_t inside_uid;
    gid_t inside_gid;
    uint32_t range_first, range_count;       /* instead: root maps these to themselves */
    int join_userns, join_mntns, join_netns; /* of a template or a running jail, else -1 */
    bool enters;                             /* the plan joins a running jail; also joins: */
    int join_more[PLAN_JOIN_MAX];
    size_t join_more_count;
    bool parent_maps; /* the parent runs newgidmap with these while the child waits: */
    gid_t map_inside_gid, map_host_gid, map_subordinate_gid;
    bool loopback;                /* bring up loopback in the network namespace */
    const struct plan_door *door; /* the network door, or NULL */
    bool only_steps;              /* execute the steps in the joined namespaces and exit: no jail */
    /* The build, executed in order by the jail's first process: */
    struct plan_step *steps;
    size_t step_count, step_room;
    struct plan_step spare_step; /* see plan_add() */
    int slot_count;
    int *slots; /* filled by the child */
    /* The command: */
    struct plan_fd fds[PLAN_FD_MAX];
    size_t fd_count;
    bool wants_pty; /* a step opens a pty into slot PLAN_PTY_SLOT */
    int pty_fd;     /* otherwise: the slave of a host pty, or -1 */
    const char *workdir;
    bool landlock;
    struct landlock_attr landlock_attr;
    size_t landlock_attr_size;
    struct plan_rule *rules;
    size_t rule_count, rule_room;
    const struct sock_fprog *seccomp;
    const struct sock_fprog *seccomp_told; /* the same with user notification; or NULL */
    bool tells_all;                        /* of all refused calls, because the caller asked */
    bool drop_caps;
    bool keep_caps; /* keep the capabilities of the joined user namespace, to make jails in it */
    struct plan_rlimit rlimits[PLAN_RLIMIT_MAX];
    size_t rlimit_count;
    const char *const *programs; /* candidates for exec, NULL-terminated */
    const char *const *argv;
    const char *const *script_argv; /* "/bin/sh", program slot, arguments: for ENOEXEC */
    const char *const *envp;
    char **environment; /* envp, to be freed */
    /* Init: */
    int init_fd;           /* -1 until plan_open_init() */
    const char *init_mode; /* see wire.h */
    const char *home;      /* the command's default working directory */
    /* For the parent after the start: */
    struct plan_mask *masks;
    size_t mask_count, mask_room;
    struct plan_place *places;
    size_t place_count;
    int *owned_fds; /* closed by plan_done() */
    size_t owned_count, owned_room;
    struct brig_unenforced unenforced;
};

/* Steps outside the build, for failure reports; their numbers follow the build steps'. */
enum plan_command_step {
    PLAN_STEP_IDS = -100, /* taking the jail's ids, as root */
    PLAN_STEP_JOIN,       /* joining a template's namespaces */
    PLAN_STEP_CGROUP,     /* joining the cgroup with the limits */
    PLAN_STEP_CLONE,      /* creating the namespaces */
    PLAN_STEP_LOOPBACK,
    PLAN_STEP_ROUTES,   /* routes to the network door */
    PLAN_STEP_REDIRECT, /* redirecting all ports to the door */
    PLAN_STEP_DOOR,     /* creating the door's sockets */
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
    PLAN_STEP_TRACE, /* getting the filter's listener */
    PLAN_STEP_EXEC,
};

/* Compiles a policy into the jail of a rung; `missing` are layers (enum brig_layer) that failed
 * here. `limits` are the job's, or NULL if plan_use_limits() is called later, as for a template.
 * Host paths are looked up here, and looked up again, as fds, in the child. */
int plan_compile(const struct brig_policy *policy, enum plan_rung rung, unsigned missing,
                 const struct limits *limits, struct plan *ret_plan, struct brig_error *err);
/* Copies what the child needs to join the job's cgroup, and lists the limits that are missing. */
void plan_use_limits(struct plan *plan, const struct brig_policy *policy,
                     const struct limits *limits);
/* Opens the fd of the init program, unless it is open. */
int plan_open_init(struct plan *plan, struct brig_error *err);
void plan_done(struct plan *plan);
/* Releases memory that is needed only for the start: a job may live for days. */
int plan_trim(struct plan *plan, struct brig_error *err);

/* The command of a plan. `stdio_fds` become fds 0–2 of the command (PLAN_FD_…). The plan borrows
 * the command's strings until the jail has started. */
/* The size of a terminal that does not replace one of the host. */
#define PLAN_PTY_SIZE ((struct winsize){.ws_row = 24, .ws_col = 80})

struct plan_input {
    const struct brig_policy *policy;
    const struct brig_command *command;
    int stdio_fds[3];
    bool wants_pty;
    int host_terminal; /* the pty copies its settings and size; or -1 */
    int pty_fd;        /* without namespaces: the slave that the parent opened, or -1 */
};
/* Sets the resource limits only. */
void plan_rlimits(struct plan *plan, const struct brig_policy *policy);
int plan_add_command(struct plan *plan, const struct plan_input *input, struct brig_error *err);

/* Splits a compiled plan, in template.c, into the part that a template executes once and the part
 * that each of its runs executes. Both point into the plan's arena. With PLAN_NESTED each run
 * creates a user namespace below the template's, with the ids of the policy. BRIG_E_UNSUPPORTED if
 * the plan has a mount that can be made neither in advance nor per run. */
#define PLAN_UID_MAP "self/uid_map" /* the maps of a nested run, in its procfs */
#define PLAN_GID_MAP "self/gid_map"
enum plan_split_kind {
    PLAN_SHARED,
    PLAN_NESTED,
};
int plan_split(const struct plan *plan, enum plan_split_kind kind, struct arena *arena,
               struct plan *ret_held, struct plan *ret_fresh, struct brig_error *err);

/* Records a mount over a host tree, so that it is mounted again when the host replaces the covered
 * file or a directory between it and the tree's root. */
void plan_watch_cover(struct plan *plan, enum plan_cover cover, const struct plan_place *place,
                      const char *host_path, const char *dest);

/* An empty plan: no fds, no namespaces to join. */
#define PLAN_INIT                                                                                  \
    (struct plan)                                                                                  \
    {                                                                                              \
        .cgroup_fd = -1, .init_fd = -1, .join_userns = -1, .join_mntns = -1, .join_netns = -1,     \
        .pty_fd = -1                                                                               \
    }

/* Describes a failed step in err and returns its code: BRIG_E_UNSUPPORTED if the system cannot do
 * it at all (a lower rung may work), else BRIG_E_SETUP, _NOT_FOUND or _NOT_EXEC. */
int plan_explain_failure(const struct plan *plan, int step, int sys_errno, struct brig_error *err);
/* Adds the notice for a soft step that failed. */
void plan_note_soft_failure(struct plan *plan, int step, int sys_errno);

/* ---- For the files that build a plan ---- */

/* Returns a new step with default values, to be filled in at once. When memory runs out (the arena
 * remembers it), the step is not part of the plan. */
struct plan_step *plan_add(struct plan *plan, enum plan_op op, const char *what);
int plan_new_slot(struct plan *plan);
void plan_add_rule(struct plan *plan, int slot, const char *path, uint64_t access);
void plan_own_fd(struct plan *plan, int fd);
/* Grows an array in the arena; returns true if there is room for one more item. */
bool plan_reserve(struct plan *plan, void **items, size_t count, size_t *room, size_t item_size);
