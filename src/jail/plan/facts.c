/* SPDX-License-Identifier: MIT */
/* The facts about a host that a printed plan depends on: asked of the kernel, or parsed from a
 * text. */
#include "jail/plan/facts.h"

#include <stddef.h>
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

/* ---- from the kernel ---- */

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

/* ---- from a text ---- */

/* Returns the next word of a line, which is modified; NULL at its end. */
static const char *next_word(char **line)
{
    char *word;
    while ((word = strsep(line, " \t")) && !*word)
        ;
    return word;
}

static int set_number(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)facts;
    uint64_t number = 0;
    int status = parse_uint(word, INT32_MAX, PARSE_ZERO_OK, &number, err);
    *(int *)field = (int)number;
    return status;
}

static int set_yes_no(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)facts;
    if (strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not yes or no", str_shown(word).text);
    *(bool *)field = *word == 'y';
    return 0;
}

static int add_resource(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)field;
    static const char *const names[] = {"memory", "cpu", "pids", "io", "time"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(word, names[i]) == 0) {
            facts->cgroup |= 1U << i; /* enum cgroup_resource, in order */
            return 0;
        }
    return strcmp(word, "none") == 0
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "unknown word '%s'", str_shown(word).text);
}

static int add_group(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)field;
    uint64_t number = 0;
    if (strcmp(word, "none") == 0)
        return 0;
    if (facts->group_count == FACTS_GROUPS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d groups", FACTS_GROUPS_MAX);
    int status = parse_uint(word, UINT32_MAX - 1, PARSE_ZERO_OK, &number, err);
    facts->groups[facts->group_count++] = (gid_t)number;
    return status;
}

static int add_proc(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)field;
    size_t used = strlen(facts->proc), length = strlen(word);
    if (used + length + 3 > sizeof facts->proc)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many names in /proc");
    (void)snprintf(facts->proc + used, sizeof facts->proc - used, "%s%s ", used ? "" : " ", word);
    return 0;
}

static int set_files(struct facts *facts, void *field, const char *word, struct brig_error *err)
{
    (void)field;
    uint64_t number = 0;
    int status = parse_uint(word, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (facts->files.rlim_max == 0)
        facts->files.rlim_cur = number;
    facts->files.rlim_max = number; /* the second word, if there is one */
    return status;
}

static const struct {
    const char *name;
    int (*set)(struct facts *facts, void *field, const char *word, struct brig_error *err);
    size_t offset;
} rows[] = {
    {"landlock", set_number, offsetof(struct facts, landlock)},
    {"namespaces", set_yes_no, offsetof(struct facts, namespaces)},
    {"root", set_yes_no, offsetof(struct facts, root)},
    {"groups", add_group, 0},
    {"cgroup", add_resource, 0},
    {"cgroup-at-hand", set_yes_no, offsetof(struct facts, cgroup_at_hand)},
    {"files", set_files, 0},
    {"proc", add_proc, 0},
};

/* Parses one line; *seen has a bit for each name found so far. */
static int parse_line(char *line, struct facts *facts, unsigned *seen, struct brig_error *err)
{
    line[strcspn(line, "#")] = '\0';
    const char *name = next_word(&line), *word;
    if (!name)
        return 0;
    size_t which = 0;
    while (which < ARRAY_LENGTH(rows) && strcmp(name, rows[which].name) != 0)
        which++;
    if (which == ARRAY_LENGTH(rows) || *seen & 1U << which)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is %s", str_shown(name).text,
                         which == ARRAY_LENGTH(rows) ? "no name of a fact" : "given twice");
    *seen |= 1U << which;
    while ((word = next_word(&line))) {
        int status = rows[which].set(facts, (char *)facts + rows[which].offset, word, err);
        if (status < 0)
            return brig_wrap(err, status, "%s", rows[which].name);
    }
    return 0;
}

int facts_parse(const char *text, struct facts *ret_facts, struct brig_error *err)
{
    struct facts facts = {0};
    unsigned seen = 0;
    autofree char *copy = strdup(text);
    char *rest = copy, *line;
    if (!copy)
        return brig_fail_nomem(err);
    for (int number = 1; (line = strsep(&rest, "\n")); number++) {
        int status = parse_line(line, &facts, &seen, err);
        if (status < 0)
            return brig_wrap(err, status, "line %d", number);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (!(seen & 1U << i))
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is missing", rows[i].name);
    *ret_facts = facts;
    return 0;
}
