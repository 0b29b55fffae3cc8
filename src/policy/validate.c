/* SPDX-License-Identifier: MIT */
/* What only makes sense of the whole policy, and where a grant may stand. */
#include "policy/validate.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"

/* Of /dev the jail always has its own: the host's would hand it the caller's terminals. */
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
                         policy_view_choices());
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

/* The host's /proc holds the root directory of every process of the caller: a grant of it, or of
 * all there is, would undo every other rule. This looks at the text only; what the path leads to is
 * looked at when it is opened. */
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

/* The host's own network cannot be restricted, and a run that goes on without a restriction would be
 * taken for one that has it. */
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
                             policy_limit_name(limits[i]));
    return 0;
}

/* What goes through a door needs one. */
static int check_network(const struct brig_policy *policy, struct brig_error *err)
{
    const struct policy_net *net = &policy->net;
    const char *name = policy_network_name(policy->network);
    if (policy_has_door(policy))
        return 0;
    if (net->publish_count > 0 && policy->network == BRIG_NET_HOST)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "nothing can be published with the network 'host': what listens in the "
                         "jail listens on the host");
    if (net->publish_count > 0 || net->inject_count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cannot %s with the network '%s': use --net allow or open",
                         net->publish_count > 0 ? "publish a port" : "inject a credential", name);
    if (net->proxy_env)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the network '%s' has no proxy: use --net allow or open", name);
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
                         "sandboxes need --seccomp dev");
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
