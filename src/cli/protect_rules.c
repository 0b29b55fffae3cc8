/* SPDX-License-Identifier: MIT */
/* Which paths are protected, and what the policy says of them. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* In a granted directory. */
static const struct protect_row in_project[] = {
    /* what the shell sources on entering the directory */
    {".envrc", PROTECT_HOLD_DIRECTORY},
    /* editors: tasks, launch configurations, interpreters */
    {".vscode", PROTECT_HOLD_DIRECTORY},
    {".idea", PROTECT_HOLD_DIRECTORY},
    {".zed", PROTECT_HOLD_NOT},
    {".devcontainer", PROTECT_HOLD_DIRECTORY},
    {".devcontainer.json", PROTECT_HOLD_NOT},
    /* git hooks by another name */
    {".husky", PROTECT_HOLD_DIRECTORY},
    /* agents: hooks, commands allowed without asking, servers to start */
    {".mcp.json", PROTECT_HOLD_DIRECTORY},
    {".claude/settings.json", PROTECT_HOLD_DIRECTORY},
    {".claude/settings.local.json", PROTECT_HOLD_DIRECTORY},
    {".claude/hooks", PROTECT_HOLD_DIRECTORY},
    {".codex/config.toml", PROTECT_HOLD_DIRECTORY},
    {".codex/hooks.json", PROTECT_HOLD_NOT},
    {".cursor", PROTECT_HOLD_DIRECTORY},
    {".gemini/settings.json", PROTECT_HOLD_DIRECTORY},
    {".gemini/.env", PROTECT_HOLD_NOT},
    {".opencode", PROTECT_HOLD_NOT},
    {"opencode.json", PROTECT_HOLD_NOT},
    {".windsurf", PROTECT_HOLD_NOT},
    {".roo", PROTECT_HOLD_NOT},
    {".aider.conf.yml", PROTECT_HOLD_NOT},
    /* brig itself */
    {".brig.conf", PROTECT_HOLD_DIRECTORY},
};

/* Without these no directory is a repository. HEAD is not among them: where a file has that name, git
 * calls "git diff HEAD" ambiguous. */
static const struct protect_row at_top[] = {
    {"refs", PROTECT_HOLD_CLOSED},
    {"objects", PROTECT_HOLD_CLOSED},
};

/* In a git directory. With `commondir` all the others would be looked for somewhere else. */
static const struct protect_row in_git_dir[] = {
    {"hooks", PROTECT_HOLD_DIRECTORY},
    {"config", PROTECT_HOLD_FILE},
    {"config.worktree", PROTECT_HOLD_FILE},
    {"commondir", PROTECT_HOLD_SELF},
};

/* In a git directory's worktrees/NAME. */
static const struct protect_row in_worktree[] = {
    {"config.worktree", PROTECT_HOLD_FILE},
    {"commondir", PROTECT_HOLD_SELF},
};

#define TABLE(rows)                                                                                \
    {                                                                                              \
        rows, ARRAY_LENGTH(rows)                                                                   \
    }
const struct protect_rows protect_project_rows = TABLE(in_project);
const struct protect_rows protect_top_rows = TABLE(at_top);
const struct protect_rows protect_git_rows = TABLE(in_git_dir);
const struct protect_rows protect_worktree_rows = TABLE(in_worktree);

/* ---- rules ---- */

/* The part of a path below a directory, with its slash, or NULL. "/" is never granted. */
static const char *rest_below(const char *directory, const char *path)
{
    size_t length = strlen(directory);
    return path_is_beneath(directory, path) && path[length] == '/' ? path + length : NULL;
}

/* What the rules so far say of a place in the jail: the most specific, of equals the last. */
const struct policy_grant *protect_rule_of(const struct brig_policy *policy, const char *dest)
{
    const struct policy_grant *best = NULL;
    size_t longest = 0; /* of two paths above the same one the longer is the deeper */
    size_t dest_length = strlen(dest);
    for (size_t i = 0; i < policy->grant_count; i++) {
        size_t length = strlen(policy->grants[i].dest);
        /* Most are names beside each other: their ends are looked at first. */
        if (length < longest || length > dest_length ||
            (length > 1 && dest[length] && dest[length] != '/') ||
            !path_is_beneath(policy->grants[i].dest, dest))
            continue;
        best = &policy->grants[i];
        longest = length;
    }
    return best;
}

bool protect_join(char ret_path[PATH_LENGTH_MAX + 1], const char *dir_path, const char *rest)
{
    size_t before = strlen(dir_path), length = strlen(rest);
    if (before + length > PATH_LENGTH_MAX)
        return false;
    memmove(ret_path, dir_path, before + 1);
    memcpy(ret_path + before, rest, length + 1);
    return true;
}

/* Where a root shows a path in the jail, if it lets it be written there. */
static bool find_writable_dest(const struct protect_scan *scan, const struct protect_root *root,
                               const char *path, char ret_dest[PATH_LENGTH_MAX + 1])
{
    const char *rest = rest_below(root->path, path);
    if (!rest || !protect_join(ret_dest, root->dest, rest))
        return false;
    const struct policy_grant *rule = protect_rule_of(scan->settings->policy, ret_dest);
    return rule && rule->access == BRIG_READ_WRITE && strcmp(rule->dest, ret_dest) != 0;
}

bool protect_can_be_written(const struct protect_scan *scan, const char *path)
{
    char dest[PATH_LENGTH_MAX + 1];
    for (size_t i = 0; i < scan->root_count; i++)
        if (find_writable_dest(scan, &scan->roots[i], path, dest))
            return true;
    return false;
}

/* Protects a path wherever it can be written. */
int protect_add_rules(struct protect_scan *scan, const char *path, unsigned flags,
                      struct brig_error *err)
{
    for (size_t i = 0; i < scan->root_count; i++) {
        const struct protect_root *root = &scan->roots[i];
        char dest[PATH_LENGTH_MAX + 1], source[PATH_LENGTH_MAX + 1];
        if (!find_writable_dest(scan, root, path, dest))
            continue;
        const char *rest = rest_below(root->path, path);
        if (!rest || !protect_join(source, root->source, rest))
            return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s'", path);
        int status =
            brig_policy_grant(scan->settings->policy, BRIG_PROTECT, source, dest, flags, err);
        if (status < 0)
            return brig_advise(err, status, "Use --no-protect to do without protection");
    }
    return 0;
}

/* ---- exceptions ---- */

const char *protect_git_name(const struct protect_scan *scan, const char *path)
{
    const char *name = NULL;
    for (size_t i = 0; i < scan->root_count; i++) {
        const char *rest = rest_below(scan->roots[i].path, path);
        if (rest && (!name || strlen(rest + 1) < strlen(name)))
            name = rest + 1;
    }
    return name ? name : ".git"; /* granted itself */
}

/* Whether a path was taken out, by its name from the top of the project, or by its own path. */
bool protect_is_excepted(const struct protect_scan *scan, const char *name, const char *path)
{
    const struct settings *settings = scan->settings;
    for (size_t i = 0; i < settings->unprotect_count; i++) {
        const char *one = settings->unprotect[i];
        size_t length = strlen(one);
        if (one[0] == '/'
                ? path_is_beneath(one, path)
                : strncmp(one, name, length) == 0 && (!name[length] || name[length] == '/'))
            return true;
    }
    return false;
}

/* 1 if a name is a row or above one, -1 if it is inside one. */
static int relation(const char *name, const char *row)
{
    size_t length = strlen(name), row_length = strlen(row);
    if (strncmp(name, row, length) == 0 && (!row[length] || row[length] == '/'))
        return 1;
    return strncmp(name, row, row_length) == 0 && name[row_length] == '/' ? -1 : 0;
}

/* A name that means nothing is a typing error, and then less is possible than the user believes. */
int protect_check_name(const char *name, struct brig_error *err)
{
    static const char in_git[] = ".git/";
    if (name[0] == '/' || strcmp(name, ".git") == 0)
        return 0;
    bool git = strncmp(name, in_git, sizeof in_git - 1) == 0;
    const struct protect_rows *table = git ? &protect_git_rows : &protect_project_rows;
    const char *rest = git ? name + sizeof in_git - 1 : name;
    for (size_t i = 0; i < protect_top_rows.count; i++)
        if (strcmp(name, protect_top_rows.rows[i].path) == 0)
            return 0;
    if (git && (strncmp(rest, "modules", 7) == 0 || strncmp(rest, "worktrees", 9) == 0))
        return 0;
    for (size_t i = 0; i < table->count; i++) {
        int related = relation(rest, table->rows[i].path);
        if (related > 0)
            return 0;
        if (related < 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "--unprotect: '%s' is inside '%s%s', which is protected as a whole",
                             str_shown(name).text, git ? in_git : "", table->rows[i].path);
    }
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "--unprotect: '%s' is not a protected path, such as .git/hooks, .git/config, "
                     ".vscode or .envrc",
                     str_shown(name).text);
}
