/* SPDX-License-Identifier: MIT */
/* A root made of layers, such as those of a container image. For our own programs: not in the API. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#define ROOT_LAYERS_MAX 127 /* of one root */

/* One more view: an overlay of directories. */
#define VIEW_LAYERS ((enum brig_view)(BRIG_VIEW_EMPTY + 1))

/* The root is an overlay of directories of the host (absolute paths, the top one first, at most
 * ROOT_LAYERS_MAX). They are only read: what the jail writes is in memory, counted with its /tmp
 * (BRIG_LIMIT_TMP_BYTES), and gone with the jail. A character device 0/0 in a layer, and the attribute
 * user.overlay.opaque, hide names of the layers below. Needs namespaces, and a kernel whose overlayfs
 * can be mounted in them. */
int policy_layers(struct brig_policy *policy, const char *const *layers, size_t count,
                  struct brig_error *err);
