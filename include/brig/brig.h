/* SPDX-License-Identifier: MIT */
/* libbrig: run a command in a jail and learn precisely what became of it.
 *
 * The order of use: build a policy (plain data, checked as it is built), then either brig_run() it,
 * or brig_start() it and drive the job from your own event loop. The library installs no signal
 * handler, keeps no global state, never prints and never reads the environment. Every function may
 * be called from any thread; one object must not be used from two threads at once. */
#ifndef BRIG_BRIG_H
#define BRIG_BRIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRIG_VERSION "0.1.0"

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
    BRIG_E_STATE = -8,       /* the call does not fit the state of the object */
};

#define BRIG_MESSAGE_MAX 1024

/* Plain data owned by the caller, nothing to release. Pass NULL where no detail is wanted. */
struct brig_error {
    int code;      /* an enum brig_code */
    int sys_errno; /* the errno behind it, or 0 */
    char message[BRIG_MESSAGE_MAX];
};

/* ---- Policy ------------------------------------------------------------------------------- */

struct brig_policy;

/* A mode is a preset: a row of one table. None but SEALED has limits of its own. */
enum brig_mode {
    BRIG_MODE_SEALED, /* system directories, grants, private /tmp, no network, profile `code` */
    /* These three with the network `open`: */
    BRIG_MODE_CASUAL, /* the host read-only, for a home that is a copy-on-write overlay */
    BRIG_MODE_BARE,   /* the host read-only, with an empty home */
    BRIG_MODE_STRICT, /* system directories and grants alone, with an empty home */
};

/* What of the filesystem exists before grants are laid over it. */
enum brig_view {
    BRIG_VIEW_SYSTEM, /* /usr, /bin, /lib*, and of /etc what programs need to run; read-only */
    BRIG_VIEW_HOST,   /* the whole host, read-only, with private /tmp, /run, /dev, /proc */
    BRIG_VIEW_ROOT,   /* a directory of the caller's as root, read-only unless granted */
    BRIG_VIEW_EMPTY,  /* nothing but /dev, /proc and the private directories */
};

enum brig_access {
    BRIG_READ_WRITE,
    BRIG_READ_ONLY,
    BRIG_MASK,    /* the path is hidden: an empty file or directory stands in its place */
    BRIG_DEVICE,  /* a device node, or a directory of them, usable as such */
    BRIG_PROTECT, /* inside a read-write grant: what is there can be read, but not written, moved
                   * or replaced from inside; held again when the host replaces it */
};

enum brig_grant_flag {
    BRIG_GRANT_OPTIONAL = 1 << 0, /* a missing source is no error */
    BRIG_GRANT_CREATE = 1 << 1,   /* a missing source is created as a directory, outside */
};

enum brig_network {
    BRIG_NET_NONE, /* a network namespace of its own with nothing in it but loopback */
    BRIG_NET_HOST, /* the caller's network */
    /* A network namespace of its own with a door in it, behind which a broker outside decides: */
    BRIG_NET_ALLOW,    /* what brig_policy_allow() names can be reached, and nothing else */
    BRIG_NET_OPEN,     /* every public address; never the host's loopback, the local network or a
                     * cloud's metadata, unless they are allowed as addresses */
    BRIG_NET_LOOPBACK, /* as BRIG_NET_NONE; BRIG_SECCOMP_CODE allows sockets and shared memory, too,
                        * so that servers and their clients can run in the jail */
};

enum brig_seccomp {
    BRIG_SECCOMP_DEV,  /* a deny-list: for agents and build tools */
    BRIG_SECCOMP_CODE, /* deny by default: Python, Node, shells */
};

/* All limits: 0 means none. Times in milliseconds, sizes in bytes. Those marked with a star hold for
 * the whole jail through a cgroup. A mode's own value is a best effort: where there is no cgroup, the
 * result says what was done instead. One that was set with brig_policy_limit() is a demand, and
 * brig_policy_on_unsupported() says what follows. */
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
    BRIG_LIMIT_NET_BYTES,       /* both ways together; what goes beyond ends every connection */
    BRIG_LIMIT_NET_IDLE_MS,     /* of a connection without a byte either way */
    BRIG_LIMIT_COUNT_           /* not a limit */
};

enum brig_on_unsupported {
    BRIG_UNSUPPORTED_FAIL,   /* the run does not start (the default) */
    BRIG_UNSUPPORTED_WARN,   /* the run starts on a lower rung; the result lists what is missing */
    BRIG_UNSUPPORTED_IGNORE, /* the same, and fronts do not warn */
};

enum brig_terminal {
    BRIG_TERMINAL_AUTO, /* each of fds 0-2 that is a terminal is replaced by the jail's own pty */
    BRIG_TERMINAL_NONE, /* a terminal on fds 0-2 is replaced by /dev/null */
};

/* Layers that may be switched off, for finding out which one stops a program, and for proving
 * that the others hold. Every one switched off is listed in the result. */
enum brig_layer {
    BRIG_LAYER_LANDLOCK = 1 << 0,
    BRIG_LAYER_SECCOMP = 1 << 1,
    BRIG_LAYER_CAPS = 1 << 2,       /* dropping capabilities and the bounding set */
    BRIG_LAYER_NAMESPACES = 1 << 3, /* all namespaces, and with them the filesystem view */
    BRIG_LAYER_NESTED = 1 << 4,     /* user.max_user_namespaces=0 inside the jail */
};

/* Who the jail is. Ids of (uid_t)-1 and NULL strings mean: choose. On the host the jail is never
 * uid 0: when the caller is root and says nothing, a dedicated unprivileged id is used. */
struct brig_identity {
    uid_t host_uid;
    gid_t host_gid;
    uid_t inside_uid;
    gid_t inside_gid;
    const char *name;  /* in the jail's passwd */
    const char *home;  /* absolute */
    const char *shell; /* absolute */
};

/* A new policy with the preset's values; NULL if memory is short or the mode is none of these. Free
 * with brig_policy_free. */
struct brig_policy *brig_policy_new(enum brig_mode mode);
struct brig_policy *brig_policy_copy(const struct brig_policy *policy);
void brig_policy_free(struct brig_policy *policy); /* accepts NULL */

/* Where the rules added from now on come from ("brig.conf:12", "command line"); shown by explain. */
int brig_policy_origin(struct brig_policy *policy, const char *origin, struct brig_error *err);

/* Another view than the mode's. root_path is the directory of BRIG_VIEW_ROOT, else NULL. */
int brig_policy_view(struct brig_policy *policy, enum brig_view view, const char *root_path,
                     struct brig_error *err);
/* Grants source (absolute, host side) at dest (absolute, jail side; NULL: the same path). The most
 * specific destination wins whatever the order; of two rules for one destination, the later. */
int brig_policy_grant(struct brig_policy *policy, enum brig_access access, const char *source,
                      const char *dest, unsigned flags, struct brig_error *err);
/* Takes back every earlier rule for exactly this destination; *ret_removed (may be NULL) counts. */
int brig_policy_ungrant(struct brig_policy *policy, const char *dest, size_t *ret_removed,
                        struct brig_error *err);
/* A directory of the jail's own at dest: in memory, counted with its /tmp (BRIG_LIMIT_TMP_BYTES), gone
 * with the jail. BRIG_READ_WRITE, or BRIG_READ_ONLY for one that holds what brig_policy_file() puts
 * there and nothing else. A grant of the same destination wins. Needs namespaces: where there are
 * none, the run does not start. */
int brig_policy_private(struct brig_policy *policy, enum brig_access access, const char *dest,
                        struct brig_error *err);
/* A file in a private directory: one of those, /tmp, /run or the home. The directories above it are
 * made. `mode` has no more than the nine bits of permission. The bytes are copied. */
int brig_policy_file(struct brig_policy *policy, const char *dest, const void *bytes, size_t length,
                     mode_t mode, struct brig_error *err);
/* Keeps the directory that brig_policy_private() made at dest beyond the jail's end, for
 * brig_job_kept_dir(). One in each policy. */
int brig_policy_keep(struct brig_policy *policy, const char *dest, struct brig_error *err);
int brig_policy_identity(struct brig_policy *policy, const struct brig_identity *identity,
                         struct brig_error *err);
int brig_policy_network(struct brig_policy *policy, enum brig_network network,
                        struct brig_error *err);
/* Destinations of BRIG_NET_ALLOW and BRIG_NET_OPEN: "NAME[:PORTS][/tls]", "*.NAME", "*", an address
 * or a range of them with PORTS, "host:PORT" for a service on the host's own loopback, or "@PRESET".
 * Without ports: 443 and 80; what is denied is so on all ports. A denial wins. */
int brig_policy_allow(struct brig_policy *policy, const char *rule, struct brig_error *err);
int brig_policy_deny(struct brig_policy *policy, const char *rule, struct brig_error *err);
/* Makes a port of the jail's loopback reachable from the host: "[ADDRESS:]HOSTPORT:PORT", by default
 * on 127.0.0.1. Needs a network with a door. */
int brig_policy_publish(struct brig_policy *policy, const char *what, struct brig_error *err);
/* Sets HTTP_PROXY and its kind to the proxies that every jail with a door has. */
int brig_policy_proxy_env(struct brig_policy *policy, bool on, struct brig_error *err);
/* The host's own HTTP proxy, "HOST:PORT", through which the broker connects; `secret` is its
 * Proxy-Authorization or NULL, `no_proxy` the suffixes of names to go without, ended by NULL, or
 * NULL. */
int brig_policy_net_proxy(struct brig_policy *policy, const char *proxy, const char *secret,
                          const char *const *no_proxy, struct brig_error *err);
/* The broker program, absolute; by default the one that was installed with the library. */
int brig_policy_broker(struct brig_policy *policy, const char *path, struct brig_error *err);

/* A credential that never enters the jail. Inside there is plain HTTP at a loopback address, which
 * `variable` names; outside, the broker adds `header` with `value` and speaks TLS with `upstream`.
 * `name` itself can no longer be reached through the door. All strings are copied. */
struct brig_inject {
    const char *name;     /* "api.example.com" */
    const char *header;   /* "authorization" */
    const char *value;    /* the secret, as it stands in the header */
    const char *upstream; /* "https://HOST[:PORT][/PREFIX]", or NULL: https://NAME */
    const char *variable; /* of the environment inside, or NULL */
    const char *suffix;   /* what is put behind the address in it ("/v1"), or NULL */
    const char *ca;       /* a file of certificates to trust instead of the system's, absolute, or
                           * NULL; the last one given holds for all credentials */
    /* Each ended by NULL; NULL means all, or none. */
    const char *const *methods; /* that are allowed */
    const char *const *paths;   /* what the path must begin with, "." and ".." being resolved */
    const char *const *strip;   /* headers of the client's that are dropped as well */
};
int brig_policy_inject(struct brig_policy *policy, const struct brig_inject *inject,
                       struct brig_error *err);

/* Another syscall profile than the mode's. */
int brig_policy_seccomp(struct brig_policy *policy, enum brig_seccomp profile,
                        struct brig_error *err);
/* Another limit than the mode's; 0 for none. */
int brig_policy_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value,
                      struct brig_error *err);
/* Sets NAME=VALUE inside; a NULL value re-exposes the caller's NAME past earlier unset patterns. */
int brig_policy_setenv(struct brig_policy *policy, const char *name, const char *value,
                       struct brig_error *err);
/* Removes names matching a pattern in which `*` stands for any characters, whatever their case. A
 * pattern with "://" in it is for addresses in values, as in scheme://user:secret@host. */
int brig_policy_unsetenv(struct brig_policy *policy, const char *pattern, struct brig_error *err);
int brig_policy_terminal(struct brig_policy *policy, enum brig_terminal terminal,
                         struct brig_error *err);
/* Absolute, jail side. Default: the first read-write grant, else the home where the view has one,
 * else /. */
int brig_policy_workdir(struct brig_policy *policy, const char *path, struct brig_error *err);
int brig_policy_hostname(struct brig_policy *policy, const char *name, struct brig_error *err);
/* Lets programs with a sandbox of their own make user namespaces inside. */
int brig_policy_allow_nested(struct brig_policy *policy, bool allow, struct brig_error *err);
/* Functions without namespaces (brig_call(), brig_confine_self()) and without a network: lets them make
 * UNIX sockets. Such a function can connect to every socket of the user's that Landlock does not keep
 * from it: by path from ABI 9 on, abstract ones from ABI 6 on. Other jails have a view of their own, and
 * can always make them. */
int brig_policy_unix_sockets(struct brig_policy *policy, bool allow, struct brig_error *err);
/* Lists the system calls that the filter refused a command in its result. They are refused as ever; the
 * job is asked about each, so that brig_job_process() has to be called for them to return. Functions
 * have an option of their own, see call.h. */
int brig_policy_trace(struct brig_policy *policy, bool trace, struct brig_error *err);
int brig_policy_on_unsupported(struct brig_policy *policy, enum brig_on_unsupported what,
                               struct brig_error *err);
int brig_policy_disable(struct brig_policy *policy, unsigned layers, struct brig_error *err);

/* The effective policy as text for people, or as one JSON object. The caller frees *ret_text. */
int brig_policy_explain(const struct brig_policy *policy, bool json, char **ret_text,
                        struct brig_error *err);

/* ---- Running ------------------------------------------------------------------------------ */

enum brig_stdio_kind {
    BRIG_STDIO_NULL,    /* /dev/null of the jail */
    BRIG_STDIO_INHERIT, /* the caller's fd of the same number */
    BRIG_STDIO_FD,      /* the fd given */
    BRIG_STDIO_CAPTURE, /* 1 and 2 only: collected into the result, up to the output limit */
    BRIG_STDIO_BYTES,   /* 0 only: the bytes given, then end of file */
};

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

#define BRIG_PASS_FD_MAX 32

/* What to run. Zero-initialise, then set. All pointers are borrowed during the call only, but for
 * BRIG_STDIO_BYTES. A name without a slash is looked up in the jail along the jail's PATH. */
struct brig_command {
    const char *const *argv; /* NULL-terminated, argv[0] is the program */
    const char *const *envp; /* the environment the policy filters; NULL: an empty one */
    struct brig_stdio stdio[3];
    const struct brig_pass_fd *pass_fds;
    size_t pass_fd_count;
};

enum brig_outcome {
    BRIG_EXITED,       /* exit_code */
    BRIG_SIGNALLED,    /* signal */
    BRIG_TIMEOUT,      /* wall clock */
    BRIG_CPU_TIMEOUT,  /* CPU time of the tree */
    BRIG_OOM,          /* the kernel killed it for the memory limit */
    BRIG_OUTPUT_LIMIT, /* reserved for policies that end a run at the output limit */
    BRIG_DISK_LIMIT,   /* reserved, like the next two: what a command does when it is refused a */
    BRIG_PIDS_LIMIT,   /* byte, a process or a call is its own affair */
    BRIG_DENIED,
    BRIG_SETUP_FAILED, /* error says why; nothing of the command ran */
    BRIG_CANCELLED,    /* brig_job_cancel() or the end of the caller's patience */
};

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
                                * ends when the kernel lets it, and is swept up then; else 0 */
};

/* What could not be enforced, or was switched off, one short sentence each. */
#define BRIG_UNENFORCED_MAX 16
struct brig_unenforced {
    size_t count;
    char text[BRIG_UNENFORCED_MAX][160];
};

/* System calls that the filter refused, each kind once. Filled with brig_policy_trace() only. clone3
 * and openat2 are not among them: every program has a fallback for these. */
#define BRIG_DENIALS_MAX 32
struct brig_denial {
    char name[32]; /* "ptrace" */
    int sys_errno; /* what it failed with */
    uint64_t count;
};
struct brig_denials {
    bool traced; /* they were listened for; else nothing is known */
    size_t count;
    struct brig_denial items[BRIG_DENIALS_MAX];
    uint64_t total; /* also of kinds that found no room */
};

/* What became of one try to reach something through the network door. */
enum brig_net_verdict {
    BRIG_NET_ALLOWED, /* connected; a BRIG_NET_ENDED of the same connection follows */
    BRIG_NET_DENIED,  /* by a rule, or for want of one */
    BRIG_NET_FAILED,  /* allowed, but there is no such name, no answer, or a limit was met */
    BRIG_NET_ENDED,   /* the end of what was allowed, with its bytes */
    BRIG_NET_WAITING, /* no rule allows it, and it waits until the user of `brig` does */
};

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

/* The last of them, the oldest first. */
#define BRIG_NET_EVENTS_MAX 1024
struct brig_net_result {
    struct brig_net_event *events; /* NULL if there were none */
    size_t count;
    uint64_t dropped; /* older ones */
    uint64_t allowed, denied, failed;
    uint64_t bytes_in, bytes_out;
};

struct brig_capture {
    char *data; /* NUL-terminated beyond length for convenience */
    size_t length;
    bool truncated;
};

struct brig_result {
    enum brig_outcome outcome;
    int exit_code; /* BRIG_EXITED; else -1 */
    int signal;    /* the signal that ended the command, also for timeouts; else 0 */
    struct brig_usage usage;
    struct brig_capture out;
    struct brig_capture err;
    struct brig_unenforced unenforced;
    struct brig_unenforced notices; /* what became of masked and protected paths meanwhile */
    struct brig_error error;        /* BRIG_SETUP_FAILED */
    struct brig_net_result net;     /* what went through the network door */
    bool inside_jail; /* it ran inside another jail, which had no namespaces to give */
    struct brig_denials denials;
};

/* Releases what a result owns; the struct itself is the caller's. */
void brig_result_done(struct brig_result *result);
/* For bindings, which need not know the struct then: one on the heap, all of it zero; its end, which
 * accepts NULL; and captured output of stream 1 or 2, NULL if there is none. Both pointers may be
 * NULL. */
struct brig_result *brig_result_new(void);
void brig_result_free(struct brig_result *result);
const char *brig_result_output(const struct brig_result *result, int stream, size_t *ret_length,
                               int *ret_truncated);
/* As a shell would say it: the code, 128+signal, 124 timeout, 125 brig failed, 126, 127. */
int brig_result_status(const struct brig_result *result);
const char *brig_outcome_name(enum brig_outcome outcome); /* "exited", "timeout", … */
/* The result as one JSON object without the captured output. The caller frees *ret_text. */
int brig_result_json(const struct brig_result *result, char **ret_text, struct brig_error *err);

/* Runs and waits. A jail that could not be built is returned as an error code and as
 * BRIG_SETUP_FAILED in *ret_result, which is always filled and wants brig_result_done(). */
int brig_run(const struct brig_policy *policy, const struct brig_command *command,
             struct brig_result *ret_result, struct brig_error *err);

struct brig_job;

/* Starts and returns once the command runs (or failed to). Free with brig_job_free. */
int brig_start(const struct brig_policy *policy, const struct brig_command *command,
               struct brig_job **ret_job, struct brig_error *err);
/* An fd that becomes readable when brig_job_process() has something to do. Owned by the job. */
int brig_job_fd(const struct brig_job *job);
/* Does what is to be done without blocking: 1 when the job is over, 0 when it goes on. */
int brig_job_process(struct brig_job *job, struct brig_error *err);
/* Sends a signal to the command's process group. */
int brig_job_signal(struct brig_job *job, int signal, struct brig_error *err);
/* Asks for the end: TERM, grace, KILL of the whole tree. The job is over when process says so. */
int brig_job_cancel(struct brig_job *job, struct brig_error *err);
/* Blocks until the job is over. */
int brig_job_wait(struct brig_job *job, struct brig_error *err);
/* Moves the result out; only once the job is over. */
int brig_job_result(struct brig_job *job, struct brig_result *ret_result, struct brig_error *err);
/* The jail's first process, as seen by the caller: for looking at it in /proc. */
pid_t brig_job_pid(const struct brig_job *job);
/* The master side of the jail's pty, or -1; owned by the job. A front relays it (see brig.1). */
int brig_job_terminal(const struct brig_job *job);
/* The directory of brig_policy_keep(), or -1: an fd to look for files in with openat(), also when the
 * job is over, until it is freed. Owned by the job. What is in it was made by the command: follow no
 * link, and expect anything but regular files as well. */
int brig_job_kept_dir(const struct brig_job *job);
/* The signal that stopped the command (Ctrl-Z), once, else 0. The front decides what follows;
 * brig_job_signal(job, SIGCONT) goes on. */
int brig_job_take_stop(struct brig_job *job);
/* The next event of the network door that was not taken yet: 1, or 0 where there is none. What is taken
 * is in the result all the same. */
int brig_job_take_net_event(struct brig_job *job, struct brig_net_event *ret_event);
/* An event as one JSON object on one line. The caller frees *ret_text. */
int brig_net_event_json(const struct brig_net_event *event, char **ret_text,
                        struct brig_error *err);
const char *brig_net_verdict_name(enum brig_net_verdict verdict); /* "allowed", "denied", … */
/* Kills the tree if it still lives, reaps it, releases everything. Accepts NULL. */
void brig_job_free(struct brig_job *job);

/* A jail prepared ahead: namespaces and mounts that do not depend on the run are made once and
 * each start only adds what must be fresh. The policy is copied. Runs share nothing writable but
 * what the policy grants them. */
struct brig_template;
int brig_template_new(const struct brig_policy *policy, struct brig_template **ret_template,
                      struct brig_error *err);
int brig_template_start(struct brig_template *template_, const struct brig_command *command,
                        struct brig_job **ret_job, struct brig_error *err);
void brig_template_free(struct brig_template *template_); /* accepts NULL */

/* The version of the library in use, as BRIG_VERSION. */
const char *brig_version(void);

#ifdef __cplusplus
}
#endif

#include <brig/call.h> /* calling a function in a jail */

#endif
