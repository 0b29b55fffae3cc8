/* SPDX-License-Identifier: MIT */
/* The runtimes: which of them this machine has, and their command lines. */
#include "server/config/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"

const char *const runtime_limit_names[EXECUTION_LIMITS_] = {
    [EXECUTION_MEMORY_MB] = "memory_mb",
    [EXECUTION_PIDS] = "pids_limit",
    [EXECUTION_DISK_MB] = "disk_mb",
    [EXECUTION_CPU_PERCENT] = "cpu_percent",
};

const char *const runtime_backend_names[] = {"brig", "crun", "runc", "runsc", NULL};

/* ---- availability ---- */

static bool is_program(int root, const char *path, struct stat *ret_info)
{
    autoclose int fd = -1;
    if (path_open_in_root(root, path, O_PATH, 0, &fd, NULL) < 0 || fstat(fd, ret_info) < 0)
        return false;
    return S_ISREG(ret_info->st_mode) && (ret_info->st_mode & S_IXOTH);
}

static bool find_program(int root, const char *name, struct stat *ret_info)
{
    if (strchr(name, '/'))
        return is_program(root, name, ret_info);
    char path[PATH_LENGTH_MAX + 1];
    for (const char *at = RUNTIME_PATH; at; at = strchr(at, ':')) {
        at += *at == ':';
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (is_program(root, path, ret_info))
            return true;
    }
    return false;
}

/* A compiled program does not exist yet, but its compiler must. */
const char *runtime_program_name(const struct runtime *runtime)
{
    return runtime->compile[0] ? runtime->compile[0] : runtime->argv[0];
}

bool runtime_find_program(const struct runtime *runtime, struct runtime_program *ret_program)
{
    const char *path = runtime->root ? runtime->root : "/";
    autoclose int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    if (runtime->image) /* a program of several layers cannot be looked up from outside */
        return false;
    if (root < 0 || !find_program(root, runtime_program_name(runtime), &info))
        return false;
    *ret_program = (struct runtime_program){
        .device = info.st_dev,
        .inode = info.st_ino,
        .bytes = (uint64_t)info.st_size,
        .modified_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec,
    };
    return true;
}

/* A root directory must contain the mount points. */
static const char *missing_place(const struct runtime *runtime, int root)
{
    static const char *const places[] = {RUNTIME_WORKSPACE, RUNTIME_OUTPUT, "/tmp", "/proc",
                                         "/dev"};
    for (size_t i = 0; i <= ARRAY_LENGTH(places); i++) {
        const char *place = i < ARRAY_LENGTH(places) ? places[i] : RUNTIME_HOME;
        autoclose int fd = -1;
        if (i == ARRAY_LENGTH(places) && !runtime->agent)
            return NULL;
        if (path_open_in_root(root, place, O_PATH | O_DIRECTORY, 0, &fd, NULL) < 0)
            return place;
    }
    return NULL;
}

bool runtime_is_available(const struct runtime *runtime, char reason[RUNTIME_REASON_MAX])
{
    const char *path = runtime->root ? runtime->root : "/";
    autoclose int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *program = runtime_program_name(runtime);
    const char *missing = root >= 0 && runtime->root ? missing_place(runtime, root) : NULL;
    struct stat info;
    reason[0] = '\0';
    if (runtime->disabled)
        (void)snprintf(reason, RUNTIME_REASON_MAX, "disabled [%s]", runtime->origin);
    else if (runtime->image)
        (void)snprintf(reason, RUNTIME_REASON_MAX, "%s",
                       runtime->image_problem ? runtime->image_problem
                       : runtime->opened      ? ""
                                              : "its image is not open");
    else if (root < 0)
        (void)snprintf(reason, RUNTIME_REASON_MAX, "root '%s' cannot be opened: %s", path,
                       strerror(errno));
    else if (missing)
        (void)snprintf(reason, RUNTIME_REASON_MAX,
                       "root '%s' has no directory %s to mount on: mkdir -p '%s%s'", path, missing,
                       path, missing);
    else if (!find_program(root, program, &info))
        (void)snprintf(reason, RUNTIME_REASON_MAX, "'%s' is not in %s%s: %s %s", program,
                       runtime->root ? runtime->root : "", runtime->root ? "" : RUNTIME_PATH,
                       runtime->agent ? "make" : "install",
                       runtime->package ? runtime->package : program);
    return !reason[0];
}

/* ---- command lines ---- */

static void expand(const char *word, const char *file, uint64_t memory_mb, struct str *out)
{
    while (*word) {
        if (str_starts_with(word, "{file}")) {
            str_append(out, file);
            word += strlen("{file}");
        } else if (str_starts_with(word, "{memory_mb}")) {
            str_appendf(out, "%llu", (unsigned long long)memory_mb);
            word += strlen("{memory_mb}");
        } else {
            str_append_char(out, *word++);
        }
    }
}

static const char *expanded(const char *word, const char *file, uint64_t memory_mb,
                            struct arena *arena)
{
    autostr struct str text = {0};
    expand(word, file, memory_mb, &text);
    return text.failed ? NULL : arena_strdup(arena, text.data ? text.data : "");
}

/* "main.c" and "more.c" are, "main.c" and "more.h" are not. */
static bool has_same_suffix(const char *name, const char *other)
{
    const char *suffix = strrchr(name, '.');
    return suffix && str_ends_with(other, suffix);
}

/* {files}: the code, and files of the request that have the suffix of such code. Returns how many
 * words were added. */
static size_t add_files(const struct runtime *runtime, const struct execution_request *request,
                        const char *file, const char **argv, struct arena *arena)
{
    size_t count = 0;
    argv[count++] = file;
    for (size_t i = 0; i < request->file_count && !request->alone; i++)
        if (runtime->file_name && has_same_suffix(runtime->file_name, request->files[i].name))
            argv[count++] = arena_concat(arena, RUNTIME_WORKSPACE "/", request->files[i].name);
    return count;
}

const char *runtime_file_name(const struct runtime *runtime,
                              const struct execution_request *request)
{
    return request->main ? request->main : runtime->file_name ? runtime->file_name : "code";
}

const char **runtime_command(const struct runtime *runtime, enum execution_stage stage,
                             const struct execution_request *request, uint64_t memory_mb,
                             struct arena *arena)
{
    bool compiles = stage == STAGE_COMPILE;
    const char *const *words = compiles ? runtime->compile : runtime->argv;
    const char *const *args = compiles ? request->compile_args : request->args;
    size_t count = 0, arg_count = compiles ? request->compile_arg_count : request->arg_count;
    const char *file =
        arena_concat(arena, RUNTIME_WORKSPACE "/", runtime_file_name(runtime, request));
    size_t room = RUNTIME_ARGV_MAX * (1 + request->file_count) + arg_count + 1;
    const char **argv = arena_alloc(arena, room * sizeof *argv); /* zeroed */
    if (!argv || !file)
        return NULL;
    for (size_t i = 0; i < RUNTIME_ARGV_MAX && words[i]; i++)
        if (strcmp(words[i], "{files}") == 0)
            count += add_files(runtime, request, file, argv + count, arena);
        else
            argv[count++] = expanded(words[i], file, memory_mb, arena);
    for (size_t i = 0; i < arg_count; i++)
        argv[count++] = args[i];
    return arena->failed ? NULL : argv;
}

/* ---- for GET /runtimes ---- */

static void json_limits(struct json *json, const char *key, const uint64_t *limits)
{
    json_open_object(json, key);
    for (int i = 0; i < EXECUTION_LIMITS_; i++)
        json_uint(json, runtime_limit_names[i], limits[i]);
    json_close_object(json);
}

static void json_words(struct json *json, const char *key, const char *const *words, size_t max)
{
    json_open_array(json, key);
    for (size_t i = 0; i < max && words[i]; i++)
        json_text(json, NULL, words[i]);
    json_close_array(json);
}

void runtime_json(const struct runtime *runtime, const char *version, struct json *json)
{
    char reason[RUNTIME_REASON_MAX];
    bool available = runtime_is_available(runtime, reason);
    json_open_object(json, NULL);
    json_text(json, "name", runtime->name);
    json_words(json, "aliases", runtime->aliases, ARRAY_LENGTH(runtime->aliases));
    if (version[0])
        json_text(json, "version", version);
    json_bool(json, "available", available);
    if (!available)
        json_text(json, "reason", reason);
    if (!available && runtime->package)
        json_text(json, "package", runtime->package);
    json_words(json, "command", runtime->argv, RUNTIME_ARGV_MAX);
    if (runtime->compile[0])
        json_words(json, "compile", runtime->compile, RUNTIME_ARGV_MAX);
    if (runtime->image) {
        json_text(json, "image", runtime->image);
        json_text(json, "backend", runtime_backend_names[runtime->backend]);
    }
    json_text(json, "file_name", runtime->file_name);
    json_text(json, "profile", policy_word(POLICY_SECCOMP, runtime->profile));
    json_bool(json, "agent", runtime->agent);
    json_words(json, "network_allow", runtime->allow, ARRAY_LENGTH(runtime->allow));
    json_uint(json, "timeout_ms", runtime->timeout_ms);
    json_uint(json, "max_timeout_ms", runtime->max_timeout_ms);
    json_limits(json, "limits", runtime->limits);
    json_limits(json, "max_limits", runtime->max_limits);
    json_close_object(json);
}
