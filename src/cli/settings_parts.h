/* SPDX-License-Identifier: MIT */
/* What the setters of options share: one table (settings.c), setters in several files. */
#pragma once

#include <brig/brig.h>

#include "cli/options.h"

struct settings;
struct settings_programs;

struct setter {
    int (*set)(struct settings *settings, const struct setter *setter, const char *value,
               struct brig_error *err);
    int what;       /* an access, a limit, a flag */
    unsigned flags; /* of a grant, or of a number */
};

/* What each option does, by its id. In settings.c. */
extern const struct setter settings_setters[OPTION_COUNT_];

/* settings_files.c: grants and masks. */
int settings_set_grant(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err);
int settings_set_ungrant(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);
int settings_set_mask(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err);
int settings_set_unmask(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err);
void settings_masks_done(struct settings *settings);
int settings_set_unprotect(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err);
void settings_unprotect_done(struct settings *settings);
int settings_set_root(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err);
int settings_set_workdir(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);

/* settings_net.c: the network. */
int settings_set_net(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err);
int settings_set_allow(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err);
int settings_set_deny(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err);
int settings_set_publish(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);
int settings_set_inject(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err);
int settings_set_proxy_env(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err);
int settings_set_net_log(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);
void settings_net_done(struct settings *settings);

/* settings_programs.c: scripts, programs for new jails, the line of shell. */
enum { SETTINGS_SCRIPT, SETTINGS_INITJAIL };
int settings_set_program(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);
int settings_set_command(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err);
void settings_programs_done(struct settings_programs *programs);
