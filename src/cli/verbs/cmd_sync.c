/* SPDX-License-Identifier: MIT */
/* `brig sync`: transfers the git changes of jails whose run was interrupted or is active. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settle.h"
#include "git/guard.h"

struct syncing {
    const char *storage;
    bool show;
    size_t lines; /* printed so far */
};

static void print_lines(struct syncing *syncing, const char *jail, struct str *lines)
{
    char *rest = lines->data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line) {
            message_note("%s: %s", jail, line);
            syncing->lines++;
        }
}

static int sync_jail(void *context, int storage, const char *jail, struct brig_error *err)
{
    struct syncing *syncing = context;
    autostr struct str notes = {0};
    autoclose int part = jails_open_part(storage, jail, GUARD_PART, false);
    const struct jails_option option = jails_option(jail);
    const struct guard_options options = {
        .storage = part, .user = GIT_USER_SELF, .option = option.text};
    const struct settle how = {
        .storage = syncing->storage, .jail = jail, .user = GIT_USER_SELF, .all = true};
    int status = 0;
    if (syncing->show)
        guard_show_left(&options, &notes);
    else
        status = settle(&how, &notes, err);
    print_lines(syncing, jail, &notes);
    return status;
}

static int run_sync(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct jails_place place;
    struct syncing syncing = {0};
    const char *jail = NULL;
    for (int i = 1; i < argc;) {
        if (jails_take_option(argc, argv, &i, &jail))
            continue;
        if (strcmp(argv[i], "--show") != 0)
            return command_refuse(app, argc, argv, i, err);
        syncing.show = true;
        i++;
    }
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    syncing.storage = place.storage;
    if (status == 0)
        status = jails_each_part(&place, cmd_sync.name, jail, GUARD_PART, sync_jail, &syncing, err);
    if (status >= 0 && syncing.lines == 0)
        message_note("there is nothing to transfer");
    return status < 0 ? status : 0;
}

const struct command cmd_sync = {
    .name = "sync",
    .summary = "transfer git commits out of jails",
    .usage = "[-j NAME] [--show]",
    .words = COMMAND_WORDS_NONE,
    .run = run_sync,
};
