/* SPDX-License-Identifier: MIT */
/* `brig held`, `brig keep` and `brig discard`: files that a run has created, that a program outside would
 * execute, and that brig therefore keeps in the jail's storage. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/message.h"
#include "guard/git.h"
#include "guard/held.h"

#define KIND ".held"

enum action { SHOW, KEEP, DISCARD };

struct asking {
    enum action action;
    const char *wanted; /* the path that was given, NULL for all */
    char cwd[PATH_LENGTH_MAX + 1];
    size_t found;
};

/* A path is relative to the working directory, or as `brig held` prints it. */
static bool is_wanted(const struct asking *asking, const struct held_item *item)
{
    autofree char *whole = NULL;
    autofree char *given = NULL;
    if (!asking->wanted)
        return true;
    if (asprintf(&whole, "%s/%s", item->project, item->path) < 0)
        whole = NULL;
    if (path_make_absolute(asking->cwd, asking->wanted, &given, NULL) < 0)
        given = NULL;
    return whole && given && strcmp(whole, given) == 0;
}

/* What git calls the content of a file, so that it can be compared with another. */
static void show_hash(int fd, const char *path)
{
    struct git git;
    autostr struct str out = {0};
    autoclose int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static const char *const words[] = {"hash-object", "--no-filters", "--stdin", NULL};
    if (git_find(&git, (const char *const *)environ, NULL, (struct git_user){-1U, -1U}, NULL) < 0)
        return;
    if (git.program && here >= 0 &&
        git_run(&git, &(struct git_call){.words = words, .dir = here, .input_fd = fd, .out = &out},
                NULL) == 0 &&
        out.length > 0)
        (void)printf("%s: git object %.*s\n", str_shown(path).text, (int)strcspn(out.data, "\n"),
                     out.data);
    git_done(&git);
}

static int treat(struct asking *asking, int store, const char *jail, const struct held_item *item,
                 struct brig_error *err)
{
    if (!is_wanted(asking, item))
        return 0;
    asking->found++;
    if (asking->action == SHOW) {
        (void)printf("%s  %s/%s  (%s)\n", jail, str_shown(item->project).text,
                     str_shown(item->path).text, item->why);
        return 0;
    }
    if (asking->action == DISCARD)
        return held_discard(store, item, err);
    autoclose int fd = held_open(store, item, NULL);
    if (fd >= 0)
        show_hash(fd, item->path);
    return held_restore(store, item, err);
}

static int treat_jail(struct asking *asking, int storage, const char *name, struct brig_error *err)
{
    struct held_list list = {0};
    autoclose int store = openat(storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autofree char *jail = strndup(name, strlen(name) - strlen(KIND));
    if (store < 0 || !jail)
        return 0;
    int status = held_list(store, &list, err);
    for (size_t i = 0; i < list.count && status == 0; i++)
        status = treat(asking, store, jail, &list.items[i], err);
    held_list_done(&list);
    return status;
}

static int treat_all(struct asking *asking, struct brig_error *err)
{
    struct jails_place place;
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    autodir DIR *dir = status == 0 ? opendir(place.storage) : NULL;
    const struct dirent *item;
    while (status == 0 && dir && (item = readdir(dir))) {
        size_t length = strlen(item->d_name);
        if (length > strlen(KIND) && strcmp(item->d_name + length - strlen(KIND), KIND) == 0)
            status = treat_jail(asking, dirfd(dir), item->d_name, err);
    }
    if (status == 0 && asking->wanted && asking->found == 0)
        status = brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not held back. See brig held",
                           str_shown(asking->wanted).text);
    return status;
}

static int run(const struct command *command, enum action action, int argc, char **argv)
{
    struct brig_error err = {0};
    struct asking asking = {.action = action};
    if (action == SHOW && argc > 1)
        return command_refuse(command, argc, argv, 1);
    if (action != SHOW && argc < 2) {
        message_error("%s needs a path: brig %s PATH…. See brig held", command->name,
                      command->name);
        return APP_FAILED;
    }
    if (!getcwd(asking.cwd, sizeof asking.cwd))
        (void)snprintf(asking.cwd, sizeof asking.cwd, "/");
    int status = 0;
    if (action == SHOW)
        status = treat_all(&asking, &err);
    for (int i = 1; i < argc && status == 0; i++) {
        asking.wanted = argv[i];
        asking.found = 0;
        status = treat_all(&asking, &err);
    }
    if (status < 0)
        message_error("%s", err.message);
    return status < 0 ? APP_FAILED : 0;
}

static int run_held(const struct app *app, int argc, char **argv)
{
    (void)app;
    return run(&cmd_held, SHOW, argc, argv);
}

static int run_keep(const struct app *app, int argc, char **argv)
{
    (void)app;
    return run(&cmd_keep, KEEP, argc, argv);
}

static int run_discard(const struct app *app, int argc, char **argv)
{
    (void)app;
    return run(&cmd_discard, DISCARD, argc, argv);
}

const struct command cmd_held = {
    .name = "held",
    .summary = "list files that were held back",
    .usage = "",
    .words = COMMAND_WORDS_NONE,
    .run = run_held,
};

const struct command cmd_keep = {
    .name = "keep",
    .summary = "restore a file that was held back",
    .usage = "PATH...",
    .words = COMMAND_WORDS_NONE,
    .run = run_keep,
};

const struct command cmd_discard = {
    .name = "discard",
    .summary = "delete a file that was held back",
    .usage = "PATH...",
    .words = COMMAND_WORDS_NONE,
    .run = run_discard,
};
