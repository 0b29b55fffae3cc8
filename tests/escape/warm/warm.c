/* SPDX-License-Identifier: MIT */
/* brig, with every jail forked from a Python that waits, as executions of brigd are. */
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "jail/confine/identity.h"
#include "jail/job/job.h"
#include "jail/prepare/zygote.h"
#include "policy/policy.h"

#define PLACE "/late"
#define PROGRAM PLACE "/main.py"

int __real_brig_start(const struct brig_policy *policy, const struct brig_command *command,
                      struct brig_job **ret_job, struct brig_error *err);
int __wrap_brig_start(const struct brig_policy *policy, const struct brig_command *command,
                      struct brig_job **ret_job, struct brig_error *err);

static void append_quoted(struct str *out, const char *text)
{
    str_append(out, "b'");
    for (; *text; text++)
        str_appendf(out, "\\x%02x", (unsigned char)*text);
    str_append(out, "'");
}

/* A program that becomes the command, where the command would have been. */
static void write_program(const struct brig_policy *policy, const struct brig_command *command,
                          struct str *out)
{
    const char *directory = policy->workdir;
    for (size_t i = 0; !directory && i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE)
            directory = policy->grants[i].dest;
    str_append(out, "import os\nos.chdir(");
    append_quoted(out, directory ? directory : "/");
    str_append(out, ")\nos.execvp(");
    append_quoted(out, command->argv[0]);
    str_append(out, ", [");
    for (size_t i = 0; command->argv[i]; i++) {
        append_quoted(out, command->argv[i]);
        str_append(out, ", ");
    }
    str_append(out, "])\n");
}

static int open_library(struct brig_error *err)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length > 0 ? length : 0] = '\0';
    char name[4096];
    (void)snprintf(name, sizeof name, "%s/../../src/zygote/brig-zygote.so", dirname(path));
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SETUP, 0, "no '%s'", name) : fd;
}

static int make_zygote(const struct brig_policy *policy, struct zygote **ret_zygote,
                       struct brig_error *err)
{
    static const char *const argv[] = {"/usr/bin/python3", "-u", "-B", PROGRAM, NULL};
    autoclose int library = open_library(err);
    if (library < 0)
        return library;
    struct zygote_config config = {
        .policy = policy, .argv = argv, .file = PROGRAM, .library = library};
    if (identity_is_root()) {
        config.first_id = policy_isolated_uid(0);
        config.id_count = 2;
    }
    int result = zygote_new(&config, ret_zygote, err);
    while (result == 0 && !zygote_is_ready(*ret_zygote)) {
        struct pollfd waiting = {.fd = zygote_fd(*ret_zygote), .events = POLLIN};
        (void)poll(&waiting, 1, -1);
        result = zygote_process(*ret_zygote, err);
    }
    return result;
}

static struct zygote *last;

static void end_zygote(void)
{
    zygote_free(last);
}

/* A zygote has no use for them: who watches what they cover is not there yet. */
static void drop_protection(struct brig_policy *policy)
{
    size_t kept = 0;
    for (size_t i = 0; i < policy->grant_count; i++) {
        policy->grants[i].own = false; /* a private git directory is mounted, and not watched */
        if (policy->grants[i].access != BRIG_PROTECT)
            policy->grants[kept++] = policy->grants[i];
    }
    policy->grant_count = kept; /* what they held is not worth freeing here */
}

static int start_forked(const struct brig_policy *policy, const struct brig_command *command,
                        struct brig_job **ret_job, struct brig_error *err)
{
    struct brig_policy *own = brig_policy_copy(policy);
    struct zygote *zygote = NULL;
    autostr struct str program = {0};
    write_program(policy, command, &program);
    if (own)
        drop_protection(own);
    int result = own ? brig_policy_private(own, BRIG_READ_ONLY, PLACE, err) : brig_fail_nomem(err);
    if (result == 0)
        result = policy_late_file(own, PROGRAM, 0444, err);
    if (result == 0)
        result = make_zygote(own, &zygote, err);
    const struct job_source source = {.zygote = zygote, .host_id = policy_isolated_uid(0)};
    if (result == 0)
        result = job_start(&source, command, ret_job, err);
    while (result == 0 && !job_is_waiting(*ret_job)) {
        struct pollfd waiting = {.fd = brig_job_fd(*ret_job), .events = POLLIN};
        (void)poll(&waiting, 1, -1);
        result = brig_job_process(*ret_job, err) < 0 ? BRIG_E_SETUP : 0;
    }
    struct job_late late = {.code = program.data,
                            .code_length = program.length,
                            .wall_ms = policy->limits[BRIG_LIMIT_WALL_MS]};
    if (result == 0)
        result = job_release(*ret_job, &late, err);
    last = zygote;
    (void)atexit(end_zygote); /* or it would still be there when somebody looks who is left */
    brig_policy_free(own);
    return result;
}

int __wrap_brig_start(const struct brig_policy *policy, const struct brig_command *command,
                      struct brig_job **ret_job, struct brig_error *err)
{
    return start_forked(policy, command, ret_job, err);
}
