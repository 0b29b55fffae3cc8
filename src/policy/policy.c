/* SPDX-License-Identifier: MIT */
/* The lifetime of a policy, the builders of its identity, choices and limits, and checks of the
 * whole. Every builder checks its values, and changes nothing if it fails. */
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/sized.h"
#include "base/str.h"

#define POLICY_HOSTNAME "brig"   /* the default */
#define POLICY_ORIGIN_MAX 8192   /* a path, a line number and surrounding words */
#define POLICY_USER_NAME_MAX 255 /* LOGIN_NAME_MAX without the NUL */

/* ---- Lifetime ----------------------------------------------------------------------------- */

void policy_wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
}

void policy_forget_secrets(struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->net.inject_count; i++)
        policy_wipe(policy->net.inject[i].secret);
    policy_wipe(policy->net.proxy_secret);
}

void brig_policy_free(struct brig_policy *policy)
{
    if (!policy)
        return;
    policy_private_done(policy);
    policy_forget_secrets(policy);
    free(policy->net.rules.items);
    free(policy->net.written);
    free(policy->net.publish);
    free(policy->net.inject);
    free(policy->grants);
    free(policy->env);
    arena_done(&policy->arena);
    free(policy);
}

static void own_policy(struct brig_policy **policy)
{
    brig_policy_free(*policy);
}

#define autopolicy __attribute__((cleanup(own_policy)))

struct brig_policy *brig_policy_new(enum brig_mode mode)
{
    const struct policy_mode *row = policy_mode_row(mode);
    if (!row) {
        errno = EINVAL;
        return NULL;
    }
    autopolicy struct brig_policy *policy = calloc(1, sizeof *policy);
    if (!policy)
        return NULL;
    policy->mode = mode;
    policy->view = row->view;
    policy->network = row->network;
    policy->seccomp = row->seccomp;
    memcpy(policy->limits, row->limits, sizeof policy->limits);
    policy->host_uid = policy->inside_uid = (uid_t)-1;
    policy->host_gid = policy->inside_gid = (gid_t)-1;
    policy->hostname = arena_strdup(&policy->arena, POLICY_HOSTNAME);
    policy->origin = arena_strdup(&policy->arena, "caller");
    if (policy->arena.failed)
        return NULL;
    return take_ptr(&policy);
}

void *policy_copy_items(struct arena *arena, const void *items, size_t *count, size_t size)
{
    void *copy = malloc(*count * size + 1);
    if (!copy) {
        arena->failed = 1;
        *count = 0;
    } else if (*count > 0) {
        memcpy(copy, items, *count * size);
    }
    return copy;
}

void policy_own_all(struct arena *arena, char **const *texts)
{
    for (; *texts; texts++)
        if (**texts)
            **texts = arena_strdup(arena, **texts);
}

struct brig_policy *brig_policy_copy(const struct brig_policy *policy)
{
    autopolicy struct brig_policy *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *policy;
    copy->mounts = NULL; /* the copy may outlive them */
    copy->arena = (struct arena){0};
    struct arena *arena = &copy->arena;
    policy_own(arena, &copy->root_path, &copy->user_name, &copy->home, &copy->shell, &copy->workdir,
               &copy->hostname, &copy->gitconfig, &copy->origin);
    copy->grants = policy_copy_items(arena, copy->grants, &copy->grant_count, sizeof *copy->grants);
    for (size_t i = 0; i < copy->grant_count; i++)
        policy_own(arena, &copy->grants[i].source, &copy->grants[i].dest, &copy->grants[i].origin);
    copy->env = policy_copy_items(arena, copy->env, &copy->env_count, sizeof *copy->env);
    for (size_t i = 0; i < copy->env_count; i++)
        policy_own(arena, &copy->env[i].name, &copy->env[i].value, &copy->env[i].origin);
    policy_unshare_layers(copy);
    policy_unshare_private(copy);
    policy_unshare_net(copy);
    return arena->failed ? NULL : take_ptr(&copy);
}

/* ---- Helpers ------------------------------------------------------------------------------ */

int policy_text(struct brig_policy *policy, const char *text, char **ret_text,
                struct brig_error *err)
{
    char *copy = text ? arena_strdup(&policy->arena, text) : NULL;
    policy->arena.failed = 0; /* the next text may be shorter */
    if (text && !copy)
        return brig_fail_nomem(err);
    *ret_text = copy;
    return 0;
}

int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "unknown %s %d: %s", what, value, choices);
}

int policy_path(struct brig_policy *policy, const char *what, const char *path, unsigned flags,
                char **ret_path, struct brig_error *err)
{
    autofree char *normal = NULL;
    int rc = path_normalise(path, flags, &normal, err);
    return rc < 0 ? brig_wrap(err, rc, "%s", what) : policy_text(policy, normal, ret_path, err);
}

int brig_policy_origin(struct brig_policy *policy, const char *origin, struct brig_error *err)
{
    if (!origin || !*origin || strlen(origin) > POLICY_ORIGIN_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "an origin is a text of 1 to %d bytes",
                         POLICY_ORIGIN_MAX);
    return policy_text(policy, origin, &policy->origin, err);
}

/* ---- Identity ----------------------------------------------------------------------------- */

/* Checks a text for a field of the jail's passwd. */
static int check_passwd_field(const char *what, const char *text, struct brig_error *err)
{
    for (const char *p = text; *p; p++)
        if (*p == ':' || (unsigned char)*p < 0x20 || *p == 0x7f)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "%s '%s' has a ':' or a control character in it", what,
                             str_shown(text).text);
    return 0;
}

static int passwd_path(struct brig_policy *policy, const char *what, const char *path,
                       char **ret_path, struct brig_error *err)
{
    int rc = path ? check_passwd_field(what, path, err) : 0;
    return rc < 0 || !path ? rc : policy_path(policy, what, path, 0, ret_path, err);
}

static int check_user_name(const char *name, struct brig_error *err)
{
    if (!name)
        return 0;
    size_t length = strlen(name);
    /* A leading '+' or '-' is an instruction to the name service. */
    if (length < 1 || length > POLICY_USER_NAME_MAX || strchr("+-", name[0]) || strchr(name, '/'))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad user name '%s': 1 to %d bytes, no '/', no '+' or '-' in front",
                         str_shown(name).text, POLICY_USER_NAME_MAX);
    return check_passwd_field("user name", name, err);
}

int brig_policy_identity(struct brig_policy *policy, const struct brig_identity *given,
                         struct brig_error *err)
{
    struct brig_identity known;
    const struct brig_identity *identity = &known;
    if (!given)
        return brig_fail(err, BRIG_E_INVALID, 0, "no identity given");
    if (sized_read(&known, sizeof known, given, "BRIG_IDENTITY_INIT", err) < 0)
        return brig_wrap(err, BRIG_E_INVALID, "struct brig_identity");
    if (identity->host_uid == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a jail never runs as uid 0 on the host");
    if (identity->host_gid == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a jail never runs as gid 0 on the host");
    char *name = NULL, *home = NULL, *shell = NULL;
    int rc;
    if ((rc = check_user_name(identity->name, err)) < 0 ||
        (rc = policy_text(policy, identity->name, &name, err)) < 0 ||
        (rc = passwd_path(policy, "home", identity->home, &home, err)) < 0 ||
        (rc = passwd_path(policy, "shell", identity->shell, &shell, err)) < 0)
        return rc;
    policy->host_uid = identity->host_uid;
    policy->host_gid = identity->host_gid;
    policy->inside_uid = identity->inside_uid;
    policy->inside_gid = identity->inside_gid;
    policy->user_name = name;
    policy->home = home;
    policy->shell = shell;
    return 0;
}

int brig_policy_hostname(struct brig_policy *policy, const char *name, struct brig_error *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    size_t length = name ? strlen(name) : 0;
    if (length < 1 || length > POLICY_HOSTNAME_MAX || strspn(name, allowed) != length)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad host name '%s': 1 to %d letters, digits, '.' and '-'",
                         str_shown(name).text, POLICY_HOSTNAME_MAX);
    return policy_text(policy, name, &policy->hostname, err);
}

void policy_use_isolated_uid(struct brig_policy *policy, uid_t user)
{
    if (policy->inside_uid == (uid_t)-1 && user != 0)
        policy->inside_uid = user;
    if (policy->inside_gid == (gid_t)-1 && user != 0)
        policy->inside_gid = policy->host_gid != (gid_t)-1 ? policy->host_gid : user;
    policy->host_uid = policy_isolated_uid(user);
    policy->host_gid = policy->host_uid;
    policy->stranger = true;
    policy->owner = user;
}

/* ---- Isolated uids ------------------------------------------------------------------------ */

#define RANGES_FILE "/etc/subuid"
#define RANGES_OWNER "brig:"

/* Smaller ids belong to users and services, or are invalid. */
#define FIRST_MIN 65536U

static bool parse_number(const char **text, char end, uint32_t *ret_number)
{
    char *rest;
    if (**text < '0' || **text > '9')
        return false;
    unsigned long long number = strtoull(*text, &rest, 10);
    if (*rest != end || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    *text = rest + 1;
    return true;
}

/* Reads a line `brig:FIRST:COUNT`; a line that cannot be used is skipped. */
static bool parse_range(const char *line, struct policy_range *ret_range)
{
    const size_t length = strlen(RANGES_OWNER);
    const char *rest = line + length;
    struct policy_range range;
    if (strncmp(line, RANGES_OWNER, length) != 0 || !parse_number(&rest, ':', &range.first) ||
        !parse_number(&rest, '\n', &range.count) || range.first < FIRST_MIN || range.count == 0 ||
        range.count > UINT32_MAX - 1 - range.first)
        return false;
    *ret_range = range;
    return true;
}

struct policy_range policy_find_range(FILE *file)
{
    struct policy_range range = {.first = POLICY_STRANGER_UID, .count = POLICY_STRANGER_COUNT};
    char line[LINE_MAX];
    while (file && fgets(line, sizeof line, file))
        if (parse_range(line, &range))
            break;
    return range;
}

uid_t policy_isolated_uid(uid_t user)
{
    autofile FILE *file = fopen(RANGES_FILE, "re");
    struct policy_range range = policy_find_range(file);
    return range.first + user % range.count;
}

/* ---- Choices and limits ------------------------------------------------------------------- */

#define POLICY_FILES_MAX (UINT64_C(1) << 30)
#define POLICY_PROCESSES_MAX (UINT64_C(1) << 22) /* the kernel's highest pid_max */
#define POLICY_CONNECTIONS_MAX 65536             /* one address has this many ports */
#define POLICY_INODES_MAX (UINT64_C(1) << 32)

int brig_policy_network(struct brig_policy *policy, enum brig_network network,
                        struct brig_error *err)
{
    if (network < BRIG_NET_NONE || network > BRIG_NET_LOOPBACK)
        return policy_bad_value(err, "network", (int)network, policy_choices(POLICY_NETWORK));
    policy->network = network;
    return 0;
}

int brig_policy_seccomp(struct brig_policy *policy, enum brig_seccomp profile,
                        struct brig_error *err)
{
    if (profile < BRIG_SECCOMP_DEV || profile > BRIG_SECCOMP_CODE)
        return policy_bad_value(err, "syscall profile", (int)profile,
                                policy_choices(POLICY_SECCOMP));
    policy->seccomp = profile;
    return 0;
}

int brig_policy_terminal(struct brig_policy *policy, enum brig_terminal terminal,
                         struct brig_error *err)
{
    if (terminal < BRIG_TERMINAL_AUTO || terminal > BRIG_TERMINAL_NONE)
        return policy_bad_value(err, "terminal", (int)terminal, "auto or none");
    policy->terminal = terminal;
    return 0;
}

int brig_policy_on_unsupported(struct brig_policy *policy, enum brig_on_unsupported what,
                               struct brig_error *err)
{
    if (what < BRIG_UNSUPPORTED_FAIL || what > BRIG_UNSUPPORTED_IGNORE)
        return policy_bad_value(err, "answer to what is unsupported", (int)what,
                                policy_choices(POLICY_ON_UNSUPPORTED));
    policy->on_unsupported = what;
    return 0;
}

int brig_policy_allow_nested(struct brig_policy *policy, int allow, struct brig_error *err)
{
    (void)err; /* every builder has this form; a boolean cannot be invalid */
    policy->allow_nested = allow;
    return 0;
}

int brig_policy_unix_sockets(struct brig_policy *policy, int allow, struct brig_error *err)
{
    (void)err;
    policy->unix_sockets = allow;
    return 0;
}

int brig_policy_trace(struct brig_policy *policy, int trace, struct brig_error *err)
{
    (void)err; /* as above */
    policy->trace = trace;
    return 0;
}

int brig_policy_disable(struct brig_policy *policy, unsigned layers, struct brig_error *err)
{
    const unsigned known = BRIG_LAYER_LANDLOCK | BRIG_LAYER_SECCOMP | BRIG_LAYER_CAPS |
                           BRIG_LAYER_NAMESPACES | BRIG_LAYER_NESTED;
    if (layers & ~known)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown layers 0x%x: %s", layers & ~known,
                         policy_choices(POLICY_LAYER));
    policy->disabled_layers |= layers;
    return 0;
}

/* The largest value of each limit that the kernel's arithmetic can handle. */
static const uint64_t limit_max[BRIG_LIMIT_COUNT_] = {
    [BRIG_LIMIT_WALL_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_CPU_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_GRACE_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_ADDRESS_SPACE] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_FILE_SIZE] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_OPEN_FILES] = POLICY_FILES_MAX,
    [BRIG_LIMIT_PROCESSES] = POLICY_PROCESSES_MAX,
    [BRIG_LIMIT_OUTPUT_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_TMP_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_TMP_INODES] = POLICY_INODES_MAX,
    [BRIG_LIMIT_MEMORY_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_CPU_PERCENT] = POLICY_CPU_PERCENT_MAX,
    [BRIG_LIMIT_IO_READ_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_IO_WRITE_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_INOTIFY_WATCHES] = INT32_MAX,
    [BRIG_LIMIT_NET_CONNECTIONS] = POLICY_CONNECTIONS_MAX,
    [BRIG_LIMIT_NET_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_NET_IDLE_MS] = PARSE_DURATION_MS_MAX,
};

/* With less memory the kernel kills the jail before it starts: until its exec the first process has
 * the memory of its caller, and even small programs need some. */
static const uint64_t limit_min[BRIG_LIMIT_COUNT_] = {
    [BRIG_LIMIT_MEMORY_BYTES] = UINT64_C(8) << 20,
};

int brig_policy_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value,
                      struct brig_error *err)
{
    if ((size_t)limit >= ARRAY_LENGTH(limit_max))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown limit %d", (int)limit);
    if (value > limit_max[limit])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "limit %s of %" PRIu64 " is too large: at most %" PRIu64,
                         policy_word(POLICY_LIMIT, limit), value, limit_max[limit]);
    if (value != 0 && value < limit_min[limit])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "limit %s of %" PRIu64 " is too small: at least %" PRIu64,
                         policy_word(POLICY_LIMIT, limit), value, limit_min[limit]);
    policy->limits[limit] = value;
    policy->limits_asked |= 1U << limit;
    return 0;
}

/* ---- Checks ------------------------------------------------------------------------------- */

/* The jail always has its own versions of these: the host's would give it the caller's
 * terminals. */
static const char *const own_devices[] = {
    "/dev/pts", "/dev/ptmx",  "/dev/tty",    "/dev/console",
    "/dev/fd",  "/dev/stdin", "/dev/stdout", "/dev/stderr",
};

static int check_device_dest(enum brig_access access, const char *dest, struct brig_error *err)
{
    if (strcmp(dest, "/dev") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "/dev cannot be %s: the jail has its own; grant single devices below it",
                         access == BRIG_MASK ? "masked" : "granted");
    for (size_t i = 0; i < ARRAY_LENGTH(own_devices); i++)
        if (path_is_beneath(own_devices[i], dest))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' cannot be granted or masked: the jail has its own %s",
                             str_shown(dest).text, own_devices[i]);
    if (access != BRIG_DEVICE && !path_is_beneath("/dev/shm", dest))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is below /dev: only devices and /dev/shm can be granted there",
                         str_shown(dest).text);
    return 0;
}

static int check_dest(enum brig_access access, const char *dest, struct brig_error *err)
{
    if (strcmp(dest, "/") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'/' cannot be %s: choose a view instead (%s)",
                         access == BRIG_MASK ? "masked" : "a grant's destination",
                         policy_choices(POLICY_VIEW));
    if (path_is_beneath("/proc", dest))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be granted or masked: the jail has a /proc of its own",
                         str_shown(dest).text);
    if (path_is_beneath("/dev", dest))
        return check_device_dest(access, dest, err);
    if (access == BRIG_DEVICE)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "device '%s' is not below /dev: devices can only stand there",
                         str_shown(dest).text);
    return 0;
}

/* The host's /proc contains the root directory of every process of the caller: a grant of it, or of
 * /, would undo every other rule. This checks the text only; the target is checked when the path is
 * opened. */
static int check_source(const char *source, struct brig_error *err)
{
    if (strcmp(source, "/") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'/' cannot be granted: choose the view 'host' instead");
    if (path_is_beneath("/proc", source))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be granted: it would open the processes outside",
                         str_shown(source).text);
    return 0;
}

int policy_check_grant(enum brig_access access, const char *source, const char *dest,
                       struct brig_error *err)
{
    int rc = check_dest(access, dest, err);
    if (rc < 0 || access == BRIG_MASK)
        return rc;
    return check_source(source, err);
}

/* The host's network cannot be restricted. A run that ignored the restriction would appear to have
 * it. */
static int check_host_network(const struct brig_policy *policy, struct brig_error *err)
{
    static const enum brig_limit limits[] = {BRIG_LIMIT_NET_CONNECTIONS, BRIG_LIMIT_NET_BYTES,
                                             BRIG_LIMIT_NET_IDLE_MS};
    const struct policy_net *net = &policy->net;
    if (policy->network != BRIG_NET_HOST)
        return 0;
    for (size_t i = 0; i < net->written_count; i++)
        if (net->written[i].deny)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'deny %s' cannot hold with the network 'host': use open or allow",
                             str_shown(net->written[i].text).text);
    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++)
        if (policy->limits_asked & 1U << limits[i] && policy->limits[limits[i]] > 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the limit %s cannot hold with the network 'host': use open or allow",
                             policy_word(POLICY_LIMIT, limits[i]));
    return 0;
}

/* Settings of the door require a network with a door. */
static int check_network(const struct brig_policy *policy, struct brig_error *err)
{
    const struct policy_net *net = &policy->net;
    const char *name = policy_word(POLICY_NETWORK, policy->network);
    if (policy_has_door(policy))
        return 0;
    if (net->publish_count > 0 && policy->network == BRIG_NET_HOST)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "nothing can be published with the network 'host': what listens in the "
                         "jail listens on the host");
    if (net->publish_count > 0 || net->inject_count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cannot %s with the network '%s': use BRIG_NET_ALLOW or BRIG_NET_OPEN",
                         net->publish_count > 0 ? "publish a port" : "inject a credential", name);
    if (net->proxy_env)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the network '%s' has no proxy: use BRIG_NET_ALLOW or BRIG_NET_OPEN",
                         name);
    return 0;
}

int policy_validate(const struct brig_policy *policy, struct brig_error *err)
{
    if (policy->view == BRIG_VIEW_ROOT && !policy->root_path)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the view 'root' needs the directory that is to be the root");
    if (policy->allow_nested && policy->seccomp == BRIG_SECCOMP_CODE &&
        !(policy->disabled_layers & BRIG_LAYER_SECCOMP))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "allow-nested does not go with the syscall profile 'code': nested "
                         "sandboxes need BRIG_SECCOMP_DEV");
    int networked = check_network(policy, err);
    if (networked == 0)
        networked = check_host_network(policy, err);
    if (networked < 0)
        return networked;
    if (policy->workdir && policy->workdir[0] != '/')
        return brig_fail(err, BRIG_E_INVALID, 0, "working directory '%s' is relative",
                         str_shown(policy->workdir).text);
    if (policy->host_uid == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a jail never runs as uid 0 on the host");
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        int rc = policy_check_grant(grant->access, grant->source, grant->dest, err);
        if (rc < 0)
            return brig_wrap(err, rc, "%s", str_shown(grant->origin).text);
    }
    return 0;
}
