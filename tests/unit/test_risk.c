/* SPDX-License-Identifier: MIT */
/* Risk flags: every row of the table is hit, near misses are not, and the checks of files. */
#include "changes/show/risk.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/tree.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "held/held.h"
#include "held/names.h"
#include "held/risk_text.h"
#include "tap.h"

/* ---- names ---- */

/* Writes a path that a pattern matches: "*" becomes "x". */
static void fill_pattern(char *to, size_t size, const char *pattern)
{
    size_t used = 0;
    for (; *pattern && used + 1 < size; pattern++)
        to[used++] = *pattern == '*' ? 'x' : *pattern;
    to[used] = '\0';
}

/* The reason of a new file that is not executable. */
static const char *named(const char *path, const char *home)
{
    struct names_mark mark;
    return names_judge(path, home, 0, S_IFREG | 0644, &mark) ? mark.reason : NULL;
}

/* Whether a path has this reason, or that of a more specific row before it. */
static bool is_hit_by(size_t row, const char *path, const char *home)
{
    const char *reason = named(path, home);
    for (size_t i = 0; reason && i <= row; i++)
        if (reason == names_rows[i].reason)
            return true;
    return false;
}

static bool is_judged(const struct names_row *row)
{
    return row->held != NAMES_HELD_NEW && row->held != NAMES_HELD_BARE;
}

static void hits_every_pattern(void)
{
    size_t missed = 0, below = 0, near = 0, capital = 0;
    for (size_t i = 0; i < names_row_count; i++) {
        const struct names_row *row = &names_rows[i];
        for (const char *const *pattern = row->patterns; is_judged(row) && *pattern; pattern++) {
            char name[128], path[160];
            fill_pattern(name, sizeof name, *pattern);
            bool of_home = row->where == NAMES_HOME;
            (void)snprintf(path, sizeof path, of_home ? "%s" : "a/b/%s", name);
            missed += !is_hit_by(i, path, path);
            (void)snprintf(path, sizeof path, "%s/deep/er", name);
            below += !is_hit_by(i, path, path);
            (void)snprintf(path, sizeof path, "q%s.q/file", name);
            near += !strchr(*pattern, '*') && named(path, path) == row->reason &&
                    !strchr(*pattern, '/');
            if (!is_hit_by(i, name, name))
                tap_diag("not hit: %s", name);
            for (char *c = name; *c; c++)
                *c = (char)toupper((unsigned char)*c);
            capital += !row->exact && !is_hit_by(i, name, name);
        }
    }
    tap_is_int(missed, 0, "every pattern matches a path of its name");
    tap_is_int(below, 0, "and what is below it");
    tap_is_int(near, 0, "but no longer name that contains it");
    tap_is_int(capital, 0, "and capitals, as a directory may not tell them apart");
}

static void table_is_complete(void)
{
    size_t order = 0, undecided = 0, stars = 0, unnamed = 0, held = 0;
    for (size_t i = 0; i < names_row_count; i++) {
        const struct names_row *row = &names_rows[i];
        order += i > 0 && row->class < names_rows[i - 1].class;
        bool decided = row->held != NAMES_NOT_HELD || row->why_not;
        undecided += row->class == NAMES_UNASKED && !decided;
        if (row->class == NAMES_UNASKED && !decided)
            tap_diag("neither held nor with a reason: %s", row->patterns[0]);
        unnamed += row->held != NAMES_NOT_HELD && !row->program;
    }
    for (struct names_held_name at = {0}; names_next_held(&at); held++)
        stars += strchr(at.path, '*') != NULL || at.row->where == NAMES_HOME;
    tap_is_int(order, 0, "rows are in the order of their classes");
    tap_is_int(undecided, 0, "what is executed unasked is held, or has the reason why not");
    tap_is_int(unnamed, 0, "held names say what executes them");
    tap_is_int(stars, 0, "and are plain names in a project");
    tap_ok(held > 0 && held <= HELD_NAMES_MAX, "there are at most %d held names: %zu",
           HELD_NAMES_MAX, held);
}

static void judges_held_names(void)
{
    size_t missed = 0;
    for (struct names_held_name at = {0}; names_next_held(&at);) {
        char path[128];
        struct names_mark mark;
        (void)snprintf(path, sizeof path, "some/project/%s", at.path);
        missed += is_judged(at.row) && (!names_judge(path, NULL, 0, S_IFREG | 0644, &mark) ||
                                        mark.class != NAMES_UNASKED);
    }
    tap_is_int(missed, 0, "names that are held back are risks at any depth");
    tap_is_str(named(".envrc", NULL), "obeyed by direnv", "with what obeys them");
}

static void knows_names(void)
{
    static const struct {
        const char *path, *home, *reason;
    } rows[] = {
        {".bashrc", ".bashrc", "runs in every new shell"},
        {".profile", ".profile", "runs at the next login"},
        {".git/hooks/pre-commit", NULL, "executed by git"},
        {"bare.git/hooks/post-update", NULL, "executed by git"},
        {"sub/.git", NULL, "part of a git repository"},
        {"sub/.git/config", NULL, "settings that git obeys"},
        {".gitattributes", NULL, "filters and merge drivers that git runs"},
        {".vscode/tasks.json", NULL, "obeyed by Visual Studio Code"},
        {".claude/settings.json", NULL, "obeyed by Claude Code"},
        {".claude/commands/x.md", NULL, "commands and skills that an agent runs"},
        {"CLAUDE.md", NULL, "instructions that agents follow"},
        {".github/workflows/ci.yml", NULL, "executed by continuous integration"},
        {"Makefile", NULL, "runs when you build or test"},
        {"lib/x.pth", NULL, "runs whenever Python starts"},
        {"a/__pycache__/b.cpython-311.pyc", NULL, "compiled Python, run instead of its source"},
        {".venv/bin/python", NULL, "a program that the project's tools start"},
        {"node_modules/.bin/tsc", NULL, "a program that the project's tools start"},
        {"node_modules/a/index.js", NULL, "code of an installed package"},
        {".local/bin/tool", ".local/bin/tool", "a program in the search path"},
        {"bin/tool", NULL, NULL},
        {".bashrc", NULL, NULL},
        {"skel/.bashrc", "skel/.bashrc", NULL},
        {"src/main.c", "src/main.c", NULL},
        {".gitignore", NULL, NULL},
        {"Makefile.txt.c/x.md", NULL, "runs when you build or test"},
        {"NotMakefile", NULL, NULL},
        {"hooks/pre-commit", NULL, NULL},
        {".GIT/HOOKS/pre-commit", NULL, "executed by git"},
        {"sub/.Envrc", NULL, "obeyed by direnv"},
        {"JUSTFILE", NULL, "runs when you build or test"},
        {"build/main.o", NULL, NULL},
        {"BUILD", NULL, "runs when you build or test"},
        {"docs/agents.md", NULL, NULL},
        {".hg/hgrc-not-shared", NULL, "obeyed by Mercurial"},
        {".hg/store/data/x.i", NULL, NULL},
        {".xo-config.js", NULL, "runs when you build or test"},
        {".lintstagedrc.js", NULL, "executed by git"},
        {".releaserc.js", NULL, "runs when you build or test"},
        {"karma.conf.js", NULL, "runs when you build or test"},
        {"src/rc.js", NULL, NULL},
        {"libx.so-gdb.py", NULL, "runs when an interpreter or debugger starts"},
        {".kiro/specs/x.md", NULL, "settings of an agent"},
        {"main.tf", NULL, NULL},
        {".nvmrc", NULL, NULL},
        {".github/ISSUE_TEMPLATE.md", NULL, NULL},
        {"a.pthx", NULL, NULL},
        {"docs/CLAUDE.md.txt", NULL, NULL},
        {".claude/projects/x.jsonl", ".claude/projects/x.jsonl", NULL},
        {".config/app.conf", ".config/app.conf", NULL},
        {".env.example", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_str(named(rows[i].path, rows[i].home), rows[i].reason, "%s%s: %s", rows[i].path,
                   rows[i].home ? " in the home" : "", rows[i].reason ? rows[i].reason : "no risk");
    struct names_mark mark;
    tap_ok(!names_judge("Makefile", NULL, S_IFREG | 0644, 0, &mark),
           "to delete a Makefile is no risk");
    tap_ok(names_judge(".npmrc", NULL, S_IFREG | 0644, 0, &mark) && mark.class == NAMES_WHEN_RUN,
           "to delete settings is one");
    tap_ok(names_judge("src/x", NULL, S_IFREG | 0644, S_IFREG | 0755, &mark) &&
               mark.class == NAMES_UNUSUAL &&
               !names_judge("src/x", NULL, S_IFREG | 0755, S_IFREG | 0755, &mark),
           "a file that becomes executable is unusual");
    tap_ok(names_judge(".claude", NULL, 0, S_IFLNK | 0777, &mark) &&
               !names_judge(".claude", NULL, 0, S_IFREG | 0644, &mark),
           "a link may take the place of a directory of the table");
    tap_ok(names_is_unknown(".someagent/x") && !names_is_unknown(".github/ISSUE_TEMPLATE.md") &&
               !names_is_unknown(".someagent") && !names_is_unknown("src/.x/y"),
           "a directory with a dot at the top may be settings");
}

static void matches_patterns(void)
{
    tap_ok(names_match("a*b", "aXXb", true) && names_match("a*b", "ab/c", true) &&
               names_match("*.x", "a.x.x", true) && names_match("a*b*c", "a1b2bc", true),
           "a star stands for any characters");
    tap_ok(names_match("A*b", "axB", false) && !names_match("A*b", "axB", true),
           "letters of both cases are the same, unless they must be exact");
    tap_ok(!names_match("a*b", "a/b", true) && !names_match("a/b", "a", true) &&
               !names_match("a", "ab", true) && !names_match("a*b", "axbx", true),
           "but not for a slash, and all of a component counts");
}

static bool ends(const char *path)
{
    struct names_mark mark;
    return names_judge_end(path, &mark);
}

static void judges_ends(void)
{
    tap_ok(ends("a/.claude/settings.json") && ends("node_modules/.bin") && ends(".githooks") &&
               ends("a/b/c.code-workspace") && ends("venv/pyvenv.cfg"),
           "the end of a path is in the table");
    tap_ok(!ends("a/.claude/settings.json/x") && !ends("settings.json") && !ends("Makefile") &&
               !ends("a") && !ends("") && !ends(".bashrc"),
           "not what is below it, a part of it, or what is executed only when it is run");
    tap_ok(names_is_package("a/node_modules/x") && !names_is_package("a/node_modules") &&
               !names_is_package("a/node_modules/x/y") && !names_is_package("x"),
           "a package is directly in the directory of packages");
}

/* ---- texts ---- */

#define TOKEN(prefix) prefix "0123456789ABCDEFGHIJ0123456789ABCDEFGHIJ0123"

static bool has_token(const char *text)
{
    struct risk_token token;
    return risk_token_find(text, strlen(text), 0, &token);
}

static void finds_credentials(void)
{
    static const char *const texts[] = {
        "-----BEGIN "
        "RSA PRIVATE KEY-----\nMII",
        "-----BEGIN "
        "PRIVATE KEY-----",
        "-----BEGIN "
        "OPENSSH PRIVATE KEY-----",
        "-----BEGIN "
        "PGP PRIVATE KEY BLOCK-----",
        "id = \"" TOKEN("AKIA") "\"",
        TOKEN("ASIA"),
        TOKEN("AIza"),
        TOKEN("AGE-SECRET-KEY-1"),
        TOKEN("dckr_pat_"),
        TOKEN("dop_v1_"),
        TOKEN("ghp_"),
        TOKEN("gho_"),
        TOKEN("ghu_"),
        TOKEN("ghs_"),
        TOKEN("ghr_"),
        TOKEN("github_pat_"),
        TOKEN("glpat-"),
        TOKEN("hf_"),
        "TOKEN=" TOKEN("npm_"),
        TOKEN("pypi-AgE"),
        TOKEN("rk_live_"),
        TOKEN("sk_live_"),
        TOKEN("sk-ant-"),
        TOKEN("sk-proj-"),
        TOKEN("xoxa-"),
        TOKEN("xoxb-"),
        TOKEN("xoxe-"),
        TOKEN("xoxp-"),
        TOKEN("xoxr-"),
        TOKEN("xoxs-"),
    };
    static const char *const others[] = {
        "",
        "-",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN "
        "PUBLIC KEY-----",
        "AKIA",
        "ghp_short",
        TOKEN("xghp_"),
        TOKEN("brisk-ant"),
        "sk-ant-",
        "npm_config_registry=https://x",
        "-----BEGIN \n"
        "PRIVATE KEY",
        "AKIAabcdefghijklmnopqrst",
    };
    size_t missed = 0, wrong = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        missed += !has_token(texts[i]);
        if (!has_token(texts[i]))
            tap_diag("missed: %s", texts[i]);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        wrong += has_token(others[i]);
        if (has_token(others[i]))
            tap_diag("wrong: %s", others[i]);
    }
    tap_is_int(missed, 0, "each kind of credential is found");
    tap_is_int(wrong, 0, "and texts like them are not");
}

static enum risk_package scan(const char *text, char hash[SHA256_HEX_LENGTH + 1])
{
    return risk_package_scan(text, strlen(text), RISK_PACKAGE_SCRIPTS, hash);
}

static enum risk_package scan_dependencies(const char *members, char hash[SHA256_HEX_LENGTH + 1])
{
    char text[256];
    (void)snprintf(text, sizeof text, "{\"scripts\":{\"a\":\"b/c\"},%s}", members);
    return risk_package_scan(text, strlen(text), RISK_PACKAGE_DEPENDENCIES, hash);
}

static void scans_dependencies(void)
{
    char hash[SHA256_HEX_LENGTH + 1], other[SHA256_HEX_LENGTH + 1];
    static const char *const registry[] = {
        "\"dependencies\":{\"@a/b\":\"^1.2.3\",\"c\":\"latest\",\"d\":\">=1 <2 || 3\"}",
        "\"dependencies\":{\"a\":\"npm:b@1\",\"c\":\"workspace:*\"}",
        "\"homepage\":\"https://example.org/\"",
    };
    static const char *const elsewhere[] = {
        "\"dependencies\":{\"a\":\"git+ssh://git@example.org/a.git\"}",
        "\"devDependencies\":{\"a\":\"http://example.org/a.tgz\"}",
        "\"optionalDependencies\":{\"a\":\"file:../a\"}",
        "\"dependencies\":{\"a\":\"owner/name\"}",
        "\"overrides\":{\"a\":{\"b\":\"github:o/n\"}}",
        "\"dependencies\":{\"a\":\"git\\u003a//x\"}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(registry); i++)
        tap_is_int(scan_dependencies(registry[i], hash), RISK_PACKAGE_NONE, "%s", registry[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(elsewhere); i++)
        tap_is_int(scan_dependencies(elsewhere[i], hash), RISK_PACKAGE_SOME, "%s", elsewhere[i]);
    (void)scan_dependencies("\"dependencies\":{\"a\":\"x/y\",\"b\":\"1\"}", hash);
    (void)scan_dependencies("\"dependencies\":{ \"a\" : \"x/y\", \"b\": \"2\" }", other);
    tap_is_str(hash, other, "another version in the registry does not count");
    (void)scan_dependencies("\"dependencies\":{\"b\":\"x/y\",\"a\":\"1\"}", other);
    tap_ok(strcmp(hash, other) != 0, "the same source for another package does");
}

static bool same_scripts(const char *a, const char *b)
{
    char one[SHA256_HEX_LENGTH + 1], other[SHA256_HEX_LENGTH + 1];
    return scan(a, one) == RISK_PACKAGE_SOME && scan(b, other) == RISK_PACKAGE_SOME &&
           strcmp(one, other) == 0;
}

static void scans_packages(void)
{
    char hash[SHA256_HEX_LENGTH + 1];
    tap_is_int(
        scan("{\"name\": \"a\", \"version\": \"1\", \"files\": [1, {\"scripts\": {}}]}", hash),
        RISK_PACKAGE_NONE, "a package without scripts executes nothing");
    tap_is_int(scan(" {} \n", hash), RISK_PACKAGE_NONE, "nor does an empty object");
    static const char *const executed[] = {"scripts",  "bin",    "husky", "packageManager",
                                           "gitHooks", "config", "volta"};
    for (size_t i = 0; i < ARRAY_LENGTH(executed); i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{\"a\":[],\"%s\":{\"x\":\"y\"}}", executed[i]);
        tap_is_int(scan(text, hash), RISK_PACKAGE_SOME, "%s counts", executed[i]);
    }
    static const char *const unsure[] = {
        "",
        "[]",
        "{",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"\\u0073cripts\":{}}",
        "{'a':1}",
        "{/**/}",
        "{\"a\":1}x",
        "\xef\xbb\xbf{}",
        "{\"a\":\"}",
        "{\"a\":]}",
        "{\"a\":1/*,*/}",
        "null",
    };
    size_t sure = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(unsure); i++) {
        sure += scan(unsure[i], hash) != RISK_PACKAGE_UNSURE;
        if (scan(unsure[i], hash) != RISK_PACKAGE_UNSURE)
            tap_diag("sure about: %s", unsure[i]);
    }
    tap_is_int(sure, 0, "texts that are not plain JSON objects are flagged");
    tap_ok(same_scripts("{\"scripts\":{\"a\":\"b c\"},\"version\":\"1\"}",
                        "{ \"version\": \"2\",\n \"scripts\" : { \"a\" : \"b c\" } }"),
           "other members and white space do not matter");
    tap_ok(!same_scripts("{\"scripts\":{\"a\":\"b c\"}}", "{\"scripts\":{\"a\":\"bc\"}}"),
           "blanks in a command do");
    tap_ok(!same_scripts("{\"scripts\":{\"a\":\"b\"}}",
                         "{\"scripts\":{\"a\":\"b\"},\"scripts\":{\"a\":\"c\"}}"),
           "and so does a second member of the same name");
}

/* ---- files ---- */

static struct layer layer = {.name = "1", .root = "/home/u/p", .masks = {.home = "/home/u"}};
static int upper, lower;

static void put(int dir, const char *name, mode_t mode, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
        tap_bail("cannot write %s", name);
    (void)close(fd);
}

/* The reason of a file of the upper directory, compared with the same name in the lower one. */
static const char *reason_of(const char *name)
{
    struct change change = {
        .layer = &layer, .path = name, .name = name, .lower_dir = lower, .upper_dir = upper};
    if (fstatat(lower, name, &change.before, AT_SYMLINK_NOFOLLOW) < 0)
        change.before.st_mode = 0;
    if (fstatat(upper, name, &change.after, AT_SYMLINK_NOFOLLOW) < 0)
        change.after.st_mode = 0;
    change.kind = !change.after.st_mode    ? CHANGE_DELETED
                  : !change.before.st_mode ? CHANGE_ADDED
                                           : CHANGE_MODIFIED;
    return risk_find(&change);
}

static void judges_modes(void)
{
    put(upper, "plain", 0644, "text");
    put(upper, "tool", 0755, "text");
    put(upper, "gained", 0755, "text");
    put(lower, "gained", 0644, "text");
    put(upper, "still", 0755, "other");
    put(lower, "still", 0755, "text");
    put(upper, "suid", 04755, "text");
    put(upper, "sgid", 02755, "text");
    tap_is_str(reason_of("plain"), NULL, "a new file without rights is no risk");
    tap_is_str(reason_of("tool"), "a new executable file", "a new executable is one");
    tap_is_str(reason_of("gained"), "a new executable file", "also one that was not executable");
    tap_is_str(reason_of("still"), NULL, "but not one that was");
    tap_has_str(reason_of("suid"), "setuid", "setuid");
    put(upper, "open", 0644, "");
    (void)mkdirat(upper, "open-dir", 0700);
    tap_ok(!reason_of("open") && !reason_of("open-dir"),
           "files that only their owner may write to");
    if (fchmodat(upper, "open", 0666, 0) < 0 || fchmodat(upper, "open-dir", 0777, 0) < 0)
        tap_bail("fchmodat");
    tap_has_str(reason_of("open"), "everybody", "a file that everybody may write to");
    tap_has_str(reason_of("open-dir"), "everybody", "and a directory");
    tap_has_str(reason_of("sgid"), "setgid", "setgid");
    static const unsigned char v2[20] = {1, 0, 0, 2, 0, 4}; /* cap_net_bind_service, effective */
    put(upper, "capable", 0644, "text");
    int fd = openat(upper, "capable", O_RDONLY | O_CLOEXEC);
    if (fsetxattr(fd, "security.capability", v2, sizeof v2, 0) < 0)
        tap_skip("cannot set file capabilities", "capabilities");
    else
        tap_is_str(reason_of("capable"), "has file capabilities", "capabilities");
    (void)close(fd);
}

static void judges_types_and_names(void)
{
    if (mkfifoat(upper, "fifo", 0600) < 0)
        tap_bail("cannot make a FIFO");
    tap_has_str(reason_of("fifo"), "FIFO", "a FIFO");
    static const struct {
        const char *name, *reason;
    } rows[] = {
        {"-rf", "looks like an option"},
        {"a\nb", "control characters"},
        {"a\x1b[2J", "control characters"},
        {"a\xe2\x80\xae"
         "b",
         "not shown"},
        {"a\xc2\x85", "not shown"},
        {"a\xff", "not UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        put(upper, rows[i].name, 0644, "");
        tap_has_str(reason_of(rows[i].name), rows[i].reason, "a name that %s", rows[i].reason);
    }
    struct change below = {.layer = &layer,
                           .kind = CHANGE_ADDED,
                           .path = "a\x1b[2J/plain",
                           .name = "plain",
                           .lower_dir = -1,
                           .upper_dir = upper,
                           .after = {.st_mode = S_IFREG | 0644}};
    tap_has_str(risk_find_quickly(&below), "control characters", "a file in a new directory");
    below.lower_dir = lower;
    tap_is_str(risk_find_quickly(&below), NULL, "not in one that the user has");
    put(upper, "grün é 中", 0644, "");
    tap_is_str(reason_of("grün é 中"), NULL, "letters of any language are no risk");
    put(lower, "-rf", 0644, "");
    tap_is_str(reason_of("-rf"), NULL, "nor is a name that the user has already");
}

static void judges_links(void)
{
    static const struct {
        const char *name, *target, *reason;
    } rows[] = {
        {"l1", "plain", NULL},
        {"l2", "sub/../plain", "a link that leads out of the directory"},
        {"l3", "/etc/passwd", "a link to an absolute path"},
        {"l4", "../x", "a link that leads out of the directory"},
        {"l5", "sub/../../x", "a link that leads out of the directory"},
        {"l6", "out/x", "a link that leads out of the directory"},
        {"l7", "..x/...", NULL},
        {".claude", "settings", "obeyed by Claude Code"},
        {".github", "ci", "obeyed by Copilot"},
        {".venv", "v", "a program that the project's tools start"},
        {"github", "ci", NULL},
    };
    if (symlinkat("..", lower, "out") < 0)
        tap_bail("symlinkat");
    (void)mkdirat(lower, "sub", 0700);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (symlinkat(rows[i].target, upper, rows[i].name) < 0)
            tap_bail("symlinkat");
        tap_is_str(reason_of(rows[i].name), rows[i].reason, "a link to %s", rows[i].target);
    }
}

static void judges_contents(void)
{
    static const char key[] = TOKEN("ghp_"), other[] = TOKEN("glpat-");
    put(upper, "fresh", 0644, key);
    put(upper, "known", 0644, key);
    put(lower, "known", 0644, key);
    put(upper, "both", 0644, TOKEN("ghp_") "\n" TOKEN("glpat-"));
    put(lower, "both", 0644, other);
    tap_has_str(reason_of("fresh"), "credential", "a new file with a credential");
    tap_is_str(reason_of("known"), NULL, "not one that the user's file has as well");
    tap_has_str(reason_of("both"), "credential", "but any further one");
    put(upper, "package.json", 0644, "{\"scripts\":{\"test\":\"x\"},\"version\":\"2\"}");
    tap_has_str(reason_of("package.json"), "package manager", "a new package.json with scripts");
    put(lower, "package.json", 0644, "{\"scripts\":{\"test\":\"x\"},\"version\":\"1\"}");
    tap_is_str(reason_of("package.json"), NULL, "the same scripts are no risk");
    put(upper, "package.json", 0644,
        "{\"scripts\":{\"test\":\"x\"},\"dependencies\":{\"a\":\"git://example.org/a\"}}");
    tap_is_str(reason_of("package.json"), "a dependency that is not from the registry",
               "a dependency from a repository is one");
    put(upper, "package.json", 0644, "{\"scripts\":{\"test\":\"x\"},\"version\":\"2\"}");
    put(lower, "package.json", 0644, "{\"scripts\":{\"test\":\"y\"},\"version\":\"1\"}");
    tap_has_str(reason_of("package.json"), "package manager", "changed scripts are one");
    put(upper, "package.json", 0644, "{\"version\":\"1\"}");
    tap_is_str(reason_of("package.json"), NULL, "a package.json without scripts is none");
    put(upper, "package.json", 0644, "{\"jest\":{\"globalSetup\":\"./x.js\"}}");
    tap_has_str(reason_of("package.json"), "package manager", "settings that name a program");
}

static void judges_places(void)
{
    put(lower, ".npmrc", 0644, "ignore-scripts=true");
    tap_has_str(reason_of(".npmrc"), "package manager", "deleted settings");
    put(lower, "gone.c", 0644, "");
    tap_is_str(reason_of("gone.c"), NULL, "a deleted source file is no risk");
    (void)mkdirat(lower, "nested", 0700);
    (void)mkdirat(lower, "nested/.git", 0700);
    tap_has_str(reason_of("nested"), "repository", "a deleted repository");
    (void)mkdirat(upper, ".vscode", 0700);
    tap_is_str(reason_of(".vscode"), NULL, "a directory alone executes nothing");
    put(upper, "config", 0644, "[core]");
    tap_is_str(reason_of("config"), NULL, "a file named config");
    put(upper, "HEAD", 0644, "ref: refs/heads/main");
    tap_has_str(reason_of("HEAD"), "repository", "a HEAD, also if the other parts come later");
    (void)mkdirat(upper, "objects", 0700);
    (void)mkdirat(lower, "refs", 0700);
    tap_has_str(reason_of("config"), "repository", "beside HEAD, objects and refs it is git's");
    put(upper, ".bashrc", 0644, "");
    tap_is_str(reason_of(".bashrc"), NULL, ".bashrc in a project");
    (void)snprintf(layer.root, sizeof layer.root, "/home/u");
    tap_has_str(reason_of(".bashrc"), "shell", "a reviewed directory may be the home");
    (void)snprintf(layer.root, sizeof layer.root, "/home/u/.config");
    put(upper, "git", 0644, "");
    tap_has_str(reason_of("git"), "git", "or in it");
    (void)snprintf(layer.name, sizeof layer.name, LAYER_HOME);
    tap_has_str(reason_of(".bashrc"), "shell", ".bashrc in the layer of the home");
}

static void judges_lock_files(void)
{
    static const char new_place[] = "a place that is new in it";
#define RESOLVED(url) "{\"resolved\": \"" url "\"}"
    static const struct {
        const char *name, *before, *after;
        bool marked;
    } rows[] = {
        {"package-lock.json", NULL, RESOLVED("https://registry.npmjs.org/a/-/a-1.tgz"), false},
        {"package-lock.json", NULL, RESOLVED("https://evil.example/a-1.tgz"), true},
        {"package-lock.json", NULL, RESOLVED("https://registry.npmjs.org.evil.example/a"), true},
        {"package-lock.json", NULL, RESOLVED("https://registry.npmjs.org@evil.example/a"), true},
        {"package-lock.json", RESOLVED("https://own.example/a"), RESOLVED("https://own.example/b"),
         false},
        {"package-lock.json", RESOLVED("https://own.example/a"), RESOLVED("https://own.exam/b"),
         true},
        {"package-lock.json", NULL,
         "{\"lockfileVersion\": 3, \"funding\": {\"url\": \"https://give.example\"}}", false},
        {"Pipfile.lock", NULL, "{\"url\": \"https://evil.example\"}", true},
        {"Cargo.lock", NULL, "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
         false},
        {"Cargo.lock", "source = \"git+https://github.com/me/a?rev=1\"",
         "source = \"git+https://github.com/evil/a?rev=1\"", true},
        {"Cargo.lock", "source = \"git+https://github.com/me/a?rev=1\"",
         "source = \"git+https://github.com/me/a?rev=2\"", false},
        {"requirements.txt", NULL, "flask==3.0", false},
        {"requirements.txt", "flask==2.0\n",
         "--index-url https://evil.example/simple\nflask==3.0\n", true},
        {"go.mod", "module a\n", "module a\nreplace b => ../b\n", true},
        {"go.mod", "replace b => ../b\n", "module a\nreplace b => ../b\n", false},
        {"notes.txt", NULL, "https://evil.example/", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        (void)unlinkat(lower, rows[i].name, 0);
        put(upper, rows[i].name, 0644, rows[i].after);
        if (rows[i].before)
            put(lower, rows[i].name, 0644, rows[i].before);
        const char *reason = reason_of(rows[i].name);
        if (rows[i].marked)
            tap_has_str(reason, new_place, "%s: %s", rows[i].name, rows[i].after);
        else
            tap_is_str(reason, NULL, "%s: %s", rows[i].name, rows[i].after);
    }
}

static void judges_unknown_settings(void)
{
    struct change change = {.layer = &layer,
                            .kind = CHANGE_ADDED,
                            .path = ".someagent/x",
                            .name = "x",
                            .lower_dir = -1,
                            .upper_dir = upper,
                            .after = {.st_mode = S_IFREG | 0644}};
    tap_is_str(risk_find_quickly(&change), "unknown settings", "a new directory with a dot");
    (void)mkdirat(lower, ".someagent", 0700);
    tap_is_str(risk_find_quickly(&change), NULL, "not one that the user has");
    change.path = ".github/ISSUE_TEMPLATE.md";
    tap_is_str(risk_find_quickly(&change), NULL, "nor one that has only known settings");
}

int main(void)
{
    hits_every_pattern();
    judges_held_names();
    table_is_complete();
    knows_names();
    judges_ends();
    matches_patterns();
    finds_credentials();
    scans_packages();
    scans_dependencies();
    char place[] = "/tmp/test_risk.XXXXXX";
    if (!mkdtemp(place) || chdir(place) < 0 || mkdir("upper", 0700) < 0 || mkdir("lower", 0700) < 0)
        tap_bail("cannot make a directory");
    upper = open("upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lower = open("lower", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    layer.lower = lower;
    judges_modes();
    judges_types_and_names();
    judges_links();
    judges_contents();
    judges_lock_files();
    judges_unknown_settings();
    judges_places();
    int top = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (chdir("/") < 0)
        tap_bail("chdir");
    (void)tree_remove(top, place + strlen("/tmp/"), NULL);
    return tap_done();
}
