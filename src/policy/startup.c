/* SPDX-License-Identifier: MIT */
/* Hides lines of start-up files, and puts them back. */
#include "policy/startup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "policy/policy.h"
#include "policy/startup_syntax.h"

#define NAME_SHOWN_MAX 64

/* A file, and the copies that editors make beside it: a name without wildcards is hidden before the file exists. */
#define WITH_COPIES(name) name, name "~", name ".swp", name ".bak", name ".orig"

const char *const startup_names[] = {
    WITH_COPIES(".bashrc"),
    WITH_COPIES(".bash_profile"),
    ".bash_login",
    ".bash_logout",
    WITH_COPIES(".bash_aliases"),
    ".bash_functions",
    ".bash_completion",
    WITH_COPIES(".profile"),
    ".shrc",
    ".shinit",
    WITH_COPIES(".zshrc"),
    WITH_COPIES(".zshenv"),
    WITH_COPIES(".zprofile"),
    ".zlogin",
    ".zlogout",
    ".config/fish/config.fish",
    ".kshrc",
    ".bashrc.local",
    ".profile.local",
    ".zshrc.local",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".pam_environment",
    ".environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    /* What else they read, and other copies: .zshrc.pre-oh-my-zsh. */
    ".*sh*[.~]*",
    ".profile[.~]*",
    ".z[lp]*[.~]*",
    ".x[ip]*[.~]*",
    ".bashrc.d/*",
    ".profile.d/*",
    ".zshrc.d/*",
    ".zsh/*",
    ".config/bash/*",
    ".config/zsh/*",
    ".oh-my-zsh/custom/*",
    ".config/fish/*",
    ".config/fish/conf.d/*",
    ".config/nushell/*",
    ".config/environment.d/*",
    ".config/plasma-workspace/env/*",
    /* The configuration of git, with its own syntax. */
    WITH_COPIES(".gitconfig"),
    ".gitconfig[.~_-]*",
    ".config/git/config*",
};
const size_t startup_name_count = ARRAY_LENGTH(startup_names);

/* ---- filters ---- */

int startup_rules_init(const struct brig_policy *policy, struct startup_rules *ret_rules,
                       struct brig_error *err)
{
    struct startup_rules rules = {.items = calloc(policy->env_count + 1, sizeof *rules.items)};
    for (size_t i = 0; i < policy->env_count; i++) {
        const struct policy_env *rule = &policy->env[i];
        if (rule->kind == POLICY_ENV_SET)
            continue;
        str_append_char(&rules.list, rule->kind == POLICY_ENV_UNSET ? '-' : '+');
        str_list_add(&rules.list, rule->name);
    }
    if (!rules.items || rules.list.failed) {
        startup_rules_done(&rules);
        return brig_fail_nomem(err);
    }
    for (const char *at = NULL; (at = str_list_next(&rules.list, at));)
        rules.items[rules.count++] = at;
    *ret_rules = rules;
    return 0;
}

void startup_rules_done(struct startup_rules *rules)
{
    str_done(&rules->list);
    free(take_ptr(&rules->items));
}

bool startup_filter_hides(const struct startup_filter *filter, const char *name, size_t name_length,
                          const char *value)
{
    bool hides = false;
    for (size_t i = 0; i < filter->count; i++) {
        const char *rule = filter->rules[i];
        bool address = strstr(rule, "://");
        if (hides == (*rule == '+') && (address || name_length > 0) &&
            policy_filter_matches(rule + 1, name, name_length, value))
            hides = !hides;
    }
    return hides;
}

bool startup_is_filtered(const struct startup_filters *filters, const char *name, size_t length,
                         const char *value)
{
    for (size_t i = 0; i < filters->count; i++)
        if (startup_filter_hides(&filters->items[i], name, length, value))
            return true;
    return false;
}

/* ---- lines ---- */

static void lines_done(struct startup_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        str_done(&lines->items[i].marker);
    free(lines->items);
    free(lines->bytes);
}

/* Splits a text; a NUL in it becomes a space, so that nothing hides after one. */
static int lines_read(struct startup_lines *lines, const char *text, size_t length,
                      struct brig_error *err)
{
    size_t count = 1, at = 0;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    lines->bytes = malloc(length + 1);
    lines->items = calloc(count, sizeof *lines->items);
    if (!lines->bytes || !lines->items)
        return brig_fail_nomem(err);
    if (length > 0)
        memcpy(lines->bytes, text, length);
    for (size_t i = 0; i < length; i++)
        if (!lines->bytes[i])
            lines->bytes[i] = ' ';
    lines->bytes[length] = '\0';
    while (at < length) {
        char *start = lines->bytes + at, *newline = memchr(start, '\n', length - at);
        size_t size = newline ? (size_t)(newline - start) : length - at;
        start[size] = '\0';
        lines->items[lines->count++] =
            (struct startup_line){.text = start, .length = size, .ended = newline != NULL};
        at += size + 1;
    }
    return 0;
}

void startup_hide_statements(struct startup_lines *lines)
{
    for (size_t first = 0, next; first < lines->count; first = next) {
        bool hidden = lines->items[first].has_hit;
        for (next = first + 1; next < lines->count && lines->items[next].joined; next++)
            hidden = hidden || lines->items[next].has_hit;
        for (size_t i = first; i < next && hidden; i++)
            lines->items[i].hidden = true;
    }
}

void startup_append_reason(struct startup_line *line, size_t number)
{
    struct str *marker = &line->marker;
    str_appendf(marker, "# brig: hidden line %zu", number);
    if (line->has_hit && line->hit.name)
        str_appendf(marker, ", which sets %.*s",
                    (int)(line->hit.length < NAME_SHOWN_MAX ? line->hit.length : NAME_SHOWN_MAX),
                    line->hit.name);
    else if (line->has_hit)
        str_append(marker, ", which has a URL with a password");
}

static int prepare(struct startup_lines *lines, const struct startup_filters *filters,
                   const char *text, size_t length, struct brig_error *err)
{
    int status = lines_read(lines, text, length, err);
    if (status < 0)
        return status;
    if (startup_is_git(lines))
        startup_mark_git(lines, filters);
    else
        startup_mark_shell(lines, filters);
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].marker.failed)
            return brig_fail_nomem(err);
    return 0;
}

/* ---- texts ---- */

void startup_text_done(struct startup_text *text)
{
    str_done(&text->text);
    str_done(&text->names);
}

static void note_name(struct str *names, const struct startup_hit *hit)
{
    autofree char *name = strndup(hit->name ? hit->name : "", hit->length);
    if (name && !str_list_has(names, name))
        str_list_add(names, name);
}

int startup_hide(const struct startup_filter *filters, size_t filter_count, const char *text,
                 size_t length, struct startup_text *ret_text, struct brig_error *err)
{
    const struct startup_filters all = {filters, filter_count};
    __attribute__((cleanup(lines_done))) struct startup_lines lines = {0};
    struct startup_text made = {0};
    int status = prepare(&lines, &all, text, length, err);
    size_t at = 0;
    for (size_t i = 0; i < lines.count && status == 0; i++) {
        const struct startup_line *line = &lines.items[i];
        if (line->hidden)
            str_append_bytes(&made.text, line->marker.data, line->marker.length);
        else
            str_append_bytes(&made.text, text + at, line->length);
        if (line->ended)
            str_append_char(&made.text, '\n');
        made.hidden += line->hidden;
        if (line->has_hit)
            note_name(&made.names, &line->hit);
        at += line->length + 1;
    }
    if (status == 0 && (made.text.failed || made.names.failed))
        status = brig_fail_nomem(err);
    if (status < 0)
        startup_text_done(&made);
    else
        *ret_text = made;
    return status;
}

/* The hidden line whose marker this is; -1: it is another line. */
static ssize_t find_marker(const struct startup_lines *lines, const char *text, size_t length)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].hidden && lines->items[i].marker.length == length &&
            memcmp(lines->items[i].marker.data, text, length) == 0)
            return (ssize_t)i;
    return -1;
}

static size_t next_hidden(const struct startup_lines *lines, size_t at)
{
    while (at < lines->count && !lines->items[at].hidden)
        at++;
    return at;
}

int startup_restore(const struct startup_filter *filters, size_t filter_count,
                    const struct str *user, const struct str *jail, struct str *ret_text,
                    struct brig_error *err)
{
    const struct startup_filters all = {filters, filter_count};
    __attribute__((cleanup(lines_done))) struct startup_lines lines = {0};
    int status = prepare(&lines, &all, user->data, user->length, err);
    if (status < 0)
        return status;
    size_t expected = next_hidden(&lines, 0);
    for (size_t at = 0; at < jail->length;) {
        const char *start = jail->data + at, *newline = memchr(start, '\n', jail->length - at);
        size_t length = newline ? (size_t)(newline - start) : jail->length - at;
        ssize_t found = find_marker(&lines, start, length);
        if (found >= 0 && (size_t)found != expected)
            return 0;
        if (found >= 0) {
            size_t from = (size_t)(lines.items[found].text - lines.bytes);
            str_append_bytes(ret_text, user->data + from, lines.items[found].length);
            expected = next_hidden(&lines, expected + 1);
        } else {
            str_append_bytes(ret_text, start, length);
        }
        if (newline)
            str_append_char(ret_text, '\n');
        at += length + 1;
    }
    if (ret_text->failed)
        return brig_fail_nomem(err);
    return expected == lines.count;
}
