/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and durations as people write them. Pure: no locale, no allocation, no state. A
 * refusal is BRIG_E_INVALID, names the value and says what is allowed; *ret is then untouched. */
#pragma once

#include <stdint.h>

struct brig_error;

enum parse_flag {
    PARSE_ZERO_OK = 1 << 0, /* zero is a value (usually: no limit); refused without it */
};

#define PARSE_SIZE_MAX ((uint64_t)INT64_MAX)
#define PARSE_DURATION_MS_MAX ((uint64_t)3650 * 24 * 60 * 60 * 1000) /* ten years */

/* Digits only, at most max. */
int parse_uint(const char *text, uint64_t max, unsigned flags, uint64_t *ret_value,
               struct brig_error *err);

/* "4096", "64k", "512M", "1GiB", "1.5G": units in powers of 1024 (k K M G T, each also with B or
 * iB behind it, and B for bytes). At most nine decimals; a part of a byte is rounded up. */
int parse_size(const char *text, unsigned flags, uint64_t *ret_bytes, struct brig_error *err);

/* "30" (seconds), "250ms", "1.5s", "5m", "2h", "1d". A part of a millisecond is rounded up, so that
 * a small limit never becomes none. */
int parse_duration(const char *text, unsigned flags, uint64_t *ret_ms, struct brig_error *err);

/* "50" or "50%", at most max (more than 100 where it is a share of one processor). */
int parse_percent(const char *text, uint64_t max, unsigned flags, uint64_t *ret_percent,
                  struct brig_error *err);
