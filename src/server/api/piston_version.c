/* SPDX-License-Identifier: MIT */
/* Versions and ranges of them, as clients of Piston send them, and the names of signals. */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/piston_request.h"

#define PARTS 3
#define PART_MAX 1000000000UL
#define TERMS_MAX 64 /* of a range */

/* "3.11.x": the numbers in front of the first part that can be anything. */
struct partial {
    unsigned long parts[PARTS];
    int known;
};

/* ---- versions ---- */

/* Reads a version, of which parts may be missing. Returns what follows it, or NULL. */
static const char *read_partial(const char *text, struct partial *ret)
{
    bool open = true; /* no "x" yet */
    *ret = (struct partial){0};
    if (*text == 'v' || *text == '=')
        text++;
    for (int i = 0; i < PARTS; i++) {
        if (*text && strchr("xX*", *text)) {
            text++;
            open = false;
        } else if (isdigit((unsigned char)*text)) {
            char *end;
            unsigned long value = strtoul(text, &end, 10);
            if (value > PART_MAX)
                return NULL;
            if (open)
                ret->parts[ret->known++] = value;
            text = end;
        } else {
            return NULL;
        }
        if (*text != '.' || i == PARTS - 1)
            break;
        text++;
    }
    if (*text == '-' || *text == '+') /* "-rc.1", "+build": not compared */
        text += 1 + strspn(text + 1, "0123456789abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-+");
    return text;
}

void piston_version(const char *text, char ret_version[PISTON_VERSION_MAX])
{
    struct partial version;
    if (!read_partial(text, &version))
        version = (struct partial){0};
    (void)snprintf(ret_version, PISTON_VERSION_MAX, "%lu.%lu.%lu", version.parts[0],
                   version.parts[1], version.parts[2]);
}

/* Compares the first parts only. */
static int compare(const struct partial *a, const struct partial *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a->parts[i] != b->parts[i])
            return a->parts[i] < b->parts[i] ? -1 : 1;
    return 0;
}

/* ---- ranges ---- */

/* How many leading parts "^" keeps: up to the first that is not 0. */
static int caret_parts(const struct partial *of)
{
    for (int i = 0; i < of->known; i++)
        if (of->parts[i] != 0)
            return i + 1;
    return of->known;
}

static bool term_has(const char *relation, const struct partial *of, const struct partial *version)
{
    int whole = compare(version, of, PARTS), first = compare(version, of, of->known);
    if (strcmp(relation, ">=") == 0)
        return whole >= 0;
    if (strcmp(relation, "<=") == 0)
        return first <= 0;
    if (strcmp(relation, ">") == 0)
        return first > 0;
    if (strcmp(relation, "<") == 0)
        return whole < 0;
    if (strcmp(relation, "^") == 0)
        return whole >= 0 && compare(version, of, caret_parts(of)) == 0;
    if (strcmp(relation, "~") == 0)
        return whole >= 0 && compare(version, of, of->known < 2 ? of->known : 2) == 0;
    return first == 0;
}

static const char *read_relation(const char *text, const char **ret_relation)
{
    static const char *const relations[] = {">=", "<=", ">", "<", "^", "~", "="};
    *ret_relation = "";
    for (size_t i = 0; i < ARRAY_LENGTH(relations); i++)
        if (str_starts_with(text, relations[i])) {
            *ret_relation = relations[i];
            text += strlen(relations[i]);
            break;
        }
    return text + strspn(text, " ");
}

/* Reads the terms up to "||" or the end, which all have to hold. Returns what follows, or NULL. */
static const char *read_terms(const char *text, const struct partial *version, bool *ret_has)
{
    *ret_has = true;
    for (int i = 0; i < TERMS_MAX; i++) {
        const char *relation;
        struct partial of, to;
        text += strspn(text, " ");
        if (!*text || str_starts_with(text, "||"))
            return text;
        text = read_partial(read_relation(text, &relation), &of);
        if (!text || (*text && !strchr(" |", *text)))
            return NULL;
        if (!*relation && str_starts_with(text, " - ")) { /* from, to */
            text = read_partial(text + strlen(" - "), &to);
            if (!text || (*text && !strchr(" |", *text)))
                return NULL;
            *ret_has = *ret_has && term_has("<=", &to, version);
            relation = ">=";
        }
        *ret_has = *ret_has && term_has(relation, &of, version);
    }
    return NULL;
}

int piston_range_has(const char *range, const char *version)
{
    struct partial known;
    bool found = false;
    if (!read_partial(version, &known))
        known = (struct partial){0};
    for (int i = 0; i < TERMS_MAX; i++) {
        bool has = false;
        range = read_terms(range, &known, &has);
        if (!range)
            return -1;
        found = found || has;
        if (!*range)
            return found;
        range += strlen("||");
    }
    return -1;
}

/* ---- signals ---- */

int piston_signal_number(const char *name)
{
    char known[PISTON_SIGNAL_NAME_MAX];
    for (int i = 1; i <= 31; i++)
        if (strcmp(name, piston_signal_name(i, known)) == 0)
            return i;
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++) {
        (void)snprintf(known, sizeof known, "SIGRTMIN+%d", i - SIGRTMIN);
        bool found = strcmp(name, known) == 0 || (i == SIGRTMIN && strcmp(name, "SIGRTMIN") == 0);
        (void)snprintf(known, sizeof known, "SIGRTMAX-%d", SIGRTMAX - i);
        if (found || strcmp(name, known) == 0 || (i == SIGRTMAX && strcmp(name, "SIGRTMAX") == 0))
            return i;
    }
    return 0;
}

const char *piston_signal_name(int number, char ret_name[PISTON_SIGNAL_NAME_MAX])
{
    const char *name = number >= 1 && number <= 31 ? sigabbrev_np(number) : NULL;
    if (name)
        (void)snprintf(ret_name, PISTON_SIGNAL_NAME_MAX, "SIG%s", name);
    else if (number >= SIGRTMIN && number <= SIGRTMAX)
        (void)snprintf(ret_name, PISTON_SIGNAL_NAME_MAX, "SIGRTMIN+%d", number - SIGRTMIN);
    else
        (void)snprintf(ret_name, PISTON_SIGNAL_NAME_MAX, "SIG%d", number);
    return ret_name;
}
