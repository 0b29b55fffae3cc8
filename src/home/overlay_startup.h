/* SPDX-License-Identifier: MIT */
/* Start-up files in a copy-on-write home. The layer of the masks has an entry for each name of startup_names, so that
 * the user's file never shows through it, whatever the user does meanwhile: a copy without the hidden lines, a copy of
 * a symbolic link, whose target in the home is treated too, or a whiteout if there is no such file, or it cannot be
 * read or is too large.
 *
 * The entries are made anew when a run starts, and when a new file appears. A file that a program of the jail has open
 * stays as it was for it. fuse-overlayfs would not notice a new entry: with it they stay until no run is left. */
#pragma once

#include <brig/brig.h>

struct overlay_masks;

/* Makes or refreshes the entries, for the filters of all sets. Does nothing without filters. */
int overlay_startup_show(struct overlay_masks *masks, struct brig_error *err);
