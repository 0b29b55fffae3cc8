/* SPDX-License-Identifier: MIT */
/* `brig profiles`: lists the profiles of agents and tools, or prints one. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/settings/profile.h"

static const char *value_of(const struct profile *profile, enum profile_word word)
{
    const char *value = profile_get(profile, word);
    return value ? value : "";
}

static void append_line(struct str *out, const struct profile *profile)
{
    const char *tested = value_of(profile, PROFILE_TESTED);
    str_appendf(out, "%-10s %-6s %-16s %s\n", profile->name, value_of(profile, PROFILE_KIND),
                strcmp(tested, "no") == 0 ? "untested" : tested, value_of(profile, PROFILE_ABOUT));
}

static void append_object(struct json *json, const struct profile *profile)
{
    const char *tested = value_of(profile, PROFILE_TESTED);
    json_open_object(json, NULL);
    json_text(json, "name", profile->name);
    json_text(json, "kind", value_of(profile, PROFILE_KIND));
    json_text(json, "tested", strcmp(tested, "no") == 0 ? NULL : tested);
    json_text(json, "about", value_of(profile, PROFILE_ABOUT));
    json_close_object(json);
}

static int append_all(struct str *out, struct json *json, struct brig_error *err)
{
    size_t count = 0;
    const struct profile_text *texts = profile_texts(&count);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        struct profile profile = {0};
        status = profile_read(&texts[i], &profile, err);
        if (status == 0 && json)
            append_object(json, &profile);
        else if (status == 0)
            append_line(out, &profile);
        profile_done(&profile);
    }
    return status;
}

static int fail_unknown(const char *name, struct brig_error *err)
{
    struct nearest nearest;
    size_t count = 0;
    const struct profile_text *texts = profile_texts(&count);
    nearest_begin(&nearest, name);
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, texts[i].name, strlen(texts[i].name));
    (void)brig_fail(err, BRIG_E_INVALID, 0, "there is no profile '%s'", str_shown(name).text);
    return nearest.best[0] ? nearest_advise(&nearest, "brig profiles ", BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See brig profiles");
}

static int run_profiles(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    autostr struct str out = {0};
    struct json json;
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && argv[1][0] == '-' && !as_json))
        return command_refuse(app, argc, argv, 1, err);
    if (argc == 2 && !as_json) {
        const struct profile_text *text = profile_find(argv[1]);
        if (!text)
            return fail_unknown(argv[1], err);
        str_append(&out, text->text);
        return message_print(&out, err);
    }
    if (as_json) {
        json_init(&json, &out);
        json_open_array(&json, NULL);
    } else {
        str_appendf(&out, "%-10s %-6s %-16s %s\n", "PROFILE", "KIND", "TESTED", "PROGRAM");
    }
    int status = append_all(&out, as_json ? &json : NULL, err);
    if (as_json) {
        json_close_array(&json);
        str_append_char(&out, '\n');
    }
    return status < 0 ? status : message_print(&out, err);
}

const struct command cmd_profiles = {
    .name = "profiles",
    .summary = "list the profiles of agents and tools, or print one",
    .usage = "[--json] [NAME]",
    .words = COMMAND_WORDS_PROFILES,
    .run = run_profiles,
};
