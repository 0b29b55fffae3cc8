/* SPDX-License-Identifier: MIT */
/* What crun, runc and runsc are given: the bundle's config.json, and the command around them. */
#include "server/executor/backend.h"

#include <jansson.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

static json_t *config_of(const struct backend_run *run)
{
    autostr struct str text = {0};
    backend_config(run, &text);
    json_error_t error;
    json_t *config = text.failed ? NULL : json_loads(text.data, JSON_REJECT_DUPLICATES, &error);
    if (!config)
        tap_bail("config.json: %s", error.text);
    return config;
}

static const char *text_in(json_t *array, size_t index)
{
    const char *text = json_string_value(json_array_get(array, index));
    return text ? text : "(none)";
}

static void test_process(void)
{
    const char *const argv[] = {"sh", "a \"b\"", NULL}, *const env[] = {"X=1", NULL};
    json_t *config = config_of(&(struct backend_run){.argv = argv, .env = env, .file_bytes = 4096});
    json_t *process = json_object_get(config, "process");
    tap_is_str(text_in(json_object_get(process, "args"), 1), "a \"b\"", "the command is there");
    tap_is_str(text_in(json_object_get(process, "env"), 0), "X=1", "and its environment");
    tap_ok(json_is_true(json_object_get(process, "noNewPrivileges")), "it gets no privileges");
    const char *set;
    json_t *capabilities;
    size_t sets = 0;
    json_object_foreach(json_object_get(process, "capabilities"), set, capabilities)
    {
        sets++;
        tap_is_int(json_array_size(capabilities), 0, "and has no %s capabilities", set);
    }
    tap_is_int(sets, 5, "in each of the five sets");
    json_t *rlimits = json_object_get(process, "rlimits");
    tap_is_int(json_array_size(rlimits), 1, "a limit that is not asked for is left out");
    tap_is_int(json_integer_value(json_object_get(json_array_get(rlimits, 0), "hard")), 4096,
               "the other one is there");
    json_decref(config);
}

/* Only directories of the run are bound: no path of the host. */
static void test_mounts(void)
{
    json_t *config = config_of(&(struct backend_run){0}), *mount;
    size_t index, bound = 0;
    json_array_foreach(json_object_get(config, "mounts"), index, mount)
    {
        const char *source = json_string_value(json_object_get(mount, "source"));
        if (strcmp(json_string_value(json_object_get(mount, "type")), "bind") != 0)
            continue;
        bound++;
        tap_ok(strcmp(source, "/tmp") == 0 || strcmp(source, RUNTIME_WORKSPACE) == 0 ||
                   strcmp(source, RUNTIME_OUTPUT) == 0 ||
                   strcmp(source, BACKEND_FOLDER "/shm") == 0,
               "%s belongs to the run", source);
    }
    tap_is_int(bound, 4, "four directories are bound");
    json_decref(config);
}

static void is_command(enum runtime_backend backend, const char *expected)
{
    struct arena arena = {0};
    autostr struct str text = {0};
    const struct runtime runtime = {.backend = backend, .backend_program = "/usr/bin/it"};
    const char **argv = backend_command(&runtime, 3, &arena);
    for (size_t i = 8; argv && argv[i]; i++)
        str_appendf(&text, "[%s]", argv[i]);
    tap_is_str(text.data, expected, "the command for %s", runtime_backend_names[backend]);
    arena_done(&arena);
}

static void test_command(void)
{
#define OVERLAY "[lowerdir=0:1:2,upperdir=upper,workdir=work,userxattr,index=off]"
#define PROGRAM OVERLAY "[/usr/bin/it][--root=/run/brig/state]"
    is_command(BACKEND_CRUN, PROGRAM "[--cgroup-manager=disabled][run][--bundle=/run/brig][run]");
    is_command(BACKEND_RUNC, PROGRAM "[--rootless=true][run][--bundle=/run/brig][run]");
    is_command(BACKEND_RUNSC, PROGRAM "[--rootless][--network=none][--ignore-cgroups][run]"
                                      "[--bundle=/run/brig][run]");
}

int main(void)
{
    test_process();
    test_mounts();
    test_command();
    return tap_done();
}
