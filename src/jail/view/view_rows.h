/* SPDX-License-Identifier: MIT */
/* What the view `system` consists of, for who explains it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

/* What of the host the view `system` shows, read-only, at its own path: row `index` of a table, or NULL
 * behind its end. *ret_shown: it is there with this network. *ret_content: a file that is there by its content,
 * wherever a link in its place may lead. */
const char *view_system_row(size_t index, enum brig_network network, bool *ret_shown,
                            bool *ret_content);
