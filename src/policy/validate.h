/* SPDX-License-Identifier: MIT */
/* Checks shared by the builders and by the check of the whole policy. */
#pragma once

#include <brig/brig.h>

/* Whether a grant of this kind may stand at dest (normalised), with this source. BRIG_E_INVALID
 * names the path and the reason. */
int policy_check_grant(enum brig_access access, const char *source, const char *dest,
                       struct brig_error *err);
