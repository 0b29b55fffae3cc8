/* SPDX-License-Identifier: MIT */
/* What the tests of checkpoints share: a project, a record, runs, and a plain restorer. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/run_changes.h"
#include "tap.h"

/* ---- a filesystem that can share blocks: FICLONE copies if `clones` is set ---- */

static bool clones;

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    long argument = va_arg(args, long);
    va_end(args);
    if (request != FICLONE)
        return (int)syscall(SYS_ioctl, fd, request, argument);
    struct stat info;
    if (!clones || fstat((int)argument, &info) < 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    off_t at = 0;
    while (at < info.st_size)
        if (sendfile(fd, (int)argument, &at, (size_t)(info.st_size - at)) <= 0)
            return -1;
    return 0;
}

/* ---- a project, a record, and runs ---- */

static char place[] = "/tmp/brig-checkpoint-XXXXXX";
static struct git git;
static int record, root;
static unsigned runs;

/* Runs a shell script in the temporary directory, which has project and record. */
static inline int shell_status(const char *script)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(place) == 0)
            (void)execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
        _exit(127);
    }
    return process_wait(pid);
}

static inline void shell(const char *script)
{
    if (shell_status(script) != 0)
        tap_bail("failed: %s", script);
}

static inline int new_run(void)
{
    char name[16];
    (void)snprintf(name, sizeof name, "../run%u", ++runs);
    if (mkdirat(record, name, 0700) < 0)
        tap_bail("mkdir: %s", strerror(errno));
    return openat(record, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A new, empty project and record. */
static inline void begin(void)
{
    if (record > 0)
        (void)close(record);
    if (root > 0)
        (void)close(root);
    clones = false;
    shell("chmod -R u+rwX project 2>/dev/null || :; rm -rf project record expected run*; mkdir "
          "project record");
    char path[PATH_LENGTH_MAX];
    (void)snprintf(path, sizeof path, "%s/record", place);
    record = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "%s/project", place);
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline int take_as(const struct checkpoint_root *what, uint64_t limit, int *ret_run,
                          struct checkpoint_report *report, struct brig_error *err)
{
    const struct checkpoint_place at = {.record = record, .git = &git, .limit_bytes = limit};
    *ret_run = new_run();
    return checkpoint_take(&at, what, *ret_run, 0, report, err);
}

static inline struct checkpoint_root project(char path[PATH_LENGTH_MAX])
{
    (void)snprintf(path, PATH_LENGTH_MAX, "%s/project", place);
    return (struct checkpoint_root){.path = path, .dir = root};
}

/* Takes a checkpoint of the project. The caller closes the run. */
static inline int take(struct checkpoint_report *report)
{
    char path[PATH_LENGTH_MAX];
    struct brig_error err = {0};
    int run = -1;
    const struct checkpoint_root what = project(path);
    if (take_as(&what, 1000, &run, report, &err) < 0)
        tap_bail("checkpoint: %s", err.message);
    return run;
}

static inline struct run_changes_count finish(int run)
{
    struct run_changes_count count;
    struct brig_error err = {0};
    if (run_changes_record(run, &count, NULL, &err) < 0)
        tap_bail("record: %s", err.message);
    return count;
}

/* The changes in one line: +added -deleted !modified. */
static inline const char *told(int run)
{
    static char text[4096];
    struct manifest *changes = NULL;
    struct run_change change;
    struct brig_error err = {0};
    (void)finish(run);
    text[0] = '\0';
    if (run_changes_roots(run) == 0) /* nothing has changed */
        return text;
    if (run_changes_open(run, 0, &changes, &err) < 0)
        tap_bail("changes: %s", err.message);
    while (run_changes_next(changes, &change, &err) > 0) {
        if (change.is_time)
            continue;
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%c%s", used > 0 ? " " : "",
                       change.before.ident.mode == 0  ? '+'
                       : change.after.ident.mode == 0 ? '-'
                                                      : '!',
                       change.before.path);
    }
    manifest_close(changes);
    return text;
}

static inline void restore_entry(struct run_contents *contents, const struct manifest_entry *entry)
{
    struct brig_error err = {0};
    autostr struct str target = {0};
    mode_t mode = entry->ident.mode;
    int status = 0;
    if (S_ISDIR(mode)) {
        status = mkdirat(root, entry->path, 0700);
        if (status < 0 && errno == EEXIST)
            status = 0;
    } else if (S_ISLNK(mode)) {
        status = run_contents_target(contents, entry->content, &target, &err);
        if (status == 0)
            status = symlinkat(target.data, root, entry->path);
    } else {
        autoclose int fd =
            openat(root, entry->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        status = fd < 0 ? -1 : run_contents_write(contents, entry->content, fd, &err);
    }
    if (status == 0 && !S_ISLNK(mode))
        status = fchmodat(root, entry->path, mode & 07777, 0);
    if (status < 0)
        tap_fail("restored %s: %s %s", entry->path, err.message, strerror(errno));
}

/* A plain restorer, for trees from which a run has only removed something. */
static inline void restore(int run)
{
    struct manifest *changes = NULL;
    struct run_change change;
    struct brig_error err = {0};
    struct run_contents contents;
    run_contents_init(&contents, record, &git);
    (void)finish(run);
    if (run_changes_open(run, 0, &changes, &err) < 0)
        tap_bail("changes: %s", err.message);
    while (run_changes_next(changes, &change, &err) > 0)
        if (change.before.ident.mode != 0 && !change.is_time)
            restore_entry(&contents, &change.before);
    manifest_close(changes);
    run_contents_done(&contents);
}

#define LISTING(dir)                                                                               \
    "(cd " dir " && find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | LC_ALL=C sort)"

/* Whether the project has the files of `expected`, except for .git at the top. */
static inline bool is_as_expected(void)
{
    return shell_status(LISTING("expected") " >one; " LISTING(
               "project") " >other; diff one other; "
                          "diff -r --no-dereference -x .git expected project") == 0;
}
