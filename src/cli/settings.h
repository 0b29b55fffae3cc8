/* SPDX-License-Identifier: MIT */
/* What the options of `brig run` amount to: a policy, and how to run it. Pure: the working
 * directory is given, and nothing of the system is asked. */
#pragma once

#include <brig/brig.h>

struct option_use;

/* The grace of `brig` where nothing else is said. */
#define SETTINGS_GRACE_MS 5000

struct settings {
    struct brig_policy *policy; /* owned */
    const char *cwd;            /* borrowed: absolute, as getcwd() gives it */
    bool nocwd;
    bool cwd_settled;   /* a rule for exactly the working directory was given or taken back */
    bool workdir_given; /* by --workdir */
    bool dry_run;
    bool json;
    bool verbose;
    const char *result; /* borrowed from argv, or NULL */
    struct brig_pass_fd pass_fds[BRIG_PASS_FD_MAX];
    size_t pass_fd_count;
};

/* What has to be known before the rest is read, whatever its place on the command line. */
struct settings_scan {
    enum brig_mode mode;
    bool help;
    bool version;
    bool nocwd;
    int command; /* the index of the command's first word in argv, or argc */
};

/* Reads argv[1…] as far as the command. Every option is checked for its form, and --mode for its
 * value. Returns at once on --help and --version. */
int settings_scan(int argc, char *const *argv, struct settings_scan *ret_scan,
                  struct brig_error *err);

/* A policy of the mode with brig's own defaults. Release with settings_done. */
int settings_init(struct settings *settings, enum brig_mode mode, const char *cwd,
                  struct brig_error *err);
void settings_done(struct settings *settings);

/* Applies one option; an error names the option, the value and what is allowed. */
int settings_apply(struct settings *settings, const struct option_use *use, struct brig_error *err);

/* Applies all options of argv[1…] in order, then checks what only makes sense together. */
int settings_apply_all(struct settings *settings, int argc, char *const *argv,
                       struct brig_error *err);

/* Splits "PATH[:DEST]", in which "\:" and "\\" stand for a colon and a backslash, and makes both
 * absolute. *ret_dest is NULL if there is none. The caller frees both. With `single` there can be
 * no DEST, and a colon is part of the name. */
int settings_split_path(const char *cwd, const char *value, bool single, char **ret_path,
                        char **ret_dest, struct brig_error *err);
