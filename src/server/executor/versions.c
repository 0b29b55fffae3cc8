/* SPDX-License-Identifier: MIT */
/* The versions of the runtimes: see versions.h. */
#include "server/executor/versions.h"

#include <ctype.h>
#include <string.h>
#include <sys/epoll.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

/* ---- what a program printed ---- */

static bool is_part_of_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '.' || byte == '_' || byte == '-';
}

/* The length of "digits.digits[.digits…]" at the beginning of the text, or 0. */
static size_t version_length(const char *text)
{
    size_t length = strspn(text, "0123456789"), parts = 0;
    while (length > 0 && text[length] == '.' && isdigit((unsigned char)text[length + 1])) {
        length += 1 + strspn(text + length + 1, "0123456789");
        parts++;
    }
    return parts > 0 ? length : 0;
}

void version_find(const char *text, char ret_version[VERSION_MAX])
{
    ret_version[0] = '\0';
    for (const char *at = text; *at; at++) {
        size_t length = isdigit((unsigned char)*at) ? version_length(at) : 0;
        /* Letters may be in front, as in v18.19.0 and go1.19.8; but "aarch64-2.1" is a name. */
        const char *word = at;
        while (word > text && isalpha((unsigned char)word[-1]))
            word--;
        bool begins = word == text || !is_part_of_word(word[-1]);
        if (begins && length > 0 && length < VERSION_MAX) {
            memcpy(ret_version, at, length);
            ret_version[length] = '\0';
            return;
        }
        at += length > 0 ? length - 1 : 0;
    }
}

/* ---- asking ---- */

static bool same_program(const struct runtime_program *a, const struct runtime_program *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified_ns == b->modified_ns;
}

/* Returns whether the runtime has to be asked; *ret_program is its program. */
static bool is_unknown(const struct executor *executor, size_t index,
                       struct runtime_program *ret_program)
{
    const struct runtime *runtime = &executor->config->runtimes[index];
    return !runtime->disabled && runtime_find_program(runtime, ret_program) &&
           !same_program(ret_program, &executor->versions.known[index].program);
}

static int make_policy(const struct runtime *runtime, struct brig_policy *policy,
                       struct brig_error *err)
{
    static const struct {
        enum brig_limit limit;
        uint64_t value;
    } limits[] = {
        {BRIG_LIMIT_WALL_MS, 10000},
        {BRIG_LIMIT_MEMORY_BYTES, UINT64_C(1) << 30},
        {BRIG_LIMIT_PROCESSES, 100},
        {BRIG_LIMIT_OUTPUT_BYTES, 4096},
    };
    int result = 0;
    if (runtime->root)
        result = brig_policy_view(policy, BRIG_VIEW_ROOT, runtime->root, err);
    if (result == 0)
        result = brig_policy_seccomp(policy, runtime->profile, err);
    if (result == 0)
        result = brig_policy_setenv(policy, "PATH", RUNTIME_PATH, err);
    if (result == 0)
        result = brig_policy_setenv(policy, "HOME", "/tmp", err);
    if (result == 0)
        result = brig_policy_workdir(policy, "/tmp", err);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(limits); i++)
        result = brig_policy_limit(policy, limits[i].limit, limits[i].value, err);
    if (result == 0)
        result = brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, err);
    return result;
}

static int start(struct versions *versions, const struct runtime *runtime, struct brig_error *err)
{
    const char *argv[] = {runtime_program_name(runtime), runtime->version_argument, NULL};
    if (!argv[1])
        argv[1] = "--version";
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    command.stdio[2].kind = BRIG_STDIO_STDOUT; /* where some programs print it */
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    int result = policy ? make_policy(runtime, policy, err) : brig_fail_nomem(err);
    if (result == 0)
        result = brig_start(policy, &command, &versions->job, err);
    brig_policy_free(policy);
    return result;
}

static void take_answer(struct versions *versions)
{
    struct brig_result *result = NULL;
    if (brig_job_result(versions->job, &result, NULL) == 0)
        version_find(brig_result_output(result, 1, NULL, NULL),
                     versions->known[versions->asked].text);
    brig_result_free(result);
}

static void job_ready(void *owner, uint32_t events)
{
    (void)events;
    struct executor *executor = owner;
    struct versions *versions = &executor->versions;
    int result = versions->job ? brig_job_process(versions->job, NULL) : 0;
    if (result == 0)
        return;
    if (result > 0)
        take_answer(versions);
    executor_versions_end(executor);
    executor_versions_ask(executor);
    if (!versions->job)
        executor_tell_runtimes(executor, false);
}

void executor_versions_ask(struct executor *executor)
{
    struct versions *versions = &executor->versions;
    for (size_t i = 0; i < executor->config->runtime_count && !versions->job; i++) {
        struct runtime_program program;
        if (executor->draining || !is_unknown(executor, i, &program))
            continue;
        versions->known[i] = (struct version){.program = program};
        versions->asked = i;
        /* Without an answer there is no version; executions will say what is wrong. */
        if (start(versions, &executor->config->runtimes[i], NULL) < 0)
            continue;
        versions->source = (struct executor_source){
            .ready = job_ready, .owner = executor, .fd = brig_job_fd(versions->job)};
        if (executor_watch(executor, &versions->source, EPOLLIN, NULL) < 0)
            executor_versions_end(executor);
    }
}

void executor_versions_end(struct executor *executor)
{
    struct versions *versions = &executor->versions;
    if (!versions->job)
        return;
    executor_unwatch(executor, &versions->source);
    brig_job_free(take_ptr(&versions->job));
}
