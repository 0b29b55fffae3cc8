/* SPDX-License-Identifier: MIT */
/* The policy as plain data: what a jail may see, be, reach, call and use. Fronts build it through
 * the public builders; the engine only reads it. */
#pragma once

#include <stdio.h>
#include <sys/resource.h>

#include <brig/brig.h>

#include "base/arena.h"
#include "policy/net_rules.h"

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
    char *name;  /* or the pattern */
    char *value; /* POLICY_ENV_SET */
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

/* ---- The network of a policy -------------------------------------------------------------- */

#define POLICY_PUBLISH_MAX 32
#define POLICY_INJECT_MAX 16
#define POLICY_INJECT_WORDS_MAX 32 /* methods, paths or headers of one */
#define POLICY_SECRET_MAX 4096
#define POLICY_NO_PROXY_MAX 64

/* Where an injected credential is reached inside: a loopback address that nothing else uses. */
#define POLICY_INJECT_ADDRESS "127.18.0.1"
#define POLICY_INJECT_PORT 8001 /* of the first; the others follow */
#define POLICY_INJECT_URL_MAX 64
/* Where programs inside that want a proxy find one. */
#define POLICY_PROXY_ADDRESS "198.18.0.3"
#define POLICY_PROXY_HTTP_PORT 3128
#define POLICY_PROXY_SOCKS_PORT 1080
#define POLICY_PROXY_HTTP_URL "http://" POLICY_PROXY_ADDRESS ":3128"
#define POLICY_PROXY_SOCKS_URL "socks5h://" POLICY_PROXY_ADDRESS ":1080"

/* A rule as it was written, for people; policy_net.rules is what it means. */
struct policy_net_rule {
    bool deny;
    char *text;
    char *origin;
};

struct policy_publish {
    struct net_address address; /* of the host */
    uint16_t host_port;
    uint16_t port; /* inside */
    char *origin;
};

struct policy_inject {
    unsigned port; /* inside, at POLICY_INJECT_ADDRESS */
    char *name;    /* the host it stands for */
    char *header;  /* that is added, */
    char *secret;  /* with this value; wiped when it is released */
    char *upstream;
    char *variable;                   /* gets the address inside; or NULL */
    char **methods, **paths, **strip; /* ended by NULL; NULL: none */
    char *origin;
};

struct policy_net {
    struct net_rules rules;
    struct policy_net_rule *written;
    size_t written_count;
    struct policy_publish *publish;
    size_t publish_count;
    struct policy_inject *inject;
    size_t inject_count;
    bool proxy_env;     /* the usual variables name the proxies inside */
    char *broker;       /* the program, absolute; NULL: the one that was installed with us */
    char *ca;           /* certificates that upstreams of credentials are checked by, or NULL */
    char *proxy;        /* HOST:PORT of the host's own proxy, or NULL */
    char *proxy_secret; /* what it wants as Proxy-Authorization, or NULL */
    char **no_proxy;    /* suffixes of names it is not used for, ended by NULL; or NULL */
};

/* ---- The policy --------------------------------------------------------------------------- */

struct facts;
struct mountinfo_table;

struct brig_policy {
    struct arena arena; /* of every text, and of the bytes of files: they live as long as it does */
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
    /* Of a plan that is only printed (see facts.h), borrowed: nothing is asked of the kernel,
     * and nothing is made on the host. NULL in every policy that is run. */
    const struct facts *facts;
};

/* Whether what the jail reaches is decided by a broker outside. */
static inline bool policy_has_door(const struct brig_policy *policy)
{
    return policy->network == BRIG_NET_ALLOW || policy->network == BRIG_NET_OPEN;
}

/* ---- Modes and words ---------------------------------------------------------------------- */

/* What the home directory is. The engine only knows the first; a front that keeps jails on disk
 * makes the others and hands them in as mounts. */
enum policy_home {
    POLICY_HOME_SCRATCH, /* empty, and gone with the run */
    POLICY_HOME_PRIVATE, /* a directory of the jail's */
    POLICY_HOME_OVERLAY, /* the user's own, copied on writing */
};

struct policy_mode {
    enum brig_view view;
    enum brig_network network;
    enum brig_seccomp seccomp;
    enum policy_home home;
    /* Names of the caller's environment that pass, ended by NULL; NULL instead of a list: all. */
    const char *const *env_keep;
    uint64_t limits[BRIG_LIMIT_COUNT_];
};

/* The row, static; NULL for a value that is no mode. */
const struct policy_mode *policy_mode_row(enum brig_mode mode);

/* The words of a policy, one table each in names.c. */
enum policy_vocabulary {
    POLICY_MODE,
    POLICY_VIEW,
    POLICY_ACCESS,
    POLICY_NETWORK,
    POLICY_SECCOMP,
    POLICY_LIMIT,
    POLICY_LAYER,
    POLICY_ON_UNSUPPORTED,
};

/* The word for a value, "?" if there is none; the value of a word, or -1. */
const char *policy_word(enum policy_vocabulary of, int value);
int policy_word_value(enum policy_vocabulary of, const char *word);
/* "a, b or c", for messages; static text. */
const char *policy_choices(enum policy_vocabulary of);

/* ---- Builders beside the public ones ------------------------------------------------------ */

/* Has a detached mount (an fd of open_tree() or fsmount()) moved to dest, for one run: what is
 * in it is the jail's own, and where other grants lie below it their mount points are made.
 * `source` is how it is shown. The fd stays the caller's, and must be open until the run has
 * started. */
int policy_mount(struct brig_policy *policy, int fd, const char *source, const char *dest,
                 struct brig_error *err);

/* Grants what an fd is of by the name the kernel has for it: if that is another file or
 * directory by the time it is mounted, the run does not start. The fd stays the caller's, and
 * must be open until the run has started, so that nothing else can have its number. */
int policy_grant_fd(struct brig_policy *policy, enum brig_access access, int fd, const char *dest,
                    struct brig_error *err);

/* A file in a private directory that is empty until job_release() fills it; one is all. */
int policy_late_file(struct brig_policy *policy, const char *dest, mode_t mode,
                     struct brig_error *err);

/* The rule that decides about a path: the most specific, and of several for one place the last.
 * NULL if there is none. */
const struct policy_grant *policy_rule_of(const struct brig_policy *policy, const char *path);

/* Removes the rules, or the masks only, for exactly this path and returns their number. */
size_t policy_remove_grants(struct brig_policy *policy, const char *dest, bool masks_only);

/* A copy of the text that lives as long as the policy; NULL gives NULL. */
int policy_text(struct brig_policy *policy, const char *text, char **ret_text,
                struct brig_error *err);

/* Gives the jail a host id of its own, which only root can; inside it keeps its uid. The id is
 * one of a range that no distribution hands out, the same for the same user. */
void policy_use_isolated_uid(struct brig_policy *policy, uid_t user);
/* The id of such a jail that acts for a user, 0 for root itself: of the range that /etc/subuid
 * has for `brig`, else of one of our own. */
uid_t policy_isolated_uid(uid_t user);

/* Checks what only makes sense of the whole: returns 0 or BRIG_E_INVALID naming the rule. */
int policy_validate(const struct brig_policy *policy, struct brig_error *err);

/* The environment the command gets, from the caller's envp (NULL: empty) and the policy's rules: a
 * NULL-terminated array in one allocation, to be freed with free(). Names given twice keep the
 * last value. Malformed entries of envp (no '=') are dropped. */
int policy_environment(const struct brig_policy *policy, const char *const *envp, char ***ret_env,
                       struct brig_error *err);

/* True if a filter of the environment is for this variable: a pattern for its name, whatever the
 * case of letters, or one with "://" in it, for an address in its value. */
bool policy_filter_matches(const char *pattern, const char *name, size_t name_length,
                           const char *value);

/* True if pattern, in which '*' stands for any characters and '\' quotes, matches text. */
bool policy_pattern_matches(const char *pattern, const char *text);

/* ---- Credentials -------------------------------------------------------------------------- */

/* Where a credential is used inside: "http://127.18.0.1:8001". */
void policy_inject_url(const struct policy_inject *inject, char url[POLICY_INJECT_URL_MAX]);
/* Wipes the secrets of a policy: once a run has started they are not needed here. */
void policy_forget_secrets(struct brig_policy *policy);
/* Wipes and frees a secret that is not a policy's. Accepts NULL. */
void policy_free_secret(char *secret);

/* ---- For the files of this folder --------------------------------------------------------- */

/* Refuses a value outside an enumeration; choices lists the valid ones. */
int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices);
/* path_normalise() into a text of the policy, with a message that begins with what the path is of. */
int policy_path(struct brig_policy *policy, const char *what, const char *path, unsigned flags,
                char **ret_path, struct brig_error *err);
/* Whether a grant of this kind may stand at dest (normalised), with this source. BRIG_E_INVALID
 * names the path and the reason. */
int policy_check_grant(enum brig_access access, const char *source, const char *dest,
                       struct brig_error *err);

/* A copy of an array, for realloc(). If memory is lacking it is NULL, *count is 0 and the arena says so. */
void *policy_copy_items(struct arena *arena, const void *items, size_t *count, size_t size);
/* Replaces texts that are shared with another policy by copies in the arena; NULL if memory is lacking. */
#define policy_own(arena, ...) policy_own_all(arena, (char **const[]){__VA_ARGS__, NULL})
void policy_own_all(struct arena *arena, char **const *texts);
/* Give a copy, which shares everything with its original, arrays and texts of its own. If memory is
 * lacking, the arena says so; then nothing is shared either. */
void policy_unshare_private(struct brig_policy *copy);
void policy_unshare_net(struct brig_policy *copy);
void policy_private_done(struct brig_policy *policy);
/* Wipes a secret of a policy. Accepts NULL. */
void policy_wipe(char *secret);

/* A range of user ids. */
struct policy_range {
    uint32_t first, count;
};
/* The range set aside for jails in the text of /etc/subuid: its first usable line for "brig".
 * Without one, or without a file (NULL), the built-in range. */
struct policy_range policy_find_range(FILE *file);
