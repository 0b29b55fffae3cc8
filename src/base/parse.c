/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and durations as people write them. */
#include "base/parse.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

#define SIZE_FORM "a size is a number with a unit of B, k, M, G or T (powers of 1024), such as 512M"
#define DURATION_FORM                                                                              \
    "a duration is a number with a unit of ms, s, m, h or d, such as 30s; seconds without one"
#define FRACTION_DIGITS 9
#define BILLION UINT64_C(1000000000)

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"k", UINT64_C(1) << 10},
    {"K", UINT64_C(1) << 10},
    {"kB", UINT64_C(1) << 10},
    {"KB", UINT64_C(1) << 10},
    {"kiB", UINT64_C(1) << 10},
    {"KiB", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"MB", UINT64_C(1) << 20},
    {"MiB", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"GB", UINT64_C(1) << 30},
    {"GiB", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {"TB", UINT64_C(1) << 40},
    {"TiB", UINT64_C(1) << 40},
};

static const struct unit duration_units[] = {
    {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 60 * 60000}, {"d", 24 * 60 * 60000},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number at the start of a text, in a whole part and billionths. */
struct decimal {
    uint64_t whole;
    uint64_t billionths;
    bool overflow;
    const char *end; /* what follows it; NULL if there is no number */
};

static struct decimal scan_decimal(const char *text)
{
    struct decimal d = {0};
    const char *p = text;
    if (!is_digit(*p))
        return d;
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(d.whole, 10U, &d.whole) ||
            __builtin_add_overflow(d.whole, (uint64_t)(*p - '0'), &d.whole))
            d.overflow = true;
    }
    if (*p == '.') {
        p++;
        if (!is_digit(*p))
            return d;
        uint64_t place = BILLION / 10;
        for (int i = 0; is_digit(*p); p++, i++) {
            if (i == FRACTION_DIGITS)
                return d;
            d.billionths += (uint64_t)(*p - '0') * place;
            place /= 10;
        }
    }
    d.end = p;
    return d;
}

/* (whole + fraction) * factor, rounded up; false if it does not fit. */
static bool scale(const struct decimal *d, uint64_t factor, uint64_t *ret_value)
{
    /* The fraction times the largest factor (2^40) needs 70 bits. */
    unsigned __int128 part = (unsigned __int128)d->billionths * factor;
    uint64_t rounded = (uint64_t)((part + BILLION - 1) / BILLION);
    uint64_t value;
    if (d->overflow || __builtin_mul_overflow(d->whole, factor, &value) ||
        __builtin_add_overflow(value, rounded, &value))
        return false;
    *ret_value = value;
    return true;
}

struct form {
    const char *noun;
    const char *allowed;
    const struct unit *units;
    size_t unit_count;
    uint64_t max;
    const char *max_text;
};

static const struct form size_form = {
    "size", SIZE_FORM, size_units, ARRAY_LENGTH(size_units), PARSE_SIZE_MAX, "8 EiB - 1",
};

static const struct form duration_form = {
    "duration",  DURATION_FORM, duration_units, ARRAY_LENGTH(duration_units), PARSE_DURATION_MS_MAX,
    "ten years",
};

static int parse_with_unit(const struct form *form, const char *text, unsigned flags,
                           uint64_t *ret_value, struct brig_error *err)
{
    if (!text || !*text)
        return brig_fail(err, BRIG_E_INVALID, 0, "empty %s: %s", form->noun, form->allowed);
    struct decimal d = scan_decimal(text);
    const struct unit *unit = NULL;
    for (size_t i = 0; d.end && i < form->unit_count; i++)
        if (strcmp(d.end, form->units[i].name) == 0)
            unit = &form->units[i];
    if (!unit)
        return brig_fail(err, BRIG_E_INVALID, 0, "bad %s '%s': %s", form->noun,
                         str_shown(text).text, form->allowed);
    uint64_t value;
    if (!scale(&d, unit->factor, &value) || value > form->max)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s '%s' is too large: at most %s", form->noun,
                         str_shown(text).text, form->max_text);
    if (value == 0 && !(flags & PARSE_ZERO_OK))
        return brig_fail(err, BRIG_E_INVALID, 0, "%s '%s' is zero: more than zero is needed",
                         form->noun, str_shown(text).text);
    *ret_value = value;
    return 0;
}

int parse_size(const char *text, unsigned flags, uint64_t *ret_bytes, struct brig_error *err)
{
    return parse_with_unit(&size_form, text, flags, ret_bytes, err);
}

int parse_duration(const char *text, unsigned flags, uint64_t *ret_ms, struct brig_error *err)
{
    return parse_with_unit(&duration_form, text, flags, ret_ms, err);
}

/* A whole number followed by `suffix` or nothing. */
static int parse_whole(const char *noun, const char *suffix, const char *text, uint64_t max,
                       unsigned flags, uint64_t *ret_value, struct brig_error *err)
{
    uint64_t min = flags & PARSE_ZERO_OK ? 0 : 1;
    uint64_t value = 0;
    bool fits = true;
    const char *p = text ? text : "";
    const char *start = p;
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            fits = false;
    }
    if (p == start || (*p && strcmp(p, suffix) != 0) || !fits || value > max || value < min)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad %s '%s': a whole number from %" PRIu64 " to %" PRIu64 " is needed",
                         noun, str_shown(start).text, min, max);
    *ret_value = value;
    return 0;
}

int parse_uint(const char *text, uint64_t max, unsigned flags, uint64_t *ret_value,
               struct brig_error *err)
{
    return parse_whole("number", "", text, max, flags, ret_value, err);
}

int parse_percent(const char *text, uint64_t max, unsigned flags, uint64_t *ret_percent,
                  struct brig_error *err)
{
    return parse_whole("percentage", "%", text, max, flags, ret_percent, err);
}
