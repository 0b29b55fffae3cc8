/* SPDX-License-Identifier: MIT */
/* `brig explain`: what a run would be allowed, each rule with where it comes from. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/report.h"

/* The same words as those of a run, with one more. */
static int run_explain(const struct app *app, int argc, char **argv)
{
    autofree char **words = calloc((size_t)argc + 2, sizeof *words);
    if (!words) {
        message_error("out of memory");
        return APP_FAILED;
    }
    words[0] = argv[0];
    words[1] = (char *)(uintptr_t) "--dry-run";
    memcpy(words + 2, argv + 1, ((size_t)argc - 1) * sizeof *words);
    return cmd_run.run(app, argc + 1, words);
}

const struct command cmd_explain = {
    .name = "explain",
    .summary = "print what a run would be allowed, and why (--dry-run)",
    .usage = "[OPTIONS] [--] [CMD...]",
    .words = COMMAND_WORDS_RUN,
    .run = run_explain,
};
