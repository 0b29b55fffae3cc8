/* SPDX-License-Identifier: MIT */
/* The scanners of risk flags, with any bytes as a text, a package.json, a path and a pattern. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "held/names.h"
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

static void find_sources(const char *text, size_t size)
{
    struct risk_token source;
    for (size_t from = 0; risk_source_find(text, size, from, &source);) {
        size_t at = (size_t)(source.at - text);
        if (at < from || source.length == 0 || at + source.length > size)
            abort();
        (void)risk_source_is_usual(&source);
        from = at + source.length;
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
    if (names_match(text, other, true) && !names_match(text, other, false))
        abort();
    struct names_mark mark;
    if (!names_judge(text, other, 0, S_IFREG | 0644, &mark) &&
        names_judge(text, other, S_IFREG | 0644, 0, &mark))
        abort();
    (void)names_is_unknown(text);
    find_sources(text, size);
    return 0;
}
