/* SPDX-License-Identifier: MIT */
/* What is said on stderr about how a run ended. */
#pragma once

#include <brig/brig.h>

/* Says nothing about an ordinary end, unless verbose. What brig or a limit ended is said to people
 * only (stderr is a terminal); what failed or was not enforced is said to everybody. */
void report_result(const struct brig_result *result, const struct brig_policy *policy,
                   bool verbose);

/* "1.5s", "200ms", "2m30s" into a buffer of this size. */
#define REPORT_DURATION_MAX 32
void report_duration(uint64_t ms, char text[static REPORT_DURATION_MAX]);
