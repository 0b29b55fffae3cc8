/* SPDX-License-Identifier: MIT */
/* Scanners for names, links, credentials, package.json and lock files. */
#include "held/risk_text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/path.h"

/* ---- names ---- */

const char *risk_name_find(const char *path)
{
    const unsigned char *p = (const unsigned char *)path;
    size_t length = strlen(path);
    if (path[0] == '-' || strstr(path, "/-"))
        return RISK_OPTION;
    for (size_t i = 0; i < length;) {
        size_t size = utf8_length(p + i, length - i);
        if (size == 0)
            return "its name is not UTF-8";
        if (utf8_is_unseen(p + i, size))
            return size == 1 ? "its name contains control characters"
                             : "its name contains characters that are not shown";
        i += size;
    }
    return NULL;
}

/* ---- links ---- */

/* The path that a link leads to, if `..` comes first in its target, without `.` and doubled slashes. */
static bool link_resolve(const char *path, const char *target, char *to, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t used = slash ? (size_t)(slash - path) : 0;
    if (used >= size)
        return false;
    memcpy(to, path, used);
    to[used] = '\0';
    for (const char *at = target; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            char *last = strrchr(to, '/');
            used = last ? (size_t)(last - to) : 0;
            to[used] = '\0';
        } else if (length > 0 && !(length == 1 && at[0] == '.')) {
            int more =
                snprintf(to + used, size - used, "%s%.*s", used > 0 ? "/" : "", (int)length, at);
            if (more < 0 || (size_t)more >= size - used)
                return false;
            used += (size_t)more;
        }
        at += length + strspn(at + length, "/");
    }
    return used > 0;
}

bool risk_link_judge(const char *path, const char *home, const char *target,
                     struct names_mark *ret_mark)
{
    char to[PATH_LENGTH_MAX + 1], to_home[PATH_LENGTH_MAX + 1];
    *ret_mark = (struct names_mark){NAMES_UNUSUAL, NULL};
    if (target[0] == '/')
        ret_mark->reason = "a link to an absolute path";
    else if (path_leads_above(path, target))
        ret_mark->reason = "a link that leads out of the directory";
    if (ret_mark->reason)
        return true;
    bool in_home = home && link_resolve(home, target, to_home, sizeof to_home);
    if (!link_resolve(path, target, to, sizeof to) ||
        !names_judge(to, in_home ? to_home : NULL, S_IFLNK, S_IFLNK, ret_mark))
        return false;
    ret_mark->reason = ret_mark->class == NAMES_UNASKED
                           ? "a link to a name that something executes or obeys unasked"
                           : "a link to a name that has a mark";
    return true;
}

/* ---- credentials ---- */

enum alphabet { UPPER, ALNUM, WORD /* also _ and - */ };

/* Tokens begin with a fixed text and have a minimum length after it, so that the name of a kind of
 * token in documentation is not one. */
static const struct token_kind {
    const char *prefix;
    enum alphabet alphabet;
    size_t min; /* characters after the prefix */
} token_kinds[] = {
    {"AKIA", UPPER, 16},            /* Amazon */
    {"ASIA", UPPER, 16},            /* Amazon, for a session */
    {"AIza", WORD, 35},             /* Google */
    {"AGE-SECRET-KEY-", ALNUM, 40}, /* age */
    {"dckr_pat_", WORD, 20},        /* Docker */
    {"dop_v1_", ALNUM, 40},         /* DigitalOcean */
    {"ghp_", ALNUM, 30},            /* GitHub */
    {"gho_", ALNUM, 30},
    {"ghu_", ALNUM, 30},
    {"ghs_", ALNUM, 30},
    {"ghr_", ALNUM, 30},
    {"github_pat_", WORD, 22},
    {"glpat-", WORD, 20},    /* GitLab */
    {"hf_", ALNUM, 30},      /* Hugging Face */
    {"npm_", ALNUM, 30},     /* npm */
    {"pypi-AgE", WORD, 30},  /* PyPI */
    {"rk_live_", ALNUM, 16}, /* Stripe */
    {"sk_live_", ALNUM, 16},
    {"sk-ant-", WORD, 20},  /* Anthropic */
    {"sk-proj-", WORD, 20}, /* OpenAI */
    {"xoxa-", WORD, 10},    /* Slack */
    {"xoxb-", WORD, 10},
    {"xoxe-", WORD, 10},
    {"xoxp-", WORD, 10},
    {"xoxr-", WORD, 10},
    {"xoxs-", WORD, 10},
};

static const char key_begin[] = "-----BEGIN ", key_end[] = "PRIVATE KEY";
#define KEY_KIND_MAX 32 /* characters between the two, such as "ENCRYPTED " */

static bool is_upper(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z');
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_of(enum alphabet alphabet, char c)
{
    switch (alphabet) {
    case UPPER:
        return is_upper(c);
    case ALNUM:
        return is_alnum(c);
    case WORD:
        return is_alnum(c) || c == '_' || c == '-';
    }
    return false;
}

/* The length of the token at `at`, or 0. */
static size_t token_length(const char *at, size_t left)
{
    for (size_t i = 0; i < ARRAY_LENGTH(token_kinds); i++) {
        const struct token_kind *kind = &token_kinds[i];
        if (kind->prefix[0] != at[0])
            continue;
        size_t prefix = strlen(kind->prefix), length = prefix;
        if (left < prefix + kind->min || memcmp(at, kind->prefix, prefix) != 0)
            continue;
        while (length < left && is_of(kind->alphabet, at[length]))
            length++;
        if (length >= prefix + kind->min)
            return length;
    }
    return 0;
}

/* The length of the first line of a private key at `at`, with the text after it, by which two keys
 * differ; or 0. */
static size_t key_length(const char *at, size_t left)
{
    size_t begin = sizeof key_begin - 1, end = sizeof key_end - 1;
    if (left < begin || memcmp(at, key_begin, begin) != 0)
        return 0;
    for (size_t i = begin; i + end <= left && i <= begin + KEY_KIND_MAX; i++) {
        if (memcmp(at + i, key_end, end) == 0) {
            size_t room = left - i - end;
            return i + end + (room < 2 * KEY_KIND_MAX ? room : 2 * KEY_KIND_MAX);
        }
        if (!is_upper(at[i]) && at[i] != ' ')
            return 0;
    }
    return 0;
}

bool risk_token_find(const char *text, size_t length, size_t from, struct risk_token *ret_token)
{
    for (size_t i = from; i < length; i++) {
        bool inside = i > 0 && is_alnum(text[i - 1]);
        if (inside || (text[i] != '-' && !is_alnum(text[i])))
            continue;
        size_t found =
            text[i] == '-' ? key_length(text + i, length - i) : token_length(text + i, length - i);
        if (found > 0) {
            *ret_token = (struct risk_token){text + i, found};
            return true;
        }
    }
    return false;
}

/* ---- lock files ---- */

static const char *const lock_names[] = {
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "deno.lock",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "pylock.toml",
    "Pipfile.lock",
    "requirements.txt",
    "constraints.txt",
    "Gemfile.lock",
    "composer.lock",
    "go.mod",
    "mix.lock",
    "pubspec.lock",
    "Podfile.lock",
    "flake.lock",
    "Package.resolved",
};

/* What a URL begins with, after its scheme. */
static const char *const usual_sources[] = {
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "npm.jsr.io",
    "jsr.io",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "rubygems.org",
    "repo.packagist.org",
    "packagist.org",
    "hex.pm",
    "repo.hex.pm",
    "pub.dev",
    "pub.dartlang.org",
    "proxy.golang.org",
    "trunk.cocoapods.org",
    "cdn.cocoapods.org",
    "github.com/rust-lang/crates.io-index",
};

/* Sites where everybody can have a repository. */
static const char *const shared_hosts[] = {"github.com",          "gitlab.com",
                                           "bitbucket.org",       "codeberg.org",
                                           "codeload.github.com", "raw.githubusercontent.com"};

/* Members of a lock file in JSON with addresses that nothing is downloaded from. */
static const char *const lock_other_members[] = {"homepage", "issues", "docs", "funding"};

#define SOURCE_MAX 512 /* characters of an address */
#define LOCK_HEAD 1024 /* where a package-lock.json says that it is one */

bool risk_is_lock(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(lock_names); i++)
        if (strcmp(lock_names[i], name) == 0)
            return true;
    return false;
}

static bool ends_source(char c)
{
    return (unsigned char)c <= ' ' || strchr("/\"'`,;)(<>#?\\]}", c);
}

/* Whether the address at `at` is the value of a member that does not count. `"url"` counts but in a
 * package-lock.json, which has the member only for donations. */
static bool is_of_other_member(const char *text, size_t at)
{
    size_t end = at;
    while (end > 0 && at - end < SOURCE_MAX && text[end - 1] != '"' && !is_space(text[end - 1]))
        end--;
    if (end == 0 || text[--end] != '"')
        return false;
    while (end > 0 && (is_space(text[end - 1]) || text[end - 1] == ':'))
        end--;
    if (end == 0 || text[--end] != '"')
        return false;
    size_t start = end;
    while (start > 0 && end - start < SOURCE_MAX && text[start - 1] != '"')
        start--;
    if (end - start == 3 && memcmp(text + start, "url", 3) == 0)
        return memmem(text, at < LOCK_HEAD ? at : LOCK_HEAD, "\"lockfileVersion\"", 17);
    for (size_t i = 0; i < ARRAY_LENGTH(lock_other_members); i++)
        if (strlen(lock_other_members[i]) == end - start &&
            memcmp(lock_other_members[i], text + start, end - start) == 0)
            return true;
    return false;
}

static bool is_shared_host(const char *host, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(shared_hosts); i++)
        if (strlen(shared_hosts[i]) == length && memcmp(shared_hosts[i], host, length) == 0)
            return true;
    return false;
}

/* The length of what identifies a source, from its host on, with the character after it. */
static size_t source_length(const char *at, size_t left)
{
    size_t length = 0, parts = 0;
    size_t max = left < SOURCE_MAX ? left : SOURCE_MAX;
    while (length < max && !ends_source(at[length]))
        length++;
    if (is_shared_host(at, length))
        for (; length < max && parts < 2 && at[length] == '/'; parts++)
            for (length++; length < max && !ends_source(at[length]);)
                length++;
    return length < max ? length + 1 : length;
}

/* Behind the name of a user, or `at` itself. */
static size_t skip_user(const char *text, size_t length, size_t at)
{
    for (size_t i = at; i < length && i - at < SOURCE_MAX && !ends_source(text[i]); i++)
        if (text[i] == '@')
            return i + 1;
    return at;
}

bool risk_source_find(const char *text, size_t length, size_t from, struct risk_token *ret_source)
{
    for (size_t i = from; i + 3 < length; i++) {
        size_t at = 0, size = 0;
        if (text[i] == '=' && text[i + 1] == '>') {
            const char *end = memchr(text + i, '\n', length - i);
            at = i;
            size = end ? (size_t)(end - text) - i : length - i;
        } else if (memcmp(text + i, "://", 3) == 0 && !is_of_other_member(text, i)) {
            at = skip_user(text, length, i + 3);
            size = source_length(text + at, length - at);
        }
        if (size > 0) {
            *ret_source = (struct risk_token){text + at, size};
            return true;
        }
    }
    return false;
}

bool risk_source_is_usual(const struct risk_token *source)
{
    for (size_t i = 0; i < ARRAY_LENGTH(usual_sources); i++) {
        size_t length = strlen(usual_sources[i]);
        if (source->length >= length && memcmp(source->at, usual_sources[i], length) == 0 &&
            (source->length == length || ends_source(source->at[length])))
            return true;
    }
    return false;
}

/* ---- package.json ---- */

/* Members of the outermost object. `packageManager` and `volta` name programs that are downloaded; `config` is the
 * environment of scripts; `pnpm`, `trustedDependencies` and `dependenciesMeta` allow the scripts of other packages. */
static const char *const executed[] = {
    "scripts",
    "bin",
    "directories",
    "gypfile",
    "husky",
    "lint-staged",
    "pre-commit",
    "pnpm",
    "packageManager",
    "simple-git-hooks",
    "gitHooks",
    "nano-staged",
    "volta",
    "config",
    "wireit",
    "workspaces",
    "trustedDependencies",
    "dependenciesMeta",
    "patchedDependencies",
    "publishConfig",
    /* settings of tools, which name programs that these load */
    "ava",
    "babel",
    "commitlint",
    "eslintConfig",
    "jest",
    "mocha",
    "nodemonConfig",
    "nyc",
    "prettier",
    "release",
    "stylelint",
    "tap",
    "xo",
};

/* Members that name other packages. */
static const char *const dependencies[] = {
    "dependencies",       "devDependencies", "optionalDependencies",
    "peerDependencies",   "overrides",       "resolutions",
    "acceptDependencies", "catalog",         "catalogs",
};

struct scanner {
    const char *text;
    size_t length, at;
};

static void skip_space(struct scanner *s)
{
    while (s->at < s->length && is_space(s->text[s->at]))
        s->at++;
}

static bool take(struct scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->length || s->text[s->at] != c)
        return false;
    s->at++;
    return true;
}

/* Moves past a string; *ret_length is without the quotes. False if it does not end. */
static bool take_string(struct scanner *s, size_t *ret_start, size_t *ret_length)
{
    if (!take(s, '"'))
        return false;
    *ret_start = s->at;
    for (; s->at < s->length; s->at++) {
        if (s->text[s->at] == '\\')
            s->at++;
        else if (s->text[s->at] == '"')
            break;
    }
    if (s->at >= s->length)
        return false;
    *ret_length = s->at++ - *ret_start;
    return true;
}

/* Adds one token of a value to the hash. False if it cannot be part of JSON, as a comment. */
static bool take_token(struct scanner *s, struct sha256 *hash, size_t *depth)
{
    char c = s->text[s->at];
    size_t start = s->at, length;
    if (c == '"') {
        size_t text;
        if (!take_string(s, &text, &length))
            return false;
    } else if (is_alnum(c) || strchr("{}[],:+-.", c)) {
        *depth += c == '{' || c == '[';
        *depth -= c == '}' || c == ']';
        s->at++;
    } else {
        return false;
    }
    if (hash)
        sha256_add(hash, s->text + start, s->at - start);
    return true;
}

/* Whether the version of a dependency is a URL, a path or a repository ("git+ssh://…", "file:../x", "owner/name"), and
 * not a range of versions in the registry. An escaped one may be. */
static bool is_elsewhere(const char *text, size_t length)
{
    static const char *const registry[] = {"npm:", "workspace:", "catalog:"};
    for (size_t i = 0; i < ARRAY_LENGTH(registry); i++)
        if (length > strlen(registry[i]) && memcmp(text, registry[i], strlen(registry[i])) == 0)
            return false;
    return memchr(text, ':', length) || memchr(text, '/', length) || memchr(text, '\\', length);
}

/* Moves past an object of dependencies, and adds those that are not from the registry to the hash. *ret_some is set if
 * there is one. */
static bool take_dependencies(struct scanner *s, struct sha256 *hash, bool *ret_some)
{
    size_t depth = 0, name = 0, name_length = 0;
    for (skip_space(s); s->at < s->length; skip_space(s)) {
        char c = s->text[s->at];
        size_t start, length;
        if (depth == 0 && (c == ',' || c == '}'))
            return true;
        if (c != '"') {
            if (!c || (depth == 0 && c == ']') || !take_token(s, NULL, &depth))
                return false;
            continue;
        }
        if (!take_string(s, &start, &length))
            return false;
        skip_space(s);
        if (s->at < s->length && s->text[s->at] == ':') {
            name = start;
            name_length = length;
        } else if (is_elsewhere(s->text + start, length)) {
            sha256_add(hash, s->text + name, name_length);
            sha256_add(hash, s->text + start - 1, length + 2);
            *ret_some = true;
        }
    }
    return false;
}

/* Moves past a value, which ends at a comma or a brace outside of it; `hash` may be NULL. */
static bool take_value(struct scanner *s, struct sha256 *hash)
{
    size_t depth = 0;
    for (skip_space(s); s->at < s->length; skip_space(s)) {
        char c = s->text[s->at];
        if (depth == 0 && (c == ',' || c == '}'))
            return true;
        if (!c || (depth == 0 && c == ']') || !take_token(s, hash, &depth))
            return false;
    }
    return false;
}

static bool is_one_of(const char *const *names, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* Moves past the value of a member and adds what is asked for to the hash. */
static bool take_member(struct scanner *s, enum risk_package_part part, const char *name,
                        size_t length, struct sha256 *hash, bool *ret_some)
{
    if (part == RISK_PACKAGE_DEPENDENCIES)
        return is_one_of(dependencies, ARRAY_LENGTH(dependencies), name, length)
                   ? take_dependencies(s, hash, ret_some)
                   : take_value(s, NULL);
    bool watched = is_one_of(executed, ARRAY_LENGTH(executed), name, length);
    if (watched)
        sha256_add(hash, name - 1, length + 2);
    *ret_some = *ret_some || watched;
    return take_value(s, watched ? hash : NULL);
}

enum risk_package risk_package_scan(const char *text, size_t length, enum risk_package_part part,
                                    char ret_hash[SHA256_HEX_LENGTH + 1])
{
    struct scanner s = {.text = text, .length = length};
    struct sha256 hash;
    bool some = false;
    sha256_begin(&hash);
    if (!take(&s, '{'))
        return RISK_PACKAGE_UNSURE;
    for (bool first = true; !take(&s, '}'); first = false) {
        size_t name, name_length;
        if ((!first && !take(&s, ',')) || !take_string(&s, &name, &name_length) || !take(&s, ':'))
            return RISK_PACKAGE_UNSURE;
        /* "\u0073cripts" is the same name; no honest program writes it so. */
        if (memchr(text + name, '\\', name_length))
            return RISK_PACKAGE_UNSURE;
        if (!take_member(&s, part, text + name, name_length, &hash, &some))
            return RISK_PACKAGE_UNSURE;
    }
    skip_space(&s);
    sha256_end(&hash, ret_hash);
    if (s.at < s.length)
        return RISK_PACKAGE_UNSURE;
    return some ? RISK_PACKAGE_SOME : RISK_PACKAGE_NONE;
}

/* ---- contents ---- */

#define BINARY_BYTES 8000 /* git takes a file for binary if one of these is NUL */
#define TOKENS_MAX 64     /* credentials of one file that are compared with the version before */

enum content_kind { CONTENT_PACKAGE, CONTENT_LOCK, CONTENT_TEXT };

static enum content_kind content_kind(const char *name)
{
    if (strcmp(name, "package.json") == 0)
        return CONTENT_PACKAGE;
    return risk_is_lock(name) ? CONTENT_LOCK : CONTENT_TEXT;
}

size_t risk_content_max(const char *name)
{
    static const size_t limits[] = {[CONTENT_PACKAGE] = RISK_PACKAGE_MAX,
                                    [CONTENT_LOCK] = RISK_LOCK_MAX,
                                    [CONTENT_TEXT] = RISK_TEXT_MAX};
    return limits[content_kind(name)];
}

/* The part that is searched for credentials: nothing of a binary file. */
static size_t content_text_length(const struct risk_content *content)
{
    size_t first = content->length < BINARY_BYTES ? content->length : BINARY_BYTES;
    if (first > 0 && memchr(content->data, '\0', first))
        return 0;
    return content->length < RISK_TEXT_MAX ? content->length : RISK_TEXT_MAX;
}

bool risk_content_compares(const char *name, const struct risk_content *after)
{
    struct risk_token token;
    return content_kind(name) != CONTENT_TEXT ||
           risk_token_find(after->data, content_text_length(after), 0, &token);
}

/* Whether the text has a credential that the version before does not have. */
static bool content_has_new_credential(const struct risk_content *before,
                                       const struct risk_content *after)
{
    struct risk_token token;
    size_t from = 0, length = content_text_length(after);
    for (size_t i = 0; risk_token_find(after->data, length, from, &token); i++) {
        if (i == TOKENS_MAX || before->length == 0 ||
            !memmem(before->data, before->length, token.at, token.length))
            return true;
        from = (size_t)(token.at - after->data) + token.length;
    }
    return false;
}

static enum risk_package content_scan(const struct risk_content *content,
                                      enum risk_package_part part, char hash[SHA256_HEX_LENGTH + 1])
{
    return content->cut ? RISK_PACKAGE_UNSURE
                        : risk_package_scan(content->length > 0 ? content->data : "",
                                            content->length, part, hash);
}

/* Whether this part of a package.json differs. */
static bool content_has_other_part(const struct risk_content *before,
                                   const struct risk_content *after, enum risk_package_part part)
{
    char hashes[2][SHA256_HEX_LENGTH + 1];
    enum risk_package is = content_scan(after, part, hashes[1]);
    if (is != RISK_PACKAGE_SOME)
        return is == RISK_PACKAGE_UNSURE;
    return !before->exists || content_scan(before, part, hashes[0]) != is ||
           strcmp(hashes[0], hashes[1]) != 0;
}

/* Whether a lock file names a source of packages that the version before does not name. */
static const char *content_find_in_lock(const struct risk_content *before,
                                        const struct risk_content *after)
{
    struct risk_token source;
    if (after->cut)
        return "a lock file that is too large to be read";
    for (size_t from = 0; risk_source_find(after->data, after->length, from, &source);) {
        bool known = before->length > 0
                         ? memmem(before->data, before->length, source.at, source.length) != NULL
                         : risk_source_is_usual(&source);
        if (!known)
            return "downloads packages from a place that is new in it";
        from = (size_t)(source.at - after->data) + source.length;
    }
    return NULL;
}

const char *risk_content_find(const char *name, const struct risk_content *before,
                              const struct risk_content *after)
{
    enum content_kind kind = content_kind(name);
    if (kind == CONTENT_PACKAGE && content_has_other_part(before, after, RISK_PACKAGE_SCRIPTS))
        return "scripts that a package manager runs";
    if (kind == CONTENT_PACKAGE && content_has_other_part(before, after, RISK_PACKAGE_DEPENDENCIES))
        return "a dependency that is not from the registry";
    const char *reason = kind == CONTENT_LOCK ? content_find_in_lock(before, after) : NULL;
    if (reason)
        return reason;
    return content_has_new_credential(before, after) ? "looks as if it contains a credential"
                                                     : NULL;
}
