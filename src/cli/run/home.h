/* SPDX-License-Identifier: MIT */
/* The home of a run: joins the jail's holder and adds its mounts to the policy. */
#pragma once

#include "home/home.h"

struct identity;
struct live_masks;
struct review;
struct settings;
struct str;

/* Completes the policy with the masks and, if the mode keeps a home, with the mounts of the jail.
 * May give the jail an isolated host uid. Adds the layers that the run writes to, and the
 * mounts of reviewed directories, to *review. Keep *ret_mounts until the run is over. *live, which the
 * caller has initialised, takes over the masks for the duration of the run. */
int home_enter(const struct settings *settings, const struct identity *identity,
               struct review *review, struct home_mounts *ret_mounts, struct live_masks *live,
               struct brig_error *err);

/* Completes the policy as home_enter() does, to describe a run without starting it. Nothing is
 * created: the mounts are left out or, with `plan`, replaced by an empty directory each, and a
 * description of what the holder would provide is appended to `plan`. Close *ret_stand_in after the
 * policy was used. */
int home_foresee(const struct settings *settings, const struct identity *identity,
                 struct review *review, struct str *plan, int *ret_stand_in,
                 struct brig_error *err);

/* Releases the mounts after the run. */
void home_leave(const struct settings *settings, struct home_mounts *mounts);
