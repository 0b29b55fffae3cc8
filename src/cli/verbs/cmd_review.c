/* SPDX-License-Identifier: MIT */
/* `brig review`: replaces itself with brig-review, which shows the changes of a jail and runs the
 * other verbs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/beside.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/verbs/layers.h"

/* Where the program may be, relative to the directory of this one: in a build tree, and in an
 * installation with another prefix than configured. */
static const char *const places[] = {"brig-review", "../review/brig-review",
                                     "../libexec/brig/brig-review", NULL};

/* Changes to the ids of the user. */
static int become_user(const char *jail, struct brig_error *err)
{
    struct jails_place place;
    int status = jails_place_find(&place, err);
    if (status == 0 && jail)
        status = jails_check(&place, "review", jail, err);
    return status < 0 ? status : beside_become_user(err);
}

/* Replaces this process. `paths` ends with NULL. */
static int execute(bool plain, const char *jail, char **paths, struct brig_error *err)
{
    const struct beside_program program = {.name = "brig-review",
                                           .places = places,
                                           .installed = BRIG_REVIEW_PATH,
                                           .advice = "Use brig status, brig diff and brig apply"};
    size_t count = 0, path_count = 0;
    while (paths[path_count])
        path_count++;
    autofree const char **words = calloc(path_count + 3, sizeof *words);
    if (!words)
        return brig_fail_nomem(err);
    if (plain)
        words[count++] = "--plain";
    words[count++] = jail ? jail : "";
    memcpy(words + count, paths, path_count * sizeof *paths);
    return beside_execute(&program, NULL, words, err);
}

/* Shows the changes at the paths, or of the reviewed directory that the working directory is in, or all. */
static int review(bool plain, const char *jail, char **paths, struct brig_error *err)
{
    autofree struct verb_layers *layers = calloc(1, sizeof *layers);
    int status = layers ? become_user(jail, err) : brig_fail_nomem(err);
    if (status == 0)
        status = verb_layers_settled(layers, cmd_review.name, jail, err);
    if (status < 0)
        return status;
    const char *here = paths[0] ? NULL : verb_layers_here(layers);
    char *root[] = {(char *)(uintptr_t)here, NULL};
    verb_tell_elsewhere(layers, here, cmd_review.name);
    status = execute(plain, jail, here ? root : paths, err);
    verb_layers_done(layers);
    return status;
}

static int run_review(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    const char *jail = NULL;
    bool plain = false;
    const struct jails_word options[] = {{"--plain", &plain, NULL}, {0}};
    int at = jails_parse_words(app, argc, argv, options, &jail, err);
    return at < 0 ? at : review(plain, jail, argv + at, err);
}

const struct command cmd_review = {
    .name = "review",
    .summary = "look through the changes of a jail and apply them",
    .usage = "[-j NAME] [--plain] [PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run_review,
};
