/* SPDX-License-Identifier: MIT */
/* Finding the record of a run by the process that supervises it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/attach/attach.h"
#include "jail/attach/attach_name.h"
#include "jail/attach/attach_proc.h"
#include "jail/cgroup/cgroup_driver.h"

void attach_done(struct attach *entry)
{
    attach_record_done(&entry->record);
    if (entry->process >= 0)
        (void)close(entry->process);
    *entry = ENTRY_INIT;
}

/* ---- what /proc tells ---- */

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

/* ---- whether it is to be believed ---- */

/* By all four ids: the owner of the directory in /proc says nothing about who is undumpable. */
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
    unsigned long ids[4]; /* real, effective, saved, of the filesystem */
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

/* What runs in a jail has a user and a pid namespace of its own, or at least no_new_privs: it could
 * have a file of that name too, with anything in it. */
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

/* Sealed, as nobody else makes it. */
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
                           "If it is a brig that root started: sudo brig enter --pid %d", pid);
    }
    return brig_fail(err, BRIG_E_NOT_FOUND, 0,
                     "process %d is not a brig whose run can be entered. See brig list", pid);
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
    /* The run's own clock ends what was entered, too. */
    entry.record.policy->limits[BRIG_LIMIT_WALL_MS] = 0;
    entry.start_time = cgroup_start_time(supervisor);
    entry.process = take_fd(&process);
    *ret_entry = entry;
    return 0;
}
