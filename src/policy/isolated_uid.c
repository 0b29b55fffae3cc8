/* SPDX-License-Identifier: MIT */
/* Whose ids root gives to jails that are to have one of their own. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"

#define RANGES_FILE "/etc/subuid"
#define RANGES_OWNER "brig:"

/* Below are people and services, and what is no id. */
#define FIRST_MIN 65536U

static bool parse_number(const char **text, char end, uint32_t *ret_number)
{
    char *rest;
    if (**text < '0' || **text > '9')
        return false;
    unsigned long long number = strtoull(*text, &rest, 10);
    if (*rest != end || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    *text = rest + 1;
    return true;
}

/* Reads a line `brig:FIRST:COUNT`; a line that cannot be used is skipped. */
static bool parse_range(const char *line, struct policy_range *ret_range)
{
    const size_t length = strlen(RANGES_OWNER);
    const char *rest = line + length;
    struct policy_range range;
    if (strncmp(line, RANGES_OWNER, length) != 0 || !parse_number(&rest, ':', &range.first) ||
        !parse_number(&rest, '\n', &range.count) || range.first < FIRST_MIN || range.count == 0 ||
        range.count > UINT32_MAX - 1 - range.first)
        return false;
    *ret_range = range;
    return true;
}

struct policy_range policy_find_range(FILE *file)
{
    struct policy_range range = {.first = POLICY_STRANGER_UID, .count = POLICY_STRANGER_COUNT};
    char line[LINE_MAX];
    while (file && fgets(line, sizeof line, file))
        if (parse_range(line, &range))
            break;
    return range;
}

uid_t policy_isolated_uid(uid_t user)
{
    autofile FILE *file = fopen(RANGES_FILE, "re");
    struct policy_range range = policy_find_range(file);
    return range.first + user % range.count;
}
