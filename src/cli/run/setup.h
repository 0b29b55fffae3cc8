/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy: finds the user, reads the files, applies the options
 * and adds protection. Shared by `brig run`, `explain` and `why`. */
#pragma once

#include "base/path.h"
#include "cli/identity.h"
#include "cli/run/masks.h"
#include "cli/run/review.h"
#include "cli/run/run_checkpoint.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "git/guard.h"
#include "jail/job/result.h"

struct str;

/* The parts borrow from one another, so the struct must not be moved. Release with setup_done. */
struct setup {
    char cwd[PATH_LENGTH_MAX + 1];
    int cwd_fd; /* the same directory, or -1 */
    struct identity identity;
    struct config_files files;
    struct config config;
    struct settings settings;
    bool started;                     /* a process of the run was started */
    struct guard *guard;              /* only for a run; else NULL */
    struct live_masks live;           /* only for a run */
    struct run_checkpoint checkpoint; /* only for a run */
    struct review review;             /* the layers that a run writes to */
    int lease;                        /* connection to the jail's holder, or -1; see home_mounts */
};

/* Grants the parts of the desktop session that settings->desktop requests, as the environment names
 * them, and prints what each exposes. Fails if a variable is missing or does not name a socket of
 * the user (desktop.c). */
int desktop_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* Builds everything. The words of the command at argv[scan->command] decide which file is read;
 * with argc = scan->command there is no command. With `dry` nothing is created or recorded, as with
 * --dry-run. On failure there is nothing to release. */
int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err);
/* Called when the run is over: transfers its git commits and holds back files. Messages are printed
 * and added to the notices. setup_done does this too. */
void setup_finish(struct setup *setup, struct brig_unenforced *notices);
void setup_done(struct setup *setup);

/* ---- Descriptions of a run, without starting it (cmd_explain.c) ---- */

/* Prints the plan for a command, using the facts of this kernel or of --facts. */
int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err);

/* The same on one screen, for a command with a profile (summary.c). */
void settings_summarise(const struct settings *settings, struct str *out);

/* Describes the policy with the jail, the scripts and the masks, as text or, with settings->json,
 * as one JSON object. */
int settings_explain(const struct settings *settings, struct str *out, struct brig_error *err);
