/* SPDX-License-Identifier: MIT */
/* The second half of the escape probe's tables: see rows_b.py. */
#pragma once

#include "attempt.h"

extern const struct attempt attempts_b_net[], attempts_b_kernel[], attempts_b_ipc[],
    attempts_b_limits[];
