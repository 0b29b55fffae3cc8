/* SPDX-License-Identifier: MIT */
/* The state shared by all calls of a brig_caller. */
#include "call/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/sized.h"
#include "base/str.h"
#include "call/memory.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"
#include "jail/sys.h"

/* Limits for which each call gets a cgroup, if the policy sets them explicitly. */
#define GROUP_LIMITS                                                                               \
    (1U << BRIG_LIMIT_MEMORY_BYTES | 1U << BRIG_LIMIT_CPU_PERCENT | 1U << BRIG_LIMIT_PROCESSES |   \
     1U << BRIG_LIMIT_IO_READ_BYTES | 1U << BRIG_LIMIT_IO_WRITE_BYTES)

/* The maximum size of a value: max_result, or else the function's memory limit. The shared file is
 * also subject to the RLIMIT_FSIZE of this process. */
static uint64_t choose_value_limit(const struct brig_caller *caller)
{
    const uint64_t *limits = caller->policy->limits;
    uint64_t limit = caller->options.max_result;
    uint64_t memory = limits[BRIG_LIMIT_ADDRESS_SPACE] ? limits[BRIG_LIMIT_ADDRESS_SPACE]
                                                       : limits[BRIG_LIMIT_MEMORY_BYTES];
    if (limit == 0)
        limit = memory ? memory : MEMORY_VALUE_MAX;
    if (limit > MEMORY_VALUE_MAX)
        limit = MEMORY_VALUE_MAX;
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY &&
        limit > size.rlim_cur / 2)
        limit = size.rlim_cur / 2;
    return limit;
}

/* Limits that are not reported as unenforced: CPU time, which the supervisor checks, and the
 * default number of processes, for which a resource limit is sufficient. */
unsigned caller_note_limits(const struct brig_caller *caller, const struct limits *limits,
                            struct brig_unenforced *unenforced)
{
    struct limits shown = *limits;
    unsigned quiet = CGROUP_TIME;
    if (!(caller->policy->limits_asked & 1U << BRIG_LIMIT_PROCESSES))
        quiet |= CGROUP_PIDS;
    shown.missing &= ~quiet;
    return limits_note(&shown, caller->policy, caller->full, unenforced) |
           (limits->missing & quiet);
}

/* Without namespaces: prepares everything that is the same for each call. */
static int prepare_alone(struct brig_caller *caller, struct brig_error *err)
{
    const struct brig_policy *policy = caller->policy;
    struct plan *plan = &caller->plan;
    int result = confine_prepare(policy, plan, &caller->ruleset, &caller->unenforced, err);
    if (result < 0)
        return result;
    if (caller->has_group)
        return 0; /* resource limits depend on the cgroup of each call */
    struct limits none = {0};
    limits_skip(&none, policy);
    plan->limits_missing = caller_note_limits(caller, &none, &caller->unenforced);
    plan_rlimits(plan, policy);
    return 0;
}

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)argument;
    return 0;
}

/* Tries a call, and returns whether this system cannot build such a jail. */
static bool is_unsupported(struct brig_caller *caller)
{
    struct brig_call_result result;
    (void)caller_call(caller, do_nothing, NULL, &result, NULL);
    bool unsupported = result.outcome == BRIG_CALL_UNSUPPORTED;
    call_result_done(&result);
    return unsupported;
}

/* Prepares the full jail as far as possible. If the system has no namespaces and the policy accepts
 * that, fall back to restrictions without namespaces. */
static int prepare_full(struct brig_caller *caller, struct brig_error *err)
{
    struct brig_policy *policy = caller->policy;
    int result = brig_template_new(policy, &caller->template, err);
    if (result < 0)
        return result;
    if (caller->template->ready) {
        caller->unenforced = caller->template->fresh.unenforced;
        return 0;
    }
    if (policy->on_unsupported == BRIG_UNSUPPORTED_FAIL || !is_unsupported(caller))
        return 0;
    caller->full = false;
    return prepare_alone(caller, err);
}

/* Makes a cgroup to find out whether calls can have one, so that brig_caller_new() fails or warns
 * instead of the first call. */
static int try_group(struct brig_caller *caller, struct brig_error *err)
{
    struct limits limits = {.shared = caller->full && caller->template->ready};
    if (!caller->has_group)
        return 0;
    int result = limits_init(&limits, caller->policy, err);
    if (result == 0)
        (void)caller_note_limits(caller, &limits, &caller->unenforced);
    limits_done(&limits);
    return result;
}

void caller_note_network(const struct brig_caller *caller, struct brig_unenforced *unenforced)
{
    if (caller->no_network)
        unenforced_add(unenforced, "%s: the call has no network", caller->no_network);
}

/* A network that calls cannot have is refused; else the call would silently have none. */
static int check_network(struct brig_caller *caller, struct brig_error *err)
{
    const struct brig_policy *policy = caller->policy;
    bool alone = policy->disabled_layers & BRIG_LAYER_NAMESPACES;
    const char *why = policy_has_door(policy) ? "calls have no network door"
                      : policy->network == BRIG_NET_LOOPBACK && alone
                          ? "a loopback interface of its own needs namespaces"
                          : NULL;
    if (!why)
        return 0;
    if (policy->on_unsupported != BRIG_UNSUPPORTED_FAIL) {
        caller->no_network = why;
        return 0;
    }
    return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                     "the network '%s': %s. Use BRIG_NET_HOST or BRIG_NET_NONE, %s, or set "
                     "on_unsupported to have no network",
                     policy_word(POLICY_NETWORK, (int)policy->network), why,
                     policy_has_door(policy) ? "or run a command with brig_run()"
                                             : "or set namespaces");
}

/* Counted once: libc reads a file in /sys, which takes longer than everything else that
 * set_clocks() does. */
static uint64_t count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint64_t)cores : 1;
}

static int prepare(struct brig_caller *caller, const struct brig_policy *policy,
                   const struct brig_call_options *options, struct brig_error *err)
{
    int result = options_check(options, &caller->options, err);
    if (result < 0)
        return result;
    if (options->keep_fd_count > 0)
        memcpy(caller->keep_fds, options->keep_fds, options->keep_fd_count * sizeof(int));
    caller->keep_count = options->keep_fd_count;
    if ((result = options_policy(policy, options, &caller->policy, err)) < 0)
        return result;
    if ((result = child_statuses_init(&caller->statuses, err)) < 0)
        return result;
    caller->value_limit = choose_value_limit(caller);
    caller->has_group = caller->policy->limits_asked & GROUP_LIMITS;
    caller->full = !(caller->policy->disabled_layers & BRIG_LAYER_NAMESPACES);
    caller->cores = count_cores();
    caller->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (caller->null_fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open /dev/null");
    if ((result = check_network(caller, err)) < 0)
        return result;
    result = caller->full ? prepare_full(caller, err) : prepare_alone(caller, err);
    if (result == 0)
        result = try_group(caller, err);
    caller_note_network(caller, &caller->unenforced);
    return result;
}

/* The options with what a program of another version does not know. */
static int read_options(const struct brig_call_options *given, struct brig_call_options *ret,
                        struct brig_error *err)
{
    brig_call_options_init(ret, sizeof *ret);
    int result = given ? sized_read(ret, sizeof *ret, given, "brig_call_options_init()", err) : 0;
    if (result == 0 && ret->reserved != 0)
        result = brig_fail(err, BRIG_E_INVALID, 0, "its member reserved is not 0");
    return result < 0 ? brig_wrap(err, result, "struct brig_call_options") : 0;
}

int brig_caller_new(const struct brig_policy *policy, const struct brig_call_options *options,
                    struct brig_caller **ret_caller, struct brig_error *err)
{
    struct brig_call_options known;
    int result = fds_fill_standard(err);
    if (result == 0)
        result = read_options(options, &known, err);
    if (result < 0)
        return result;
    struct brig_caller *caller = calloc(1, sizeof *caller);
    if (!caller)
        return brig_fail_nomem(err);
    caller->plan = PLAN_INIT;
    caller->ruleset = caller->null_fd = -1;
    caller->statuses = CHILD_STATUSES_INIT;
    result = prepare(caller, policy, &known, err);
    if (result < 0) {
        brig_caller_free(caller);
        return result;
    }
    *ret_caller = caller;
    return 0;
}

void brig_caller_free(struct brig_caller *caller)
{
    if (!caller)
        return;
    close_fd(&caller->ruleset);
    close_fd(&caller->null_fd);
    plan_done(&caller->plan);
    brig_template_free(caller->template);
    brig_policy_free(caller->policy);
    child_statuses_done(&caller->statuses);
    free(caller);
}

/* ---- options: building the policy in force ---- */

#define DEFAULT_TIMEOUT_MS 30000
#define DEFAULT_MEMORY_MB 512
#define DEFAULT_OUTPUT_BYTES (UINT64_C(1) << 20)
#define DEFAULT_PROCESSES 512
#define MIB (UINT64_C(1) << 20)

void brig_call_options_init(struct brig_call_options *options, size_t size)
{
    const struct brig_call_options standard = {
        .size = size,
        .timeout_ms = DEFAULT_TIMEOUT_MS,
        .cpu_timeout_ms = BRIG_CALL_SAME,
        .memory_mb = DEFAULT_MEMORY_MB,
        .processes = BRIG_CALL_SAME,
        .max_output = DEFAULT_OUTPUT_BYTES,
        .network = BRIG_NET_HOST,
        .on_unsupported = BRIG_UNSUPPORTED_FAIL,
        .stdio = {BRIG_STDIO_NULL, BRIG_STDIO_INHERIT, BRIG_STDIO_INHERIT},
    };
    memset(options, 0, size);
    memcpy(options, &standard, size < sizeof standard ? size : sizeof standard);
}

/* ---- checking ---- */

static int check_stdio(const struct brig_call_options *options, struct brig_error *err)
{
    for (int i = 0; i < 3; i++) {
        enum brig_stdio_kind kind = options->stdio[i];
        bool fits = kind == BRIG_STDIO_NULL || kind == BRIG_STDIO_INHERIT ||
                    (kind == BRIG_STDIO_CAPTURE && i > 0);
        if (!fits)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "stdio %d of a call cannot be of kind %d: null, inherit, or for 1 and "
                             "2 capture",
                             i, (int)kind);
    }
    return 0;
}

static int check_fd_count(const struct brig_call_options *options, struct brig_error *err)
{
    if (!options->keep_fds && options->keep_fd_count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "keep_fds is NULL, and keep_fd_count is %zu",
                         options->keep_fd_count);
    return options->keep_fd_count <= BRIG_CALL_KEEP_MAX
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "%zu fds to keep, at most %d",
                           options->keep_fd_count, BRIG_CALL_KEEP_MAX);
}

int options_check(const struct brig_call_options *options, struct brig_call_options *ret_options,
                  struct brig_error *err)
{
    if (options->memory != BRIG_MEMORY_ADDRESS_SPACE && options->memory != BRIG_MEMORY_RSS)
        return brig_fail(err, BRIG_E_INVALID, 0, "memory of kind %d", (int)options->memory);
    if (options->memory_mb > UINT64_MAX / MIB)
        return brig_fail(err, BRIG_E_INVALID, 0, "memory_mb of %llu is too much",
                         (unsigned long long)options->memory_mb);
    int result = check_stdio(options, err);
    if (result < 0 || (result = check_fd_count(options, err)) < 0)
        return result;
    *ret_options = *options;
    if (options->cpu_timeout_ms == BRIG_CALL_SAME)
        ret_options->cpu_timeout_ms = options->timeout_ms;
    ret_options->fs_allow = ret_options->fs_read_allow = NULL;
    ret_options->keep_fds = NULL;
    return 0;
}

/* ---- the policy ---- */

/* The policy of a call without one: read-only system directories. It has only the limits that
 * struct brig_call_options has members for. */
static struct brig_policy *new_policy(const struct brig_call_options *options)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return NULL;
    uint64_t tmp_bytes = policy->limits[BRIG_LIMIT_TMP_BYTES];
    uint64_t tmp_inodes = policy->limits[BRIG_LIMIT_TMP_INODES];
    memset(policy->limits, 0, sizeof policy->limits);
    policy->limits[BRIG_LIMIT_TMP_BYTES] = tmp_bytes;
    policy->limits[BRIG_LIMIT_TMP_INODES] = tmp_inodes;
    policy->network = BRIG_NET_HOST;
    if (!options->namespaces)
        policy->disabled_layers |= BRIG_LAYER_NAMESPACES;
    return policy;
}

static int grant_paths(struct brig_policy *policy, enum brig_access access, const char *option,
                       const char *const *paths, size_t count, struct brig_error *err)
{
    int result = brig_policy_origin(policy, option, err);
    for (size_t i = 0; i < count && result == 0; i++) {
        if (!paths || !paths[i])
            return brig_fail(err, BRIG_E_INVALID, 0, "%s: path %zu is NULL", option, i);
        result = brig_policy_grant(policy, access, paths[i], NULL, 0, err);
        if (result < 0)
            return brig_wrap(err, result, "%s", option);
    }
    return result;
}

static int limit(struct brig_policy *policy, enum brig_limit which, uint64_t value,
                 struct brig_error *err)
{
    return brig_policy_limit(policy, which, value, err);
}

static int limit_memory(struct brig_policy *policy, const struct brig_call_options *options,
                        struct brig_error *err)
{
    uint64_t bytes = options->memory_mb * MIB;
    if (options->memory == BRIG_MEMORY_RSS)
        return limit(policy, BRIG_LIMIT_MEMORY_BYTES, bytes, err);
    return limit(policy, BRIG_LIMIT_ADDRESS_SPACE, bytes, err);
}

/* An option at its default value keeps the limit of the given policy. */
static int limit_all(struct brig_policy *policy, const struct brig_call_options *given,
                     bool was_given, struct brig_error *err)
{
    struct brig_call_options standard;
    brig_call_options_init(&standard, sizeof standard);
    const uint64_t *limits = policy->limits;
    int result = 0;
    if (!was_given || given->timeout_ms != standard.timeout_ms || !limits[BRIG_LIMIT_WALL_MS])
        result = limit(policy, BRIG_LIMIT_WALL_MS, given->timeout_ms, err);
    if (result == 0 && (!was_given || given->cpu_timeout_ms != standard.cpu_timeout_ms ||
                        !limits[BRIG_LIMIT_CPU_MS]))
        result = limit(policy, BRIG_LIMIT_CPU_MS,
                       given->cpu_timeout_ms == BRIG_CALL_SAME ? limits[BRIG_LIMIT_WALL_MS]
                                                               : given->cpu_timeout_ms,
                       err);
    bool has_memory = limits[BRIG_LIMIT_ADDRESS_SPACE] || limits[BRIG_LIMIT_MEMORY_BYTES];
    if (result == 0 &&
        (!was_given || given->memory_mb != standard.memory_mb || given->memory || !has_memory))
        result = limit_memory(policy, given, err);
    if (result == 0 && (!was_given || given->grace_ms != 0))
        result = limit(policy, BRIG_LIMIT_GRACE_MS, given->grace_ms, err);
    if (result == 0 && given->processes != BRIG_CALL_SAME)
        result = limit(policy, BRIG_LIMIT_PROCESSES, given->processes, err);
    if (result == 0 && (!was_given || given->max_output != standard.max_output))
        result = limit(policy, BRIG_LIMIT_OUTPUT_BYTES, given->max_output, err);
    /* The supervisor limits CPU time without a cgroup, so this limit alone does not need one. */
    policy->limits_asked &= ~(1U << BRIG_LIMIT_CPU_MS);
    return result;
}

/* The default process limit. Without namespaces RLIMIT_NPROC counts all processes of the user, so
 * the number of processes of the whole machine is added. */
static void limit_processes(struct brig_policy *policy)
{
    struct sysinfo system;
    bool alone = policy->disabled_layers & BRIG_LAYER_NAMESPACES;
    if (policy->limits_asked & 1U << BRIG_LIMIT_PROCESSES)
        return;
    policy->limits[BRIG_LIMIT_PROCESSES] = DEFAULT_PROCESSES;
    if (alone && sysinfo(&system) == 0)
        policy->limits[BRIG_LIMIT_PROCESSES] += system.procs;
}

static int apply(struct brig_policy *policy, const struct brig_call_options *options,
                 bool was_given, struct brig_error *err)
{
    int result = grant_paths(policy, BRIG_READ_ONLY, "fs_read_allow", options->fs_read_allow,
                             options->fs_read_allow_count, err);
    if (result == 0)
        result = grant_paths(policy, BRIG_READ_WRITE, "fs_allow", options->fs_allow,
                             options->fs_allow_count, err);
    if (result == 0 && (!was_given || options->network != BRIG_NET_HOST))
        result = brig_policy_network(policy, options->network, err);
    if (result == 0 && options->unix_sockets)
        result = brig_policy_unix_sockets(policy, true, err);
    if (result == 0 && (!was_given || options->on_unsupported != BRIG_UNSUPPORTED_FAIL))
        result = brig_policy_on_unsupported(policy, options->on_unsupported, err);
    if (result == 0)
        result = limit_all(policy, options, was_given, err);
    if (result == 0 && !was_given)
        limit_processes(policy);
    return result < 0 ? result : policy_validate(policy, err);
}

/* Returns whether the fd is a UNIX socket that can still be connected, or can send datagrams to any
 * address. */
static bool is_loose_socket(int fd)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(int), peer_length = sizeof peer;
    int family = 0, type = 0, listens = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) < 0 || family != AF_UNIX ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0)
        return false;
    if (type == SOCK_DGRAM)
        return true;
    return !listens && getpeername(fd, (struct sockaddr *)&peer, &peer_length) < 0;
}

/* Without namespaces a call cannot create UNIX sockets; do not hand in one that can be connected
 * anywhere. */
static int check_socket(const struct brig_policy *policy, int fd, struct brig_error *err)
{
    bool alone = policy->disabled_layers & BRIG_LAYER_NAMESPACES;
    if (!alone || policy->unix_sockets || !is_loose_socket(fd))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "fd %d is a UNIX socket that can be connected to any other, which the call "
                     "cannot have without namespaces. Set unix_sockets to allow that",
                     fd);
}

/* Directories and O_PATH fds are refused: openat() with them reaches other files. */
int options_check_fd(const struct brig_policy *policy, int fd, struct brig_error *err)
{
    struct stat info;
    if (fd < 3 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_INVALID, fd < 3 ? 0 : errno,
                         "fd %d cannot be kept: only open ones from 3 on", fd);
    if (S_ISDIR(info.st_mode) || (fcntl(fd, F_GETFL) & O_PATH))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "fd %d cannot be kept: it is a directory or an O_PATH descriptor, "
                         "which gives access to other files. Use fs_allow",
                         fd);
    return check_socket(policy, fd, err);
}

static int check_fds(const struct brig_policy *policy, const struct brig_call_options *options,
                     struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; i < options->keep_fd_count && result == 0; i++)
        result = options_check_fd(policy, options->keep_fds[i], err);
    for (int i = 0; i < 3 && result == 0; i++)
        if (options->stdio[i] == BRIG_STDIO_INHERIT)
            result = check_socket(policy, i, err);
    return result;
}

int options_policy(const struct brig_policy *policy, const struct brig_call_options *options,
                   struct brig_policy **ret_policy, struct brig_error *err)
{
    struct brig_policy *made = policy ? brig_policy_copy(policy) : new_policy(options);
    if (!made)
        return brig_fail_nomem(err);
    int result = apply(made, options, policy != NULL, err);
    if (result == 0)
        result = check_fds(made, options, err);
    if (result < 0) {
        brig_policy_free(made);
        return result;
    }
    *ret_policy = made;
    return 0;
}
