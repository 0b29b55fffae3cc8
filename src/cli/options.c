/* SPDX-License-Identifier: MIT */
/* Reads options off a command line, by the table in options.h. */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"

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

bool option_expands(const struct option_row *row)
{
    static const bool expands[] = {
#define OPTION_EXPANDS(id, expands_) [OPTION_KIND_##id] = (expands_),
        OPTION_KINDS(OPTION_EXPANDS)
#undef OPTION_EXPANDS
    };
    return expands[row->kind];
}

/* A longer word given as an option is shown shortened. */
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

static int next_word_as_value(struct options_cursor *cursor, struct option_use *ret_use,
                              struct brig_error *err)
{
    const struct option_row *row = ret_use->row;
    /* A value of "--" is far more often a forgotten one; --option=-- still says it. */
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
    struct option_use use = {.row = option_find_short(letter)};
    if (!use.row)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown option '-%c'. See brig --help", letter);

    const char *rest = cursor->cluster;
    if (*rest == '\0' || use.row->metavar)
        cursor->cluster = NULL;
    if (use.row->metavar && *rest != '\0') {
        use.value = rest;
    } else if (use.row->metavar) {
        int status = next_word_as_value(cursor, &use, err);
        if (status < 0)
            return status;
    }
    *ret_use = use;
    return 1;
}

static int fail_unknown(const char *word, size_t length, struct brig_error *err)
{
    char shown[OPTION_SHOWN_MAX + 1];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)length, word);
    struct nearest nearest;
    nearest_begin(&nearest, shown);
    for (int i = 0; i < OPTION_COUNT_; i++)
        nearest_offer(&nearest, option_rows[i].long_name, strlen(option_rows[i].long_name));
    (void)brig_fail(err, BRIG_E_INVALID, 0, "unknown option '--%s'", shown);
    return nearest.best[0] ? nearest_advise(&nearest, "--", BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See brig --help");
}

static int next_long(struct options_cursor *cursor, const char *word, struct option_use *ret_use,
                     struct brig_error *err)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    struct option_use use = {.row = option_find_long(word, length)};
    if (!use.row)
        return fail_unknown(word, length, err);

    if (equals && !use.row->metavar)
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s takes no value, but was given '%.*s'",
                         use.row->long_name, OPTION_SHOWN_MAX, equals + 1);
    if (equals) {
        use.value = equals + 1;
    } else if (use.row->metavar) {
        int status = next_word_as_value(cursor, &use, err);
        if (status < 0)
            return status;
    }
    *ret_use = use;
    return 1;
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
