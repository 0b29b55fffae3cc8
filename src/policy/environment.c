/* SPDX-License-Identifier: MIT */
/* The environment of a command, from the caller's environment and the policy's rules. Three layers,
 * each overriding the previous one: the caller's variables that the mode passes on, variables of
 * the jail (PATH, HOME, USER, LOGNAME, TMPDIR), and the rules in order. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"

/* A larger environment of the caller is refused: names are looked up linearly, and execve() would
 * hardly accept that many. */
#define ENVIRONMENT_MAX 8192

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* The user and the home of a jail if the policy names none; the same as in the engine's passwd. */
#define DEFAULT_USER "brig"
#define ENV_NAME_SHOWN 64
#define HOME_SIZE 512  /* for /home/ and the longest user name */
#define JAIL_NAMES 5   /* the maximum that apply_jail() adds */
#define PROXY_NAMES 10 /* set for a network with a door */

struct variable {
    const char *name; /* name_length bytes, followed by '=' or NUL */
    size_t name_length;
    const char *value; /* NULL: unset */
    uint32_t letters;  /* see letters_of() */
};

struct variables {
    struct variable *items;
    size_t count;
};

/* ---- patterns ---- */

static char folded(char c, bool fold)
{
    return fold && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Matches a text of `length` bytes. */
static bool matches_text(const char *pattern, const char *text, size_t length, bool fold)
{
    /* The last '*' and the text position it was tried at: on a mismatch it consumes one more
     * character. Earlier ones need not be retried, so the time is at most pattern times text. */
    const char *star = NULL, *retry = NULL, *end = text + length;
    while (text < end) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
            continue;
        }
        /* A backslash at the end of the pattern is literal. */
        size_t quoted = pattern[0] == '\\' && pattern[1] ? 1 : 0;
        if (*pattern && folded(pattern[quoted], fold) == folded(*text, fold)) {
            pattern += quoted + 1;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool policy_pattern_matches(const char *pattern, const char *text)
{
    return matches_text(pattern, text, strlen(text), false);
}

#define SCHEME_MARK "://"

/* Whether one of the URLs in a value, such as scheme://user:secret@host, matches: each from its
 * scheme to the end of its host, because a '@' or a ':' after the host has another meaning. */
static bool has_address(const char *pattern, const char *value)
{
    static const char scheme[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
    const char *from = value;
    for (const char *mark; (mark = strstr(from, SCHEME_MARK));) {
        const char *start = mark;
        while (start > from && strchr(scheme, start[-1]))
            start--;
        const char *rest = mark + strlen(SCHEME_MARK);
        size_t length = (size_t)(rest - start) + strcspn(rest, "/?# \t\r\n,;|<>\"'");
        if (matches_text(pattern, start, length, true))
            return true;
        from = start + length;
    }
    return false;
}

bool policy_filter_matches(const char *pattern, const char *name, size_t name_length,
                           const char *value)
{
    return strstr(pattern, SCHEME_MARK) ? has_address(pattern, value)
                                        : matches_text(pattern, name, name_length, true);
}

/* ---- variables ---- */

static struct variable *find(const struct variables *all, const char *name, size_t length)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].name_length == length && memcmp(all->items[i].name, name, length) == 0)
            return &all->items[i];
    return NULL;
}

/* A set of the letters in a text, ignoring case; other characters may share a bit. A name that
 * lacks a letter of a pattern cannot match it. Without this test, a hundred names and a hundred
 * patterns would take a millisecond. */
static uint32_t letters_of(const char *text, size_t length)
{
    uint32_t letters = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '*' && text[i] != '\\')
            letters |= UINT32_C(1) << ((unsigned char)text[i] & 31);
    return letters;
}

/* The caller has counted the room for it. */
static void set(struct variables *all, const char *name, size_t length, const char *value)
{
    struct variable *found = find(all, name, length);
    if (!found)
        found = &all->items[all->count++];
    *found = (struct variable){name, length, value, letters_of(name, length)};
}

/* Reads the caller's variables; the last value of a duplicate wins. */
static void read_caller(const char *const *envp, struct variables *all)
{
    for (; envp && *envp; envp++) {
        const char *equals = strchr(*envp, '=');
        if (!equals || equals == *envp)
            continue;
        set(all, *envp, (size_t)(equals - *envp), equals + 1);
    }
}

static bool mode_keeps(const struct policy_mode *mode, const struct variable *variable)
{
    bool kept = !mode->env_keep;
    for (const char *const *pattern = mode->env_keep; !kept && *pattern; pattern++)
        kept = matches_text(*pattern, variable->name, variable->name_length, false);
    return kept;
}

static void apply_mode(const struct policy_mode *mode, struct variables *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!mode_keeps(mode, &all->items[i]))
            all->items[i].value = NULL;
}

/* Refuses variables that a program gives on purpose, and that would not be passed on. */
static int check_given(const struct brig_policy *policy, const struct policy_mode *mode,
                       const char *const *envp, const struct variables *caller,
                       struct brig_error *err)
{
    for (; envp && *envp && !policy->host_env; envp++)
        if (**envp == '=' || !strchr(*envp, '='))
            return brig_fail(err, BRIG_E_INVALID, 0, "envp: '%s' is not of the form NAME=VALUE",
                             str_shown(*envp).text);
    for (size_t i = 0; i < caller->count && !policy->host_env; i++) {
        const struct variable *given = &caller->items[i];
        char name[ENV_NAME_SHOWN];
        if (mode_keeps(mode, given) ||
            policy_env_rule(policy, given->name, given->name_length, given->value))
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)given->name_length, given->name);
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "envp: the mode '%s' does not pass on '%s'. Set it with "
            "brig_policy_setenv(), or say with brig_policy_host_env() that envp is the "
            "host's and what the mode does not pass on is left out",
            policy_word(POLICY_MODE, (int)policy->mode), str_shown(name).text);
    }
    return 0;
}

static void set_named(struct variables *all, const char *name, const char *value)
{
    if (value)
        set(all, name, strlen(name), value);
}

static void apply_jail(const struct brig_policy *policy, const char *default_home,
                       struct variables *all)
{
    const struct variable *path = find(all, "PATH", strlen("PATH"));
    if (!path || !path->value)
        set_named(all, "PATH", DEFAULT_PATH);
    const struct variable *home = find(all, "HOME", strlen("HOME"));
    if (policy->home || !home || !home->value)
        set_named(all, "HOME", policy->home ? policy->home : default_home);
    set_named(all, "USER", policy->user_name);
    set_named(all, "LOGNAME", policy->user_name);
    /* The caller's value may name a directory that does not exist inside. */
    set_named(all, "TMPDIR", "/tmp");
}

/* The usual names, each in both cases, because programs do not agree on them. */
static const struct {
    const char *name;
    const char *value; /* with --proxy-env */
} proxy_names[] = {
    {"HTTP_PROXY", POLICY_PROXY_HTTP_URL},
    {"http_proxy", POLICY_PROXY_HTTP_URL},
    {"HTTPS_PROXY", POLICY_PROXY_HTTP_URL},
    {"https_proxy", POLICY_PROXY_HTTP_URL},
    {"ALL_PROXY", POLICY_PROXY_SOCKS_URL},
    {"all_proxy", POLICY_PROXY_SOCKS_URL},
    {"NO_PROXY", "localhost,127.0.0.1,::1," POLICY_INJECT_ADDRESS},
    {"no_proxy", "localhost,127.0.0.1,::1," POLICY_INJECT_ADDRESS},
    {"FTP_PROXY", NULL},
    {"ftp_proxy", NULL},
};
_Static_assert(ARRAY_LENGTH(proxy_names) <= PROXY_NAMES, "there is room for all");

/* With a door the caller's proxy is unreachable from the jail: the broker uses it. */
static void apply_network(const struct brig_policy *policy, struct variables *all)
{
    for (size_t i = 0; policy_has_door(policy) && i < ARRAY_LENGTH(proxy_names); i++) {
        const char *name = proxy_names[i].name;
        struct variable *had = find(all, name, strlen(name));
        if (had)
            had->value = NULL;
        if (policy->net.proxy_env)
            set_named(all, name, proxy_names[i].value);
    }
}

static void apply_filter(const char *pattern, struct variables *all)
{
    bool address = strstr(pattern, SCHEME_MARK);
    uint32_t letters = address ? 0 : letters_of(pattern, strlen(pattern));
    for (size_t i = 0; i < all->count; i++) {
        struct variable *variable = &all->items[i];
        if (variable->value && !(letters & ~variable->letters) &&
            policy_filter_matches(pattern, variable->name, variable->name_length, variable->value))
            variable->value = NULL;
    }
}

static bool is_named(const char *rule, const char *name, size_t length)
{
    return strchr(rule, '*') ? matches_text(rule, name, length, true)
                             : length == strlen(rule) && memcmp(name, rule, length) == 0;
}

const struct policy_env *policy_env_rule(const struct brig_policy *policy, const char *name,
                                         size_t length, const char *value)
{
    for (size_t i = policy->env_count; i > 0; i--) {
        const struct policy_env *rule = &policy->env[i - 1];
        bool matches = rule->kind == POLICY_ENV_UNSET
                           ? policy_filter_matches(rule->name, name, length, value)
                           : is_named(rule->name, name, length);
        if (matches)
            return rule;
    }
    return NULL;
}

/* A variable that the caller does not have cannot be exposed; the rule is then ignored. */
static void expose(const char *name, const struct variables *caller, struct variables *all)
{
    for (size_t i = 0; i < caller->count; i++) {
        const struct variable *had = &caller->items[i];
        if (is_named(name, had->name, had->name_length))
            set(all, had->name, had->name_length, had->value);
    }
}

static void apply_rules(const struct brig_policy *policy, const struct variables *caller,
                        struct variables *all)
{
    for (size_t r = 0; r < policy->env_count; r++) {
        const struct policy_env *rule = &policy->env[r];
        switch (rule->kind) {
        case POLICY_ENV_SET:
            set_named(all, rule->name, rule->value);
            break;
        case POLICY_ENV_EXPOSE:
            expose(rule->name, caller, all);
            break;
        case POLICY_ENV_UNSET:
            apply_filter(rule->name, all);
            break;
        }
    }
}

/* Builds the array and the strings in one allocation. */
static char **pack(const struct variables *all)
{
    size_t count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (!all->items[i].value)
            continue;
        count++;
        bytes += all->items[i].name_length + strlen(all->items[i].value) + 2;
    }
    char **env = malloc((count + 1) * sizeof *env + bytes);
    if (!env)
        return NULL;
    char *p = (char *)(env + count + 1);
    size_t next = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct variable *variable = &all->items[i];
        if (!variable->value)
            continue;
        env[next++] = p;
        p = mempcpy(p, variable->name, variable->name_length);
        *p++ = '=';
        size_t size = strlen(variable->value) + 1;
        p = mempcpy(p, variable->value, size);
    }
    env[next] = NULL;
    return env;
}

int policy_environment(const struct brig_policy *policy, const char *const *envp, char ***ret_env,
                       struct brig_error *err)
{
    const struct policy_mode *mode = policy_mode_row(policy->mode);
    if (!mode)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown mode %d", (int)policy->mode);
    size_t given = 0;
    while (envp && envp[given])
        if (++given > ENVIRONMENT_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the environment has too many variables: at most %d are possible",
                             ENVIRONMENT_MAX);
    autofree struct variable *caller_items = calloc(given + 1, sizeof *caller_items);
    autofree struct variable *items =
        calloc(given + policy->env_count + JAIL_NAMES + PROXY_NAMES, sizeof *items);
    if (!caller_items || !items)
        return brig_fail_nomem(err);
    struct variables caller = {.items = caller_items};
    struct variables all = {.items = items};
    read_caller(envp, &caller);
    int result = check_given(policy, mode, envp, &caller, err);
    if (result < 0)
        return result;
    memcpy(items, caller_items, caller.count * sizeof *items);
    all.count = caller.count;
    apply_mode(mode, &all);
    char home[HOME_SIZE];
    (void)str_fill(home, sizeof home, "/home/",
                   policy->user_name ? policy->user_name : DEFAULT_USER);
    apply_jail(policy, home, &all);
    apply_network(policy, &all);
    apply_rules(policy, &caller, &all);
    char **env = pack(&all);
    if (!env)
        return brig_fail_nomem(err);
    *ret_env = env;
    return 0;
}

/* ---- builders ---- */

#define POLICY_ENV_TEXT_MAX 131071 /* the limit of execve() for one string, without the NUL */

static int add_env(struct brig_policy *policy, enum policy_env_kind kind, const char *name,
                   const char *value, struct brig_error *err)
{
    if (!name || !*name || strchr(name, '='))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad environment %s '%s': it is not empty and has no '='",
                         kind == POLICY_ENV_UNSET ? "pattern" : "name", str_shown(name).text);
    size_t length = strlen(name) + (value ? strlen(value) + 1 : 0);
    if (length > POLICY_ENV_TEXT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "environment variable '%s' is too long: %zu bytes, at most %d",
                         str_shown(name).text, length, POLICY_ENV_TEXT_MAX);
    if (policy->env_count == POLICY_ENV_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "too many environment rules: at most %d are possible", POLICY_ENV_MAX);
    struct policy_env rule = {.kind = kind};
    int rc;
    if ((rc = policy_text(policy, name, &rule.name, err)) < 0 ||
        (rc = policy_text(policy, value, &rule.value, err)) < 0 ||
        (rc = policy_text(policy, policy->origin, &rule.origin, err)) < 0)
        return rc;
    if (!array_grow(&policy->env, policy->env_count))
        return brig_fail_nomem(err);
    policy->env[policy->env_count++] = rule;
    return 0;
}

int brig_policy_setenv(struct brig_policy *policy, const char *name, const char *value,
                       struct brig_error *err)
{
    return add_env(policy, value ? POLICY_ENV_SET : POLICY_ENV_EXPOSE, name, value, err);
}

int brig_policy_host_env(struct brig_policy *policy, int on, struct brig_error *err)
{
    (void)err;
    policy->host_env = on;
    return 0;
}

int brig_policy_unsetenv(struct brig_policy *policy, const char *pattern, struct brig_error *err)
{
    return add_env(policy, POLICY_ENV_UNSET, pattern, NULL, err);
}
