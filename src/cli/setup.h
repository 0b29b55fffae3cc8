/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy: for whom, which files, what they and the options say, and
 * what is protected. What `brig run`, `explain` and `why` have in common. */
#pragma once

#include "base/path.h"
#include "cli/config.h"
#include "cli/identity.h"
#include "cli/masks.h"
#include "cli/settings.h"
#include "guard/guard.h"

struct str;

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

/* Grants what settings->desktop asks for, as the environment names it, and says on stderr what each
 * opens. A variable that is missing or names no socket of the user's is an error (desktop.c). */
int desktop_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* Builds all of it. argc counts what belongs to it: the words of a command at argv[scan->command] say
 * which file is read, and with argc = scan->command there is none. With `dry` nothing is made or
 * remembered, as with --dry-run. On failure there is nothing to release. */
int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err);
/* Once the run is over: transfers what it did in git and holds back files. What there is to say is printed and
 * added to the notices. setup_done does so too. */
void setup_finish(struct setup *setup, struct brig_unenforced *notices);
void setup_done(struct setup *setup);

/* ---- What a run would be, without starting anything (cmd_explain.c) ---- */

/* Prints the plan for a command, from this kernel's facts or those of --facts. */
int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err);

/* The policy with the jail, the scripts and the masks, as text for people or, with
 * settings->json, as one JSON object. */
int settings_explain(const struct settings *settings, struct str *out, struct brig_error *err);
