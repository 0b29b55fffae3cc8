/* SPDX-License-Identifier: MIT */
/* Patterns against texts, both from any bytes: "pattern NUL text". Held against a second matcher
 * that fills the table of all pairs of prefixes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"

#define LENGTH_MAX 64

/* One token of a pattern: a character, or any characters. */
struct token {
    char c;
    bool star;
};

static bool matches_by_table(const char *pattern, const char *text)
{
    struct token tokens[LENGTH_MAX];
    size_t count = 0;
    for (const char *p = pattern; *p; p++) {
        if (*p == '*')
            tokens[count++] = (struct token){.star = true};
        else if (*p == '\\' && p[1])
            tokens[count++] = (struct token){.c = *++p};
        else
            tokens[count++] = (struct token){.c = *p};
    }
    size_t length = strlen(text);
    bool match[LENGTH_MAX + 1][LENGTH_MAX + 1] = {{false}};
    match[0][0] = true;
    for (size_t i = 1; i <= count; i++) {
        for (size_t j = 0; j <= length; j++) {
            if (tokens[i - 1].star)
                match[i][j] = match[i - 1][j] || (j > 0 && match[i][j - 1]);
            else
                match[i][j] = j > 0 && match[i - 1][j - 1] && tokens[i - 1].c == text[j - 1];
        }
    }
    return match[count][length];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *pattern = calloc(1, size + 2);
    if (!pattern)
        return 0;
    if (size > 0)
        memcpy(pattern, data, size);
    const char *text = pattern + strlen(pattern) + 1;
    bool matched = policy_pattern_matches(pattern, text);
    size_t half = strlen(text) / 2; /* a name need not end in a NUL */
    bool filtered = policy_filter_matches(pattern, text, half, text + half);
    if (filtered && strstr(pattern, "://") && !strstr(text + half, "://"))
        abort();
    if (strlen(pattern) <= LENGTH_MAX && strlen(text) <= LENGTH_MAX &&
        matched != matches_by_table(pattern, text))
        abort();
    return 0;
}
