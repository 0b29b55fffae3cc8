/* SPDX-License-Identifier: MIT */
/* `brig sync`: transfers what jails did in git, where a run was interrupted or goes on. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/message.h"
#include "guard/guard.h"

#define KIND ".git"

static void print_lines(const char *jail, struct str *lines)
{
    char *rest = lines->data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            message_note("%s: %s", jail, line);
}

static int sync_jail(int storage, const char *name, bool show, struct brig_error *err)
{
    autostr struct str notes = {0};
    autoclose int part = openat(storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *jail = strndup(name, strlen(name) - strlen(KIND));
    if (part < 0 || !jail)
        return 0;
    autofree char *held_name = NULL;
    if (asprintf(&held_name, "%s.held", jail) < 0)
        held_name = NULL;
    if (held_name)
        (void)mkdirat(storage, held_name, 0700);
    autoclose int held =
        held_name ? openat(storage, held_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                  : -1;
    const struct guard_options options = {.storage = part,
                                          .held = held,
                                          .jail = jail,
                                          .user = {(uid_t)-1, (gid_t)-1},
                                          .environment = (const char *const *)environ};
    int status = guard_sync(&options, show, &notes, err);
    print_lines(jail, &notes);
    return status;
}

static int run_sync(const struct app *app, int argc, char **argv)
{
    (void)app;
    struct brig_error err = {0};
    struct jails_place place;
    bool show = argc == 2 && strcmp(argv[1], "--show") == 0;
    if (argc > 1 && !show)
        return command_refuse(&cmd_sync, argc, argv, 1);
    int status = jails_place_find(&place, &err);
    if (status == 0)
        status = jails_become_user(&place, &err);
    autodir DIR *dir = status == 0 ? opendir(place.storage) : NULL;
    const struct dirent *item;
    while (status == 0 && dir && (item = readdir(dir))) {
        size_t length = strlen(item->d_name);
        if (length > strlen(KIND) && strcmp(item->d_name + length - strlen(KIND), KIND) == 0)
            status = sync_jail(dirfd(dir), item->d_name, show, &err);
    }
    if (status < 0)
        message_error("%s", err.message);
    return status < 0 ? APP_FAILED : 0;
}

const struct command cmd_sync = {
    .name = "sync",
    .summary = "transfer what jails did in git",
    .usage = "[--show]",
    .words = COMMAND_WORDS_NONE,
    .run = run_sync,
};
