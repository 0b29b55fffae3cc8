/* SPDX-License-Identifier: MIT */
/* Finds the name that a mistyped word is nearest to. */
#include "base/nearest.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

#define LENGTH_FOR_ONE 3 /* in shorter words a difference of one letter is too much */
#define LENGTH_FOR_TWO 5
#define LENGTH_FOR_BEGINNING 3

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The restricted Damerau-Levenshtein distance: letters changed, added, removed, or swapped with a
 * neighbour. Both words are at most NEAREST_LENGTH_MAX long. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NEAREST_LENGTH_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void nearest_begin(struct nearest *nearest, const char *word)
{
    *nearest = (struct nearest){.word = word, .length = strlen(word)};
    size_t near = nearest->length >= LENGTH_FOR_TWO ? 2 : nearest->length >= LENGTH_FOR_ONE ? 1 : 0;
    nearest->distance = near + 1; /* the first distance that is not near any more */
}

void nearest_offer(struct nearest *nearest, const char *name, size_t length)
{
    if (length == 0 || length > NEAREST_LENGTH_MAX || nearest->length > NEAREST_LENGTH_MAX)
        return;
    bool begins = nearest->length >= LENGTH_FOR_BEGINNING && nearest->length < length &&
                  memcmp(nearest->word, name, nearest->length) == 0;
    size_t far = distance(nearest->word, nearest->length, name, length);
    if (begins)
        far = least(far, 1);
    if (far >= nearest->distance)
        return;
    nearest->distance = far;
    memcpy(nearest->best, name, length);
    nearest->best[length] = '\0';
}

void nearest_offer_words(struct nearest *nearest, const char *text)
{
    for (;;) {
        text += strspn(text, ", ");
        size_t length = strcspn(text, ", ");
        if (length == 0)
            return;
        bool joins = (length == 2 && memcmp(text, "or", length) == 0) ||
                     (length == 3 && memcmp(text, "and", length) == 0);
        if (!joins)
            nearest_offer(nearest, text, length);
        text += length;
    }
}

void nearest_offer_section(struct nearest *nearest, const char *name, const char **before,
                           struct str *list)
{
    size_t length = strcspn(name, ".");
    if (strncmp(name, *before, length + 1) == 0)
        return;
    nearest_offer(nearest, name, length);
    str_appendf(list, "%s%.*s", list->length ? ", " : "", (int)length, name);
    *before = name;
}

int nearest_advise(const struct nearest *nearest, const char *prefix, int code,
                   struct brig_error *err)
{
    if (!nearest->best[0])
        return code;
    return brig_advise(err, code, "Did you mean '%s%s'?", prefix, nearest->best);
}

int nearest_fail(const char *value, const char *choices, struct brig_error *err)
{
    struct nearest nearest;
    nearest_begin(&nearest, value);
    nearest_offer_words(&nearest, choices);
    (void)brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not one of %s", str_shown(value).text,
                    choices);
    return nearest_advise(&nearest, "", BRIG_E_INVALID, err);
}
