/* SPDX-License-Identifier: MIT */
/* Parses options on the command line, using the table in options.h. */
#include "cli/settings/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"

const struct option_row option_rows[OPTION_COUNT_] = {
#define OPTION_ROW(id, short_, long_, metavar_, kind_, group_, help_, more_)                       \
    [OPTION_##id] = {OPTION_##id,           short_, long_, metavar_, OPTION_KIND_##kind_,          \
                     OPTION_GROUP_##group_, help_,  more_},
    OPTION_TABLE(OPTION_ROW)
#undef OPTION_ROW
};

const char *const option_headings[OPTION_GROUP_COUNT_] = {
#define OPTION_HEADING(id, heading) [OPTION_GROUP_##id] = (heading),
    OPTION_GROUPS(OPTION_HEADING)
#undef OPTION_HEADING
};

bool option_needs_value(const struct option_row *row)
{
    return row->metavar && row->kind != OPTION_KIND_SWITCH;
}

bool option_expands(const struct option_row *row)
{
    static const bool expands[] = {
#define OPTION_EXPANDS(id, expands_) [OPTION_KIND_##id] = (expands_),
        OPTION_KINDS(OPTION_EXPANDS)
#undef OPTION_EXPANDS
    };
    return expands[row->kind];
}

/* Longer options are truncated in messages. */
#define OPTION_SHOWN_MAX 64

const struct option_row *option_find_long(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT_; i++)
        if (strncmp(option_rows[i].long_name, name, length) == 0 &&
            option_rows[i].long_name[length] == '\0')
            return &option_rows[i];
    return NULL;
}

const struct option_row *option_find_short(char name)
{
    for (int i = 0; i < OPTION_COUNT_; i++)
        if (option_rows[i].short_name != '\0' && option_rows[i].short_name == name)
            return &option_rows[i];
    return NULL;
}

/* Takes the value of an option: attached, or the next word. */
static int take_value(struct options_cursor *cursor, const struct option_row *row,
                      const char *attached, struct option_use *ret_use, struct brig_error *err)
{
    *ret_use = (struct option_use){.row = row, .value = row->metavar ? attached : NULL};
    if (!option_needs_value(row) || attached)
        return 1;
    /* A value of "--" usually means that the value was forgotten; --option=-- is still possible. */
    if (cursor->next >= cursor->argc || strcmp(cursor->argv[cursor->next], "--") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s needs a value: --%s %s", row->long_name,
                         row->long_name, row->metavar);
    ret_use->value = cursor->argv[cursor->next++];
    return 1;
}

static int next_short(struct options_cursor *cursor, struct option_use *ret_use,
                      struct brig_error *err)
{
    char letter = *cursor->cluster++;
    const struct option_row *row = option_find_short(letter);
    if (!row)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown option '-%c'. See brig --help", letter);
    const char *rest = cursor->cluster;
    bool takes = option_needs_value(row);
    if (*rest == '\0' || takes)
        cursor->cluster = NULL;
    return take_value(cursor, row, *rest && takes ? rest : NULL, ret_use, err);
}

int option_fail_unknown(const char *name, size_t length, bool directive, struct brig_error *err)
{
    const char *dashes = directive ? "" : "--";
    char shown[OPTION_SHOWN_MAX + 1];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)length, name);
    struct nearest nearest;
    nearest_begin(&nearest, shown);
    for (int i = 0; i < OPTION_COUNT_; i++)
        if (!directive || option_rows[i].group != OPTION_GROUP_RUN)
            nearest_offer(&nearest, option_rows[i].long_name, strlen(option_rows[i].long_name));
    (void)brig_fail(err, BRIG_E_INVALID, 0, "unknown %s '%s%s'", directive ? "directive" : "option",
                    dashes, str_shown(shown).text);
    return nearest.best[0] ? nearest_advise(&nearest, dashes, BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See %s",
                                         directive ? "brig.conf(5)" : "brig --help");
}

int option_fail_too_many(const char *value, int max, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "too many values: '%s' exceeds the limit of %d",
                     str_shown(value).text, max);
}

static int next_long(struct options_cursor *cursor, const char *word, struct option_use *ret_use,
                     struct brig_error *err)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct option_row *row = option_find_long(word, length);
    if (!row)
        return option_fail_unknown(word, length, false, err);
    if (equals && !row->metavar)
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s takes no value, but was given '%.*s'",
                         row->long_name, OPTION_SHOWN_MAX, equals + 1);
    return take_value(cursor, row, equals ? equals + 1 : NULL, ret_use, err);
}

int options_next(struct options_cursor *cursor, struct option_use *ret_use, struct brig_error *err)
{
    if (cursor->cluster)
        return next_short(cursor, ret_use, err);
    if (cursor->ended || cursor->next >= cursor->argc)
        return 0;

    const char *word = cursor->argv[cursor->next];
    if (word[0] != '-')
        return 0;
    if (word[1] == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'-' is not an option; write -- before the command");
    cursor->next++;
    if (word[1] != '-') {
        cursor->cluster = word + 1;
        return next_short(cursor, ret_use, err);
    }
    if (word[2] == '\0') {
        cursor->ended = true;
        return 0;
    }
    return next_long(cursor, word + 2, ret_use, err);
}
