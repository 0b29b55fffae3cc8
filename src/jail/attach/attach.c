/* SPDX-License-Identifier: MIT */
/* Encodes, publishes, finds and decodes the record of a run. Writer and reader are brig processes
 * on one machine; a record of another version is refused. */
#include "jail/attach/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "base/wire.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/plan/plan.h"

#define VERSION 0x326e757267697262U /* "brigrun2" */
#define TEXT_MAX (1U << 20)

struct head {
    struct attach_facts facts;
    int32_t mode, seccomp, network;
    uint32_t allow_nested, disabled_layers;
    uint64_t limits[BRIG_LIMIT_COUNT_];
    uint32_t env_count, rule_count;
};

void attach_record_done(struct attach_record *record)
{
    brig_policy_free(record->policy);
    for (size_t i = 0; i < record->rule_count; i++)
        free(record->rules[i].path);
    free(record->rules);
    *record = (struct attach_record){0};
}

/* ---- writing ---- */

void attach_record_write(const struct attach_record *record, struct str *ret_bytes)
{
    const struct brig_policy *policy = record->policy;
    struct head head = {0};
    head.facts = record->facts;
    head.mode = (int32_t)policy->mode;
    head.seccomp = (int32_t)policy->seccomp;
    head.network = (int32_t)policy->network;
    head.allow_nested = policy->allow_nested;
    head.disabled_layers = policy->disabled_layers;
    memcpy(head.limits, policy->limits, sizeof head.limits);
    head.env_count = (uint32_t)policy->env_count;
    head.rule_count = (uint32_t)record->rule_count;
    wire_put_version(ret_bytes, VERSION);
    wire_put_bytes(ret_bytes, &head, sizeof head);
    const char *const texts[] = {record->jail, policy->user_name, policy->home, policy->shell,
                                 policy->workdir};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        wire_put_text(ret_bytes, texts[i]);
    for (size_t i = 0; i < policy->env_count; i++) {
        wire_put_u64(ret_bytes, policy->env[i].kind);
        wire_put_text(ret_bytes, policy->env[i].name);
        wire_put_text(ret_bytes, policy->env[i].value);
    }
    for (size_t i = 0; i < record->rule_count; i++) {
        wire_put_u64(ret_bytes, record->rules[i].access);
        wire_put_text(ret_bytes, record->rules[i].path);
    }
}

/* ---- reading ---- */

/* Returns a copy that the caller frees; NULL also if the text is absent or malformed. */
static char *copy_text(struct wire_reader *in)
{
    const char *text = wire_get_text_or_null(in, TEXT_MAX);
    char *copy = text ? strdup(text) : NULL;
    in->failed |= text && !copy;
    return copy;
}

/* The same, owned by the policy. */
static char *keep_text(struct wire_reader *in, struct brig_policy *policy)
{
    char *kept = NULL;
    if (policy_text(policy, wire_get_text_or_null(in, TEXT_MAX), &kept, NULL) < 0)
        in->failed = true;
    return kept;
}

static void read_texts(struct wire_reader *in, struct attach_record *record)
{
    struct brig_policy *policy = record->policy;
    (void)snprintf(record->jail, sizeof record->jail, "%s", wire_get_text(in, ENTRY_NAME_MAX));
    policy->user_name = keep_text(in, policy);
    policy->home = keep_text(in, policy);
    policy->shell = keep_text(in, policy);
    policy->workdir = keep_text(in, policy);
    in->failed |= !policy->workdir || policy->workdir[0] != '/';
}

static void read_env(struct wire_reader *in, struct brig_policy *policy, uint32_t count)
{
    for (uint32_t i = 0; i < count && !in->failed; i++) {
        uint64_t kind = wire_get_u64(in, POLICY_ENV_UNSET);
        const char *name = wire_get_text_or_null(in, TEXT_MAX);
        const char *value = wire_get_text_or_null(in, TEXT_MAX);
        if (in->failed || !name || (kind == POLICY_ENV_SET) != (value != NULL))
            in->failed = true;
        else if (kind == POLICY_ENV_UNSET)
            in->failed = brig_policy_unsetenv(policy, name, NULL) < 0;
        else
            in->failed = brig_policy_setenv(policy, name, value, NULL) < 0;
    }
}

static void read_rules(struct wire_reader *in, struct attach_record *record, uint32_t count)
{
    if (in->failed || count > ENTRY_RULES_MAX ||
        !(record->rules = calloc(count + 1, sizeof *record->rules))) {
        in->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count && !in->failed; i++) {
        struct attach_rule *rule = &record->rules[record->rule_count++];
        rule->access = wire_get_u64(in, UINT64_MAX);
        rule->path = copy_text(in);
        in->failed |= !rule->path || rule->path[0] != '/';
    }
}

/* Checks the values that are used as indexes into the engine's tables. */
static bool is_sound(const struct head *head)
{
    return (head->seccomp == BRIG_SECCOMP_DEV || head->seccomp == BRIG_SECCOMP_CODE) &&
           head->network >= BRIG_NET_NONE && head->network <= BRIG_NET_LOOPBACK &&
           head->env_count <= POLICY_ENV_MAX && head->facts.init > 0 &&
           head->facts.landlock_size <= sizeof head->facts.landlock;
}

int attach_record_read(const void *bytes, size_t length, struct attach_record *ret_record,
                       struct brig_error *err)
{
    struct wire_reader in = wire_open(bytes, length, VERSION);
    struct head head;
    size_t size = 0;
    const char *raw = wire_get_bytes(&in, sizeof head, &size);
    if (in.failed || size != sizeof head)
        return brig_fail(err, BRIG_E_INVALID, 0, "the run is of another version of brig");
    memcpy(&head, raw, sizeof head);
    struct attach_record record = {.facts = head.facts};
    record.policy = is_sound(&head) ? brig_policy_new((enum brig_mode)head.mode) : NULL;
    if (record.policy) {
        struct brig_policy *policy = record.policy;
        policy->seccomp = (enum brig_seccomp)head.seccomp;
        policy->network = (enum brig_network)head.network;
        policy->allow_nested = head.allow_nested != 0;
        policy->disabled_layers = head.disabled_layers;
        memcpy(policy->limits, head.limits, sizeof policy->limits);
        read_texts(&in, &record);
        read_env(&in, policy, head.env_count);
        read_rules(&in, &record, head.rule_count);
    }
    if (!record.policy || !wire_done(&in)) {
        attach_record_done(&record);
        return brig_fail(err, BRIG_E_INVALID, 0, "the record of the run is invalid");
    }
    *ret_record = record;
    return 0;
}

/* ---- publishing ---- */

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
        .group.dirs = {[0 ... CGROUP_JOIN_MAX - 1] = -1},
    };
    if (group)
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

/* ---- finding a record ---- */

void attach_done(struct attach *entry)
{
    attach_record_done(&entry->record);
    close_fd(&entry->process);
    *entry = ENTRY_INIT;
}

/* ---- /proc ---- */

ssize_t attach_proc_read(int process, const char *name, char *buffer, size_t size)
{
    autoclose int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = fd < 0 ? -1 : 0;
    while (fd >= 0 && length + 1 < size && (got = read(fd, buffer + length, size - 1 - length)) > 0)
        length += (size_t)got;
    buffer[length] = 0;
    return got < 0 ? -errno : (ssize_t)length;
}

const char *attach_proc_line(const char *status, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0)
            return line + length;
    }
    return NULL;
}

int attach_proc_same_namespace(int process, const char *path)
{
    char own[64];
    struct stat theirs, ours;
    (void)snprintf(own, sizeof own, "/proc/self/%s", path);
    if (fstatat(process, path, &theirs, 0) < 0 || stat(own, &ours) < 0)
        return -errno;
    return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

bool attach_is_alive(const struct attach *entry)
{
    char text[8];
    return attach_proc_read(entry->process, "stat", text, sizeof text) > 0;
}

/* ---- whether the supervisor is trusted ---- */

/* Compares all four ids: the directory in /proc of an undumpable process belongs to root, so its
 * owner says nothing. */
static int read_status(int process, uid_t *ret_uid, bool *ret_held)
{
    char status[ENTRY_STATUS_MAX];
    ssize_t length = attach_proc_read(process, "status", status, sizeof status);
    if (length < 0)
        return (int)length;
    const char *uids = attach_proc_line(status, "Uid:");
    const char *held = attach_proc_line(status, "NoNewPrivs:");
    if (!uids)
        return -EPROTO;
    unsigned long ids[4]; /* real, effective, saved, filesystem */
    for (int i = 0; i < 4; i++) {
        char *end = NULL;
        ids[i] = strtoul(uids, &end, 10);
        if (end == uids || ids[i] != ids[0])
            return -EPROTO;
        uids = end;
    }
    *ret_uid = (uid_t)ids[0];
    *ret_held = held && strtol(held, NULL, 10) != 0;
    return 0;
}

/* A process in a jail has other user and pid namespaces, or at least no_new_privs: it could have a
 * memfd of the same name with any content. */
static int check_supervisor(int process)
{
    bool held = false;
    uid_t uid = (uid_t)-1;
    int result = read_status(process, &uid, &held);
    if (result < 0)
        return result;
    if (uid != geteuid())
        return -EPERM;
    int same_user = attach_proc_same_namespace(process, "ns/user");
    int same_pid = attach_proc_same_namespace(process, "ns/pid");
    if (same_user < 0 || same_pid < 0)
        return same_user < 0 ? same_user : same_pid;
    return same_user && same_pid && (!held || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
               ? 0
               : -ENOENT;
}

/* ---- the record ---- */

/* The record must be sealed, as only brig creates it. */
static int open_record(int process)
{
    autoclose int list = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = list < 0 ? NULL : fdopendir(list);
    if (!dir)
        return -errno;
    int fds = take_fd(&list);
    const struct dirent *item;
    while ((item = readdir(dir))) {
        char link[sizeof ENTRY_FILE_LINK + 1];
        ssize_t length = readlinkat(fds, item->d_name, link, sizeof link);
        if (length != (ssize_t)strlen(ENTRY_FILE_LINK) ||
            memcmp(link, ENTRY_FILE_LINK, (size_t)length) != 0)
            continue;
        autoclose int fd = openat(fds, item->d_name, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0 && fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE)
            return take_fd(&fd);
    }
    return -ENOENT;
}

static int read_record(int fd, struct attach_record *ret_record, struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || info.st_size < 0 || info.st_size > ENTRY_RECORD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the record of the run is too long");
    size_t size = (size_t)info.st_size, length = 0;
    autofree char *bytes = malloc(size + 1);
    if (!bytes)
        return brig_fail_nomem(err);
    ssize_t got = 0;
    while (length < size && (got = pread(fd, bytes + length, size - length, (off_t)length)) > 0)
        length += (size_t)got;
    return attach_record_read(bytes, length, ret_record, err);
}

static int refuse(pid_t pid, int why, struct brig_error *err)
{
    if (why == -EACCES || why == -EPERM) {
        (void)brig_fail(err, BRIG_E_SYSTEM, -why, "process %d is not yours", pid);
        return brig_advise(err, BRIG_E_SYSTEM,
                           "If it is a brig that root started, enter it as root");
    }
    return brig_fail(err, BRIG_E_NOT_FOUND, 0,
                     "process %d is not a brig whose run can be entered. See brig list", pid);
}

int attach_own(int record, struct attach *ret_entry, struct brig_error *err)
{
    struct attach entry = ENTRY_INIT;
    entry.supervisor = getpid();
    autoclose int process = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "/proc/self");
    int result = read_record(record, &entry.record, err);
    if (result < 0)
        return result;
    entry.record.policy->limits[BRIG_LIMIT_WALL_MS] = 0;
    entry.start_time = cgroup_start_time(entry.supervisor);
    entry.process = fds_keep_high(take_fd(&process));
    *ret_entry = entry;
    return 0;
}

int attach_find(pid_t supervisor, struct attach *ret_entry, struct brig_error *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d", supervisor);
    struct attach entry = ENTRY_INIT;
    entry.supervisor = supervisor;
    autoclose int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = process < 0 ? -errno : check_supervisor(process);
    if (result < 0)
        return refuse(supervisor, result, err);
    autoclose int fd = open_record(process);
    if (fd < 0)
        return refuse(supervisor, fd, err);
    if ((result = read_record(fd, &entry.record, err)) < 0)
        return result;
    /* The wall-clock limit of the run ends entered commands, too. */
    entry.record.policy->limits[BRIG_LIMIT_WALL_MS] = 0;
    entry.start_time = cgroup_start_time(supervisor);
    entry.process = take_fd(&process);
    *ret_entry = entry;
    return 0;
}
