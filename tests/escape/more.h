/* SPDX-License-Identifier: MIT */
/* The second half of the escape probe's tables: see more_rows.py. */
#pragma once

#include "attempt.h"

extern const struct attempt attempts_network[], attempts_calls[], attempts_shared[],
    attempts_endings[];
