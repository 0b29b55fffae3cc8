/* SPDX-License-Identifier: MIT */
/* Programs for a jail's new home. A lock file in the storage directory says that they are at work: it
 * is made before the directory and removed when all are done. So who finds the directory without the
 * file has nothing to wait for, and who gets the lock of a file that is still there finishes what an
 * interrupted run began. */
#include "cli/initjail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/config_files.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/settings.h"
#include "policy/modes.h"
#include "policy/policy.h"

#define NAME_SIZE (SETTINGS_JAIL_MAX + 32)
/* What a program that cannot be executed counts as, by jai's convention. */
#define EXIT_NO_EXEC 199

struct initjail {
    const struct settings *settings;
    const struct identity *identity;
    uid_t owner;
    int storage;
    char part[NAME_SIZE]; /* the directory */
    char lock[NAME_SIZE]; /* the file */
};

static bool exists(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, 0) == 0;
}

/* Before anything is made. */
static int check_programs(const struct initjail *init, struct brig_error *err)
{
    const struct settings_programs *programs = &init->settings->initjails;
    for (size_t i = 0; i < programs->count; i++) {
        const struct settings_program *program = &programs->items[i];
        if (!program->optional && access(program->path, F_OK) < 0)
            return brig_fail(err, BRIG_E_INVALID, errno, "initjail (%s): cannot run '%s'",
                             str_shown(program->origin).text, str_shown(program->path).text);
    }
    return 0;
}

/* The lock of the file of that name: an fd. Who had it before removes the file, and then it is the
 * lock of nothing. */
static int take_lock(const struct initjail *init, struct brig_error *err)
{
    for (;;) {
        autoclose int fd =
            openat(init->storage, init->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct stat ours, named;
        int failed = fd < 0 ? -1 : flock(fd, LOCK_EX);
        if (failed < 0 && errno == EINTR)
            continue;
        if (failed < 0 || fstat(fd, &ours) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s/%s'",
                             init->settings->storage, init->lock);
        if (fstatat(init->storage, init->lock, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
            named.st_ino == ours.st_ino && named.st_dev == ours.st_dev)
            return take_fd(&fd);
    }
}

/* ---- a program ---- */

static void set_variables(const struct initjail *init)
{
    const struct settings *settings = init->settings;
    const struct identity *identity = init->identity;
    const struct {
        const char *name, *value;
    } rows[] = {
        {"BRIG_JAIL", settings->jail},
        {"JAI_JAIL", settings->jail},
        {"BRIG_MODE", policy_mode_name(settings->mode)},
        {"JAI_MODE", policy_mode_name(settings->mode)},
        {"BRIG_USER", identity->name},
        {"JAI_USER", identity->name},
        {"JAI_CONFIG_DIR", settings->config_dir},
        {"HOME", settings->home},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        (void)setenv(rows[i].name, rows[i].value, 1);
    if (geteuid() != init->owner) { /* what root has here is not the user's */
        (void)setenv("USER", identity->name, 1);
        (void)setenv("LOGNAME", identity->name, 1);
    }
}

/* Standard input is the command's, and so is standard output. */
static __attribute__((noreturn)) void execute(const struct initjail *init, const char *path,
                                              int directory)
{
    uid_t uid = init->owner;
    gid_t gid = init->identity->host_gid;
    set_variables(init);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool ready =
        null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    if (geteuid() != uid)
        ready = ready && gid != (gid_t)-1 && setgroups(0, NULL) == 0 &&
                setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
    char here[PATH_LENGTH_MAX + 1];
    if (ready && fchdir(directory) == 0 && getcwd(here, sizeof here)) {
        (void)setenv("PWD", here, 1);
        char *copy = strdup(path);
        char *const argv[] = {copy, NULL};
        (void)execve(path, argv, environ);
    }
    _exit(EXIT_NO_EXEC);
}

static void run_program(const struct initjail *init, const struct settings_program *program,
                        int directory)
{
    struct str_shown path = str_shown(program->path);
    pid_t pid = fork();
    if (pid == 0)
        execute(init, program->path, directory);
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        message_warning("initjail '%s' could not be started: %s", path.text, strerror(errno));
    else if (WIFSIGNALED(status))
        message_warning("initjail '%s' was ended by signal %d", path.text, WTERMSIG(status));
    else if (WEXITSTATUS(status) == EXIT_NO_EXEC)
        message_warning("initjail '%s' could not be executed (status %d)", path.text, EXIT_NO_EXEC);
    else if (WEXITSTATUS(status) != 0)
        message_warning("initjail '%s' failed with status %d", path.text, WEXITSTATUS(status));
}

static void run_programs(const struct initjail *init, int directory)
{
    const struct settings_programs *programs = &init->settings->initjails;
    for (size_t i = 0; i < programs->count; i++) {
        identity_enter(init->identity);
        bool missing = access(programs->items[i].path, F_OK) < 0;
        identity_leave(init->identity);
        if (!missing)
            run_program(init, &programs->items[i], directory);
    }
}

/* ---- the directory ---- */

/* As the user whose it is: an fd. Changes of a jail with an id of its own are that id's. */
static int make_part(const struct initjail *init, struct brig_error *err)
{
    const struct brig_policy *policy = init->settings->policy;
    bool overlay = policy_mode_row(policy->mode)->home == POLICY_HOME_OVERLAY;
    identity_enter(init->identity);
    int made = mkdirat(init->storage, init->part, 0700);
    int failed = made < 0 && errno != EEXIST ? errno : 0;
    int fd = failed ? -1 : openat(init->storage, init->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && failed == 0)
        failed = errno;
    identity_leave(init->identity);
    if (fd >= 0 && made == 0 && overlay && policy->stranger &&
        fchown(fd, policy->host_uid, policy->host_gid) < 0)
        failed = errno;
    if (failed && fd >= 0)
        (void)close(fd);
    return failed ? brig_fail(err, BRIG_E_SETUP, failed, "cannot make '%s/%s'",
                              init->settings->storage, init->part)
                  : fd;
}

/* Whether there is something to do, and then with the lock: 1, or 0. With the user's rights. */
static int claim(const struct initjail *init, int *ret_lock, bool *ret_interrupted,
                 struct brig_error *err)
{
    bool there = exists(init->storage, init->part);
    if (there && !exists(init->storage, init->lock))
        return 0;
    int status = there ? 0 : check_programs(init, err);
    if (status < 0)
        return status;
    autoclose int lock = take_lock(init, err);
    struct stat info;
    if (lock < 0)
        return lock;
    there = exists(init->storage, init->part);
    *ret_interrupted = there && fstat(lock, &info) == 0 && info.st_size > 0;
    if (there && !*ret_interrupted) { /* another was first, and has finished */
        (void)unlinkat(init->storage, init->lock, 0);
        return 0;
    }
    if (write(lock, "begun\n", 6) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s/%s'", init->settings->storage,
                         init->lock);
    *ret_lock = take_fd(&lock);
    return 1;
}

static int fill(const struct initjail *init, bool interrupted, struct brig_error *err)
{
    if (interrupted)
        message_warning("the jail '%s' was left while initjail was at work; it runs again",
                        str_shown(init->settings->jail).text);
    autoclose int directory = make_part(init, err);
    if (directory < 0)
        return directory;
    run_programs(init, directory);
    identity_enter(init->identity);
    (void)unlinkat(init->storage, init->lock, 0);
    identity_leave(init->identity);
    return 0;
}

int initjail_run(const struct settings *settings, const struct identity *identity, uid_t owner,
                 struct brig_error *err)
{
    if (settings->initjails.count == 0)
        return 0;
    struct initjail init = {
        .settings = settings, .identity = identity, .owner = owner, .storage = -1};
    bool overlay = policy_mode_row(settings->policy->mode)->home == POLICY_HOME_OVERLAY;
    (void)snprintf(init.part, sizeof init.part, "%s.%s", settings->jail,
                   overlay ? "changes" : "home");
    (void)snprintf(init.lock, sizeof init.lock, ".%s.initjail", init.part);
    autoclose int lock = -1;
    bool interrupted = false;
    identity_enter(identity);
    int status = config_make_directory(settings->storage, &init.storage, err);
    if (status == 0)
        status = claim(&init, &lock, &interrupted, err);
    identity_leave(identity);
    if (status > 0)
        status = fill(&init, interrupted, err);
    if (init.storage >= 0)
        (void)close(init.storage);
    return status;
}
