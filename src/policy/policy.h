/* SPDX-License-Identifier: MIT */
/* The policy as plain data: what a jail may see, be, reach, call and use. Front ends build it
 * through the public builders; the engine only reads it. */
#pragma once

#include <stdio.h>
#include <sys/resource.h>

#include <brig/brig.h>

#include "base/arena.h"
#include "policy/layers.h"
#include "policy/net_rules.h"

/* Limits of a policy; exceeding one is an error that names it. */
#define POLICY_GRANTS_MAX 1024
#define POLICY_ENV_MAX 4096
#define POLICY_HOSTNAME_MAX 64
#define POLICY_LACK_MAX 128
#define POLICY_PRIVATE_MAX 64
#define POLICY_PRIVATE_FILES_MAX 1024
#define POLICY_FILE_BYTES_MAX ((size_t)64 << 20)
/* The host uids for root's isolated jails, if /etc/subuid has none for them (see
 * policy_isolated_uid()): a range that no distribution assigns. */
#define POLICY_STRANGER_UID 1900000000U
#define POLICY_STRANGER_COUNT 10000000U
/* The uid inside root's own jail. */
#define POLICY_INSIDE_UID 1000U
#define POLICY_CPU_PERCENT_MAX 819200 /* of 8192 CPUs, as many as the kernel can have */

struct policy_grant {
    enum brig_access access;
    unsigned flags; /* enum brig_grant_flag */
    int fd;         /* -1, or a detached mount to be moved to dest; the caller closes it */
    bool own; /* a directory of brig's storage (a private git directory), not a grant of the user */
    bool review;  /* copy-on-write: a front end provides the mount, and the run fails without it */
    bool checked; /* the source must have this identity, or the run does not start: */
    dev_t dev;
    ino_t ino;
    char *source; /* absolute, normalised as text; for BRIG_MASK equal to dest */
    char *dest;   /* absolute, normalised: no //, no ., no .., no trailing slash but for "/" */
    char *origin; /* where the rule comes from, for explain and messages; never NULL */
};

/* The origin of the rules that a program adds by default. */
#define POLICY_BUILT_IN "built-in defaults"

enum policy_env_kind {
    POLICY_ENV_SET,    /* name=value */
    POLICY_ENV_EXPOSE, /* name, or a pattern; overrides earlier patterns */
    POLICY_ENV_UNSET,  /* a pattern */
};

/* Environment rules apply in order; the last one that matches a name decides. */
struct policy_env {
    enum policy_env_kind kind;
    char *name;  /* or the pattern */
    char *value; /* POLICY_ENV_SET */
    char *origin;
};

/* A file that is created in a private directory of the jail. */
struct policy_file {
    const char *dest; /* absolute; borrowed, as is the data */
    const void *data;
    size_t length;
    unsigned mode;
};

/* A directory on a tmpfs of the jail. */
struct policy_private {
    char *dest; /* absolute, normalised */
    char *origin;
    bool read_only;
    bool kept; /* the caller gets an fd of it */
};

struct policy_private_file {
    char *dest;
    void *bytes;
    size_t length;
    mode_t mode;
    bool late; /* empty until job_release() fills it */
};

/* ---- The network of a policy -------------------------------------------------------------- */

#define POLICY_PUBLISH_MAX 32
#define POLICY_INJECT_MAX 16
#define POLICY_INJECT_WORDS_MAX 32 /* methods, paths or headers of one inject */
#define POLICY_SECRET_MAX 4096
#define POLICY_NO_PROXY_MAX 64

/* The address of injected credentials inside: a loopback address without other uses. */
#define POLICY_INJECT_ADDRESS "127.18.0.1"
#define POLICY_INJECT_PORT 8001 /* of the first inject; the others follow */
#define POLICY_INJECT_URL_MAX 64
#define POLICY_SITE_PORT 80
/* The address of the proxies inside. */
#define POLICY_PROXY_ADDRESS "198.18.0.3"
#define POLICY_PROXY_HTTP_PORT 3128
#define POLICY_PROXY_SOCKS_PORT 1080
#define POLICY_PROXY_HTTP_URL "http://" POLICY_PROXY_ADDRESS ":3128"
#define POLICY_PROXY_SOCKS_URL "socks5h://" POLICY_PROXY_ADDRESS ":1080"

/* A rule as it was written, for messages; policy_net.rules has the parsed rules. */
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
    char *site;    /* see struct brig_inject, or NULL */
    char *site_address;
    char *name;   /* the host it stands for */
    char *header; /* that is added, */
    char *secret; /* with this value; wiped on release */
    char *upstream;
    bool is_live; /* the secret is refreshed during the run: it is live secret `live` */
    unsigned live;
    char *variable;                   /* gets the URL inside; or NULL */
    char **methods, **paths, **strip; /* terminated by NULL; NULL: none */
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
    bool ask;           /* with BRIG_NET_ALLOW: other names wait for the user's answer */
    int live_fd;        /* with is_live: the memfd of live secrets (broker_wire.h), borrowed */
    bool proxy_env;     /* set the usual variables to the proxies inside */
    char *broker;       /* the program, absolute; NULL: the installed one */
    char *ca;           /* CA certificates for the upstreams of credentials, or NULL */
    char *proxy;        /* HOST:PORT of the host's proxy, or NULL */
    char *proxy_secret; /* the value for its Proxy-Authorization, or NULL */
    char **no_proxy;    /* suffixes of names that bypass the proxy, terminated by NULL; or NULL */
};

/* ---- The policy --------------------------------------------------------------------------- */

struct facts;
struct mountinfo_table;

struct brig_policy {
    struct arena arena; /* of all texts and of the contents of files */
    enum brig_mode mode;
    enum brig_view view;
    char *root_path; /* BRIG_VIEW_ROOT */
    char **layers;   /* VIEW_LAYERS, the top one first; in the arena */
    size_t layer_count;
    struct policy_grant *grants;
    size_t grant_count;
    struct policy_file file; /* unused if dest is NULL */
    struct policy_private *privates;
    size_t private_count;
    struct policy_private_file *files; /* in private directories */
    size_t file_count;
    struct policy_env *env;
    size_t env_count;
    bool host_env;              /* envp is the host's: leave out what the mode does not pass on */
    uid_t host_uid, inside_uid; /* (uid_t)-1: choose */
    gid_t host_gid, inside_gid;
    const char *jail_name; /* for attaching to the run, borrowed; NULL: not possible */
    bool stranger;         /* host_uid is isolated: grants are id-mapped to it */
    uid_t owner;           /* if they belong to this user; root's own jail may have any owner */
    char *user_name, *home, *shell; /* NULL: choose */
    enum brig_network network;
    struct policy_net net; /* of a network with a door */
    enum brig_seccomp seccomp;
    uint64_t limits[BRIG_LIMIT_COUNT_];
    unsigned limits_asked;           /* one bit each: set by the caller, not by the mode */
    uint64_t stack_bytes;            /* of each process's first thread; 0: as the caller's */
    struct rlimit files_before;      /* the limits of open files, before a front end raised them */
    char disk_lack[POLICY_LACK_MAX]; /* why disk limits do not cover the home; "": they do */
    enum brig_terminal terminal;
    char *workdir; /* NULL: choose */
    char *hostname;
    char *gitconfig; /* the jail's /etc/gitconfig, in a view of the system; NULL: none */
    bool allow_nested;
    bool unix_sockets; /* without namespaces and network */
    bool trace;        /* report the system calls that were refused */
    bool watch_nested; /* without `trace`: notice that namespaces were refused */
    bool late_input;   /* job_release() provides standard input */
    /* The jail stays when its command has ended, until its job is cancelled or freed. Other commands
     * are started in it, each in a cgroup of its own. */
    bool held;
    enum brig_on_unsupported on_unsupported;
    unsigned disabled_layers; /* enum brig_layer */
    char *origin;             /* for rules added from now on */
    const struct mountinfo_table
        *mounts; /* as the front end has read them, borrowed; NULL: not read */
    /* For a plan that is only printed (see facts.h), borrowed: the kernel is not asked, and nothing
     * is created on the host. NULL in every policy that is run. */
    const struct facts *facts;
};

/* Whether a broker outside decides what the jail reaches. */
static inline bool policy_has_door(const struct brig_policy *policy)
{
    return policy->network == BRIG_NET_ALLOW || policy->network == BRIG_NET_OPEN;
}

/* ---- Modes and words ---------------------------------------------------------------------- */

/* The kind of the home directory. The engine only knows the first; a front end that keeps jails on
 * disk creates the others and passes them as mounts. */
enum policy_home {
    POLICY_HOME_SCRATCH, /* empty, and deleted after the run */
    POLICY_HOME_PRIVATE, /* a persistent directory of the jail */
    POLICY_HOME_OVERLAY, /* the user's, copy-on-write */
};

struct policy_mode {
    enum brig_view view;
    enum brig_network network;
    enum brig_seccomp seccomp;
    enum policy_home home;
    /* Variables of the caller's environment that are passed on, terminated by NULL; NULL: all. */
    const char *const *env_keep;
    uint64_t limits[BRIG_LIMIT_COUNT_];
};

/* The row of a mode, static; NULL for an invalid value. */
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

/* The word for a value, "?" if it is invalid; the value of a word, or -1. */
const char *policy_word(enum policy_vocabulary of, int value);
/* The word for the network of a policy, as for --net. */
static inline const char *policy_network_word(const struct brig_policy *policy)
{
    return policy->network == BRIG_NET_ALLOW && policy->net.ask
               ? "ask"
               : policy_word(POLICY_NETWORK, (int)policy->network);
}
int policy_word_value(enum policy_vocabulary of, const char *word);
/* "a, b or c", for messages; static text. */
const char *policy_choices(enum policy_vocabulary of);

/* ---- Builders in addition to the public ones ---------------------------------------------- */

/* Moves a detached mount (an fd of open_tree() or fsmount()) to dest, for one run. Its contents
 * belong to the jail, and mount points for other grants are created in it. `source` is the text
 * shown for it. The caller owns the fd and keeps it open until the run has started. */
int policy_mount(struct brig_policy *policy, int fd, const char *source, const char *dest,
                 struct brig_error *err);

/* Grants the file of an fd by the kernel's name for it: if the name leads to another file when it
 * is mounted, the run does not start. The caller owns the fd and keeps it open until the run has
 * started, so that no other file can get its inode number. */
int policy_grant_fd(struct brig_policy *policy, enum brig_access access, int fd, const char *dest,
                    struct brig_error *err);

/* Adds a file in a private directory that is empty until job_release() fills it; at most one. */
int policy_late_file(struct brig_policy *policy, const char *dest, mode_t mode,
                     struct brig_error *err);

/* The rule that decides about a path: the most specific one, and the last of several for the same
 * path. NULL if there is none. */
const struct policy_grant *policy_rule_of(const struct brig_policy *policy, const char *path);

/* Removes the rules, or only the masks, for exactly this path and returns their number. */
size_t policy_remove_grants(struct brig_policy *policy, const char *dest, bool masks_only);

/* A copy of the text that lives as long as the policy; NULL gives NULL. */
int policy_text(struct brig_policy *policy, const char *text, char **ret_text,
                struct brig_error *err);

/* Gives the jail an isolated host uid, which only root can; its uid inside does not change. The uid
 * is from a range that no distribution assigns, and always the same for the same user. */
void policy_use_isolated_uid(struct brig_policy *policy, uid_t user);
/* The uid of an isolated jail that acts for a user, 0 for root itself: from the range of `brig` in
 * /etc/subuid, else from the built-in range. */
uid_t policy_isolated_uid(uid_t user);

/* Checks the policy as a whole: returns 0, or BRIG_E_INVALID naming the rule. */
int policy_validate(const struct brig_policy *policy, struct brig_error *err);

/* Builds the environment of the command from the caller's envp (NULL: empty) and the policy's
 * rules: a NULL-terminated array in one allocation, for free(). The last value of a duplicate name
 * wins. Malformed entries of envp (no '=') are dropped. */
int policy_environment(const struct brig_policy *policy, const char *const *envp, char ***ret_env,
                       struct brig_error *err);

/* The last rule that matches a variable with this value, or NULL. */
const struct policy_env *policy_env_rule(const struct brig_policy *policy, const char *name,
                                         size_t length, const char *value);

/* Whether an environment filter matches this variable: a pattern for its name, ignoring case, or a
 * pattern that contains "://", for a URL in its value. */
bool policy_filter_matches(const char *pattern, const char *name, size_t name_length,
                           const char *value);

/* Whether the pattern, in which '*' matches any characters and '\' quotes, matches the text. */
bool policy_pattern_matches(const char *pattern, const char *text);

/* ---- Credentials -------------------------------------------------------------------------- */

/* The URL of a credential inside: "http://127.18.0.1:8001". */
void policy_inject_url(const struct policy_inject *inject, char url[POLICY_INJECT_URL_MAX]);
/* Wipes the secrets of a policy, which are not needed once a run has started. */
void policy_forget_secrets(struct brig_policy *policy);
/* Wipes and frees a secret outside a policy. Accepts NULL. */
void policy_free_secret(char *secret);

/* ---- For the files of this folder --------------------------------------------------------- */

/* Refuses a value outside an enumeration; `choices` lists the valid ones. */
int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices);
/* Calls path_normalise() and stores the result in the policy; error messages begin with `what`. */
int policy_path(struct brig_policy *policy, const char *what, const char *path, unsigned flags,
                char **ret_path, struct brig_error *err);
/* Whether a grant with this access and source may be at dest (normalised). BRIG_E_INVALID names the
 * path and the reason. */
int policy_check_grant(enum brig_access access, const char *source, const char *dest,
                       struct brig_error *err);

/* A copy of an array, for realloc(). If memory is lacking it is NULL, *count is 0 and arena->failed
 * is set. */
void *policy_copy_items(struct arena *arena, const void *items, size_t *count, size_t size);
/* Replaces texts that are shared with another policy by copies in the arena; NULL if memory is
 * lacking. */
#define policy_own(arena, ...) policy_own_all(arena, (char **const[]){__VA_ARGS__, NULL})
void policy_own_all(struct arena *arena, char **const *texts);
/* Replace the arrays and texts that a copy shares with its original. If memory is lacking,
 * arena->failed is set; then nothing is shared either. */
void policy_unshare_layers(struct brig_policy *copy);
void policy_unshare_private(struct brig_policy *copy);
void policy_unshare_net(struct brig_policy *copy);
void policy_private_done(struct brig_policy *policy);
/* Wipes a secret of a policy. Accepts NULL. */
void policy_wipe(char *secret);

/* A range of user ids. */
struct policy_range {
    uint32_t first, count;
};
/* The range for jails in the text of /etc/subuid: its first usable line for "brig". Without one, or
 * without a file (NULL), the built-in range. */
struct policy_range policy_find_range(FILE *file);
