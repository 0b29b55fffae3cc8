/* SPDX-License-Identifier: MIT */
/* Publishing a run, so that it can be entered. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/attach/attach.h"
#include "jail/attach/attach_name.h"
#include "jail/plan/plan.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int make_file(const void *bytes, size_t length)
{
    int made = memfd_create(ENTRY_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (made < 0 && errno == EINVAL) /* before 6.3 */
        made = memfd_create(ENTRY_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    autoclose int fd = made;
    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    return take_fd(&fd);
}

static struct attach_facts facts_of(const struct plan *plan, const struct brig_policy *policy,
                                    pid_t init, const struct cgroup *group)
{
    struct attach_facts facts = {
        .init = init,
        .host_uid = plan->host_uid,
        .host_gid = plan->host_gid,
        .owner = policy->stranger                ? policy->owner
                 : policy->host_uid != (uid_t)-1 ? policy->host_uid
                                                 : geteuid(),
        .has_namespaces = plan->rung == PLAN_FULL,
        .become = plan->become,
        .drop_groups = plan->parent_maps,
        .drop_caps = plan->drop_caps,
        .has_seccomp = plan->seccomp != NULL,
        .has_landlock = plan->landlock,
        .limits_missing = plan->limits_missing,
        .landlock = plan->landlock_attr,
        .landlock_size = plan->landlock_attr_size,
    };
    cgroup_publish(group, &facts.group);
    return facts;
}

int attach_publish(const struct plan *plan, const struct brig_policy *policy, pid_t init,
                   const struct cgroup *group)
{
    if (!policy->jail_name || strlen(policy->jail_name) > ENTRY_NAME_MAX ||
        plan->rule_count > ENTRY_RULES_MAX)
        return -1;
    struct brig_policy command = *policy; /* borrowed */
    command.workdir = (char *)(uintptr_t)plan->workdir;
    struct attach_record record = {.facts = facts_of(plan, policy, init, group),
                                   .policy = &command,
                                   .rule_count = plan->rule_count};
    memcpy(record.jail, policy->jail_name, strlen(policy->jail_name) + 1);
    autofree struct attach_rule *rules = calloc(plan->rule_count + 1, sizeof *rules);
    if (!rules)
        return -1;
    for (size_t i = 0; i < plan->rule_count; i++)
        rules[i] = (struct attach_rule){.access = plan->rules[i].access,
                                        .path = (char *)(uintptr_t)plan->rules[i].path};
    record.rules = rules;
    autostr struct str bytes = {0};
    attach_record_write(&record, &bytes);
    return bytes.failed || bytes.length > ENTRY_RECORD_MAX ? -1
                                                           : make_file(bytes.data, bytes.length);
}
