/* SPDX-License-Identifier: MIT */
/* `brig login` runs the log-in of an agent in a jail of its own and keeps the credential outside;
 * `brig logout` removes the credential. The credential of the agent outside brig is not touched. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/credentials/oauth.h"
#include "cli/report.h"
#include "cli/run/setup.h"
#include "cli/settings/config.h"
#include "cli/settings/profile.h"
#include "git/outside_path.h"
#include "home/jails.h"

#define WORDS_MAX 96
#define CREDENTIAL_MAX 65536

struct login {
    struct setup setup;
    const char *agent;
    char jail[sizeof SETTINGS_LOGIN_JAIL + PROFILE_NAME_MAX];
    char *words[WORDS_MAX + 1]; /* owned */
    size_t count;
    bool failed;
};

/* ---- Another brig ---- */

static void add(struct login *login, const char *word)
{
    char *copy = login->count < WORDS_MAX ? strdup(word) : NULL;
    login->failed = login->failed || !copy;
    if (copy)
        login->words[login->count++] = copy;
}

/* The words end with NULL. */
static void add_all(struct login *login, const char *const *words)
{
    for (; *words; words++)
        add(login, *words);
}

static void clear(struct login *login)
{
    for (size_t i = 0; i < login->count; i++)
        free(login->words[i]);
    memset(login->words, 0, sizeof login->words);
    login->count = 0;
}

/* Runs brig with the words, which are then gone; its status as process_wait() has it. */
static int run_brig(struct login *login)
{
    pid_t pid = login->failed ? -1 : fork();
    if (pid == 0) {
        (void)execv("/proc/self/exe", login->words);
        _exit(127);
    }
    /* The keyboard's signals are for the jail. */
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    int status = process_wait(pid);
    (void)signal(SIGINT, before);
    clear(login);
    return status;
}

static void remove_jail(struct login *login)
{
    char home[PATH_LENGTH_MAX + 1];
    if (!str_fill(home, sizeof home, login->setup.settings.storage, "/", login->jail, ".home") ||
        access(home, F_OK) < 0)
        return;
    add_all(login, (const char *const[]){"brig", "--storage", login->setup.settings.storage, "-u",
                                         "-j", login->jail, NULL});
    (void)run_brig(login); /* its mounts */
    add_all(login, (const char *const[]){"brig", "rm", "-f", login->jail, NULL});
    (void)run_brig(login);
}

/* ---- The log-in ---- */

static void add_each(struct login *login, const char *option, enum profile_word word, bool twice)
{
    const struct profile *profile = login->setup.settings.profile;
    char text[256], pair[2 * sizeof text + 2];
    size_t at = 0, offset = 0;
    while (profile_next_word(profile, word, &at, &offset, text, sizeof text)) {
        (void)snprintf(pair, sizeof pair, twice ? "%s:%s" : "%s", text, text);
        add(login, option);
        add(login, pair);
    }
}

/* An empty home, no working directory, and no other network than the hosts of the log-in. */
static void add_run(struct login *login, const char *command)
{
    add_all(login,
            (const char *const[]){"brig", "run", "-m", "bare", "-D", "--net", "allow", "-j",
                                  login->jail, "--storage", login->setup.settings.storage, NULL});
    add_each(login, "--allow", PROFILE_HOST_LOGIN, false);
    add_each(login, "--allow", PROFILE_HOST_API, false);
    add_each(login, "--publish", PROFILE_LOGIN_PORT, true);
    add(login, "--");
    autofree char *copy = strdup(command);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " \t"));)
        if (*word)
            add(login, word);
}

/* Opens the file that the log-in has written: a regular file of the jail's home. */
static int open_credential(const struct login *login, const char *name, int *ret_fd,
                           struct brig_error *err)
{
    char home[sizeof login->jail + 16];
    struct stat info;
    (void)snprintf(home, sizeof home, "%s.home", login->jail);
    identity_enter(&login->setup.identity);
    autoclose int storage = open(login->setup.settings.storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int dir = openat(storage, home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int fd = -1;
    int status =
        dir < 0 ? -1
                : path_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd, NULL);
    identity_leave(&login->setup.identity);
    if (status < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        info.st_size > CREDENTIAL_MAX)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "the log-in of '%s' has left no credential ('%s'), so nothing was kept",
                         login->agent, name);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Makes STORAGE/.agents/AGENT, readable by the user only. */
static int make_store(const struct login *login, char *path, size_t size, struct brig_error *err)
{
    autoclose int fd = -1;
    if (!oauth_directory(login->setup.settings.storage, login->agent, path, size))
        return brig_fail(err, BRIG_E_INVALID, 0, "the path of the storage is too long");
    identity_enter(&login->setup.identity);
    int status = config_make_directory(path, &fd, err);
    identity_leave(&login->setup.identity);
    return status;
}

static int keep_credential(const struct login *login, struct brig_error *err)
{
    const struct settings *settings = &login->setup.settings;
    char path[PATH_LENGTH_MAX + 1];
    autoclose int fd = -1;
    int status =
        open_credential(login, profile_get(settings->profile, PROFILE_LOGIN_FILE), &fd, err);
    if (status == 0)
        status = make_store(login, path, sizeof path, err);
    if (status == 0)
        status = oauth_keep(settings, &login->setup.identity, login->agent, fd, err);
    if (status == 0)
        message_note("the credential of '%s' is kept in '%s', which no jail can see. Jails of '%s' "
                     "use it through a placeholder; brig logout %s removes it",
                     login->agent, path, login->agent, login->agent);
    return status;
}

/* The log-in gets the user's credential: its program is not one that a project has put into PATH. */
static int clean_path(struct brig_error *err)
{
    autofree char *list = NULL;
    int status = outside_path((const char *const *)environ, NULL, &list, err);
    return status == 0 && setenv("PATH", *list ? list : "/usr/bin:/bin", 1) < 0
               ? brig_fail_nomem(err)
               : status;
}

static int log_in(struct login *login, struct brig_error *err)
{
    const struct profile *profile = login->setup.settings.profile;
    const char *command = profile ? profile_get(profile, PROFILE_LOGIN) : NULL;
    if (!command || !profile_get(profile, PROFILE_LOGIN_FILE) ||
        !profile_get(profile, PROFILE_OAUTH))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "brig cannot log in '%s': its profile does not say how",
                         str_shown(login->agent).text);
    int cleaned = clean_path(err);
    if (cleaned < 0)
        return cleaned;
    remove_jail(login); /* of a log-in that was interrupted */
    add_run(login, command);
    int ended = run_brig(login);
    int status = keep_credential(login, err);
    remove_jail(login);
    return status < 0 ? status : ended;
}

/* ---- Verbs ---- */

/* Reads the settings of a run of the agent, for its profile and the storage. */
static int open_login(struct login *login, int argc, char **argv, struct brig_error *err)
{
    if (argc != 2 || argv[1][0] == '-')
        return brig_fail(err, BRIG_E_INVALID, 0, "%s needs the name of an agent; see brig profiles",
                         argv[0]);
    if (!profile_find(argv[1]))
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no profile '%s'; see brig profiles",
                         str_shown(argv[1]).text);
    char *words[] = {argv[0], (char *)(uintptr_t) "-D", (char *)(uintptr_t) "--profile",
                     argv[1], (char *)(uintptr_t) "--", argv[1],
                     NULL};
    struct settings_scan scan = {0};
    login->agent = argv[1];
    (void)snprintf(login->jail, sizeof login->jail, SETTINGS_LOGIN_JAIL "%s", argv[1]);
    int status = settings_scan(6, words, &scan, err);
    return status < 0 ? status : setup_make(&login->setup, &scan, 6, words, true, err);
}

static int login_run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    autofree struct login *login = calloc(1, sizeof *login);
    (void)app;
    if (!login)
        return brig_fail_nomem(err);
    int status = open_login(login, argc, argv, err);
    if (status < 0)
        return status;
    status = log_in(login, err);
    setup_done(&login->setup);
    return status;
}

static int logout_run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    autofree struct login *login = calloc(1, sizeof *login);
    char path[PATH_LENGTH_MAX + 1];
    (void)app;
    if (!login)
        return brig_fail_nomem(err);
    int status = open_login(login, argc, argv, err);
    if (status < 0)
        return status;
    identity_enter(&login->setup.identity);
    autoclose int dir =
        oauth_directory(login->setup.settings.storage, login->agent, path, sizeof path)
            ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            : -1;
    bool removed = dir >= 0 && unlinkat(dir, "credential.json", 0) == 0;
    identity_leave(&login->setup.identity);
    if (removed)
        message_note("the credential of '%s' was removed. The service may still accept it: to be "
                     "sure, log out of all devices there",
                     login->agent);
    else
        status = brig_fail(err, BRIG_E_STATE, 0, "there is no credential of '%s'", login->agent);
    setup_done(&login->setup);
    return status;
}

const struct command cmd_login = {
    .name = "login",
    .summary = "log in an agent, and keep its credential outside jails",
    .usage = "AGENT",
    .words = COMMAND_WORDS_AGENTS,
    .run = login_run,
};

const struct command cmd_logout = {
    .name = "logout",
    .summary = "remove the credential of an agent",
    .usage = "AGENT",
    .words = COMMAND_WORDS_AGENTS,
    .run = logout_run,
};
