/* SPDX-License-Identifier: MIT */
/* Scripts that a shell sources before the command, and programs for a new home. */
#include "cli/settings/script.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

/* If the shell is bash, functions of a script can be run like programs. */
#define SOURCE_AND_RUN                                                                             \
    ". '%s'; if declare -F \"$0\" >/dev/null 2>&1; then \"$0\" \"$@\"; else exec \"$0\" \"$@\"; "  \
    "fi"

static int append_script(const struct settings_program *program, struct str *text,
                         struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = conf_load(AT_FDCWD, NULL, program->path, program->optional, &source, err);
    if (status <= 0)
        return status;
    str_append_bytes(text, source.text, source.length);
    str_append_char(text, '\n');
    if (text->length > SCRIPT_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "all scripts together are larger than %zu MiB",
                         SCRIPT_LENGTH_MAX >> 20);
    return 1;
}

/* Reads all scripts: 1, or 0 if there are none. */
static int read_scripts(const struct settings *settings, struct str *text, struct brig_error *err)
{
    int found = 0;
    for (size_t i = 0; i < settings->scripts.count; i++) {
        const struct settings_program *program = &settings->scripts.items[i];
        int status = append_script(program, text, err);
        if (status < 0)
            return brig_wrap(err, status, "script (%s)", str_shown(program->origin).text);
        found = found || status > 0;
    }
    return found;
}

/* Adds a rule before all others, which therefore override it. */
static int set_first(struct brig_policy *policy, const char *name, const char *value,
                     struct brig_error *err)
{
    int status = brig_policy_setenv(policy, name, value, err);
    if (status < 0)
        return status;
    struct policy_env rule = policy->env[policy->env_count - 1];
    memmove(&policy->env[1], &policy->env[0], (policy->env_count - 1) * sizeof rule);
    policy->env[0] = rule;
    return 0;
}

/* Whether the jail's /tmp is the host's. */
static bool has_host_tmp(const struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (strcmp(policy->grants[i].dest, "/tmp") == 0 ||
            strcmp(policy->grants[i].dest, "/var/tmp") == 0)
            return true;
    return false;
}

/* Runs of one jail share its /tmp, so each script gets an unpredictable name. If /tmp is the
 * host's, the script would be left there. */
static int choose_path(const struct settings *settings, char **ret_path, struct brig_error *err)
{
    uint64_t number = 0; /* constant if nothing is run */
    if (!settings->dry_run && getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "no random numbers");
    autostr struct str path = {0};
    str_appendf(&path, "%s/.brig-script.%016" PRIx64,
                has_host_tmp(settings->policy) ? "/run" : "/tmp", number);
    return str_take(&path, ret_path, err);
}

static void append_preludes(const struct settings *settings, struct str *body)
{
    for (size_t i = 0; i < settings->prelude_count; i++) {
        const struct settings_prelude *prelude = &settings->preludes[i];
        const char *path = prelude->path;
        bool at_home = path && str_starts_with(path, "~/");
        if (path)
            str_appendf(
                body,
                "_f=\"%s%s\"; { [ -s \"$_f\" ] && "
                "! grep -qs injected-by-brig \"$_f\"; } || (umask 077; mkdir -p \"${_f%%/*}\" && "
                "printf '%%s\\n' '%s' >\"$_f\") 2>/dev/null; unset _f\n",
                at_home ? "$HOME" : "", path + at_home, prelude->text);
        else
            str_append(body, prelude->text);
    }
}

int script_prepare(struct settings *settings, const struct identity *identity,
                   struct brig_error *err)
{
    autostr struct str body = {0};
    append_preludes(settings, &body);
    identity_enter(identity);
    int status = read_scripts(settings, &body, err);
    identity_leave(identity);
    if (status < 0 || (status == 0 && settings->prelude_count == 0))
        return status;
    autofree char *path = NULL;
    status = choose_path(settings, &path, err);
    if (status < 0)
        return status;
    /* A script first removes itself. */
    autostr struct str text = {0};
    str_appendf(&text,
                "[ -n \"${BRIG_KEEP_SCRIPT-}${JAI_KEEP_SCRIPT-}\" ] || rm -f '%s' 2>/dev/null\n",
                path);
    str_append_bytes(&text, body.data, body.length);
    size_t length = text.length;
    autofree char *script = NULL;
    status = brig_policy_origin(settings->policy, "script", err);
    if (status == 0)
        status = str_take(&text, &script, err);
    if (status == 0)
        status = set_first(settings->policy, "JAI_SCRIPT", path, err);
    if (status == 0)
        status = set_first(settings->policy, "BRIG_SCRIPT", path, err);
    /* Unless --command says how the script is used. */
    autostr struct str line = {0};
    str_appendf(&line, SOURCE_AND_RUN, path);
    if (status == 0 && !settings->command)
        status = str_take(&line, &settings->command, err);
    if (status < 0)
        return status;
    settings->script = take_ptr(&script);
    settings->script_length = length;
    settings->script_path = take_ptr(&path);
    return 0;
}

int script_words(const struct settings *settings, const char *const *words,
                 const char *const **ret_words, struct brig_error *err)
{
    size_t count = 0;
    while (words[count])
        count++;
    const char **all = calloc(count + 4, sizeof *all); /* with "BASH -c LINE" and the NULL */
    if (!all)
        return brig_fail_nomem(err);
    size_t next = 0;
    if (settings->command && settings->command[0] != '\0') {
        all[next++] = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
        all[next++] = "-c";
        all[next++] = settings->command;
    }
    memcpy(&all[next], words, count * sizeof *all);
    *ret_words = all;
    return 0;
}

/* ---- Programs for a jail's new home ----
 *
 * A lock file in the storage directory contains a text while the programs run, and is removed when
 * they are done. Other runs wait for the lock. A process that gets the lock of a file with a text
 * in it completes the work of an interrupted run. */

#define NAME_SIZE (SETTINGS_JAIL_MAX + 32)
/* The exit status for a program that cannot be executed, as in jai. */
#define EXIT_NO_EXEC 199

struct initjail {
    const struct settings *settings;
    const struct identity *identity;
    int storage;
    char part[NAME_SIZE]; /* the directory */
    char lock[NAME_SIZE]; /* the file */
};

static bool exists(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, 0) == 0;
}

/* Checks the programs before anything is created. */
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

/* ---- a program ---- */

static void set_variables(const struct initjail *init)
{
    const char *user = init->identity->name;
    struct config_variable rows[CONFIG_VARIABLES];
    config_variables(init->settings, user, rows);
    for (size_t i = 0; i < CONFIG_VARIABLES; i++)
        (void)setenv(rows[i].name, rows[i].value, 1);
    (void)setenv("HOME", init->settings->home, 1);
    if (geteuid() != identity_uid(init->identity)) { /* root's values are not the user's */
        (void)setenv("USER", user, 1);
        (void)setenv("LOGNAME", user, 1);
    }
}

/* Standard input and output belong to the command. */
static __attribute__((noreturn)) void execute(const struct initjail *init, const char *path,
                                              int directory)
{
    set_variables(init);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool ready = null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
                 dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 && identity_become(init->identity) == 0;
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

/* Creates the directory with the ids of the user and returns an fd. The changes of a jail with an
 * isolated uid belong to that uid. */
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

/* Takes the lock if there is work to do: 1, or 0. Uses the ids of the user. */
static int claim(const struct initjail *init, int *ret_lock, bool *ret_interrupted,
                 struct brig_error *err)
{
    bool there = exists(init->storage, init->part);
    if (there && !exists(init->storage, init->lock))
        return 0;
    int status = there ? 0 : check_programs(init, err);
    if (status < 0)
        return status;
    struct stat info;
    autoclose int lock =
        openat(init->storage, init->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0)
        if (errno != EINTR)
            (void)close(take_fd(&lock));
    if (lock < 0 || fstat(lock, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s/%s'", init->settings->storage,
                         init->lock);
    *ret_interrupted = info.st_size > 0;
    if (exists(init->storage, init->part) && !*ret_interrupted) { /* another run did it */
        (void)unlinkat(init->storage, init->lock, 0);
        return 0;
    }
    if (write(lock, "begun\n", 6) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s/%s'", init->settings->storage,
                         init->lock);
    *ret_lock = take_fd(&lock);
    return 1;
}

static int fill(const struct initjail *init, int lock, bool interrupted, struct brig_error *err)
{
    if (interrupted)
        message_warning("the jail '%s' was left while initjail was at work; it runs again",
                        str_shown(init->settings->jail).text);
    autoclose int directory = make_part(init, err);
    if (directory < 0)
        return directory;
    run_programs(init, directory);
    (void)!ftruncate(lock, 0); /* for processes that wait for the lock */
    identity_enter(init->identity);
    (void)unlinkat(init->storage, init->lock, 0);
    identity_leave(init->identity);
    return 0;
}

int initjail_run(const struct settings *settings, const struct identity *identity,
                 struct brig_error *err)
{
    if (settings->initjails.count == 0)
        return 0;
    struct initjail init = {.settings = settings, .identity = identity, .storage = -1};
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
        status = fill(&init, lock, interrupted, err);
    own_close(&init.storage);
    return status;
}

struct policy_file script_file(const struct settings *settings)
{
    if (!settings->script)
        return (struct policy_file){0};
    return (struct policy_file){.dest = settings->script_path,
                                .data = settings->script,
                                .length = settings->script_length,
                                .mode = 0400};
}
