/* SPDX-License-Identifier: MIT */
/* The facts about a host that a printed plan depends on: asked of the kernel, or read from a text. */
#include "jail/plan/facts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "jail/cgroup/cgroup.h"
#include "jail/cgroup/limits.h"
#include "jail/confine/identity.h"
#include "jail/confine/landlock.h"

#define WORD_MAX 64

/* ---- asked ---- */

void facts_ask(struct facts *ret_facts)
{
    struct facts facts = {.landlock = landlock_abi(),
                          .namespaces = true,
                          .root = identity_is_root(),
                          .cgroup_at_hand = cgroup_is_ours()};
    int count = getgroups(FACTS_GROUPS_MAX, facts.groups);
    facts.group_count = count > 0 ? (size_t)count : 0;
    struct cgroup_support support;
    cgroup_probe(false, &support);
    facts.cgroup = support.kind == CGROUP_NONE ? 0 : support.resources;
    (void)getrlimit(RLIMIT_NOFILE, &facts.files);
    *ret_facts = facts;
}

bool facts_has_proc(const struct facts *facts, const char *name)
{
    char word[WORD_MAX];
    (void)snprintf(word, sizeof word, " %s ", name);
    return strstr(facts->proc, word) != NULL;
}

/* ---- recorded ---- */

/* The next word of a line: 1, or 0 at its end. */
static int next_word(const char **line, char word[static WORD_MAX], struct brig_error *err)
{
    const char *from = *line + strspn(*line, " \t");
    size_t length = strcspn(from, " \t\n");
    *line = from + length;
    if (length == 0 || *from == '#') {
        *line = from + strcspn(from, "\n");
        return 0;
    }
    if (length >= WORD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a word is longer than %d characters",
                         WORD_MAX - 1);
    memcpy(word, from, length);
    word[length] = '\0';
    return 1;
}

static int bad_word(const char *word, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "unknown word '%s'", str_shown(word).text);
}

static int add_number(const char *word, uint64_t max, uint64_t *ret_number, struct brig_error *err)
{
    return parse_uint(word, max, PARSE_ZERO_OK, ret_number, err);
}

static int set_yes_no(const char *word, bool *ret_yes, struct brig_error *err)
{
    if (strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not yes or no", str_shown(word).text);
    *ret_yes = *word == 'y';
    return 0;
}

static int add_resource(const char *word, unsigned *resources, struct brig_error *err)
{
    static const char *const names[] = {"memory", "cpu", "pids", "io", "time"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(word, names[i]) == 0) {
            *resources |= 1U << i; /* enum cgroup_resource, in its order */
            return 0;
        }
    return strcmp(word, "none") == 0 ? 0 : bad_word(word, err);
}

static int add_group(const char *word, struct facts *facts, struct brig_error *err)
{
    uint64_t number = 0;
    int status = strcmp(word, "none") == 0 ? 1 : add_number(word, UINT32_MAX - 1, &number, err);
    if (status != 0)
        return status < 0 ? status : 0;
    if (facts->group_count == FACTS_GROUPS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d groups", FACTS_GROUPS_MAX);
    facts->groups[facts->group_count++] = (gid_t)number;
    return 0;
}

static int add_proc(const char *word, struct facts *facts, struct brig_error *err)
{
    size_t used = strlen(facts->proc), length = strlen(word);
    if (used + length + 3 > sizeof facts->proc)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many names in /proc");
    (void)snprintf(facts->proc + used, sizeof facts->proc - used, "%s%s ", used ? "" : " ", word);
    return 0;
}

static int set_files(const char *word, struct facts *facts, struct brig_error *err)
{
    uint64_t number = 0;
    int status = add_number(word, INT32_MAX, &number, err);
    if (facts->files.rlim_max == 0)
        facts->files.rlim_cur = number;
    facts->files.rlim_max = number; /* the second word, if there is one */
    return status;
}

enum { LANDLOCK, NAMESPACES, ROOT, GROUPS, CGROUP, AT_HAND, FILES, PROC, NAME_COUNT };
static const char *const fact_names[NAME_COUNT] = {"landlock", "namespaces",     "root",  "groups",
                                                   "cgroup",   "cgroup-at-hand", "files", "proc"};

static int set_fact(struct facts *facts, int which, const char *word, struct brig_error *err)
{
    uint64_t number = 0;
    int status = 0;
    switch (which) {
    case LANDLOCK:
        status = add_number(word, INT32_MAX, &number, err);
        facts->landlock = (int)number;
        return status;
    case NAMESPACES:
        return set_yes_no(word, &facts->namespaces, err);
    case ROOT:
        return set_yes_no(word, &facts->root, err);
    case GROUPS:
        return add_group(word, facts, err);
    case CGROUP:
        return add_resource(word, &facts->cgroup, err);
    case AT_HAND:
        return set_yes_no(word, &facts->cgroup_at_hand, err);
    case FILES:
        return set_files(word, facts, err);
    default:
        return add_proc(word, facts, err);
    }
}

/* One line; *seen has a bit for each name there was. */
static int parse_line(const char **at, struct facts *facts, unsigned *seen, struct brig_error *err)
{
    char name[WORD_MAX], word[WORD_MAX];
    int status = next_word(at, name, err);
    if (status <= 0)
        return status;
    int which = 0;
    while (which < NAME_COUNT && strcmp(name, fact_names[which]) != 0)
        which++;
    if (which == NAME_COUNT || *seen & 1U << which)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is %s", str_shown(name).text,
                         which == NAME_COUNT ? "no name of a fact" : "given twice");
    *seen |= 1U << which;
    while ((status = next_word(at, word, err)) > 0)
        if ((status = set_fact(facts, which, word, err)) < 0)
            return brig_wrap(err, status, "%s", fact_names[which]);
    return status;
}

int facts_parse(const char *text, struct facts *ret_facts, struct brig_error *err)
{
    struct facts facts = {0};
    unsigned seen = 0;
    int line = 1;
    for (const char *at = text; *at; line++) {
        int status = parse_line(&at, &facts, &seen, err);
        if (status < 0)
            return brig_wrap(err, status, "line %d", line);
        at += *at == '\n';
    }
    for (int i = 0; i < NAME_COUNT; i++)
        if (!(seen & 1U << i))
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is missing", fact_names[i]);
    *ret_facts = facts;
    return 0;
}
