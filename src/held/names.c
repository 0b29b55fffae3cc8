/* SPDX-License-Identifier: MIT */
#include "held/names.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"

const struct names_row names_rows[] = {
    NAMES_ROW(".envrc", "direnv"),
    NAMES_ROW(".vscode", "Visual Studio Code"),
    NAMES_ROW(".idea", "JetBrains editors"),
    NAMES_ROW(".zed", "Zed"),
    NAMES_ROW(".devcontainer", "tools for development containers"),
    NAMES_ROW(".devcontainer.json", "tools for development containers"),
    NAMES_ROW(".husky", "husky"),
    NAMES_ROW(".mcp.json", "agents that use MCP"),
    NAMES_ROW(".claude/settings.json", "Claude Code"),
    NAMES_ROW(".claude/settings.local.json", "Claude Code"),
    NAMES_ROW(".claude/hooks", "Claude Code"),
    NAMES_ROW(".codex", "Codex"),
    NAMES_ROW(".cursor", "Cursor"),
    NAMES_ROW(".gemini", "Gemini CLI"),
    NAMES_ROW(".qwen", "Qwen Code"),
    NAMES_ROW(".opencode", "opencode"),
    NAMES_ROW("opencode.json", "opencode"),
    NAMES_ROW(".windsurf", "Windsurf"),
    NAMES_ROW(".roo", "Roo Code"),
    NAMES_ROW(".aider.conf.yml", "aider"),
    NAMES_ROW(".hg/hgrc", "Mercurial"),
    NAMES_ROW(".brig.conf", "brig"),
};
const size_t names_count = ARRAY_LENGTH(names_rows);

/* Returns 1 if a name is a row or a directory above one, -1 if it is inside a row, else 0. */
static int relation(const char *name, const char *row)
{
    size_t length = strlen(name), row_length = strlen(row);
    if (strncmp(name, row, length) == 0 && (!row[length] || row[length] == '/'))
        return 1;
    return strncmp(name, row, row_length) == 0 && name[row_length] == '/' ? -1 : 0;
}

int names_check(const char *name, struct brig_error *err)
{
    if (name[0] == '/' || strcmp(name, ".git") == 0)
        return 0;
    if (str_starts_with(name, ".git/"))
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "--unprotect: '%s' is in the git directory, which is private as a whole. Use "
            "--unprotect .git for the real one",
            str_shown(name).text);
    for (size_t i = 0; i < names_count; i++) {
        int related = relation(name, names_rows[i].path);
        if (related > 0)
            return 0;
        if (related < 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "--unprotect: '%s' is inside '%s', which is protected as a whole",
                             str_shown(name).text, names_rows[i].path);
    }
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "--unprotect: '%s' is not a protected path, such as .git, .vscode or .envrc",
                     str_shown(name).text);
}

bool names_is_excepted(const char *const *excepted, size_t count, const char *top, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        const char *one = excepted[i];
        size_t length = strlen(one);
        char whole[PATH_LENGTH_MAX + 1];
        (void)snprintf(whole, sizeof whole, "%s/%s", strcmp(top, "/") == 0 ? "" : top, path);
        if (one[0] == '/'
                ? path_is_beneath(one, whole)
                : strncmp(one, path, length) == 0 && (!path[length] || path[length] == '/'))
            return true;
    }
    return false;
}
