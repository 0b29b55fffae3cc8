/* SPDX-License-Identifier: MIT */
/* A policy from new to free, and the builders of its identity. In every builder a value is checked
 * as it comes in, and a refused or failed call changes nothing. */
#include "policy/policy.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/str.h"
#include "policy/modes.h"
#include "policy/policy_parts.h"

#define POLICY_ORIGIN_MAX 8192   /* a path, a line number and words around them */
#define POLICY_USER_NAME_MAX 255 /* LOGIN_NAME_MAX without the NUL */

/* ---- Lifetime ----------------------------------------------------------------------------- */

void policy_grant_done(struct policy_grant *grant)
{
    free(grant->source);
    free(grant->dest);
    free(grant->origin);
}

void brig_policy_free(struct brig_policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->grant_count; i++)
        policy_grant_done(&policy->grants[i]);
    for (size_t i = 0; i < policy->env_count; i++)
        policy_env_done(&policy->env[i]);
    policy_private_done(policy);
    policy_net_done(&policy->net);
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
        copy->fd = source->fd;
        copy->checked = source->checked;
        copy->dev = source->dev;
        copy->ino = source->ino;
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
        if (source->constant)
            *copy = *source;
        else if (str_copy(source->name, &copy->name, NULL) < 0 ||
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
    copy->mounts = NULL; /* it may outlive them */
    /* Nothing is shared: every pointer is emptied before the first copy can fail. */
    copy->grants = NULL;
    copy->env = NULL;
    copy->privates = NULL;
    copy->files = NULL;
    copy->grant_count = copy->env_count = copy->private_count = copy->file_count = 0;
    copy->net = (struct policy_net){0};
    copy->root_path = copy->user_name = copy->home = copy->shell = NULL;
    copy->workdir = copy->hostname = copy->origin = NULL;
    if (copy_grants(policy, copy) < 0 || copy_env(policy, copy) < 0 ||
        policy_private_copy(policy, copy) < 0 || policy_net_copy(&policy->net, &copy->net) < 0 ||
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

void policy_replace(char **field, char **value)
{
    free(*field);
    *field = take_ptr(value);
}

int policy_bad_value(struct brig_error *err, const char *what, int value, const char *choices)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "unknown %s %d: %s", what, value, choices);
}

int policy_path(const char *what, const char *path, unsigned flags, char **ret_path,
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
    policy_replace(&policy->origin, &copy);
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
    return rc < 0 ? rc : policy_path(what, path, 0, ret_path, err);
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
    policy_replace(&policy->user_name, &name);
    policy_replace(&policy->home, &home);
    policy_replace(&policy->shell, &shell);
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
    policy_replace(&policy->hostname, &copy);
    return 0;
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
