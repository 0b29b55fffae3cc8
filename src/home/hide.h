/* SPDX-License-Identifier: MIT */
/* What of a home directory is hidden in a jail: rules into whiteouts. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

/* Paths relative to the home directory. */
struct hide_rules {
    const char *const *hidden; /* '*', '?' and '[…]' stand for what there is now */
    size_t hidden_count;
    const char *const *shown; /* not hidden all the same, below something that is */
    size_t shown_count;
    const char *const *own; /* hidden for good, and never shown */
    size_t own_count;
};

/* Hides in the holder's mask layer; home is the directory's fd. */
int hide_apply(int home, const struct hide_rules *rules, struct brig_error *err);
