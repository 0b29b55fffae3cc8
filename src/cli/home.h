/* SPDX-License-Identifier: MIT */
/* The home of a run: joins the jail's holder and has its mounts in the policy. */
#pragma once

#include "home/home.h"

struct identity;
struct live_masks;
struct settings;
struct str;

/* Completes the policy with what is hidden and, where its mode keeps a home, with the mounts of the
 * jail; it may give the jail a host id of its own. *ret_mounts is to be kept until the run is over,
 * and *live, which was initialised, knows what is hidden then. */
int home_enter(const struct settings *settings, const struct identity *identity,
               struct home_mounts *ret_mounts, struct live_masks *live, struct brig_error *err);

/* For whoever asks what a run would be: completes the policy as home_enter() does. Nothing is made: the
 * mounts are left out, or, with `plan`, an empty directory stands for each, and what the holder would
 * provide is appended to that. *ret_stand_in is then to be closed after the policy was used. */
int home_foresee(const struct settings *settings, const struct identity *identity, struct str *plan,
                 int *ret_stand_in, struct brig_error *err);

/* After the run. */
void home_leave(const struct settings *settings, struct home_mounts *mounts);
