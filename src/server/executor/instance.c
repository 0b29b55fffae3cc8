/* SPDX-License-Identifier: MIT */
/* Records the jails of an executor, and kills those of a dead one. A jail's init normally exits
 * when its executor dies; this is for processes that could not, or that the kernel ended late. */
#include "server/executor/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "jail/cgroup/cgroup.h"
#include "jail/cgroup/cgroup_driver.h"

#define PREFIX "jails-"
#define SLOTS_MAX 65536

/* One slot of the file. The start time is needed because the pid may have been reused. */
struct record {
    int32_t pid; /* 0: none */
    uint32_t reserved;
    uint64_t start;
};

/* A user who could write this file could have any process killed. */
static int check_owner(int fd, const char *path, struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 022))
        return 0;
    return brig_fail(err, BRIG_E_SETUP, 0,
                     "other users can write to sandbox.state_dir '%s'. Try chown and chmod go-w, "
                     "or choose another directory",
                     str_shown(path).text);
}

int executor_instance_open(const char *state_dir, struct instance *ret_instance,
                           struct brig_error *err)
{
    struct instance instance = INSTANCE_NONE;
    autofree char *path = NULL;
    int result = path_normalise(state_dir, 0, &path, err);
    if (result == 0)
        result = path_make_directories(path, strlen(path), 0700, err);
    if (result < 0)
        return brig_wrap(err, result, "sandbox.state_dir");
    autoclose int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "sandbox.state_dir '%s'", state_dir);
    if ((result = check_owner(dir, state_dir, err)) < 0)
        return result;
    (void)snprintf(instance.name, sizeof instance.name, PREFIX "%d-%llu", getpid(),
                   (unsigned long long)cgroup_start_time(getpid()));
    autoclose int file =
        openat(dir, instance.name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "sandbox.state_dir: '%s/%s'", state_dir,
                         instance.name);
    instance.dir_fd = take_fd(&dir);
    instance.file_fd = take_fd(&file);
    *ret_instance = instance;
    return 0;
}

void executor_instance_close(struct instance *instance)
{
    if (instance->dir_fd < 0)
        return;
    (void)unlinkat(instance->dir_fd, instance->name, 0);
    (void)close(instance->file_fd);
    (void)close(instance->dir_fd);
    *instance = INSTANCE_NONE;
}

void executor_instance_note(const struct instance *instance, size_t slot, pid_t pid)
{
    struct record record = {.pid = pid};
    if (pid > 0)
        record.start = cgroup_start_time(pid);
    if (instance->file_fd >= 0 && slot < SLOTS_MAX) /* best effort */
        (void)!pwrite(instance->file_fd, &record, sizeof record, (off_t)(slot * sizeof record));
}

/* Checks the start time again when the pidfd holds the process, so that the pid cannot be reused in
 * between. */
static bool end_process(const struct record *record)
{
    if (record->pid <= 1 || cgroup_start_time(record->pid) != record->start)
        return false;
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, record->pid, 0);
    if (pidfd < 0 || cgroup_start_time(record->pid) != record->start)
        return false;
    return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
}

static size_t sweep_file(int dir_fd, const char *name)
{
    size_t ended = 0;
    struct record record;
    autoclose int file = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0)
        return 0; /* its executor is alive */
    for (size_t slot = 0; slot < SLOTS_MAX; slot++) {
        if (pread(file, &record, sizeof record, (off_t)(slot * sizeof record)) !=
            (ssize_t)sizeof record)
            break;
        ended += end_process(&record);
    }
    (void)unlinkat(dir_fd, name, 0);
    return ended;
}

size_t executor_instance_sweep(const struct instance *instance)
{
    size_t ended = 0;
    int fd = instance->dir_fd < 0 ? -1 : openat(instance->dir_fd, ".", O_RDONLY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (str_starts_with(entry->d_name, PREFIX) && strcmp(entry->d_name, instance->name) != 0)
            ended += sweep_file(instance->dir_fd, entry->d_name);
    (void)cgroup_sweep();
    return ended;
}
