/* SPDX-License-Identifier: MIT */
#include "cli/settle.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/end.h"
#include "changes/layer/layer.h"
#include "changes/operation/hold.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "git/guard.h"

/* Of another jail, only the runs at these places. */
static int settle_jail(const struct settle *settle, int storage, const char *jail,
                       const struct str *places, struct str *notes, struct brig_error *err)
{
    autoclose int git = jails_open_part(storage, jail, GUARD_PART, false);
    bool left = git >= 0 && guard_has_runs(git);
    autoclose int record =
        !places || left ? jails_open_part(storage, jail, LAYER_RECORD_PART, left) : -1;
    const struct jails_option option = jails_option(jail);
    const struct guard_options options = {.storage = git,
                                          .keeper = {record < 0 ? NULL : hold_name, record},
                                          .jail = jail,
                                          .option = option.text,
                                          .user = settle->user,
                                          .environment = (const char *const *)environ};
    const struct runs_left runs = {
        .guard = left ? &options : NULL, .directories = places, .kept = settle->all};
    return record < 0 ? 0 : runs_settle(record, &runs, notes, err);
}

/* Messages, each with the name of the jail. */
static void add_notes(const char *jail, struct str *from, struct str *to)
{
    char *rest = from->data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            str_concat(to, jail, ": ", line, "\n");
}

int settle(const struct settle *settle, struct str *notes, struct brig_error *err)
{
    autoclose int storage = open(settle->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = storage < 0 || !settle->places ? NULL : files_list(storage, ".");
    char jail[PATH_COMPONENT_MAX + 1];
    int status = storage < 0 || !settle->jail
                     ? 0
                     : settle_jail(settle, storage, settle->jail, NULL, notes, err);
    for (const struct dirent *item; status == 0 && dir && (item = files_next(dir));) {
        autostr struct str said = {0};
        if (!str_ends_with(item->d_name, GUARD_PART) || !str_fill(jail, sizeof jail, item->d_name))
            continue;
        jail[strlen(jail) - strlen(GUARD_PART)] = '\0';
        if (!str_equal(jail, settle->jail))
            status = settle_jail(settle, storage, jail, settle->places, &said, err);
        add_notes(jail, &said, notes);
    }
    return status;
}

int settle_here(const char *storage, const char *jail, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    autostr struct str places = {0}, notes = {0};
    str_list_add(&places, getcwd(cwd, sizeof cwd) ? cwd : "/");
    const struct settle how = {
        .storage = storage, .jail = jail, .places = &places, .user = GIT_USER_SELF};
    int status = settle(&how, &notes, err);
    message_lines(&notes);
    return status;
}
