/* SPDX-License-Identifier: MIT */
/* Which name a mistyped word is nearest to, and that far ones are not suggested. */
#include "base/nearest.h"

#include <brig/brig.h>

#include "tap.h"

static const char *best_of(const char *word, const char *names)
{
    static struct nearest nearest;
    nearest_begin(&nearest, word);
    nearest_offer_words(&nearest, names);
    return nearest.best;
}

static void words(void)
{
    static const struct {
        const char *word, *names, *best, *sentence;
    } rows[] = {
        {"casul", "casual, bare, strict or sealed", "casual", "a letter that is missing"},
        {"casuual", "casual, bare, strict or sealed", "casual", "one too many"},
        {"bate", "casual, bare, strict or sealed", "bare", "a wrong one"},
        {"tsrict", "casual, bare, strict or sealed", "strict", "two that are exchanged"},
        {"seeald", "casual, bare, strict or sealed", "sealed", "two mistakes in a long word"},
        {"bbte", "casual, bare, strict or sealed", "", "but not in a short one"},
        {"sealed", "casual, bare, strict or sealed", "sealed", "the name itself"},
        {"open", "casual, bare, strict or sealed", "", "another word"},
        {"mem", "memory, pids", "memory", "a beginning"},
        {"me", "memory, pids", "", "that is not too short"},
        {"ls", "rm, cp, ps", "", "nothing is near a word of two letters"},
        {"", "rm, cp", "", "nor near an empty one"},
        {"lits", "lint, list", "list", "the nearest of several"},
        {"lisx", "lisa, lisb", "lisa", "the first of those that are equally near"},
        {"ore", "or, and, core", "core", "the words between the names are none"},
        {"casul", "", "", "of no names none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_is_str(best_of(rows[i].word, rows[i].names), rows[i].best, "%s", rows[i].sentence);
}

static void limits(void)
{
    char longest[NEAREST_LENGTH_MAX + 1], longer[NEAREST_LENGTH_MAX + 2];
    struct nearest nearest;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    nearest_begin(&nearest, longest);
    nearest_offer(&nearest, longer, sizeof longer - 1);
    tap_is_str(nearest.best, "", "a name one longer than the limit is not compared");
    nearest_offer(&nearest, longest, sizeof longest - 1);
    tap_is_str(nearest.best, longest, "one of the limit is");
    nearest_begin(&nearest, longer);
    nearest_offer(&nearest, longest, sizeof longest - 1);
    tap_is_str(nearest.best, "", "nor is a word one longer than the limit");
    nearest_begin(&nearest, "casul");
    nearest_offer(&nearest, "casual-and-more", 6);
    tap_is_str(nearest.best, "casual", "only the bytes that are offered count");
}

static void messages(void)
{
    struct brig_error err = {0};
    tap_is_int(nearest_fail("oepn", "none, allow or open", &err), BRIG_E_INVALID, "it fails");
    tap_is_str(err.message, "'oepn' is not one of none, allow or open. Did you mean 'open'?",
               "and says what was meant");
    tap_is_int(nearest_fail("x", "none, allow or open", &err), BRIG_E_INVALID, "it fails");
    tap_is_str(err.message, "'x' is not one of none, allow or open", "where nothing is near");
}

int main(void)
{
    words();
    limits();
    messages();
    return tap_done();
}
