/* SPDX-License-Identifier: MIT */
/* Sizes, durations, percentages and numbers as people write them. */
#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "tap.h"

typedef int (*parser)(const char *, unsigned, uint64_t *, struct brig_error *);

struct good {
    const char *text;
    uint64_t value;
};

static void accepts(parser parse, const struct good *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct brig_error err = {0};
        uint64_t value = 0;
        int rc = parse(rows[i].text, PARSE_ZERO_OK, &value, &err);
        tap_ok(rc == 0 && value == rows[i].value, "'%s' is %" PRIu64, rows[i].text, rows[i].value);
        if (rc < 0)
            tap_diag("%s", err.message);
    }
}

static void refuses(parser parse, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct brig_error err = {0};
        uint64_t value = 77;
        tap_is_int(parse(texts[i], PARSE_ZERO_OK, &value, &err), BRIG_E_INVALID, "'%s' is refused",
                   texts[i]);
        tap_ok(value == 77 && (strstr(err.message, texts[i]) || strpbrk(texts[i], "\n")),
               "and named: %s", err.message);
    }
}

static void sizes(void)
{
    static const struct good rows[] = {
        {"0", 0},
        {"1", 1},
        {"1B", 1},
        {"4096", 4096},
        {"64k", 65536},
        {"64K", 65536},
        {"64KiB", 65536},
        {"64kB", 65536},
        {"512M", UINT64_C(512) << 20},
        {"1GiB", UINT64_C(1) << 30},
        {"2TiB", UINT64_C(2) << 40},
        {"1.5G", UINT64_C(3) << 29},
        {"0.000000001T", 1100},
        {"0.25B", 1},
        {"0.999999999B", 1},
        {"9223372036854775807", INT64_MAX},
        {"8388607T", UINT64_C(8388607) << 40},
        {"000001", 1},
    };
    static const char *const bad[] = {
        "-1",
        "+1",
        " 1",
        "1 ",
        "1x",
        "M",
        "1MM",
        "1KIB",
        "1.",
        ".5G",
        "1,5G",
        "0x10",
        "1e3",
        "1.5.5M",
        "0.0000000001T",
        "inf",
        "nan",
        "1\n",
        "9223372036854775808",
        "8388608T",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
    };
    accepts(parse_size, rows, ARRAY_LENGTH(rows));
    refuses(parse_size, bad, ARRAY_LENGTH(bad));
}

static void durations(void)
{
    static const struct good rows[] = {
        {"0", 0},
        {"30", 30000},
        {"30s", 30000},
        {"250ms", 250},
        {"5m", 300000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"1.5s", 1500},
        {"0.5", 500},
        {"0.0001s", 1},
        {"1.0005ms", 2},
        {"3650d", PARSE_DURATION_MS_MAX},
        {"315360000000ms", PARSE_DURATION_MS_MAX},
    };
    static const char *const bad[] = {
        "-5",
        "5x",
        "s",
        "1min",
        "1.s",
        "5 s",
        "3651d",
        "315360000001ms",
        "3650.0000001d",
        "99999999999999999999s",
    };
    accepts(parse_duration, rows, ARRAY_LENGTH(rows));
    refuses(parse_duration, bad, ARRAY_LENGTH(bad));
}

static void zero_and_nothing(void)
{
    struct brig_error err = {0};
    uint64_t value = 77;
    tap_is_int(parse_size("0", 0, &value, &err), BRIG_E_INVALID, "a size of zero is refused");
    tap_has_str(err.message, "'0' is zero", "and named");
    tap_is_int(parse_duration("0.0s", 0, &value, &err), BRIG_E_INVALID,
               "a duration of zero is refused");
    tap_is_int(parse_size("", PARSE_ZERO_OK, &value, &err), BRIG_E_INVALID, "nothing is refused");
    tap_has_str(err.message, "such as 512M", "saying what is allowed");
    tap_is_int(parse_duration(NULL, 0, &value, &err), BRIG_E_INVALID, "NULL is refused");
    tap_is_int(parse_uint("", 5, 0, &value, &err), BRIG_E_INVALID, "an empty number is refused");
    tap_is_int(parse_uint("0", 5, 0, &value, &err), BRIG_E_INVALID, "the number zero is refused");
    tap_is_int(value, 77, "a refusal leaves the value alone");
    tap_is_int(parse_size("x", 0, &value, NULL), BRIG_E_INVALID, "no detail need be wanted");
}

static void numbers(void)
{
    struct brig_error err = {0};
    uint64_t value = 77;
    tap_is_int(parse_uint("5", 5, 0, &value, &err), 0, "a number at its maximum is taken");
    tap_is_int(value, 5, "as it is");
    tap_is_int(parse_uint("6", 5, 0, &value, &err), BRIG_E_INVALID, "one past it is refused");
    tap_has_str(err.message, "from 1 to 5", "saying the range");
    tap_is_int(parse_uint("0", 5, PARSE_ZERO_OK, &value, &err), 0, "zero where it is allowed");
    tap_ok(parse_uint("18446744073709551615", UINT64_MAX, 0, &value, &err) == 0 &&
               value == UINT64_MAX,
           "the largest number is taken");
    tap_is_int(parse_uint("18446744073709551616", UINT64_MAX, 0, &value, &err), BRIG_E_INVALID,
               "one past the largest is refused");
    tap_is_int(parse_uint("5%", 5, 0, &value, &err), BRIG_E_INVALID, "a number has no sign");
    tap_is_int(parse_uint("-5", 5, 0, &value, &err), BRIG_E_INVALID, "nor a minus");
    tap_ok(parse_percent("50%", 100, 0, &value, &err) == 0 && value == 50, "50%% is 50");
    tap_ok(parse_percent("50", 100, 0, &value, &err) == 0 && value == 50, "so is 50");
    tap_is_int(parse_percent("100%", 100, 0, &value, &err), 0, "100%% is taken");
    tap_is_int(parse_percent("101%", 100, 0, &value, &err), BRIG_E_INVALID, "101%% is refused");
    tap_is_int(parse_percent("50%%", 100, 0, &value, &err), BRIG_E_INVALID, "two signs are");
    tap_is_int(parse_percent("%", 100, 0, &value, &err), BRIG_E_INVALID, "a lone sign is");
}

int main(void)
{
    sizes();
    durations();
    zero_and_nothing();
    numbers();
    return tap_done();
}
