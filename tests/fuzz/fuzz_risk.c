/* SPDX-License-Identifier: MIT */
/* The scanners of risk flags, with any bytes as a text, a package.json, a path and a pattern. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "held/risk_rows.h"
#include "held/risk_text.h"

/* Tokens lie in the text, in order, and do not overlap. */
static void find_tokens(const char *text, size_t size)
{
    struct risk_token token;
    size_t from = 0;
    while (risk_token_find(text, size, from, &token)) {
        size_t at = (size_t)(token.at - text);
        if (token.at < text || at < from || token.length == 0 || at + token.length > size)
            abort();
        from = at + token.length;
    }
}

/* White space around a package.json does not change the result. */
static void scan_package(const char *text, size_t size)
{
    char hash[SHA256_HEX_LENGTH + 1], again[SHA256_HEX_LENGTH + 1];
    enum risk_package_part part = size % 2 ? RISK_PACKAGE_SCRIPTS : RISK_PACKAGE_DEPENDENCIES;
    enum risk_package is = risk_package_scan(text, size, part, hash);
    autofree char *spaced = malloc(size + 2);
    if (!spaced || is == RISK_PACKAGE_UNSURE)
        return;
    spaced[0] = spaced[size + 1] = '\n';
    memcpy(spaced + 1, text, size);
    if (risk_package_scan(spaced, size + 2, part, again) != is || strcmp(hash, again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = calloc(1, size + 2);
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    find_tokens(text, size);
    scan_package(text, size);
    const char *other = text + strlen(text) + 1;
    (void)risk_pattern_matches(text, other);
    const char *reason = risk_row_find(text, other, false);
    if (!reason && risk_row_find(text, other, true))
        abort();
    return 0;
}
