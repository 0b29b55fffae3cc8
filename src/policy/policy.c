/* SPDX-License-Identifier: MIT */
/* The builders of a policy: every value is checked as it comes in, and a refused or failed call
 * changes nothing. */
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/modes.h"
#include "policy/validate.h"

#define POLICY_ORIGIN_MAX 8192     /* a path, a line number and words around them */
#define POLICY_USER_NAME_MAX 255   /* LOGIN_NAME_MAX without the NUL */
#define POLICY_ENV_TEXT_MAX 131071 /* what execve() takes for one string, without the NUL */
#define POLICY_FILES_MAX (UINT64_C(1) << 30)
#define POLICY_PROCESSES_MAX (UINT64_C(1) << 22) /* the kernel's highest pid_max */
#define POLICY_INODES_MAX (UINT64_C(1) << 32)

/* ---- Lifetime ----------------------------------------------------------------------------- */

static void grant_done(struct policy_grant *grant)
{
    free(grant->source);
    free(grant->dest);
    free(grant->origin);
}

static void env_done(struct policy_env *env)
{
    free(env->name);
    free(env->value);
    free(env->origin);
}

void brig_policy_free(struct brig_policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->grant_count; i++)
        grant_done(&policy->grants[i]);
    for (size_t i = 0; i < policy->env_count; i++)
        env_done(&policy->env[i]);
    free(policy->grants);
    free(policy->env);
    free(policy->root_path);
    free(policy->user_name);
    free(policy->home);
    free(policy->shell);
    free(policy->workdir);
    free(policy->hostname);
    free(policy->origin);
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
    if (str_copy(row->hostname, &policy->hostname, NULL) < 0 ||
        str_copy("caller", &policy->origin, NULL) < 0)
        return NULL;
    return take_ptr(&policy);
}

static int copy_grants(const struct brig_policy *from, struct brig_policy *to)
{
    if (from->grant_count == 0)
        return 0;
    to->grants = calloc(from->grant_count, sizeof *to->grants);
    if (!to->grants)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->grant_count; i++) {
        const struct policy_grant *source = &from->grants[i];
        struct policy_grant *copy = &to->grants[to->grant_count++];
        copy->access = source->access;
        copy->flags = source->flags;
        if (str_copy(source->source, &copy->source, NULL) < 0 ||
            str_copy(source->dest, &copy->dest, NULL) < 0 ||
            str_copy(source->origin, &copy->origin, NULL) < 0)
            return BRIG_E_NOMEM;
    }
    return 0;
}

static int copy_env(const struct brig_policy *from, struct brig_policy *to)
{
    if (from->env_count == 0)
        return 0;
    to->env = calloc(from->env_count, sizeof *to->env);
    if (!to->env)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->env_count; i++) {
        const struct policy_env *source = &from->env[i];
        struct policy_env *copy = &to->env[to->env_count++];
        copy->kind = source->kind;
        if (str_copy(source->name, &copy->name, NULL) < 0 ||
            str_copy(source->value, &copy->value, NULL) < 0 ||
            str_copy(source->origin, &copy->origin, NULL) < 0)
            return BRIG_E_NOMEM;
    }
    return 0;
}

struct brig_policy *brig_policy_copy(const struct brig_policy *policy)
{
    autopolicy struct brig_policy *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *policy;
    /* Nothing is shared: every pointer is emptied before the first copy can fail. */
    copy->grants = NULL;
    copy->env = NULL;
    copy->grant_count = copy->env_count = 0;
    copy->root_path = copy->user_name = copy->home = copy->shell = NULL;
    copy->workdir = copy->hostname = copy->origin = NULL;
    if (copy_grants(policy, copy) < 0 || copy_env(policy, copy) < 0 ||
        str_copy(policy->root_path, &copy->root_path, NULL) < 0 ||
        str_copy(policy->user_name, &copy->user_name, NULL) < 0 ||
        str_copy(policy->home, &copy->home, NULL) < 0 ||
        str_copy(policy->shell, &copy->shell, NULL) < 0 ||
        str_copy(policy->workdir, &copy->workdir, NULL) < 0 ||
        str_copy(policy->hostname, &copy->hostname, NULL) < 0 ||
        str_copy(policy->origin, &copy->origin, NULL) < 0)
        return NULL;
    return take_ptr(&copy);
}

/* ---- Helpers ------------------------------------------------------------------------------ */

/* Puts *value into *field and frees what was there. */
static void replace(char **field, char **value)
{
    free(*field);
    *field = take_ptr(value);
}

static int bad_value(struct brig_error *err, const char *what, int value, const char *choices)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "%d is no %s: %s", value, what, choices);
}

static int checked_path(const char *what, const char *path, unsigned flags, char **ret_path,
                        struct brig_error *err)
{
    int rc = path_normalise(path, flags, ret_path, err);
    return rc < 0 ? brig_wrap(err, rc, "%s", what) : 0;
}

int brig_policy_origin(struct brig_policy *policy, const char *origin, struct brig_error *err)
{
    if (!origin || !*origin || strlen(origin) > POLICY_ORIGIN_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "an origin is a text of 1 to %d bytes",
                         POLICY_ORIGIN_MAX);
    autofree char *copy = NULL;
    int rc = str_copy(origin, &copy, err);
    if (rc < 0)
        return rc;
    replace(&policy->origin, &copy);
    return 0;
}

/* ---- Filesystem --------------------------------------------------------------------------- */

int brig_policy_view(struct brig_policy *policy, enum brig_view view, const char *root_path,
                     struct brig_error *err)
{
    if (view < BRIG_VIEW_SYSTEM || view > BRIG_VIEW_EMPTY)
        return bad_value(err, "view", (int)view, policy_view_choices());
    autofree char *path = NULL;
    if (view == BRIG_VIEW_ROOT) {
        int rc = checked_path("root directory", root_path, PATH_KEEP_DOTDOT, &path, err);
        if (rc < 0)
            return rc;
        if (strcmp(path, "/") == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'/' cannot be the root directory: choose the view 'host' instead");
    } else if (root_path) {
        return brig_fail(err, BRIG_E_INVALID, 0, "the view '%s' has no root directory ('%s')",
                         policy_view_name(view), str_shown(root_path).text);
    }
    policy->view = view;
    replace(&policy->root_path, &path);
    return 0;
}

static int check_grant_flags(enum brig_access access, unsigned flags, struct brig_error *err)
{
    if (access < BRIG_READ_WRITE || access > BRIG_DEVICE)
        return bad_value(err, "access", (int)access, "read-write, read-only, mask or device");
    if (flags & ~(unsigned)(BRIG_GRANT_OPTIONAL | BRIG_GRANT_CREATE))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown flags 0x%x in a grant", flags);
    if ((flags & BRIG_GRANT_CREATE) && (access == BRIG_MASK || access == BRIG_DEVICE))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a %s rule cannot create: only read-write and read-only grants can",
                         policy_access_name(access));
    return 0;
}

int brig_policy_grant(struct brig_policy *policy, enum brig_access access, const char *source,
                      const char *dest, unsigned flags, struct brig_error *err)
{
    int rc = check_grant_flags(access, flags, err);
    if (rc < 0)
        return rc;
    if (policy->grant_count >= POLICY_GRANTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many grants: at most %d are possible",
                         POLICY_GRANTS_MAX);
    if (!dest)
        dest = source;
    if (access == BRIG_MASK)
        source = dest;
    autofree char *dest_path = NULL;
    autofree char *source_path = NULL;
    autofree char *origin = NULL;
    if ((rc = checked_path("destination", dest, 0, &dest_path, err)) < 0 ||
        (rc = checked_path("source", source, PATH_KEEP_DOTDOT, &source_path, err)) < 0 ||
        (rc = policy_check_grant(access, source_path, dest_path, err)) < 0 ||
        (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    struct policy_grant *grown =
        reallocarray(policy->grants, policy->grant_count + 1, sizeof *policy->grants);
    if (!grown)
        return brig_fail_nomem(err);
    policy->grants = grown;
    policy->grants[policy->grant_count++] = (struct policy_grant){
        .access = access,
        .flags = flags,
        .source = take_ptr(&source_path),
        .dest = take_ptr(&dest_path),
        .origin = take_ptr(&origin),
    };
    return 0;
}

int brig_policy_ungrant(struct brig_policy *policy, const char *dest, size_t *ret_removed,
                        struct brig_error *err)
{
    autofree char *path = NULL;
    int rc = checked_path("destination", dest, 0, &path, err);
    if (rc < 0)
        return rc;
    size_t kept = 0;
    for (size_t i = 0; i < policy->grant_count; i++) {
        if (strcmp(policy->grants[i].dest, path) == 0)
            grant_done(&policy->grants[i]);
        else
            policy->grants[kept++] = policy->grants[i];
    }
    size_t removed = policy->grant_count - kept;
    policy->grant_count = kept;
    if (ret_removed)
        *ret_removed = removed;
    return 0;
}

int brig_policy_workdir(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    autofree char *copy = NULL;
    int rc = checked_path("working directory", path, 0, &copy, err);
    if (rc < 0)
        return rc;
    replace(&policy->workdir, &copy);
    return 0;
}

/* ---- Identity ----------------------------------------------------------------------------- */

/* A text that goes into a field of the jail's passwd. */
static int check_passwd_field(const char *what, const char *text, struct brig_error *err)
{
    for (const char *p = text; *p; p++)
        if (*p == ':' || (unsigned char)*p < 0x20 || *p == 0x7f)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "%s '%s' has a ':' or a control character in it", what,
                             str_shown(text).text);
    return 0;
}

static int passwd_path(const char *what, const char *path, char **ret_path, struct brig_error *err)
{
    if (!path) {
        *ret_path = NULL;
        return 0;
    }
    int rc = check_passwd_field(what, path, err);
    return rc < 0 ? rc : checked_path(what, path, 0, ret_path, err);
}

static int user_name(const char *name, char **ret_name, struct brig_error *err)
{
    if (!name) {
        *ret_name = NULL;
        return 0;
    }
    size_t length = strlen(name);
    /* A leading '+' or '-' is an instruction to the name service, not a name. */
    if (length < 1 || length > POLICY_USER_NAME_MAX || strchr("+-", name[0]) || strchr(name, '/'))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad user name '%s': 1 to %d bytes, no '/', no '+' or '-' in front",
                         str_shown(name).text, POLICY_USER_NAME_MAX);
    int rc = check_passwd_field("user name", name, err);
    return rc < 0 ? rc : str_copy(name, ret_name, err);
}

int brig_policy_identity(struct brig_policy *policy, const struct brig_identity *identity,
                         struct brig_error *err)
{
    if (!identity)
        return brig_fail(err, BRIG_E_INVALID, 0, "no identity given");
    if (identity->host_uid == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a jail never runs as uid 0 on the host");
    if (identity->host_gid == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a jail never runs as gid 0 on the host");
    autofree char *name = NULL;
    autofree char *home = NULL;
    autofree char *shell = NULL;
    int rc;
    if ((rc = user_name(identity->name, &name, err)) < 0 ||
        (rc = passwd_path("home", identity->home, &home, err)) < 0 ||
        (rc = passwd_path("shell", identity->shell, &shell, err)) < 0)
        return rc;
    policy->host_uid = identity->host_uid;
    policy->host_gid = identity->host_gid;
    policy->inside_uid = identity->inside_uid;
    policy->inside_gid = identity->inside_gid;
    replace(&policy->user_name, &name);
    replace(&policy->home, &home);
    replace(&policy->shell, &shell);
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
    autofree char *copy = NULL;
    int rc = str_copy(name, &copy, err);
    if (rc < 0)
        return rc;
    replace(&policy->hostname, &copy);
    return 0;
}

/* ---- Choices and limits ------------------------------------------------------------------- */

int brig_policy_network(struct brig_policy *policy, enum brig_network network,
                        struct brig_error *err)
{
    if (network < BRIG_NET_NONE || network > BRIG_NET_HOST)
        return bad_value(err, "network", (int)network, policy_network_choices());
    policy->network = network;
    return 0;
}

int brig_policy_seccomp(struct brig_policy *policy, enum brig_seccomp profile,
                        struct brig_error *err)
{
    if (profile < BRIG_SECCOMP_DEV || profile > BRIG_SECCOMP_CODE)
        return bad_value(err, "syscall profile", (int)profile, policy_seccomp_choices());
    policy->seccomp = profile;
    return 0;
}

int brig_policy_terminal(struct brig_policy *policy, enum brig_terminal terminal,
                         struct brig_error *err)
{
    if (terminal < BRIG_TERMINAL_AUTO || terminal > BRIG_TERMINAL_NONE)
        return bad_value(err, "terminal", (int)terminal, "auto or none");
    policy->terminal = terminal;
    return 0;
}

int brig_policy_on_unsupported(struct brig_policy *policy, enum brig_on_unsupported what,
                               struct brig_error *err)
{
    if (what < BRIG_UNSUPPORTED_FAIL || what > BRIG_UNSUPPORTED_IGNORE)
        return bad_value(err, "answer to what is unsupported", (int)what,
                         policy_on_unsupported_choices());
    policy->on_unsupported = what;
    return 0;
}

int brig_policy_allow_nested(struct brig_policy *policy, bool allow, struct brig_error *err)
{
    (void)err; /* the same form as every builder; nothing can be wrong with a truth value */
    policy->allow_nested = allow;
    return 0;
}

int brig_policy_disable(struct brig_policy *policy, unsigned layers, struct brig_error *err)
{
    const unsigned known = BRIG_LAYER_LANDLOCK | BRIG_LAYER_SECCOMP | BRIG_LAYER_CAPS |
                           BRIG_LAYER_NAMESPACES | BRIG_LAYER_NESTED;
    if (layers & ~known)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown layers 0x%x: %s", layers & ~known,
                         policy_layer_choices());
    policy->disabled_layers |= layers;
    return 0;
}

/* The largest value of each limit that the kernel's own arithmetic can take. */
static const uint64_t limit_max[BRIG_LIMIT_COUNT_] = {
    [BRIG_LIMIT_WALL_MS] = PARSE_DURATION_MS_MAX,  [BRIG_LIMIT_CPU_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_GRACE_MS] = PARSE_DURATION_MS_MAX, [BRIG_LIMIT_ADDRESS_SPACE] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_FILE_SIZE] = PARSE_SIZE_MAX,       [BRIG_LIMIT_OPEN_FILES] = POLICY_FILES_MAX,
    [BRIG_LIMIT_PROCESSES] = POLICY_PROCESSES_MAX, [BRIG_LIMIT_OUTPUT_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_TMP_BYTES] = PARSE_SIZE_MAX,       [BRIG_LIMIT_TMP_INODES] = POLICY_INODES_MAX,
};

int brig_policy_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value,
                      struct brig_error *err)
{
    if ((size_t)limit >= ARRAY_LENGTH(limit_max))
        return brig_fail(err, BRIG_E_INVALID, 0, "%d is no limit", (int)limit);
    if (value > limit_max[limit])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "limit %s of %" PRIu64 " is too large: at most %" PRIu64,
                         policy_limit_name(limit), value, limit_max[limit]);
    policy->limits[limit] = value;
    return 0;
}

/* ---- Environment -------------------------------------------------------------------------- */

static int add_env(struct brig_policy *policy, enum policy_env_kind kind, const char *name,
                   const char *value, struct brig_error *err)
{
    if (!name || !*name || strchr(name, '='))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad environment %s '%s': it is not empty and has no '='",
                         kind == POLICY_ENV_UNSET ? "pattern" : "name", str_shown(name).text);
    size_t length = strlen(name) + (value ? strlen(value) + 1 : 0);
    if (length > POLICY_ENV_TEXT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "environment variable '%s' is too long: %zu bytes, at most %d",
                         str_shown(name).text, length, POLICY_ENV_TEXT_MAX);
    if (policy->env_count >= POLICY_ENV_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "too many environment rules: at most %d are possible", POLICY_ENV_MAX);
    autofree char *name_copy = NULL;
    autofree char *value_copy = NULL;
    autofree char *origin = NULL;
    int rc;
    if ((rc = str_copy(name, &name_copy, err)) < 0 ||
        (rc = str_copy(value, &value_copy, err)) < 0 ||
        (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    struct policy_env *grown =
        reallocarray(policy->env, policy->env_count + 1, sizeof *policy->env);
    if (!grown)
        return brig_fail_nomem(err);
    policy->env = grown;
    policy->env[policy->env_count++] = (struct policy_env){
        .kind = kind,
        .name = take_ptr(&name_copy),
        .value = take_ptr(&value_copy),
        .origin = take_ptr(&origin),
    };
    return 0;
}

int brig_policy_setenv(struct brig_policy *policy, const char *name, const char *value,
                       struct brig_error *err)
{
    return add_env(policy, value ? POLICY_ENV_SET : POLICY_ENV_EXPOSE, name, value, err);
}

int brig_policy_unsetenv(struct brig_policy *policy, const char *pattern, struct brig_error *err)
{
    return add_env(policy, POLICY_ENV_UNSET, pattern, NULL, err);
}
