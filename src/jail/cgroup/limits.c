/* SPDX-License-Identifier: MIT */
/* A policy's limits on the whole jail. */
#include "jail/cgroup/limits.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/job/result.h"
#include "jail/plan/facts.h"

/* One row per resource: the limits that need it, and the replacement without it. */
static const struct {
    unsigned resource;
    unsigned limits; /* bits of enum brig_limit */
    const char *name;
    const char *instead;
    bool as_good; /* the replacement limits the jail as a whole, too */
} resources[] = {
    {CGROUP_MEMORY, 1U << BRIG_LIMIT_MEMORY_BYTES, "memory",
     "it applies to each process separately", false},
    {CGROUP_CPU, 1U << BRIG_LIMIT_CPU_PERCENT, "cpu", "the jail can use all CPUs", false},
    {CGROUP_PIDS, 1U << BRIG_LIMIT_PROCESSES, "pids",
     "a resource limit of the jail's user replaces it", true},
    {CGROUP_IO, 1U << BRIG_LIMIT_IO_READ_BYTES | 1U << BRIG_LIMIT_IO_WRITE_BYTES, "io",
     "the jail can use disks at any speed", false},
    {CGROUP_TIME, 1U << BRIG_LIMIT_CPU_MS, "cpu-time",
     "the time of processes that no parent waited for is not counted", true},
};

/* pids.max accepts no larger value. */
#define PIDS_MAX (UINT64_C(1) << 22)

static bool is_asked(const struct brig_policy *policy, enum brig_limit limit)
{
    return policy->limits_asked & 1U << limit;
}

/* Returns whether an rlimit can limit the number of processes as well as a cgroup. For a limit that
 * the caller asked for, a cgroup is still better, because it reports refused forks; for a default,
 * no cgroup is created. */
static bool is_pids_spare(const struct brig_policy *policy, bool shared)
{
    return policy->limits[BRIG_LIMIT_PROCESSES] && !is_asked(policy, BRIG_LIMIT_PROCESSES) &&
           !shared && !(policy->disabled_layers & BRIG_LAYER_NAMESPACES);
}

/* With at least this share of a core, a jail is built within the first period of the CPU limit. */
#define BUILD_PERCENT 20

/* Returns whether the command can create TCP sockets. */
static bool has_tcp(const struct brig_policy *policy)
{
    return policy->seccomp != BRIG_SECCOMP_CODE || policy->network != BRIG_NET_NONE ||
           policy->disabled_layers & BRIG_LAYER_SECCOMP;
}

static struct cgroup_limits wanted(const struct brig_policy *policy, bool shared)
{
    const uint64_t *limits = policy->limits;
    uint64_t pids = limits[BRIG_LIMIT_PROCESSES];
    return (struct cgroup_limits){
        .memory_bytes = limits[BRIG_LIMIT_MEMORY_BYTES],
        .cpu_percent = (unsigned)limits[BRIG_LIMIT_CPU_PERCENT],
        .pids = pids > 0 && pids < PIDS_MAX ? pids + 1 : pids, /* init counts, too */
        .pids_spare = is_pids_spare(policy, shared),
        .io_read_bytes = limits[BRIG_LIMIT_IO_READ_BYTES],
        .io_write_bytes = limits[BRIG_LIMIT_IO_WRITE_BYTES],
        /* If there may be no pid namespace whose end kills everything. A jail with private
         * directories always has one. */
        .kill = policy->private_count == 0 && (policy->on_unsupported != BRIG_UNSUPPORTED_FAIL ||
                                               policy->disabled_layers & BRIG_LAYER_NAMESPACES),
        .cpu_time = limits[BRIG_LIMIT_CPU_MS] > 0 || policy->held,
        /* An agent goes on when one of its tools is killed. A jail that runs one program ends. */
        .kill_one = policy->mode != BRIG_MODE_SEALED || policy->held,
        .freeze = policy->held,
        .tcp = has_tcp(policy),
    };
}

static unsigned all_limits(void)
{
    unsigned limits = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++)
        limits |= resources[i].limits;
    return limits;
}

static unsigned resources_of(const struct cgroup_limits *limits)
{
    return cgroup_wanted(limits) | (limits->cpu_time ? CGROUP_TIME : 0U);
}

static bool takes_group(const struct cgroup_limits *limits)
{
    return resources_of(limits) & ~(limits->pids_spare ? CGROUP_PIDS : 0U);
}

/* Returns the first missing resource that the caller, not the mode, asked for. */
static const char *first_asked(const struct brig_policy *policy, unsigned missing)
{
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++)
        if (missing & resources[i].resource && policy->limits_asked & resources[i].limits &&
            !resources[i].as_good)
            return resources[i].name;
    return NULL;
}

static int refuse(const char *asked, struct brig_error *err)
{
    struct cgroup_support support;
    cgroup_probe(false, &support);
    (void)brig_fail(err, BRIG_E_UNSUPPORTED, 0, "the %s limit cannot be enforced here%s%s", asked,
                    support.reason[0] ? ": " : "", support.reason);
    if (support.fix[0])
        (void)brig_advise(err, BRIG_E_UNSUPPORTED, "%s", support.fix);
    return brig_advise(err, BRIG_E_UNSUPPORTED,
                       "With on_unsupported set to BRIG_UNSUPPORTED_WARN weaker limits are used");
}

/* Inside a jail, asks its supervisor for a leaf. Then checks whether the limits suffice. */
static int settle(struct limits *limits, const struct brig_policy *policy,
                  const struct cgroup_limits *want, struct brig_error *err)
{
    unsigned time = limits->missing & CGROUP_TIME;
    bool alone = cgroup_kind(limits->group) == CGROUP_NONE;
    if (alone && limits->missing != time &&
        nested_limits_lease_new(want, &limits->lease, &limits->missing, NULL) == 0)
        limits->missing |= time;
    const char *asked = first_asked(policy, limits->missing);
    if (asked && policy->on_unsupported == BRIG_UNSUPPORTED_FAIL)
        return refuse(asked, err);
    return 0;
}

/* Returns whether the policy has limits that need a cgroup, but only as defaults. */
static bool are_defaults(const struct brig_policy *policy)
{
    struct cgroup_limits want = wanted(policy, false);
    return takes_group(&want) && !(policy->limits_asked & all_limits());
}

/* For defaults there is no long search: a cgroup is used only if brig may create groups in its
 * current group, or if the surrounding jail's supervisor provides a leaf. */
static bool is_worth_a_group(const struct brig_policy *policy)
{
    return geteuid() == 0 || !are_defaults(policy) || cgroup_is_ours() || nested_limits_are_near();
}

void limits_skip(struct limits *limits, const struct brig_policy *policy)
{
    struct cgroup_limits want = wanted(policy, limits->shared);
    limits->missing = resources_of(&want);
}

int limits_init(struct limits *limits, const struct brig_policy *policy, struct brig_error *err)
{
    struct cgroup_limits want = wanted(policy, limits->shared);
    if (!takes_group(&want) || !is_worth_a_group(policy)) {
        limits_skip(limits, policy);
        return 0;
    }
    struct cgroup_limits first = want;
    if (limits->settled_later && want.cpu_percent > 0 && want.cpu_percent < BUILD_PERCENT) {
        first.cpu_percent = BUILD_PERCENT;
        limits->cpu_percent = want.cpu_percent;
    }
    int result = cgroup_new(&first, &limits->group, &limits->missing, err);
    return result < 0 ? result : settle(limits, policy, &want, err);
}

int limits_init_leaf(struct limits *limits, const struct brig_policy *policy, struct cgroup *jail,
                     struct brig_error *err)
{
    struct cgroup_limits want = wanted(policy, false);
    want.kill_one = false; /* a command that runs out of memory ends as a whole */
    limits->missing = resources_of(&want);
    if (!jail || cgroup_kind(jail) == CGROUP_NONE)
        return 0;
    return cgroup_new_leaf(jail, &want, &limits->group, &limits->missing, err);
}

int limits_foresee(struct limits *limits, const struct brig_policy *policy, unsigned *ret_grouped,
                   struct brig_error *err)
{
    const struct facts *facts = policy->facts;
    struct cgroup_limits want = wanted(policy, false);
    bool near = facts->root || facts->cgroup_at_hand || !are_defaults(policy);
    unsigned has = takes_group(&want) && near ? facts->cgroup : 0;
    limits->missing = resources_of(&want) & ~has;
    const char *asked = first_asked(policy, limits->missing);
    if (asked && policy->on_unsupported == BRIG_UNSUPPORTED_FAIL)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "the %s limit cannot be enforced here", asked);
    *ret_grouped = resources_of(&want) & has;
    limits->foreseen = *ret_grouped != 0;
    return 0;
}

void limits_done(struct limits *limits)
{
    if (limits->lease)
        nested_limits_lease_free(limits->lease);
    if (limits->group)
        cgroup_free(limits->group);
    *limits = (struct limits){0};
}

void limits_usage(const struct limits *limits, struct cgroup_usage *ret_usage)
{
    *ret_usage = (struct cgroup_usage){0};
    if (limits->lease)
        nested_limits_lease_usage(limits->lease, ret_usage);
    else if (limits->group)
        cgroup_usage(limits->group, ret_usage);
}

int limits_settle(struct limits *limits, struct brig_error *err)
{
    unsigned percent = limits->cpu_percent;
    limits->cpu_percent = 0;
    if (percent == 0 || !limits->group || limits->missing & CGROUP_CPU)
        return 0;
    return cgroup_set_cpu(limits->group, percent, err);
}

void limits_unthrottle(const struct limits *limits)
{
    if (limits->group)
        cgroup_unthrottle(limits->group);
}

unsigned limits_note(const struct limits *limits, const struct brig_policy *policy, bool apart,
                     struct brig_unenforced *unenforced)
{
    unsigned missing = limits->missing;
    if (policy->disk_lack[0])
        unenforced_add(unenforced, "limit disk: %s", policy->disk_lack);
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++) {
        const char *instead = resources[i].instead;
        bool is_default_pids =
            resources[i].resource == CGROUP_PIDS && !is_asked(policy, BRIG_LIMIT_PROCESSES);
        if (!(missing & resources[i].resource))
            continue;
        if (is_default_pids && apart && is_pids_spare(policy, limits->shared))
            continue; /* nothing is lost */
        if (is_default_pids) {
            missing &= ~(unsigned)CGROUP_PIDS;
            instead = "the number of processes is not limited";
        }
        unenforced_add(unenforced, "limit %s: no cgroup; %s", resources[i].name, instead);
    }
    return missing;
}
