/* SPDX-License-Identifier: MIT */
/* `brig list`: the jails, with their mode, their size on disk, their processes and projects. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/project.h"
#include "cli/report.h"
#include "home/jails.h"

struct listing {
    const struct jails_place *place;
    struct str text;
    struct json *json; /* NULL: text */
    size_t count;
};

static void append_size(struct str *text, uint64_t bytes)
{
    static const char units[] = "KMGT";
    size_t unit = 0;
    uint64_t tenths = bytes * 10 / 1024;
    while (tenths >= 10240 && unit + 2 < sizeof units) {
        tenths /= 1024;
        unit++;
    }
    char number[32];
    if (bytes == 0)
        (void)snprintf(number, sizeof number, "-");
    else
        (void)snprintf(number, sizeof number, "%llu.%llu%c", (unsigned long long)tenths / 10,
                       (unsigned long long)tenths % 10, units[unit]);
    str_appendf(text, " %9s", number);
}

/* Adds the processes that run under the isolated uid that root gave the jail. */
static void add_isolated_uids(const struct jails_place *place, struct jail_info *jail)
{
    struct home_state state;
    if (place->stranger == (uid_t)-1 ||
        jails_ask(place->storage, jail->name, place->stranger, &state, NULL) < 0)
        return;
    jail->state.held = jail->state.held || state.held;
    for (size_t i = 0; i < state.pid_count && jail->state.pid_count < ARRAY_LENGTH(state.pids); i++)
        jail->state.pids[jail->state.pid_count++] = state.pids[i];
}

static void append_line(struct listing *listing, const struct jail_info *jail, const char *mode,
                        const char *project)
{
    autostr struct str running = {0};
    if (listing->count++ == 0)
        str_appendf(&listing->text, "%-28s %-7s %9s %9s  %-10s %s\n", "JAIL", "MODE", "CHANGES",
                    "HOME", "RUNNING", "PROJECT");
    str_appendf(&listing->text, "%-28s %-7s", jail->name, mode);
    append_size(&listing->text, jail->changes);
    append_size(&listing->text, jail->home);
    str_append(&running, jail->state.pid_count > 0 ? "pid" : jail->state.held ? "(kept)" : "-");
    for (size_t i = 0; i < jail->state.pid_count; i++)
        str_appendf(&running, " %d", jail->state.pids[i]);
    str_appendf(&listing->text, "  %-10s ", running.data ? running.data : "");
    str_append_shown(&listing->text, *project ? project : "-", strlen(*project ? project : "-"),
                     "");
    str_append_char(&listing->text, '\n');
}

static void append_object(struct json *json, const struct jail_info *jail, const char *mode,
                          const char *project)
{
    json_open_object(json, NULL);
    json_text(json, "name", jail->name);
    json_text(json, "mode", strcmp(mode, "-") == 0 ? NULL : mode);
    json_text(json, "project", *project ? project : NULL);
    json_uint(json, "changes_bytes", jail->changes);
    json_uint(json, "home_bytes", jail->home);
    json_bool(json, "held", jail->state.held);
    json_int(json, "holder", jail->state.holder);
    json_open_array(json, "pids");
    for (size_t i = 0; i < jail->state.pid_count; i++)
        json_uint(json, NULL, (uint64_t)jail->state.pids[i]);
    json_close_array(json);
    json_close_object(json);
}

static int add_jail(void *context, const struct jail_info *found, struct brig_error *err)
{
    (void)err;
    struct listing *listing = context;
    struct jail_info jail = *found;
    char mode[16], project[PATH_LENGTH_MAX + 1];
    add_isolated_uids(listing->place, &jail);
    jails_mode(listing->place->storage, jail.name, mode, sizeof mode);
    (void)project_of(listing->place->storage, jail.name, project);
    if (listing->json)
        append_object(listing->json, &jail, mode, project);
    else
        append_line(listing, &jail, mode, project);
    return 0;
}

static int run_list(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !as_json)
        return command_refuse(app, argc, argv, 1, err);
    struct jails_place place;
    struct listing listing = {.place = &place};
    struct json json;
    int status = jails_place_find(&place, err);
    if (as_json) {
        json_init(&json, &listing.text);
        json_open_array(&json, NULL);
        listing.json = &json;
    }
    if (status == 0)
        status = jails_each(place.storage, place.uid, true, add_jail, &listing, err);
    if (as_json) {
        json_close_array(&json);
        str_append_char(&listing.text, '\n');
    }
    if (status == 0)
        status = message_print(&listing.text, err);
    if (status == 0 && !as_json && listing.count == 0)
        message_note("%s has no jails yet", place.storage);
    str_done(&listing.text);
    return status;
}

const struct command cmd_list = {
    .name = "list",
    .summary = "list jails, their projects, disk use and processes",
    .usage = "[--json]",
    .run = run_list,
};
