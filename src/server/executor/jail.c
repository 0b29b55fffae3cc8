/* SPDX-License-Identifier: MIT */
/* Turns a request into a jail: its policy and its command. */
#include "server/executor/jail.h"
#include "policy/layers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "git/guard.h"
#include "image/images.h"
#include "jail/generated/guest_blob.h" /* made from guest/guest.c */
#include "policy/policy.h"
#include "server/config/config.h"
#include "server/executor/backend.h"
#include "server/executor/credential.h"
#include "server/executor/jail_check.h"

#define MEBIBYTE (UINT64_C(1) << 20)
#define OPEN_FILES_CODE 1024
#define OPEN_FILES_AGENT 4096
#define GRACE_AGENT_MS 2000
#define FILE_MODE 0644
#define INODES_CODE 65536
#define INODES_AGENT 262144

struct maker {
    const struct jail_ground *ground;
    const struct runtime *runtime;
    const struct execution_request *request;
    struct brig_policy *policy;
    struct jail *jail;
    struct brig_error *err;
    uid_t host_uid;
    enum jail_use use;
};

/* Whether commands are started in the jail later. */
static bool is_held(const struct maker *maker)
{
    return maker->use == JAIL_HELD || maker->use == JAIL_STAGED;
}

/* ---- limits ---- */

/* A jail with stages has the memory of the stage that may use most. */
static uint64_t memory_mb(const struct maker *maker)
{
    uint64_t run = jail_limit(maker->runtime, maker->request, EXECUTION_MEMORY_MB);
    uint64_t compile = jail_stage_limits(maker->runtime, maker->request, STAGE_COMPILE).memory_mb;
    return maker->use == JAIL_STAGED && compile > run ? compile : run;
}

void executor_jail_rlimits(struct brig_policy *policy, const struct execution_request *request)
{
    policy->stack_bytes = request->stack_kb << 10;
    policy->limits[BRIG_LIMIT_FILE_SIZE] = request->file_kb << 10;
}

static int set_limits(const struct maker *maker)
{
    const struct runtime *runtime = maker->runtime;
    uint64_t values[EXECUTION_LIMITS_], grace = maker->ground->config->sandbox.kill_grace_ms;
    for (int i = 0; i < EXECUTION_LIMITS_; i++)
        values[i] = jail_limit(runtime, maker->request, (enum execution_limit)i);
    struct execution_stage_limits stage = {0};
    if (!is_held(maker))
        stage = jail_stage_limits(runtime, maker->request, STAGE_RUN);
    const struct {
        enum brig_limit limit;
        uint64_t value;
    } rows[] = {
        {BRIG_LIMIT_WALL_MS, stage.timeout_ms},
        {BRIG_LIMIT_CPU_MS, stage.cpu_ms},
        {BRIG_LIMIT_GRACE_MS, grace            ? grace
                              : runtime->agent ? GRACE_AGENT_MS
                                               : 0},
        {BRIG_LIMIT_MEMORY_BYTES, memory_mb(maker) * MEBIBYTE},
        {BRIG_LIMIT_PROCESSES, values[EXECUTION_PIDS] + backend_processes(runtime->backend)},
        {BRIG_LIMIT_TMP_BYTES, values[EXECUTION_DISK_MB] * MEBIBYTE},
        {BRIG_LIMIT_TMP_INODES, runtime->agent ? INODES_AGENT : INODES_CODE},
        {BRIG_LIMIT_CPU_PERCENT, values[EXECUTION_CPU_PERCENT]},
        {BRIG_LIMIT_OPEN_FILES, runtime->agent ? OPEN_FILES_AGENT : OPEN_FILES_CODE},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int result = brig_policy_limit(maker->policy, rows[i].limit, rows[i].value, maker->err);
        if (result < 0)
            return result;
    }
    if (!is_held(maker) && runtime->backend == BACKEND_BRIG)
        executor_jail_rlimits(maker->policy, maker->request);
    return brig_policy_on_unsupported(maker->policy, BRIG_UNSUPPORTED_WARN, maker->err);
}

/* ---- identity ---- */

/* As root each jail has a host uid that no other jail and no user of the host has, so it may access
 * its grants as if it were their owner. */
static int set_identity(const struct maker *maker)
{
    const struct runtime *runtime = maker->runtime;
    const char *home = maker->request->home;
    bool person = runtime->agent || home;
    struct brig_identity identity = {
        .size = sizeof(struct brig_identity),
        .host_uid = maker->host_uid,
        .host_gid = (gid_t)maker->host_uid,
        .inside_uid = person ? RUNTIME_AGENT_UID : RUNTIME_CODE_UID,
        .inside_gid = person ? RUNTIME_AGENT_UID : RUNTIME_CODE_UID,
        .name = home             ? home + strlen(JAIL_HOMES)
                : runtime->agent ? "agent"
                                 : "sandbox",
        .home = runtime->agent ? RUNTIME_HOME : home,
    };
    int result = brig_policy_identity(maker->policy, &identity, maker->err);
    maker->policy->stranger = maker->host_uid != (uid_t)-1;
    return result;
}

/* The variables of an image come first, so that the others replace them; but the path is its own. */
static int set_image_environment(const struct maker *maker)
{
    const struct image_words *env = &maker->runtime->opened->record.env;
    int result = 0;
    for (size_t i = 0; result == 0 && i < env->count; i++) {
        const char *equals = strchr(env->items[i], '=');
        autofree char *name = strndup(env->items[i], (size_t)(equals - env->items[i]));
        result = name ? brig_policy_setenv(maker->policy, name, equals + 1, maker->err)
                      : brig_fail_nomem(maker->err);
    }
    return result;
}

static bool has_path(const struct image *image)
{
    for (size_t i = 0; i < image->record.env.count; i++)
        if (str_starts_with(image->record.env.items[i], "PATH="))
            return true;
    return false;
}

static int set_environment(const struct maker *maker)
{
    const struct execution_request *request = maker->request;
    const struct image *image = maker->runtime->opened;
    const struct execution_pair always[] = {
        {"PATH", RUNTIME_PATH},
        {"HOME", maker->runtime->agent     ? RUNTIME_HOME
                 : request->home           ? request->home
                 : maker->use == JAIL_HELD ? RUNTIME_WORKSPACE
                                           : "/tmp"},
        {"LANG", "C.UTF-8"},
    };
    int result = image ? set_image_environment(maker) : 0;
    for (size_t i = image && has_path(image); result == 0 && i < ARRAY_LENGTH(always); i++)
        result = brig_policy_setenv(maker->policy, always[i].name, always[i].value, maker->err);
    for (size_t i = 0; result == 0 && i < request->env_count; i++)
        result = brig_policy_setenv(maker->policy, request->env[i].name, request->env[i].value,
                                    maker->err);
    return result;
}

/* ---- filesystem ---- */

static int add_file(const struct maker *maker, const char *name,
                    const struct execution_bytes *bytes)
{
    char path[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    (void)snprintf(path, sizeof path, RUNTIME_WORKSPACE "/%s", name);
    return brig_policy_file(maker->policy, path, bytes->data, bytes->length, FILE_MODE, maker->err);
}

static int add_code(const struct maker *maker)
{
    const char *name = runtime_file_name(maker->runtime, maker->request);
    if (maker->use != JAIL_LATE)
        return add_file(maker, name, &maker->request->code);
    char path[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    (void)snprintf(path, sizeof path, RUNTIME_WORKSPACE "/%s", name);
    return policy_late_file(maker->policy, path, FILE_MODE, maker->err);
}

/* The server has no storage for private git directories. So `.git`, and existing files that
 * programs of the directory's owner execute, are read-only. */
static int guard_workdir(const struct maker *maker)
{
    const struct guard_options options = {
        .storage = -1, .jail = "brigd", .user = {(uid_t)-1, (gid_t)-1}};
    autostr struct str notes = {0};
    struct guard *guard = NULL;
    int result = guard_begin(maker->policy, &options, &guard, &notes, maker->err);
    guard_free(guard);
    return result;
}

static int grant_workdir(const struct maker *maker)
{
    const struct execution_request *request = maker->request;
    int result = executor_open_workdir(request->work_dir,
                                       config_workdir_roots(maker->ground->config, request->domain),
                                       &maker->jail->work_fd, maker->err);
    if (result < 0) {
        maker->jail->field = "work_dir";
        return result;
    }
    result = policy_grant_fd(maker->policy, BRIG_READ_WRITE, maker->jail->work_fd,
                             RUNTIME_WORKSPACE, maker->err);
    return result < 0 ? result : guard_workdir(maker);
}

static int fill_workspace(const struct maker *maker)
{
    const struct execution_request *request = maker->request;
    if (request->work_dir)
        return grant_workdir(maker);
    int result = brig_policy_private(maker->policy, BRIG_READ_WRITE, RUNTIME_WORKSPACE, maker->err);
    if (result == 0 && maker->runtime->input == RUNTIME_FILE && maker->use != JAIL_HELD)
        result = add_code(maker);
    for (size_t i = 0; result == 0 && i < request->file_count; i++)
        result = add_file(maker, request->files[i].name, &request->files[i].content);
    return result;
}

static int set_view(const struct maker *maker)
{
    struct brig_policy *policy = maker->policy;
    const struct runtime *runtime = maker->runtime;
    int result = 0;
    if (runtime->root)
        result = brig_policy_view(policy, BRIG_VIEW_ROOT, runtime->root, maker->err);
    if (runtime->image && !runtime->opened)
        return brig_fail(maker->err, BRIG_E_SETUP, 0, "%s has no image", runtime->name);
    if (result == 0 && runtime->opened && runtime->backend == BACKEND_BRIG)
        result = policy_layers(policy, runtime->opened->paths, runtime->opened->count, maker->err);
    if (result == 0 && runtime->root && runtime->agent)
        result = brig_policy_private(policy, BRIG_READ_WRITE, RUNTIME_HOME, maker->err);
    const char *home = maker->request->home;
    if (result == 0 && home)
        result = brig_policy_private(policy, BRIG_READ_WRITE, home, maker->err);
    if (result == 0)
        result = fill_workspace(maker);
    if (result == 0)
        result = brig_policy_private(policy, BRIG_READ_WRITE, RUNTIME_OUTPUT, maker->err);
    bool kept =
        maker->use == JAIL_LATE || maker->use == JAIL_COMMON || maker->request->return_count > 0;
    if (result == 0 && kept)
        result = brig_policy_keep(policy, RUNTIME_OUTPUT, maker->err);
    if (result == 0)
        result = brig_policy_workdir(policy, home ? home : RUNTIME_WORKSPACE, maker->err);
    return result;
}

/* ---- network ---- */

static int allow(const struct maker *maker, const char *rule)
{
    return brig_policy_allow(maker->policy, rule, maker->err);
}

/* An agent reaches more than its runtime's destinations only if the operator allows requests the
 * whole network: the contents of its work_dir must not be sent anywhere else. */
static bool counts_request(const struct maker *maker)
{
    return maker->request->network &&
           (!maker->runtime->agent || maker->ground->config->sandbox.allow_network);
}

static int set_network(const struct maker *maker)
{
    const struct execution_request *request = maker->request;
    const struct runtime *runtime = maker->runtime;
    bool counts = counts_request(maker);
    if (!counts && !runtime->allow[0]) /* servers in a sandbox are reached through its ports */
        return maker->use == JAIL_HELD
                   ? brig_policy_network(maker->policy, BRIG_NET_LOOPBACK, maker->err)
                   : 0;
    bool open = counts && request->allow_count == 0;
    int result =
        brig_policy_network(maker->policy, open ? BRIG_NET_OPEN : BRIG_NET_ALLOW, maker->err);
    if (result == 0 && maker->ground->broker)
        result = brig_policy_broker(maker->policy, maker->ground->broker, maker->err);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(runtime->allow) && runtime->allow[i]; i++)
        result = allow(maker, runtime->allow[i]);
    for (size_t i = 0; result == 0 && counts && i < request->allow_count; i++)
        result = allow(maker, request->allow[i]);
    return result;
}

/* ---- the whole jail ---- */

/* The first command of a jail that is held ends at once, and the jail stays. */
static int set_guest(const struct maker *maker)
{
    static const char *const argv[] = {JAIL_GUEST, NULL};
    struct brig_policy *policy = maker->policy;
    int result = brig_policy_private(policy, BRIG_READ_ONLY, "/run/brig", maker->err);
    if (result == 0)
        result =
            brig_policy_file(policy, JAIL_GUEST, guest_blob, sizeof guest_blob, 0555, maker->err);
    maker->jail->argv = arena_copy(&maker->jail->arena, argv, sizeof argv);
    policy->held = true;
    policy->jail_name = "sandbox";
    return result == 0 && !maker->jail->argv ? brig_fail_nomem(maker->err) : result;
}

static int set_command(const struct maker *maker)
{
    struct jail *jail = maker->jail;
    if (is_held(maker))
        return set_guest(maker);
    jail->argv =
        runtime_command(maker->runtime, STAGE_RUN, maker->request, memory_mb(maker), &jail->arena);
    if (!jail->argv)
        return brig_fail_nomem(maker->err);
    if (!maker->runtime->agent)
        return 0;
    return executor_credential_lend(maker->ground->credential, maker->ground->config, maker->policy,
                                    &jail->argv, &jail->arena, maker->err);
}

static int make(struct maker *maker)
{
    struct brig_error *err = maker->err;
    *maker->jail = (struct jail){.work_fd = -1, .policy = brig_policy_new(BRIG_MODE_SEALED)};
    maker->policy = maker->jail->policy;
    if (!maker->policy)
        return brig_fail_nomem(err);
    int (*const parts[])(const struct maker *) = {set_identity, set_environment, set_limits,
                                                  set_view,     set_network,     set_command};
    int result = brig_policy_origin(maker->policy, "request", err);
    if (result == 0)
        result = brig_policy_seccomp(maker->policy, maker->runtime->profile, err);
    if (result == 0)
        result = brig_policy_trace(maker->policy, !is_held(maker), err);
    if (result == 0)
        result = brig_policy_terminal(maker->policy, BRIG_TERMINAL_NONE, err);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(parts); i++)
        result = parts[i](maker);
    if (result == 0 && maker->runtime->backend != BACKEND_BRIG)
        result = backend_apply(maker->runtime, maker->request, maker->host_uid, maker->jail, err);
    return result;
}

int executor_jail_make(const struct jail_ground *ground, const struct runtime *runtime,
                       const struct execution_request *request, enum jail_use use, uid_t host_uid,
                       struct jail *ret_jail, struct brig_error *err)
{
    static const struct execution_request plain = {.code = {.data = "\n", .length = 1},
                                                   .stdin_bytes.data = ""};
    int result = make(&(struct maker){.ground = ground,
                                      .runtime = runtime,
                                      .request = request ? request : &plain,
                                      .use = use,
                                      .jail = ret_jail,
                                      .err = err,
                                      .host_uid = host_uid});
    if (result == 0 && use == JAIL_LATE)
        ret_jail->policy->late_input = true;
    return result;
}

void executor_jail_done(struct jail *jail)
{
    brig_policy_free(jail->policy);
    if (jail->work_fd >= 0)
        (void)close(jail->work_fd);
    arena_done(&jail->arena);
    *jail = (struct jail){.work_fd = -1};
}
