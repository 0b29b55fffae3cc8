/* SPDX-License-Identifier: MIT */
/* The modes: presets of a policy, one row each. */
#pragma once

#include <brig/brig.h>

/* What the home directory is. The engine only knows the first; a front that keeps jails on disk
 * makes the others and hands them in as mounts. */
enum policy_home {
    POLICY_HOME_SCRATCH, /* empty, and gone with the run */
    POLICY_HOME_PRIVATE, /* a directory of the jail's */
    POLICY_HOME_OVERLAY, /* the user's own, copied on writing */
};

struct policy_mode {
    enum brig_view view;
    enum brig_network network;
    enum brig_seccomp seccomp;
    enum policy_home home;
    const char *hostname;
    /* Names of the caller's environment that pass, ended by NULL; NULL instead of a list: all. */
    const char *const *env_keep;
    uint64_t limits[BRIG_LIMIT_COUNT_];
};

/* The row, static; NULL for a value that is no mode. */
const struct policy_mode *policy_mode_row(enum brig_mode mode);
