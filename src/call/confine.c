/* SPDX-License-Identifier: MIT */
/* Confines the running process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "call/caller.h"
#include "jail/child/child_start.h"
#include "jail/confine/landlock.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"
#include "jail/sys.h"
#include "policy/layers.h"

/* Landlock and capabilities apply to one thread: other threads would stay unconfined. */
static bool is_alone(void)
{
    autodir DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    return count == 1;
}

static void note_lost(const struct brig_policy *policy, struct brig_unenforced *unenforced)
{
    if (policy->limits[BRIG_LIMIT_WALL_MS])
        unenforced_add(
            unenforced,
            "a timeout is not enforced: a process that confines itself has no supervisor");
    if (policy->limits[BRIG_LIMIT_MEMORY_BYTES] || policy->limits[BRIG_LIMIT_CPU_PERCENT] ||
        policy->limits[BRIG_LIMIT_IO_READ_BYTES] || policy->limits[BRIG_LIMIT_IO_WRITE_BYTES])
        unenforced_add(unenforced, "no cgroup: memory is limited for each process by itself, CPU "
                                   "and disks are not");
}

static int confine(const struct brig_policy *policy, struct brig_unenforced *unenforced,
                   struct brig_error *err)
{
    struct plan plan = PLAN_INIT;
    autoclose int ruleset = -1;
    int result = confine_prepare(policy, &plan, &ruleset, unenforced, err);
    if (result < 0)
        return result;
    note_lost(policy, unenforced);
    plan.limits_missing = CGROUP_MEMORY | CGROUP_PIDS;
    plan_rlimits(&plan, policy);
    int error = 0, step = confine_apply(&plan, ruleset, &error);
    return step != 0 ? plan_explain_failure(&plan, step, -error, err) : 0;
}

int confine_self(const struct brig_policy *policy, struct brig_unenforced *ret_unenforced,
                 struct brig_error *err)
{
    struct brig_unenforced local = {0};
    struct brig_call_options options;
    brig_call_options_init(&options, sizeof options);
    options.timeout_ms = options.cpu_timeout_ms = options.memory_mb = 0;
    if (!is_alone())
        return brig_fail(err, BRIG_E_STATE, 0,
                         "there are threads already, which would stay outside. Confine the process "
                         "before it starts any");
    struct brig_policy *made = NULL;
    int result = policy ? policy_validate(policy, err) : options_policy(NULL, &options, &made, err);
    if (result == 0)
        result = confine(policy ? policy : made, &local, err);
    brig_policy_free(made);
    if (result == 0 && ret_unenforced)
        *ret_unenforced = local;
    return result;
}

/* ---- restrictions without namespaces: capabilities, Landlock, limits, filter ---- */

/* Files that programs and libraries need, none of which contain data about the machine's users. */
static const char *const readable[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/gai.conf",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/services",
    "/etc/protocols",
    "/proc",
    "/sys/devices/system/cpu",
};

/* No terminals: they include terminals of the user's other programs. */
static const char *const devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
};

struct ruleset {
    int fd;
    int abi;
};

static int add_rule(const struct ruleset *ruleset, int fd, enum landlock_grant grant)
{
    struct stat info;
    /* struct landlock_path_beneath_attr is packed. */
    struct {
        uint64_t access;
        int32_t fd;
    } __attribute__((packed)) beneath = {.fd = fd};
    if (fstat(fd, &info) < 0)
        return -errno;
    beneath.access = landlock_rights(ruleset->abi, grant, S_ISDIR(info.st_mode));
    return (int)SYS(landlock_add_rule, ruleset->fd, 1 /* PATH_BENEATH */, &beneath, 0);
}

/* A path that does not exist on this system is skipped. */
static int add_system_path(const struct ruleset *ruleset, const char *path,
                           enum landlock_grant grant, struct brig_error *err)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int result = add_rule(ruleset, fd, grant);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "Landlock rule for '%s'", path) : 0;
}

static int add_system(const struct ruleset *ruleset, const struct brig_policy *policy,
                      struct brig_error *err)
{
    int result = 0;
    if (policy->view == BRIG_VIEW_ROOT || policy->view == VIEW_LAYERS)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the view '%s' needs namespaces: a function cannot have another root "
                         "directory without",
                         policy_word(POLICY_VIEW, policy->view));
    if (policy->view == BRIG_VIEW_HOST)
        result = add_system_path(ruleset, "/", LANDLOCK_GRANT_READ, err);
    for (size_t i = 0; i < ARRAY_LENGTH(readable) && result == 0; i++)
        if (policy->view == BRIG_VIEW_SYSTEM)
            result = add_system_path(ruleset, readable[i], LANDLOCK_GRANT_READ, err);
    for (size_t i = 0; i < ARRAY_LENGTH(devices) && result == 0; i++)
        result = add_system_path(ruleset, devices[i], LANDLOCK_GRANT_DEVICE, err);
    return result;
}

static int open_grant(const struct policy_grant *grant, struct brig_error *err)
{
    if (grant->flags & BRIG_GRANT_CREATE)
        (void)mkdir(grant->source, 0777); /* open() reports any error */
    int fd = open(grant->source, O_PATH | O_CLOEXEC);
    if (fd >= 0 || (errno == ENOENT && grant->flags & BRIG_GRANT_OPTIONAL))
        return fd;
    (void)brig_fail(err, BRIG_E_INVALID, errno, "%s '%s'", grant->origin,
                    str_shown(grant->source).text);
    return brig_advise(err, BRIG_E_INVALID, "Make it first, or take it out of the list");
}

static int add_grant(const struct ruleset *ruleset, const struct policy_grant *grant,
                     struct brig_unenforced *unenforced, struct brig_error *err)
{
    if (grant->access == BRIG_MASK || grant->access == BRIG_PROTECT) {
        unenforced_add(unenforced, "masked and protected paths are as they are (needs namespaces)");
        return 0;
    }
    if (grant->fd >= 0 || strcmp(grant->source, grant->dest) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be granted at another path '%s' without namespaces [%s]",
                         str_shown(grant->source).text, str_shown(grant->dest).text, grant->origin);
    struct brig_error local = {0};
    autoclose int fd = open_grant(grant, &local);
    if (fd < 0 && local.code != 0) {
        if (err)
            *err = local;
        return local.code;
    }
    if (fd < 0)
        return 0;
    int result = add_rule(ruleset, fd,
                          grant->access == BRIG_READ_WRITE  ? LANDLOCK_GRANT_WRITE
                          : grant->access == BRIG_READ_ONLY ? LANDLOCK_GRANT_READ
                                                            : LANDLOCK_GRANT_DEVICE);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "Landlock rule for '%s'",
                                  str_shown(grant->source).text)
                      : 0;
}

static int fill(const struct brig_policy *policy, int fd, struct brig_unenforced *unenforced,
                struct brig_error *err)
{
    const struct ruleset ruleset = {.fd = fd, .abi = landlock_abi()};
    int result = add_system(&ruleset, policy, err);
    for (size_t i = 0; i < policy->grant_count && result == 0; i++)
        result = add_grant(&ruleset, &policy->grants[i], unenforced, err);
    return result;
}

static int make_ruleset(const struct brig_policy *policy, int *ret_ruleset,
                        struct brig_unenforced *unenforced, struct brig_error *err)
{
    *ret_ruleset = -1;
    struct landlock_attr attr;
    int abi = landlock_abi();
    if (policy->disabled_layers & BRIG_LAYER_LANDLOCK) {
        unenforced_add(unenforced, "Landlock was switched off");
        return 0;
    }
    if (abi == 0) {
        unenforced_add(unenforced, "no Landlock: the filesystem is restricted by ordinary "
                                   "permissions only");
        return policy->on_unsupported == BRIG_UNSUPPORTED_FAIL
                   ? brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                               "this kernel has no Landlock, or it is switched off: the filesystem "
                               "would be open. Add lsm=landlock to its command line, or say that "
                               "on_unsupported is warn")
                   : 0;
    }
    landlock_fill_attr(abi, policy->network, false, &attr, unenforced);
    bool filtered = !(policy->disabled_layers & BRIG_LAYER_SECCOMP);
    bool unix_sockets = policy->unix_sockets || !filtered;
    landlock_stand_alone(abi, policy->network, unix_sockets, filtered, &attr, unenforced);
    long made = SYS(landlock_create_ruleset, &attr, landlock_attr_size(abi), 0);
    if (made < 0)
        return brig_fail(err, BRIG_E_SETUP, (int)-made, "cannot make a Landlock ruleset");
    *ret_ruleset = (int)made; /* the kernel sets close-on-exec */
    return 0;
}

/* Returns whether `real`, a path without symlinks, is below `directory`, which is resolved now. */
static bool lies_below(const char *directory, const char *real)
{
    char text[PATH_LENGTH_MAX + 1];
    return path_resolve(directory, text) && path_is_beneath(text, real);
}

bool confine_cover(const struct brig_policy *policy, const char *real, bool write)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        bool fits = grant->access == BRIG_READ_WRITE || grant->access == BRIG_DEVICE ||
                    (grant->access == BRIG_READ_ONLY && !write);
        if (fits && grant->fd < 0 && lies_below(grant->source, real))
            return true;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(devices); i++)
        if (lies_below(devices[i], real))
            return true;
    if (write || policy->view == BRIG_VIEW_EMPTY)
        return false;
    if (policy->view == BRIG_VIEW_HOST)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(readable); i++)
        if (lies_below(readable[i], real))
            return true;
    return false;
}

static void note_alone(const struct brig_policy *policy, struct brig_unenforced *unenforced)
{
    unenforced_add(unenforced, "no namespaces: other processes can be seen, and /tmp and IPC are "
                               "the host's");
    if (geteuid() == 0)
        unenforced_add(unenforced, "the function stays uid 0, without capabilities, and root's "
                                   "processes are only counted by cgroups");
    if (policy->disabled_layers & BRIG_LAYER_SECCOMP)
        unenforced_add(unenforced, "the syscall filter was switched off");
}

int confine_prepare(const struct brig_policy *policy, struct plan *plan, int *ret_ruleset,
                    struct brig_unenforced *unenforced, struct brig_error *err)
{
    plan->rung = PLAN_LANDLOCK;
    plan->drop_caps = !(policy->disabled_layers & BRIG_LAYER_CAPS);
    if (!(policy->disabled_layers & BRIG_LAYER_SECCOMP))
        plan->seccomp =
            seccomp_program_alone(policy->seccomp, policy->network, policy->unix_sockets);
    int result = make_ruleset(policy, ret_ruleset, unenforced, err);
    if (result == 0 && *ret_ruleset >= 0)
        result = fill(policy, *ret_ruleset, unenforced, err);
    if (result == 0)
        note_alone(policy, unenforced);
    return result;
}

int confine_apply(const struct plan *plan, int ruleset, int *ret_error)
{
    int result;
    if ((*ret_error = child_settle_ids()) < 0)
        return PLAN_STEP_IDS;
    if (plan->drop_caps) {
        child_drop_bounding_set(); /* best effort: needs CAP_SETPCAP */
        (void)SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if ((*ret_error = child_set_caps(0)) < 0)
            return PLAN_STEP_CAPS;
    }
    if ((*ret_error = (int)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0)
        return PLAN_STEP_NO_NEW_PRIVS;
    if (ruleset >= 0 && (*ret_error = (int)SYS(landlock_restrict_self, ruleset, 0)) < 0)
        return PLAN_STEP_LANDLOCK;
    if ((*ret_error = child_set_rlimits(plan)) < 0)
        return PLAN_STEP_RLIMIT;
    result = plan->seccomp ? (int)SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, plan->seccomp) : 0;
    *ret_error = result;
    return result < 0 ? PLAN_STEP_SECCOMP : 0;
}
