/* SPDX-License-Identifier: MIT */
/* Sizes, durations, numbers and percentages from any bytes; what is taken keeps to its limits. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    struct brig_error err;
    uint64_t value = 0;
    if (parse_size(text, 0, &value, &err) == 0)
        expect(value > 0 && value <= PARSE_SIZE_MAX);
    if (parse_duration(text, 0, &value, &err) == 0)
        expect(value > 0 && value <= PARSE_DURATION_MS_MAX);
    if (parse_percent(text, 100, PARSE_ZERO_OK, &value, &err) == 0)
        expect(value <= 100);
    if (parse_uint(text, UINT64_MAX, PARSE_ZERO_OK, &value, &err) == 0)
        expect(strspn(text, "0123456789") == strlen(text));

    autofree char *path = NULL;
    autofree char *again = NULL;
    if (path_normalise(text, 0, &path, &err) == 0) {
        expect(strlen(path) <= PATH_LENGTH_MAX && path_is_beneath("/", path));
        expect(path_normalise(path, 0, &again, &err) == 0 && strcmp(path, again) == 0);
    }
    autofree char *absolute = NULL;
    if (path_make_absolute("/home/user", text, &absolute, &err) == 0)
        expect(absolute[0] == '/');
    return 0;
}
