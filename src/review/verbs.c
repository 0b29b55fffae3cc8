/* SPDX-License-Identifier: MIT */
#include "review/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/process.h"
#include "review/changes.h"

#define FIXED_WORDS 16             /* the program, the verb and options */
#define ERRORS_MAX ((size_t)65536) /* bytes of messages that are kept */

/* ---- words ---- */

/* Makes the command line; the array is for the caller to free, the words are borrowed. */
static char **make_words(const struct verbs *verbs, const char *verb, const char *const *options,
                         const struct str *paths)
{
    size_t count = 0, path_count = 0;
    for (const char *path = NULL; paths && (path = str_list_next(paths, path));)
        path_count++;
    const char **words = calloc(FIXED_WORDS + path_count + 1, sizeof *words);
    if (!words)
        return NULL;
    words[count++] = verbs->brig;
    words[count++] = verb;
    if (verbs->jail) {
        words[count++] = "-j";
        words[count++] = verbs->jail;
    }
    for (; options && *options && count < FIXED_WORDS; options++)
        words[count++] = *options;
    for (const char *path = NULL; paths && (path = str_list_next(paths, path));)
        words[count++] = path;
    return (char **)(uintptr_t)words;
}

/* ---- starting ---- */

/* Signals as in a new process; this one may block and ignore them. */
static int set_signals(posix_spawnattr_t *attributes, short flags)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (failed == 0)
        failed = posix_spawnattr_setsigdefault(attributes, &all);
    if (failed == 0)
        failed = posix_spawnattr_setflags(
            attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | flags));
    return failed;
}

static int spawn(char **words, const posix_spawn_file_actions_t *actions, short flags,
                 pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    int failed = posix_spawnattr_init(&attributes);
    if (failed)
        return failed;
    failed = set_signals(&attributes, flags);
    if (failed == 0)
        failed = posix_spawn(ret_pid, words[0], actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return failed;
}

static int spawn_captured(char **words, int input, int output, int errors, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    /* Without a controlling terminal it cannot read keys or write to the screen, and Ctrl-Z and the
     * end of the terminal do not interrupt it in the middle of its work. */
    if (failed == 0)
        failed = spawn(words, &actions, POSIX_SPAWN_SETSID, ret_pid);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int verb_start(const struct verbs *verbs, const char *verb, const char *const *options,
               const struct str *paths, const struct str *items, struct verb_child *ret_child,
               struct brig_error *err)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create a pipe");
    autoclose int output = pipe_fds[0], end = pipe_fds[1];
    autoclose int errors = memfd_create("errors", MFD_CLOEXEC);
    autoclose int input = memfd_create("input", MFD_CLOEXEC);
    size_t length = items ? items->length : 0;
    if (errors < 0 || input < 0 || (length > 0 && write_all(input, items->data, length) < 0) ||
        lseek(input, 0, SEEK_SET) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create a file in memory");
    autofree char **words = make_words(verbs, verb, options, paths);
    if (!words)
        return brig_fail_nomem(err);
    pid_t pid;
    int failed = spawn_captured(words, input, end, errors, &pid);
    if (failed)
        return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot run '%s'", verbs->brig);
    *ret_child =
        (struct verb_child){.pid = pid, .output = take_fd(&output), .errors = take_fd(&errors)};
    return 0;
}

int verb_start_diff(const struct verbs *verbs, const struct changes *changes,
                    const struct entry *entry, struct verb_child *ret_child, struct brig_error *err)
{
    static const char *const shown[] = {"--no-pager", "--shown", NULL};
    static const char *const by_path[] = {"--no-pager", "--", NULL};
    autostr struct str list = {0};
    /* With a new directory, everything in it is shown. */
    bool with_inside = entry_is_directory(entry) && entry_letter(entry) != 'D';
    if (with_inside)
        entry_list_path(changes, entry, &list);
    else
        entry_list_item(changes, entry, &list);
    if (list.failed)
        return brig_fail_nomem(err);
    return with_inside ? verb_start(verbs, "diff", by_path, &list, NULL, ret_child, err)
                       : verb_start(verbs, "diff", shown, NULL, &list, ret_child, err);
}

/* ---- the end ---- */

int verb_wait(struct verb_child *child, struct str *errors)
{
    int status = process_wait(child->pid);
    if (lseek(child->errors, 0, SEEK_SET) == 0)
        (void)read_all(child->errors, ERRORS_MAX, errors);
    close_fd(&child->output);
    close_fd(&child->errors);
    child->pid = 0;
    return status;
}

void verb_cancel(struct verb_child *child)
{
    if (child->pid == 0)
        return;
    autostr struct str errors = {0};
    (void)kill(-child->pid, SIGTERM); /* it leads a session: git, which it has started, ends too */
    close_fd(&child->output);
    (void)verb_wait(child, &errors);
}

int verb_run_here(const struct verbs *verbs, const char *verb, const char *const *options,
                  const struct str *paths)
{
    autofree char **words = make_words(verbs, verb, options, paths);
    pid_t pid;
    if (!words || spawn(words, NULL, 0, &pid) != 0)
        return -1;
    return process_wait(pid);
}
