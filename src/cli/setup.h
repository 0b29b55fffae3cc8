/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy: for whom, which files, what they and the options say, and
 * what is protected. What `brig run`, `explain` and `why` have in common. */
#pragma once

#include "base/path.h"
#include "cli/config.h"
#include "cli/identity.h"
#include "cli/live_masks.h"
#include "cli/settings.h"
#include "guard/guard.h"

/* Parts borrow from one another: not to be moved. Release with setup_done. */
struct setup {
    char cwd[PATH_LENGTH_MAX + 1];
    int cwd_fd; /* the same directory, or -1 */
    struct identity identity;
    struct config_files files;
    struct config config;
    struct settings settings;
    struct guard *guard;    /* of a run, or NULL */
    struct live_masks live; /* of a run */
    int lease;              /* in its jail, or -1; see home_mounts */
};

/* Builds all of it. argc counts what belongs to it: the words of a command at argv[scan->command] say
 * which file is read, and with argc = scan->command there is none. With `dry` nothing is made or
 * remembered, as with --dry-run. On failure there is nothing to release. */
int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err);
/* Once the run is over: transfers what it did in git and holds back files. What there is to say is printed and
 * added to the notices. setup_done does so too. */
void setup_finish(struct setup *setup, struct brig_unenforced *notices);
void setup_done(struct setup *setup);
