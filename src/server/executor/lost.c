/* SPDX-License-Identifier: MIT */
/* Which sandboxes ended with an earlier executor. Each executor has a locked file below the state
 * directory with the ids and API keys of its sandboxes; a file without a lock belongs to one that
 * has died. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "server/executor/executor.h"

#define PREFIX "sandboxes-"
#define SLOTS_MAX 65536

static void remember(struct sandboxes *sandboxes, const struct sandbox_lost *lost)
{
    if (!execution_id_is_valid(lost->id) || lost->domain[sizeof lost->domain - 1])
        return;
    sandboxes->lost[sandboxes->lost_count++ % SANDBOX_LOST_MAX] = *lost;
}

static void read_file(struct sandboxes *sandboxes, int dir_fd, const char *name)
{
    struct sandbox_lost lost;
    autoclose int file = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
        return; /* its executor is alive */
    for (size_t i = 0; i < SLOTS_MAX && read(file, &lost, sizeof lost) == sizeof lost; i++) {
        lost.id[EXECUTION_ID_LENGTH] = '\0';
        remember(sandboxes, &lost);
    }
    (void)unlinkat(dir_fd, name, 0);
}

void executor_lost_open(struct executor *executor)
{
    struct sandboxes *sandboxes = &executor->sandboxes;
    int dir_fd = executor->instance.dir_fd;
    sandboxes->record = -1;
    sandboxes->lost = calloc(SANDBOX_LOST_MAX, sizeof *sandboxes->lost);
    int fd = dir_fd < 0 || !sandboxes->lost ? -1 : openat(dir_fd, ".", O_RDONLY | O_CLOEXEC);
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

void executor_lost_close(struct executor *executor)
{
    struct sandboxes *sandboxes = &executor->sandboxes;
    if (sandboxes->record >= 0) {
        (void)unlinkat(executor->instance.dir_fd, sandboxes->record_name, 0);
        (void)close(take_fd(&sandboxes->record));
    }
    free(take_ptr(&sandboxes->lost));
}

void executor_lost_note(struct executor *executor, size_t slot, const char *id, const char *domain)
{
    struct sandbox_lost lost = {0};
    if (id)
        make_file(executor);
    (void)str_fill(lost.id, sizeof lost.id, id ? id : "");
    (void)str_fill(lost.domain, sizeof lost.domain, domain ? domain : "");
    if (executor->sandboxes.record >= 0 && slot < SLOTS_MAX) /* best effort */
        (void)!pwrite(executor->sandboxes.record, &lost, sizeof lost, (off_t)(slot * sizeof lost));
}

bool executor_lost_has(const struct executor *executor, const char *id, const char *domain)
{
    const struct sandboxes *sandboxes = &executor->sandboxes;
    for (size_t i = 0; i < SANDBOX_LOST_MAX && i < sandboxes->lost_count; i++)
        if (strcasecmp(sandboxes->lost[i].id, id) == 0)
            return !*domain || strcmp(sandboxes->lost[i].domain, domain) == 0;
    return false;
}
