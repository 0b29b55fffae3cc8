/* SPDX-License-Identifier: MIT */
/* libbrig: run a command in a jail and get a typed result.
 *
 * The order of use: build a policy (plain data, checked as it is built), then either brig_run() it,
 * or brig_start() it and drive the job from your own event loop. The library installs no signal
 * handler, keeps no global state, never prints and never reads the environment. If one of the fds 0 to
 * 2 is closed, /dev/null is opened there, so that no jail inherits something else. Every function may
 * be called from any thread; one object must not be used from two threads at once, except for a
 * template, a policy that no thread changes, and a result.
 *
 * A pointer may be NULL where the description of the function says so, and `err` always may. Everything
 * else that a program passes is checked, and BRIG_E_INVALID names the value that is wrong.
 *
 * What later versions may change, so that a program built against this header goes on working with
 * them (docs/libbrig/abi.md has the whole policy):
 *  - Objects are opaque: the library allocates them, functions read them.
 *  - A struct that the caller fills begins with its size. Begin with its BRIG_…_INIT; members may be
 *    added at its end.
 *  - A struct that the library returns by pointer may grow at its end: never copy or allocate one by
 *    its size.
 *  - struct brig_error, struct brig_stdio and struct brig_pass_fd do not change.
 *
 * The header is plain C from C89 to C23, and C++ from C++11 on. */
#ifndef BRIG_BRIG_H
#define BRIG_BRIG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. BRIG_VERSION_NUMBER is 0xMMmmpp: two hexadecimal digits each. */
#define BRIG_VERSION_MAJOR 0
#define BRIG_VERSION_MINOR 2
#define BRIG_VERSION_PATCH 0
#define BRIG_VERSION_NUMBER                                                                        \
    ((BRIG_VERSION_MAJOR << 16) | (BRIG_VERSION_MINOR << 8) | BRIG_VERSION_PATCH)
#define BRIG_VERSION "0.2.0"

/* The version of the library in use, as BRIG_VERSION. */
const char *brig_version(void);
/* The version of the library in use, as BRIG_VERSION_NUMBER. */
int brig_version_number(void);

/* Frees a text that the library allocated. Accepts NULL. */
void brig_text_free(char *text);

/* ---- Errors ------------------------------------------------------------------------------- */

/* Functions that can fail return 0 (or a count) or one of these. The values are stable. */
enum brig_code {
    BRIG_OK = 0,
    BRIG_E_INVALID = -1,     /* a value given by the caller is wrong; the message names it */
    BRIG_E_NOMEM = -2,       /* out of memory */
    BRIG_E_SYSTEM = -3,      /* the system refused something that normally works */
    BRIG_E_UNSUPPORTED = -4, /* this kernel or this system cannot enforce what was asked */
    BRIG_E_SETUP = -5,       /* the jail could not be built; the message names step and path */
    BRIG_E_NOT_FOUND = -6,   /* the command does not exist inside the jail */
    BRIG_E_NOT_EXEC = -7,    /* the command exists but cannot be executed */
    BRIG_E_STATE = -8        /* the call does not fit the state of the object */
};

/* The size of a message with its NUL. */
#define BRIG_MESSAGE_MAX 1024

/* Plain data owned by the caller, nothing to release. Pass NULL where no detail is wanted. */
struct brig_error {
    int code;      /* an enum brig_code */
    int sys_errno; /* the errno behind it, or 0 */
    char message[BRIG_MESSAGE_MAX];
};

/* ---- Policy ------------------------------------------------------------------------------- */

/* What a jail may do: plain data, checked as it is built. */
struct brig_policy;

/* A mode is a preset of all settings. Only BRIG_MODE_SEALED has limits. */
enum brig_mode {
    BRIG_MODE_SEALED, /* system directories, grants, private /tmp, no network, profile `code` */
    /* The following have the network BRIG_NET_OPEN: */
    BRIG_MODE_CASUAL, /* the host read-only, for a home that is a copy-on-write overlay */
    BRIG_MODE_BARE,   /* the host read-only, with an empty home */
    BRIG_MODE_STRICT  /* system directories and grants alone, with an empty home */
};

/* The filesystem of the jail, before grants are added. */
enum brig_view {
    BRIG_VIEW_SYSTEM, /* /usr, /bin, /lib* and the files of /etc that programs need; read-only */
    BRIG_VIEW_HOST,   /* the whole host, read-only, with private /tmp, /run, /dev, /proc */
    BRIG_VIEW_ROOT,   /* a directory of the caller's as root, read-only unless granted */
    BRIG_VIEW_EMPTY   /* nothing but /dev, /proc and the private directories */
};

/* What a grant allows. */
enum brig_access {
    BRIG_READ_WRITE,
    BRIG_READ_ONLY,
    BRIG_MASK,   /* the path is hidden: an empty file or directory is in its place */
    BRIG_DEVICE, /* a device node, or a directory of them, usable as such */
    BRIG_PROTECT /* inside a read-write grant: the jail can read the path, but not write, move or
                   * replace it; if the host replaces it, the new file is protected */
};

/* Bits for brig_policy_grant(). */
enum brig_grant_flag {
    BRIG_GRANT_OPTIONAL = 1 << 0, /* a missing source is not an error */
    BRIG_GRANT_CREATE = 1 << 1    /* a missing source is created as a directory, outside */
};

/* The network of the jail. */
enum brig_network {
    BRIG_NET_NONE, /* a private network namespace with loopback only */
    BRIG_NET_HOST, /* the caller's network */
    /* A private network namespace with a door: a broker outside the jail decides which connections
     * are made. */
    BRIG_NET_ALLOW,   /* only destinations of brig_policy_allow() */
    BRIG_NET_OPEN,    /* every public address; never the host's loopback, the local network or a
                     * cloud's metadata, unless they are allowed as addresses */
    BRIG_NET_LOOPBACK /* as BRIG_NET_NONE, but BRIG_SECCOMP_CODE allows sockets and shared memory,
                        * so that servers and clients can run in the jail */
};

/* A syscall profile. */
enum brig_seccomp {
    BRIG_SECCOMP_DEV, /* a deny-list: for agents and build tools */
    BRIG_SECCOMP_CODE /* deny by default: Python, Node, shells */
};

/* All limits: 0 means none. Times in milliseconds, sizes in bytes. Limits marked with a star apply
 * to the whole jail and need a cgroup. Without a cgroup, the limits of a mode are replaced as far
 * as possible, and the result says how; for limits that were set with brig_policy_limit(),
 * brig_policy_on_unsupported() decides. */
enum brig_limit {
    BRIG_LIMIT_WALL_MS,
    BRIG_LIMIT_CPU_MS,        /* of the whole tree */
    BRIG_LIMIT_GRACE_MS,      /* between TERM and KILL; 0 kills at once */
    BRIG_LIMIT_ADDRESS_SPACE, /* per process */
    BRIG_LIMIT_FILE_SIZE,     /* per file */
    BRIG_LIMIT_OPEN_FILES,    /* per process */
    BRIG_LIMIT_PROCESSES,     /* * and threads */
    BRIG_LIMIT_OUTPUT_BYTES,  /* per captured stream; more is drained and marked */
    BRIG_LIMIT_TMP_BYTES,     /* all private directories together */
    BRIG_LIMIT_TMP_INODES,
    BRIG_LIMIT_MEMORY_BYTES,    /* * memory, page cache and tmpfs included, and no swap beyond it */
    BRIG_LIMIT_CPU_PERCENT,     /* * of one core: 150 is one and a half */
    BRIG_LIMIT_IO_READ_BYTES,   /* * a second, from each disk; cgroup v2 only */
    BRIG_LIMIT_IO_WRITE_BYTES,  /* * the same, to each disk */
    BRIG_LIMIT_INOTIFY_WATCHES, /* of all processes in the jail */
    /* Of what goes through the network door: */
    BRIG_LIMIT_NET_CONNECTIONS, /* at a time; 0: the broker's own limit of 1024 */
    BRIG_LIMIT_NET_BYTES,       /* both directions together; more ends every connection */
    BRIG_LIMIT_NET_IDLE_MS,     /* of a connection without a byte either way */
    BRIG_LIMIT_COUNT_           /* not a limit */
};

/* What happens if this system cannot enforce something. */
enum brig_on_unsupported {
    BRIG_UNSUPPORTED_FAIL,  /* the run does not start (the default) */
    BRIG_UNSUPPORTED_WARN,  /* the run has fewer restrictions; the result lists what is missing */
    BRIG_UNSUPPORTED_IGNORE /* the same, and programs print no warning */
};

/* How a terminal of the caller is handled. */
enum brig_terminal {
    BRIG_TERMINAL_AUTO, /* each of fds 0-2 that is a terminal is replaced by the jail's own pty */
    BRIG_TERMINAL_NONE  /* a terminal on fds 0-2 is replaced by /dev/null */
};

/* Layers that may be switched off, for finding out which one stops a program, and for proving
 * that the others hold. Every one switched off is listed in the result. */
enum brig_layer {
    BRIG_LAYER_LANDLOCK = 1 << 0,
    BRIG_LAYER_SECCOMP = 1 << 1,
    BRIG_LAYER_CAPS = 1 << 2,       /* dropping capabilities and the bounding set */
    BRIG_LAYER_NAMESPACES = 1 << 3, /* all namespaces, and with them the filesystem view */
    BRIG_LAYER_NESTED = 1 << 4      /* user.max_user_namespaces=0 inside the jail */
};

/* An id that the library chooses: (uid_t)-1. */
#define BRIG_ID_CHOOSE 0xffffffffu

/* The user and the ids of a jail. Begin with BRIG_IDENTITY_INIT. Ids of BRIG_ID_CHOOSE and NULL
 * strings mean: choose. On the host the jail is never uid 0: when the caller is root and says
 * nothing, a dedicated unprivileged id is used. */
struct brig_identity {
    size_t size; /* of this struct */
    uid_t host_uid;
    gid_t host_gid;
    uid_t inside_uid;
    gid_t inside_gid;
    const char *name;  /* in the jail's passwd */
    const char *home;  /* absolute */
    const char *shell; /* absolute */
};

/* An identity in which the library chooses everything. */
#define BRIG_IDENTITY_INIT                                                                         \
    {                                                                                              \
        sizeof(struct brig_identity), BRIG_ID_CHOOSE, BRIG_ID_CHOOSE, BRIG_ID_CHOOSE,              \
            BRIG_ID_CHOOSE, NULL, NULL, NULL                                                       \
    }

/* A new policy with the preset's values; NULL if memory is short or the mode is unknown. Free
 * with brig_policy_free. */
struct brig_policy *brig_policy_new(enum brig_mode mode);
/* A copy of a policy, or NULL if memory is short. */
struct brig_policy *brig_policy_copy(const struct brig_policy *policy);
/* Releases a policy. Accepts NULL. Jobs and templates that were made from it go on. */
void brig_policy_free(struct brig_policy *policy);

/* Where the rules added from now on come from ("brig.conf:12", "command line"); shown by
 * explain. */
int brig_policy_origin(struct brig_policy *policy, const char *origin, struct brig_error *err);

/* Replaces the mode's view. root_path is the directory of BRIG_VIEW_ROOT, else NULL. */
int brig_policy_view(struct brig_policy *policy, enum brig_view view, const char *root_path,
                     struct brig_error *err);
/* Grants source (absolute, host side) at dest (absolute, jail side; NULL: the same path). The most
 * specific destination wins whatever the order; of two rules for one destination, the later. */
int brig_policy_grant(struct brig_policy *policy, enum brig_access access, const char *source,
                      const char *dest, unsigned flags, struct brig_error *err);
/* Removes every earlier rule for exactly this destination; *ret_removed (may be NULL) counts. */
int brig_policy_ungrant(struct brig_policy *policy, const char *dest, size_t *ret_removed,
                        struct brig_error *err);
/* A private directory at dest: in memory, counted with its /tmp (BRIG_LIMIT_TMP_BYTES), gone
 * with the jail. BRIG_READ_WRITE, or BRIG_READ_ONLY for one that holds what brig_policy_file() puts
 * there and nothing else. A grant of the same destination wins. Needs namespaces: where there are
 * none, the run does not start. */
int brig_policy_private(struct brig_policy *policy, enum brig_access access, const char *dest,
                        struct brig_error *err);
/* A file in a private directory: one of brig_policy_private(), /tmp, /run or the home. The
 * directories above it are made. `mode` has no more than the nine bits of permission. The bytes are
 * copied. */
int brig_policy_file(struct brig_policy *policy, const char *dest, const void *bytes, size_t length,
                     mode_t mode, struct brig_error *err);
/* Keeps the directory that brig_policy_private() made at dest beyond the jail's end, for
 * brig_job_kept_dir(). One in each policy. */
int brig_policy_keep(struct brig_policy *policy, const char *dest, struct brig_error *err);
/* The user and the ids of the jail, see struct brig_identity. The strings are copied. */
int brig_policy_identity(struct brig_policy *policy, const struct brig_identity *identity,
                         struct brig_error *err);
/* Replaces the mode's network. */
int brig_policy_network(struct brig_policy *policy, enum brig_network network,
                        struct brig_error *err);
/* A destination that can be reached with BRIG_NET_ALLOW and BRIG_NET_OPEN: "NAME[:PORTS][/tls]",
 * "*.NAME", "*", an address or a range of them with PORTS, "host:PORT" for a service on the host's
 * own loopback, or "@PRESET". Without ports: 443 and 80. A rule does not change the network: with
 * another one, such as the BRIG_NET_NONE of BRIG_MODE_SEALED, it has no effect. */
int brig_policy_allow(struct brig_policy *policy, const char *rule, struct brig_error *err);
/* A destination that cannot be reached, written like that of brig_policy_allow(). Without ports:
 * all of them. A denial wins over every brig_policy_allow(). */
int brig_policy_deny(struct brig_policy *policy, const char *rule, struct brig_error *err);
/* Makes a port of the jail's loopback reachable from the host: "[ADDRESS:]HOSTPORT:PORT", by
 * default on 127.0.0.1, or "PORT" for the same number on both sides. Needs a network with a
 * door. */
int brig_policy_publish(struct brig_policy *policy, const char *what, struct brig_error *err);
/* Sets HTTP_PROXY, HTTPS_PROXY and so on to the proxies that every jail with a door has. */
int brig_policy_proxy_env(struct brig_policy *policy, int on, struct brig_error *err);
/* The host's own HTTP proxy, "HOST:PORT", through which the broker connects; `secret` is its
 * Proxy-Authorization or NULL, `no_proxy` is NULL, or an array, ended by NULL, of suffixes of names
 * to which the broker connects directly. */
int brig_policy_net_proxy(struct brig_policy *policy, const char *proxy, const char *secret,
                          const char *const *no_proxy, struct brig_error *err);
/* The broker program, absolute; by default the one that was installed with the library. */
int brig_policy_broker(struct brig_policy *policy, const char *path, struct brig_error *err);

/* A credential that never enters the jail. Inside there is plain HTTP at a loopback address, which
 * `variable` names; outside, the broker adds `header` with `value` and speaks TLS with `upstream`.
 * `name` itself can no longer be reached through the door. Begin with BRIG_INJECT_INIT. */
struct brig_inject {
    size_t size;          /* of this struct */
    const char *name;     /* "api.example.com" */
    const char *header;   /* "authorization" */
    const char *value;    /* the secret, as it stands in the header */
    const char *upstream; /* "https://HOST[:PORT][/PREFIX]", or NULL: https://NAME */
    const char *variable; /* environment variable in the jail, or NULL */
    const char *suffix;   /* text after the address in the variable ("/v1"), or NULL */
    const char *ca;       /* a file of certificates to trust instead of the system's, absolute, or
                           * NULL; the last one given holds for all credentials */
    /* Each ended by NULL; NULL means all, or none. */
    const char *const *methods; /* that are allowed */
    const char *const *paths;   /* what the path must begin with, "." and ".." being resolved */
    const char *const *strip;   /* more headers of the client that are removed */
    const char *site; /* a name that ends with ".localhost": the credential is at http://SITE as
                       * well, for programs that cannot be told a port; or NULL */
};

/* A credential with nothing set. */
#define BRIG_INJECT_INIT                                                                           \
    {                                                                                              \
        sizeof(struct brig_inject), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,    \
            NULL                                                                                   \
    }

/* Adds a credential, see struct brig_inject. All strings are copied. */
int brig_policy_inject(struct brig_policy *policy, const struct brig_inject *inject,
                       struct brig_error *err);

/* Replaces the mode's syscall profile. */
int brig_policy_seccomp(struct brig_policy *policy, enum brig_seccomp profile,
                        struct brig_error *err);
/* Replaces a limit of the mode; 0 for none. */
int brig_policy_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value,
                      struct brig_error *err);
/* Sets NAME=VALUE inside; a NULL value re-exposes the caller's NAME past earlier unset patterns. */
int brig_policy_setenv(struct brig_policy *policy, const char *name, const char *value,
                       struct brig_error *err);
/* Removes names matching a pattern in which `*` stands for any characters, whatever their case. A
 * pattern with "://" in it is for addresses in values, as in scheme://user:secret@host. */
int brig_policy_unsetenv(struct brig_policy *policy, const char *pattern, struct brig_error *err);
/* Says that the envp of commands is the host's environment: what the mode does not pass on is left
 * out. BRIG_MODE_SEALED passes on PATH, LANG, LANGUAGE, LC_*, TERM, COLORTERM, TZ and NO_COLOR, the
 * others all. Without this a variable that is not passed on is an error, unless
 * brig_policy_setenv() or brig_policy_unsetenv() names it. */
int brig_policy_host_env(struct brig_policy *policy, int on, struct brig_error *err);
/* How a terminal among the command's fds 0 to 2 is handled. */
int brig_policy_terminal(struct brig_policy *policy, enum brig_terminal terminal,
                         struct brig_error *err);
/* The directory in which the command starts: absolute, jail side. Default: the first read-write
 * grant, else the home where the view has one, else /. */
int brig_policy_workdir(struct brig_policy *policy, const char *path, struct brig_error *err);
/* The host name inside; "brig" without this. */
int brig_policy_hostname(struct brig_policy *policy, const char *name, struct brig_error *err);
/* Lets programs with a sandbox of their own make user namespaces inside. */
int brig_policy_allow_nested(struct brig_policy *policy, int allow, struct brig_error *err);
/* Functions without namespaces (brig_call_run(), brig_confine_self()): lets them make UNIX
 * sockets, which they cannot otherwise, whatever their network. Such a function can connect to
 * every socket of the user's that Landlock does not keep from it: by path from ABI 9 on, abstract
 * ones from ABI 6 on. Other jails have a view of their own, and can always make them. */
int brig_policy_unix_sockets(struct brig_policy *policy, int allow, struct brig_error *err);
/* Lists the system calls that the filter refused a command in its result. They are still refused,
 * but each waits until brig_job_process() is called. Functions have an option of their own, see
 * call.h. */
int brig_policy_trace(struct brig_policy *policy, int trace, struct brig_error *err);
/* What happens if this system cannot enforce something that the policy demands. */
int brig_policy_on_unsupported(struct brig_policy *policy, enum brig_on_unsupported what,
                               struct brig_error *err);
/* Switches layers off: bits of enum brig_layer. */
int brig_policy_disable(struct brig_policy *policy, unsigned layers, struct brig_error *err);

/* The effective policy as text for people, or as one JSON object if `json` is not 0. Free *ret_text
 * with brig_text_free(). */
int brig_policy_explain(const struct brig_policy *policy, int json, char **ret_text,
                        struct brig_error *err);

/* ---- Commands ----------------------------------------------------------------------------- */

/* Where one of the command's fds 0 to 2 leads. */
enum brig_stdio_kind {
    BRIG_STDIO_NULL,    /* /dev/null of the jail */
    BRIG_STDIO_INHERIT, /* the caller's fd of the same number */
    BRIG_STDIO_FD,      /* the fd given */
    BRIG_STDIO_CAPTURE, /* 1 and 2 only: collected into the result, up to the output limit */
    BRIG_STDIO_BYTES,   /* 0 only: the bytes given, then end of file */
    BRIG_STDIO_PIPE,    /* a pipe, of which brig_job_stream() is the caller's end */
    BRIG_STDIO_PTY,   /* a terminal made for this job, of which brig_job_terminal() is the caller's
                         * side; several fds with this kind are one terminal */
    BRIG_STDIO_STDOUT /* 2 only: wherever fd 1 leads, as 2>&1 in a shell; what is captured is the
                         * output of stream 1 */
};

/* One of the command's fds 0 to 2. */
struct brig_stdio {
    enum brig_stdio_kind kind;
    int fd;            /* BRIG_STDIO_FD; stays the caller's */
    const void *bytes; /* BRIG_STDIO_BYTES; borrowed until the job is done */
    size_t length;
};

/* An fd handed into the jail on purpose, under the number wanted there (3 to 255). */
struct brig_pass_fd {
    int fd;
    int number;
};

/* The most fds that can be handed into a jail. */
#define BRIG_PASS_FD_MAX 32

/* What to run. Begin with BRIG_COMMAND_INIT. All pointers are borrowed during the call only, but
 * for BRIG_STDIO_BYTES. A name without a slash is looked up in the jail along the jail's PATH. */
struct brig_command {
    size_t size;             /* of this struct */
    const char *const *argv; /* NULL-terminated, argv[0] is the program */
    const char *const *envp; /* the environment; NULL: an empty one. See brig_policy_host_env() */
    struct brig_stdio stdio[3];
    const struct brig_pass_fd *pass_fds;
    size_t pass_fd_count;
};

/* A command with nothing set; its fds 0 to 2 are /dev/null. */
#define BRIG_COMMAND_INIT                                                                          \
    {                                                                                              \
        sizeof(struct brig_command), NULL, NULL,                                                   \
            {{BRIG_STDIO_NULL, -1, NULL, 0},                                                       \
             {BRIG_STDIO_NULL, -1, NULL, 0},                                                       \
             {BRIG_STDIO_NULL, -1, NULL, 0}},                                                      \
            NULL, 0                                                                                \
    }

/* ---- Results ------------------------------------------------------------------------------ */

/* How a command ended. */
enum brig_outcome {
    BRIG_EXITED,       /* exit_code */
    BRIG_SIGNALLED,    /* signal */
    BRIG_TIMEOUT,      /* wall clock */
    BRIG_CPU_TIMEOUT,  /* CPU time of the tree */
    BRIG_OOM,          /* the kernel killed it for the memory limit */
    BRIG_OUTPUT_LIMIT, /* reserved for policies that end a run at the output limit */
    BRIG_DISK_LIMIT, /* reserved, as the next two: a command that is refused a byte, a process or */
    BRIG_PIDS_LIMIT, /* a system call decides itself how it ends */
    BRIG_DENIED,
    BRIG_SETUP_FAILED, /* error says why; nothing of the command ran */
    BRIG_CANCELLED     /* brig_job_cancel() */
};

/* What a run used. */
struct brig_usage {
    uint64_t wall_us;
    uint64_t cpu_user_us; /* of the whole tree */
    uint64_t cpu_sys_us;
    uint64_t
        peak_memory_bytes; /* of the whole jail, if it had a cgroup for memory; else the largest
                                 * resident set of one process; 0: not known */
    uint64_t peak_pids;    /* 0: not known */
    uint64_t out_bytes[2]; /* bytes the command wrote to captured stdout, stderr */
    /* Of a jail with a cgroup: */
    uint64_t oom_kills;        /* processes the kernel killed for the memory limit */
    uint64_t pids_refused;     /* processes and threads refused for their limit */
    uint64_t cpu_throttled_us; /* time the jail had to wait for its CPU limit */
    int stuck_pid;             /* a process in uninterruptible sleep that could not be ended yet; it
                                * ends when the kernel allows it, and is reaped then; else 0 */
};

/* A system call that the filter refused. clone3 and openat2 are never among them: every program has
 * a fallback for these. */
struct brig_denial {
    char name[32]; /* "ptrace" */
    int sys_errno; /* what it failed with */
    uint64_t count;
};

/* What happened to one attempt to reach something through the network door. */
enum brig_net_verdict {
    BRIG_NET_ALLOWED, /* connected; a BRIG_NET_ENDED of the same connection follows */
    BRIG_NET_DENIED,  /* by a rule, or because no rule allows it */
    BRIG_NET_FAILED,  /* allowed, but there is no such name, no answer, or a limit was met */
    BRIG_NET_ENDED,   /* the end of what was allowed, with its bytes */
    BRIG_NET_WAITING  /* no rule allows it, and it waits until the user of `brig` does */
};

/* One attempt to reach something through the network door. */
struct brig_net_event {
    enum brig_net_verdict verdict;
    const char *because;  /* a word: "rule", "no-rule", "port", "address", …; static */
    const char *via;      /* "dns", "tcp", "http-proxy", "socks", "inject" or "publish"; static */
    unsigned port;        /* 0: only the name was asked for */
    int64_t time_ns;      /* since 1970 */
    uint64_t connection;  /* counts from 1; 0: there is none */
    uint64_t bytes_in;    /* to the jail */
    uint64_t bytes_out;   /* from the jail */
    uint64_t duration_ms; /* of one that ended */
    char name[256];       /* texts may be empty */
    char address[48];
    char rule[320];
    char detail[256]; /* why, in words; of an injected request what it was */
};

/* What went through the network door in all. */
struct brig_net_totals {
    uint64_t allowed;
    uint64_t denied;
    uint64_t failed;
    uint64_t dropped; /* older events that are not in the result */
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* The result of a command. Strings and structs that the functions below return live as long as the
 * result. */
struct brig_result;

/* Releases a result. Accepts NULL. */
void brig_result_free(struct brig_result *result);
/* How the command ended. */
enum brig_outcome brig_result_outcome(const struct brig_result *result);
/* An outcome as a word: "exited", "timeout", … */
const char *brig_outcome_name(enum brig_outcome outcome);
/* The exit code, or -1 if the command did not exit by itself. */
int brig_result_exit_code(const struct brig_result *result);
/* The signal that ended the command, also for timeouts; else 0. */
int brig_result_signal(const struct brig_result *result);
/* A status as of a shell: the exit code; 128 + signal; 124 after a timeout; 125 if the jail could
 * not be built; 126 if the command cannot be executed; 127 if it was not found. */
int brig_result_status(const struct brig_result *result);
/* What the run used. */
const struct brig_usage *brig_result_usage(const struct brig_result *result);
/* Captured output of stream 1 or 2: NUL-terminated beyond its length, "" if nothing was captured,
 * never NULL. *ret_truncated is 1 if there was more than the limit. Both pointers may be NULL. */
const char *brig_result_output(const struct brig_result *result, int stream, size_t *ret_length,
                               int *ret_truncated);
/* Why the jail could not be built (BRIG_SETUP_FAILED); else its code is BRIG_OK. Never NULL. */
const struct brig_error *brig_result_error(const struct brig_result *result);
/* How many restrictions were not enforced, or were switched off. */
size_t brig_result_unenforced_count(const struct brig_result *result);
/* One of them in a short sentence; NULL beyond the last. */
const char *brig_result_unenforced(const struct brig_result *result, size_t index);
/* How many notices there are about masked and protected paths that changed during the run. */
size_t brig_result_notice_count(const struct brig_result *result);
/* One of the notices; NULL beyond the last. */
const char *brig_result_notice(const struct brig_result *result, size_t index);
/* 1 if refused system calls were recorded (brig_policy_trace()). */
int brig_result_traced(const struct brig_result *result);
/* How many kinds of system calls were refused, of the first 32 kinds. */
size_t brig_result_denial_count(const struct brig_result *result);
/* One of the kinds; NULL beyond the last. */
const struct brig_denial *brig_result_denial(const struct brig_result *result, size_t index);
/* How many events of the network door the result holds: the last 1024. */
size_t brig_result_net_count(const struct brig_result *result);
/* One of the events, the oldest first; NULL beyond the last. */
const struct brig_net_event *brig_result_net_event(const struct brig_result *result, size_t index);
/* What went through the network door in all. */
const struct brig_net_totals *brig_result_net_totals(const struct brig_result *result);
/* 1 if the command ran inside another jail that does not allow namespaces. */
int brig_result_inside_jail(const struct brig_result *result);
/* The result as one JSON object without the captured output. Free *ret_text with
 * brig_text_free(). */
int brig_result_json(const struct brig_result *result, char **ret_text, struct brig_error *err);

/* ---- Running ------------------------------------------------------------------------------ */

/* Runs a command in a jail and waits for its end. `policy` may be NULL: that of BRIG_MODE_SEALED. A
 * jail that could not be built is returned as an error code, and as BRIG_SETUP_FAILED in
 * *ret_result; free *ret_result with brig_result_free() in both cases. It is NULL only when memory
 * is short. `ret_result` may be NULL. No stream can be a pipe or a terminal: there is no job to use
 * them with. */
int brig_run(const struct brig_policy *policy, const struct brig_command *command,
             struct brig_result **ret_result, struct brig_error *err);

/* A command that runs, or has ended. It belongs to the process that started it: in one that is forked
 * from that, functions return BRIG_E_STATE, and brig_job_free() leaves the jail alone. */
struct brig_job;

/* Starts a command and returns once it runs (or failed to). `policy` may be NULL, as for
 * brig_run(). Free *ret_job with brig_job_free(). */
int brig_start(const struct brig_policy *policy, const struct brig_command *command,
               struct brig_job **ret_job, struct brig_error *err);
/* An fd that becomes readable when brig_job_process() has something to do. Owned by the job. */
int brig_job_fd(const struct brig_job *job);
/* Handles all pending events without blocking: 1 when the job is over, 0 when it still runs. Time
 * limits and captured output work only while the caller calls this function or waits for the
 * job. */
int brig_job_process(struct brig_job *job, struct brig_error *err);
/* Sends a signal to the command's process group. */
int brig_job_signal(struct brig_job *job, int signal, struct brig_error *err);
/* Ends the job: SIGTERM, the grace period, SIGKILL to all processes. The job is over when
 * brig_job_process() returns 1. */
int brig_job_cancel(struct brig_job *job, struct brig_error *err);
/* Blocks until the job is over. A thread that also has to read a pipe or a terminal of the job must
 * not call this before it has read all: the command waits while the pipe is full. It polls
 * brig_job_fd() beside them instead, see docs/examples/stream.c. */
int brig_job_wait(struct brig_job *job, struct brig_error *err);
/* Blocks until the job is over, at most timeout_ms milliseconds; -1: without limit. 1 when the job
 * is over, 0 when it still runs. */
int brig_job_wait_ms(struct brig_job *job, int64_t timeout_ms, struct brig_error *err);
/* Moves the result out; free *ret_result with brig_result_free(). BRIG_E_STATE before the job is
 * over, and when the result was taken already. */
int brig_job_result(struct brig_job *job, struct brig_result **ret_result, struct brig_error *err);
/* The caller's end of a stream with BRIG_STDIO_PIPE: 0 to write to, 1 and 2 to read from. Else, and
 * after brig_job_close_stream(), -1. It blocks, as pipes do; a caller that wants it otherwise sets
 * O_NONBLOCK. Writing to 0 after the command closed it is EPIPE, and SIGPIPE unless the caller
 * ignores that. Owned by the job; what the command wrote can still be read when the job is over. */
int brig_job_stream(const struct brig_job *job, int stream);
/* Closes the caller's end of a stream: for 0 the command reads the end of the file. BRIG_E_STATE if
 * the stream is not a pipe, or is closed. */
int brig_job_close_stream(struct brig_job *job, int stream, struct brig_error *err);
/* Sets the size of the job's terminal, which is at first that of the caller's terminal, else 24 by
 * 80. The programs in it get SIGWINCH. BRIG_E_STATE if the job has none. */
int brig_job_resize(struct brig_job *job, unsigned rows, unsigned columns, struct brig_error *err);
/* The jail's first process, as seen by the caller: for looking at it in /proc. */
pid_t brig_job_pid(const struct brig_job *job);
/* The master side of the jail's terminal, or -1: made for BRIG_STDIO_PTY, or in place of a terminal
 * that was given as fd 0, 1 or 2. Owned by the job. Reading it fails with EIO when the command has
 * ended and all was read. */
int brig_job_terminal(const struct brig_job *job);
/* The directory of brig_policy_keep(), or -1: an fd to look for files in with openat(), also when
 * the job is over, until it is freed. Owned by the job. What is in it was made by the command:
 * follow no link, and expect anything but regular files as well. */
int brig_job_kept_dir(const struct brig_job *job);
/* The signal that stopped the command (Ctrl-Z), once, else 0. brig_job_signal(job, SIGCONT)
 * continues it. */
int brig_job_take_stop(struct brig_job *job);
/* The next event of the network door that was not taken yet; NULL: there is none. It is valid until
 * the next call of this function for the job. The result has all events, also those taken. */
const struct brig_net_event *brig_job_take_net_event(struct brig_job *job);
/* An event as one JSON object on one line. Free *ret_text with brig_text_free(). */
int brig_net_event_json(const struct brig_net_event *event, char **ret_text,
                        struct brig_error *err);
/* A verdict as a word: "allowed", "denied", … */
const char *brig_net_verdict_name(enum brig_net_verdict verdict);
/* Kills the job's processes if it still runs, reaps them and releases everything. Accepts NULL. */
void brig_job_free(struct brig_job *job);

/* ---- Templates ---------------------------------------------------------------------------- */

/* A jail prepared ahead: namespaces and mounts that do not depend on the run are made once and
 * each start only adds what must be fresh. Runs share nothing writable but what the policy grants
 * them. Several threads may start jobs from one template at the same time. */
struct brig_template;
/* Prepares a jail for a policy, which is copied; NULL as for brig_run(). Free *ret_template with
 * brig_template_free(). */
int brig_template_new(const struct brig_policy *policy, struct brig_template **ret_template,
                      struct brig_error *err);
/* Starts a command in a fresh copy of the prepared jail, like brig_start(). */
int brig_template_start(struct brig_template *template_, const struct brig_command *command,
                        struct brig_job **ret_job, struct brig_error *err);
/* Releases a template; jobs that were started from it go on. Accepts NULL. No other thread may use
 * it then. */
void brig_template_free(struct brig_template *template_);

#ifdef __cplusplus
}
#endif

#include <brig/call.h> /* calling a function in a jail */

#endif
