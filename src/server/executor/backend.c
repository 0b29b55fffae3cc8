/* SPDX-License-Identifier: MIT */
#include "server/executor/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "image/images.h"
#include "policy/policy.h"
#include "server/executor/jail.h"

#define CGROUPS "/sys/fs/cgroup"

/* ---- config.json ---- */

static void write_words(struct json *json, const char *key, const char *const *words)
{
    json_open_array(json, key);
    for (; words && *words; words++)
        json_text(json, NULL, *words);
    json_close_array(json);
}

static void write_rlimit(struct json *json, const char *type, uint64_t value)
{
    if (value == 0)
        return;
    json_open_object(json, NULL);
    json_text(json, "type", type);
    json_uint(json, "soft", value);
    json_uint(json, "hard", value);
    json_close_object(json);
}

/* The command is uid 0 of a user namespace, because runc needs this uid to be mapped, but it has no
 * capability, and cannot get one. */
static void write_process(struct json *json, const struct backend_run *run)
{
    static const char *const sets[] = {"bounding", "effective", "inheritable", "permitted",
                                       "ambient"};
    json_open_object(json, "process");
    json_open_object(json, "user");
    json_uint(json, "uid", 0);
    json_uint(json, "gid", 0);
    json_close_object(json);
    write_words(json, "args", run->argv);
    write_words(json, "env", run->env);
    json_text(json, "cwd", RUNTIME_WORKSPACE);
    json_open_object(json, "capabilities");
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++)
        write_words(json, sets[i], NULL);
    json_close_object(json);
    json_open_array(json, "rlimits");
    write_rlimit(json, "RLIMIT_STACK", run->stack_bytes);
    write_rlimit(json, "RLIMIT_FSIZE", run->file_bytes);
    json_close_array(json);
    json_bool(json, "noNewPrivileges", true);
    json_close_object(json);
}

/* The directories of the outer jail, whose sizes are limited, are those of the container. */
static void write_mounts(struct json *json)
{
    static const struct {
        const char *destination, *type, *source, *options[5];
    } rows[] = {
        {"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}},
        {"/dev", "tmpfs", "tmpfs", {"nosuid", "noexec", "mode=755", "size=64k"}},
        {"/dev/shm", "bind", BACKEND_FOLDER "/shm", {"bind", "nosuid", "nodev", "noexec"}},
        {"/tmp", "bind", "/tmp", {"bind", "nosuid", "nodev"}},
        {RUNTIME_WORKSPACE, "bind", RUNTIME_WORKSPACE, {"bind", "nosuid", "nodev"}},
        {RUNTIME_OUTPUT, "bind", RUNTIME_OUTPUT, {"bind", "nosuid", "nodev"}},
    };
    json_open_array(json, "mounts");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        json_open_object(json, NULL);
        json_text(json, "destination", rows[i].destination);
        json_text(json, "type", rows[i].type);
        json_text(json, "source", rows[i].source);
        write_words(json, "options", rows[i].options);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_mapping(struct json *json, const char *key)
{
    json_open_array(json, key);
    json_open_object(json, NULL);
    json_uint(json, "containerID", 0);
    json_uint(json, "hostID", 0);
    json_uint(json, "size", 1);
    json_close_object(json);
    json_close_array(json);
}

static void write_refusal(struct json *json, const char *const *names, int error, uint64_t flag)
{
    json_open_object(json, NULL);
    write_words(json, "names", names);
    json_text(json, "action", "SCMP_ACT_ERRNO");
    json_int(json, "errnoRet", error);
    if (flag) {
        json_open_array(json, "args");
        json_open_object(json, NULL);
        json_uint(json, "index", 0);
        json_uint(json, "value", flag);
        json_uint(json, "valueTwo", flag);
        json_text(json, "op", "SCMP_CMP_MASKED_EQ");
        json_close_object(json);
        json_close_array(json);
    }
    json_close_object(json);
}

/* The outer jail's filter applies to the container, too. This one takes back what allow-nested adds
 * to it. */
static void write_seccomp(struct json *json)
{
    static const char *const mounts[] = {
        "mount",          "umount2",    "pivot_root",    "chroot", "open_tree",
        "open_tree_attr", "move_mount", "mount_setattr", "fsopen", "fsconfig",
        "fsmount",        "fspick",     "unshare",       "setns",  "sethostname",
        "setdomainname",  NULL};
    static const char *const clone[] = {"clone", NULL}, *const clone3[] = {"clone3", NULL};
    static const uint64_t namespaces[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                          CLONE_NEWNET};
    json_open_object(json, "seccomp");
    json_text(json, "defaultAction", "SCMP_ACT_ALLOW");
    json_open_array(json, "syscalls");
    write_refusal(json, mounts, EPERM, 0);
    /* A filter cannot read the flags of clone3: libraries then use clone. */
    write_refusal(json, clone3, ENOSYS, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(namespaces); i++)
        write_refusal(json, clone, EPERM, namespaces[i]);
    json_close_array(json);
    json_close_object(json);
}

static void write_linux(struct json *json)
{
    static const char *const namespaces[] = {"user", "mount", "pid", "ipc", "uts"};
    static const char *const masked[] = {"/proc/keys", "/proc/key-users", "/proc/kcore",
                                         "/proc/timer_list", NULL};
    static const char *const read_only[] = {"/proc/sys",  "/proc/sysrq-trigger", "/proc/irq",
                                            "/proc/bus",  "/proc/acpi",          "/proc/fs",
                                            "/proc/scsi", "/proc/driver",        NULL};
    json_open_object(json, "linux");
    write_mapping(json, "uidMappings");
    write_mapping(json, "gidMappings");
    json_open_array(json, "namespaces");
    for (size_t i = 0; i < ARRAY_LENGTH(namespaces); i++) {
        json_open_object(json, NULL);
        json_text(json, "type", namespaces[i]);
        json_close_object(json);
    }
    json_close_array(json);
    write_words(json, "maskedPaths", masked);
    write_words(json, "readonlyPaths", read_only);
    write_seccomp(json);
    json_close_object(json);
}

void backend_config(const struct backend_run *run, struct str *out)
{
    struct json json;
    json_init(&json, out);
    json_open_object(&json, NULL);
    json_text(&json, "ociVersion", "1.0.2");
    write_process(&json, run);
    json_open_object(&json, "root");
    json_text(&json, "path", BACKEND_FOLDER "/root");
    json_close_object(&json);
    write_mounts(&json);
    write_linux(&json);
    json_close_object(&json);
}

/* ---- the command ---- */

/* $1 has the options of the overlay; the other words are the program with its arguments. */
static const char script[] = "cd " BACKEND_FOLDER " && mkdir root upper work state shm && "
                             "mount -t overlay overlay -o \"$1\" root && shift && exec \"$@\"";

#define STATE "--root=" BACKEND_FOLDER "/state"
#define RUN "run", "--bundle=" BACKEND_FOLDER, "run"

static const char *const programs[][8] = {
    [BACKEND_CRUN] = {STATE, "--cgroup-manager=disabled", RUN},
    [BACKEND_RUNC] = {STATE, "--rootless=true", RUN},
    [BACKEND_RUNSC] = {STATE, "--rootless", "--network=none", "--ignore-cgroups", RUN},
};

static const char *overlay_options(size_t layers, struct arena *arena)
{
    autostr struct str text = {0};
    for (size_t i = 0; i < layers; i++)
        str_appendf(&text, "%s%zu", i == 0 ? "lowerdir=" : ":", i);
    str_append(&text, ",upperdir=upper,workdir=work,userxattr,index=off");
    return text.failed ? NULL : arena_strdup(arena, text.data);
}

const char **backend_command(const struct runtime *runtime, size_t layers, struct arena *arena)
{
    const char *options = overlay_options(layers, arena);
    const char *begin[] = {
        "unshare", "--user", "--map-root-user",       "--mount", "sh", "-c", script,
        "sh",      options,  runtime->backend_program};
    const char *words[ARRAY_LENGTH(begin) + ARRAY_LENGTH(programs[0]) + 1] = {0};
    size_t count = 0;
    for (; count < ARRAY_LENGTH(begin); count++)
        words[count] = begin[count];
    for (const char *const *word = programs[runtime->backend]; *word; word++)
        words[count++] = *word;
    return options ? arena_copy(arena, words, (count + 1) * sizeof *words) : NULL;
}

/* ---- the outer jail ---- */

uint64_t backend_processes(enum runtime_backend backend)
{
    /* The last two are written in Go, which starts threads for each processor and blocking call. */
    static const uint64_t own[] = {
        [BACKEND_BRIG] = 0, [BACKEND_CRUN] = 2, [BACKEND_RUNC] = 32, [BACKEND_RUNSC] = 256};
    return own[backend];
}

/* The variables of the image and of the request are for the container alone: LD_PRELOAD would make
 * the program outside it load a library of theirs. */
static int move_environment(struct brig_policy *policy, char ***ret_env, struct brig_error *err)
{
    int result = policy_environment(policy, NULL, ret_env, err);
    policy->env_count = 0;
    if (result == 0)
        result = brig_policy_setenv(policy, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin", err);
    return result;
}

static int grant_layers(const struct image *image, struct brig_policy *policy,
                        struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < image->count; i++) {
        char place[sizeof BACKEND_FOLDER + 16];
        (void)snprintf(place, sizeof place, BACKEND_FOLDER "/%zu", i);
        result = brig_policy_grant(policy, BRIG_READ_ONLY, image->paths[i], place, 0, err);
    }
    return result;
}

/* crun only looks whether the directory exists. runc needs a mounted hierarchy; it creates nothing
 * in it. As root a grant would be id-mapped, which cgroupfs does not support. */
static int show_cgroups(const struct runtime *runtime, bool as_root, struct jail *jail,
                        struct brig_error *err)
{
    if (runtime->backend != BACKEND_RUNC)
        return brig_policy_private(jail->policy, BRIG_READ_ONLY, CGROUPS, err);
    if (!as_root)
        return brig_policy_grant(jail->policy, BRIG_READ_ONLY, CGROUPS, CGROUPS, 0, err);
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
    autoclose int fd = (int)syscall(SYS_open_tree, AT_FDCWD, CGROUPS,
                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                          sizeof attributes) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot show " CGROUPS " to runc");
    int result = policy_mount(jail->policy, fd, CGROUPS, CGROUPS, err);
    if (result == 0)
        jail->work_fd = take_fd(&fd);
    return result;
}

static int add_bundle(const struct backend_run *run, struct brig_policy *policy,
                      struct brig_error *err)
{
    autostr struct str text = {0};
    backend_config(run, &text);
    if (text.failed)
        return brig_fail_nomem(err);
    return brig_policy_file(policy, BACKEND_FOLDER "/config.json", text.data, text.length, 0444,
                            err);
}

int backend_apply(const struct runtime *runtime, const struct execution_request *request,
                  uid_t host_uid, struct jail *jail, struct brig_error *err)
{
    struct brig_policy *policy = jail->policy;
    autofree char **env = NULL;
    int result = move_environment(policy, &env, err);
    struct backend_run run = {.argv = jail->argv,
                              .env = (const char *const *)env,
                              .stack_bytes = request->stack_kb << 10,
                              .file_bytes = request->file_kb << 10};
    if (result == 0)
        result = brig_policy_private(policy, BRIG_READ_WRITE, BACKEND_FOLDER, err);
    if (result == 0)
        result = add_bundle(&run, policy, err);
    if (result == 0)
        result = grant_layers(runtime->opened, policy, err);
    if (result == 0)
        result = show_cgroups(runtime, host_uid != (uid_t)-1, jail, err);
    if (result == 0)
        result = brig_policy_seccomp(policy, BRIG_SECCOMP_DEV, err);
    if (result == 0)
        result = brig_policy_allow_nested(policy, true, err);
    if (result == 0) /* what the program itself tries is no event of the run */
        result = brig_policy_trace(policy, false, err);
    /* The memory of a gVisor container is a file of the program, which only a cgroup can limit. */
    if (result == 0 && runtime->backend == BACKEND_RUNSC)
        result = brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_FAIL, err);
    if (result < 0)
        return result;
    jail->argv = backend_command(runtime, runtime->opened->count, &jail->arena);
    return jail->argv ? 0 : brig_fail_nomem(err);
}
