/* SPDX-License-Identifier: MIT */
/* The policy as plain data: what a jail may see, be, reach, call and use. Fronts build it through
 * the public builders; the engine only reads it. */
#pragma once

#include <sys/resource.h>

#include <brig/brig.h>

#include "policy/policy_net.h"

/* Named limits on what a policy may hold, each refused by name when passed. */
#define POLICY_GRANTS_MAX 1024
#define POLICY_ENV_MAX 4096
#define POLICY_HOSTNAME_MAX 64
#define POLICY_LACK_MAX 128
#define POLICY_PRIVATE_MAX 64
#define POLICY_PRIVATE_FILES_MAX 1024
#define POLICY_FILE_BYTES_MAX ((size_t)64 << 20)
/* Host ids of jails that root gives one of their own, where none are set aside for it (see
 * policy_stranger_uid()): a range no distribution hands out. */
#define POLICY_STRANGER_UID 1900000000U
#define POLICY_STRANGER_COUNT 10000000U
/* What root's own jail sees itself as. */
#define POLICY_INSIDE_UID 1000U
#define POLICY_CPU_PERCENT_MAX 819200 /* of 8192 CPUs, as many as the kernel can have */

struct policy_grant {
    enum brig_access access;
    unsigned flags; /* enum brig_grant_flag */
    int fd;         /* -1; else a detached mount to be moved to dest, the caller's to close */
    bool own; /* brig's own, in its storage: a private git directory. Not a grant of the user's */
    bool checked; /* source must be this, or nothing is granted: */
    dev_t dev;
    ino_t ino;
    char *source; /* absolute, normalised as text only; for BRIG_MASK equal to dest */
    char *dest;   /* absolute, normalised: no //, no ., no .., no trailing slash but for "/" */
    char *origin; /* where the rule came from, for explain and messages; never NULL */
};

enum policy_env_kind {
    POLICY_ENV_SET,    /* name=value */
    POLICY_ENV_EXPOSE, /* name, or a pattern, past earlier patterns */
    POLICY_ENV_UNSET,  /* a pattern */
};

/* Environment rules apply in order; the last one that matches a name decides. */
struct policy_env {
    enum policy_env_kind kind;
    bool constant; /* name and origin are texts of the program itself, and no value is there */
    char *name;    /* or the pattern */
    char *value;   /* POLICY_ENV_SET */
    char *origin;
};

/* A file that is made in a private directory of the jail. */
struct policy_file {
    const char *dest; /* absolute; borrowed, as is the data */
    const void *data;
    size_t length;
    unsigned mode;
};

/* A directory in the jail's own memory. */
struct policy_private {
    char *dest; /* absolute, normalised */
    char *origin;
    bool read_only;
    bool kept; /* an fd of it is handed out */
};

struct policy_private_file {
    char *dest;
    void *bytes;
    size_t length;
    mode_t mode;
    bool late; /* empty, to be filled by job_release() */
};

struct facts;
struct mountinfo_table;

struct brig_policy {
    enum brig_mode mode;
    enum brig_view view;
    char *root_path; /* BRIG_VIEW_ROOT */
    struct policy_grant *grants;
    size_t grant_count;
    struct policy_file file; /* none if dest is NULL */
    struct policy_private *privates;
    size_t private_count;
    struct policy_private_file *files; /* in private directories */
    size_t file_count;
    struct policy_env *env;
    size_t env_count;
    uid_t host_uid, inside_uid; /* (uid_t)-1: choose */
    gid_t host_gid, inside_gid;
    const char *jail_name; /* under which a run can be entered, borrowed; NULL: it cannot be */
    bool stranger;         /* host_uid owns nothing: what is granted is mounted as if it did, */
    uid_t owner;           /* if it belongs to this user; root's own jail may have anything so */
    char *user_name, *home, *shell; /* NULL: choose */
    enum brig_network network;
    struct policy_net net; /* of a network with a door */
    enum brig_seccomp seccomp;
    uint64_t limits[BRIG_LIMIT_COUNT_];
    unsigned limits_asked;           /* a bit each: set by the caller, not by the mode */
    struct rlimit files_before;      /* of open files, where the front has raised its own */
    char disk_lack[POLICY_LACK_MAX]; /* why a front cannot hold its own directories to the limits on
                                      * disk space, for the result; "": it can */
    enum brig_terminal terminal;
    char *workdir; /* NULL: choose */
    char *hostname;
    bool allow_nested;
    bool unix_sockets; /* without namespaces and network */
    bool trace;        /* list the system calls that were refused */
    bool late_input;   /* bytes for standard input come with job_release() */
    enum brig_on_unsupported on_unsupported;
    unsigned disabled_layers; /* enum brig_layer */
    char *origin;             /* for rules added from now on */
    const struct mountinfo_table
        *mounts; /* as the front has read them, borrowed; NULL: it has not */
    /* Of a plan that is only printed (see facts.h), borrowed: nothing is asked of the kernel, and nothing
     * is made on the host. NULL in every policy that is run. */
    const struct facts *facts;
};

/* Whether what the jail reaches is decided by a broker outside. */
static inline bool policy_has_door(const struct brig_policy *policy)
{
    return policy->network == BRIG_NET_ALLOW || policy->network == BRIG_NET_OPEN;
}

/* Names of the vocabulary, one table each in names.c. name_of returns "?" for a value outside the
 * table; parse returns the value or -1. */
const char *policy_mode_name(enum brig_mode mode);
const char *policy_view_name(enum brig_view view);
const char *policy_access_name(enum brig_access access);
const char *policy_network_name(enum brig_network network);
const char *policy_seccomp_name(enum brig_seccomp profile);
const char *policy_limit_name(enum brig_limit limit);
const char *policy_layer_name(enum brig_layer layer);
const char *policy_on_unsupported_name(enum brig_on_unsupported what);
int policy_mode_parse(const char *name);
int policy_view_parse(const char *name);
int policy_network_parse(const char *name);
int policy_seccomp_parse(const char *name);
int policy_layer_parse(const char *name);
int policy_on_unsupported_parse(const char *name);
/* "a, b or c" of the vocabulary, for messages; static text. */
const char *policy_mode_choices(void);
const char *policy_view_choices(void);
const char *policy_network_choices(void);
const char *policy_seccomp_choices(void);
const char *policy_layer_choices(void);
const char *policy_on_unsupported_choices(void);

/* Has a detached mount (an fd of open_tree() or fsmount()) moved to dest, for one run: what is in it
 * is the jail's own, and where other grants lie below it their mount points are made. `source` is
 * how it is shown. The fd stays the caller's, and must be open until the run has started. */
int policy_mount(struct brig_policy *policy, int fd, const char *source, const char *dest,
                 struct brig_error *err);

/* Grants what an fd is of by the name the kernel has for it: if that is another file or directory by the
 * time it is mounted, the run does not start. The fd stays the caller's, and must be open until the run
 * has started, so that nothing else can have its number. */
int policy_grant_fd(struct brig_policy *policy, enum brig_access access, int fd, const char *dest,
                    struct brig_error *err);

/* A file in a private directory that is empty until job_release() fills it; one is all. */
int policy_late_file(struct brig_policy *policy, const char *dest, mode_t mode,
                     struct brig_error *err);

/* Filters of the environment as by brig_policy_unsetenv(), ended by NULL, without copies: patterns and
 * their origin are texts of the program itself. */
int policy_unsetenv_all(struct brig_policy *policy, const char *const *patterns, const char *origin,
                        struct brig_error *err);
void policy_env_done(struct policy_env *env); /* releases what a rule owns */

/* Gives the jail a host id of its own, which root alone can; inside it is who it was. The id is one of
 * a range that no distribution hands out, the same for the same user. */
void policy_use_isolated_uid(struct brig_policy *policy, uid_t user);
/* The id of such a jail that acts for a user, 0 for root itself: of the range that /etc/subuid has for
 * `brig`, else of one of our own. */
uid_t policy_isolated_uid(uid_t user);

/* Checks what only makes sense of the whole: returns 0 or BRIG_E_INVALID naming the rule. */
int policy_validate(const struct brig_policy *policy, struct brig_error *err);

/* The environment the command gets, from the caller's envp (NULL: empty) and the policy's rules: a
 * NULL-terminated array in one allocation, to be freed with free(). Names given twice keep the
 * last value. Malformed entries of envp (no '=') are dropped. */
int policy_environment(const struct brig_policy *policy, const char *const *envp, char ***ret_env,
                       struct brig_error *err);

/* True if a filter of the environment is for this variable: a pattern for its name, whatever the case
 * of letters, or one with "://" in it, for an address in its value. */
bool policy_filter_matches(const char *pattern, const char *name, size_t name_length,
                           const char *value);

/* True if pattern, in which '*' stands for any characters and '\' quotes, matches text. */
bool policy_pattern_matches(const char *pattern, const char *text);
