/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and durations as people write them. Pure: no locale, no allocation, no state. On a
 * bad value they fail with BRIG_E_INVALID, the value and what is allowed; *ret is then
 * untouched. */
#pragma once

#include <stdint.h>

struct brig_error;

enum parse_flag {
    PARSE_ZERO_OK = 1 << 0, /* accept zero, which usually means no limit */
};

#define PARSE_SIZE_MAX ((uint64_t)INT64_MAX)
#define PARSE_DURATION_MS_MAX ((uint64_t)3650 * 24 * 60 * 60 * 1000) /* ten years */

/* Digits only, at most max. */
int parse_uint(const char *text, uint64_t max, unsigned flags, uint64_t *ret_value,
               struct brig_error *err);

/* "4096", "64k", "512M", "1GiB", "1.5G": units are powers of 1024 (k K M G T, optionally followed
 * by B or iB; B for bytes). At most nine decimals; fractions of a byte are rounded up. */
int parse_size(const char *text, unsigned flags, uint64_t *ret_bytes, struct brig_error *err);

/* "30" (seconds), "250ms", "1.5s", "5m", "2h", "1d". Fractions of a millisecond are rounded up, so
 * that a small limit never becomes 0, which means no limit. */
int parse_duration(const char *text, unsigned flags, uint64_t *ret_ms, struct brig_error *err);

/* "50" or "50%", at most max (more than 100 for shares of one processor). */
int parse_percent(const char *text, uint64_t max, unsigned flags, uint64_t *ret_percent,
                  struct brig_error *err);
