/* SPDX-License-Identifier: MIT */
/* Forking a jail: a second jail on the same state.
 *
 * The changes of a reviewed directory are not copied. The upper directory is frozen, that is moved to
 * STORAGE/.frozen/NUMBER, and both jails get an empty one above it. A command that must rewrite an upper directory
 * first copies what lies below into it. The changes of a home are copied, because overlayfs refuses a layer that is
 * inside another one, and the storage directory usually is in the home; on a filesystem with reflinks that costs
 * little. So are a private home and private git directories. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct layer;
struct layers;

/* Makes the jail `to`, which must not exist, from the jail `from`, after its layers were opened and locked. */
int fork_jail(const char *storage, const struct layers *layers, const char *from, const char *to,
              struct brig_error *err);

/* Copies what lies below the upper directory of a layer into it, if there is anything. With the lock of the record, and
 * unmounted. */
int fork_flatten(struct layer *layer, struct brig_error *err);

/* Removes frozen directories that no jail uses any more, or with `dry` only counts them. Returns their number or a
 * code. */
int fork_collect(const char *storage, bool dry, struct brig_error *err);
