/* SPDX-License-Identifier: MIT */
/* Which sandboxes have ended, and why. Those that ended with an earlier executor: each executor has a
 * locked file below the state directory with the ids and API keys of its sandboxes; a file without a
 * lock belongs to one that has died. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "server/executor/executor.h"

#define PREFIX "sandboxes-"
#define SLOTS_MAX 65536

static void remember(struct sandboxes *sandboxes, const struct sandbox_gone *gone)
{
    if (sandboxes->gone)
        sandboxes->gone[sandboxes->gone_count++ % SANDBOX_GONE_MAX] = *gone;
}

static void read_file(struct sandboxes *sandboxes, int dir_fd, const char *file_name)
{
    struct sandbox_name name;
    autoclose int file = openat(dir_fd, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
        return; /* its executor is alive */
    for (size_t i = 0; i < SLOTS_MAX && read(file, &name, sizeof name) == sizeof name; i++) {
        name.id[EXECUTION_ID_LENGTH] = '\0';
        if (execution_id_is_valid(name.id) && !name.domain[sizeof name.domain - 1])
            remember(sandboxes, &(struct sandbox_gone){.of = name});
    }
    (void)unlinkat(dir_fd, file_name, 0);
}

void executor_ended_open(struct executor *executor)
{
    struct sandboxes *sandboxes = &executor->sandboxes;
    int dir_fd = executor->instance.dir_fd;
    sandboxes->record = -1;
    sandboxes->gone = calloc(SANDBOX_GONE_MAX, sizeof *sandboxes->gone);
    int fd = dir_fd < 0 || !sandboxes->gone ? -1 : openat(dir_fd, ".", O_RDONLY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (str_starts_with(entry->d_name, PREFIX))
            read_file(sandboxes, dir_fd, entry->d_name);
}

/* The file is made for the first sandbox. */
static void make_file(struct executor *executor)
{
    struct sandboxes *sandboxes = &executor->sandboxes;
    const char *number = strchr(executor->instance.name, '-');
    if (sandboxes->record >= 0 || executor->instance.dir_fd < 0 || !number ||
        !str_fill(sandboxes->record_name, sizeof sandboxes->record_name, PREFIX, number + 1))
        return;
    sandboxes->record =
        fds_keep_high(openat(executor->instance.dir_fd, sandboxes->record_name,
                             O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (sandboxes->record >= 0)
        (void)flock(sandboxes->record, LOCK_EX | LOCK_NB);
}

void executor_ended_close(struct executor *executor)
{
    struct sandboxes *sandboxes = &executor->sandboxes;
    if (sandboxes->record >= 0) {
        (void)unlinkat(executor->instance.dir_fd, sandboxes->record_name, 0);
        (void)close(take_fd(&sandboxes->record));
    }
    free(take_ptr(&sandboxes->gone));
}

static struct sandbox_name name_of(const char *id, const char *domain)
{
    struct sandbox_name name = {0};
    (void)str_fill(name.id, sizeof name.id, id ? id : "");
    (void)str_fill(name.domain, sizeof name.domain, domain ? domain : "");
    return name;
}

void executor_ended_note(struct executor *executor, size_t slot, const char *id, const char *domain)
{
    struct sandbox_name name = name_of(id, domain);
    if (id)
        make_file(executor);
    if (executor->sandboxes.record >= 0 && slot < SLOTS_MAX) /* best effort */
        (void)!pwrite(executor->sandboxes.record, &name, sizeof name, (off_t)(slot * sizeof name));
}

void executor_ended_add(const struct sandbox *sandbox, const char *why)
{
    remember(&sandbox->executor->sandboxes,
             &(struct sandbox_gone){.of = name_of(sandbox->id, sandbox->request.domain),
                                    .why = why,
                                    .ended_s = time(NULL)});
}

static const struct sandbox_gone *find(const struct sandboxes *sandboxes, const char *id,
                                       const char *domain)
{
    for (size_t i = 0; i < SANDBOX_GONE_MAX && i < sandboxes->gone_count; i++) {
        const struct sandbox_gone *gone = &sandboxes->gone[i];
        if (strcasecmp(gone->of.id, id) == 0)
            return !*domain || strcmp(gone->of.domain, domain) == 0 ? gone : NULL;
    }
    return NULL;
}

void executor_ended_refuse(struct executor *executor, const struct sandbox_request *request,
                           struct caller caller)
{
    /* Tokens are not remembered, so a client that has one in place of a key cannot prove it. */
    const struct sandbox_gone *gone =
        *request->token ? NULL : find(&executor->sandboxes, request->id, request->domain);
    char when[32] = "";
    struct tm tm;
    if (gone && gone->why && gmtime_r(&gone->ended_s, &tm))
        (void)strftime(when, sizeof when, " at %Y-%m-%dT%H:%M:%SZ", &tm);
    if (gone && gone->why)
        executor_sandbox_refuse(executor, caller, SANDBOX_NOT_FOUND, "",
                                "the sandbox %s ended%s: %s", gone->of.id, when, gone->why);
    else if (gone)
        executor_sandbox_refuse(executor, caller, SANDBOX_LOST, "",
                                "the process that held the sandbox %s ended, and the sandbox with "
                                "it",
                                request->id);
    else
        executor_sandbox_refuse(executor, caller, SANDBOX_NOT_FOUND, "",
                                "there is no sandbox with the id %s", request->id);
}
