/* SPDX-License-Identifier: MIT */
/* Prints the table of brig's options as JSON: pages of the manual are made of it by
 * tools/gen-cli-docs. */
#include <unistd.h>

#include "base/fds.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/settings/options.h"
#include "cli/settings/profile.h"

static const char *name_of_kind(enum option_kind kind)
{
    static const char *const names[] = {
#define NAME(id, expands) #id,
        OPTION_KINDS(NAME)
#undef NAME
    };
    return names[kind];
}

static void write_option(struct json *j, const struct option_row *row)
{
    const char short_name[] = {row->short_name, '\0'};
    json_open_object(j, NULL);
    json_text(j, "short", short_name);
    json_text(j, "long", row->long_name);
    json_text(j, "metavar", row->metavar);
    json_text(j, "kind", name_of_kind(row->kind));
    json_text(j, "group", option_headings[row->group]);
    json_text(j, "help", row->help);
    json_text(j, "more", row->more);
    json_close_object(j);
}

static void write_words(struct json *j)
{
    static const struct {
        const char *name;
        bool adds;
        const char *says;
    } words[] = {
#define ROW(id, name, adds, says) {name, adds, says},
        PROFILE_WORDS(ROW)
#undef ROW
    };
    json_open_array(j, "profile_words");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        json_open_object(j, NULL);
        json_text(j, "name", words[i].name);
        json_bool(j, "adds", words[i].adds);
        json_text(j, "says", words[i].says);
        json_close_object(j);
    }
    json_close_array(j);
}

int main(void)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_open_array(&j, "groups");
    for (int group = 0; group < OPTION_GROUP_COUNT_; group++)
        json_text(&j, NULL, option_headings[group]);
    json_close_array(&j);
    json_text(&j, "run_group", option_headings[OPTION_GROUP_RUN]);
    json_open_array(&j, "options");
    for (int i = 0; i < OPTION_COUNT_; i++)
        write_option(&j, &option_rows[i]);
    json_close_array(&j);
    write_words(&j);
    json_close_object(&j);
    str_append_char(&out, '\n');
    return !out.failed && write_all(STDOUT_FILENO, out.data, out.length) == 0 ? 0 : 1;
}
