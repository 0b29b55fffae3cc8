/* SPDX-License-Identifier: MIT */
/* Credentials in the configuration of tools, and the presets. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/credentials/inject.h"
#include "policy/policy.h"
#include "tap.h"

static struct brig_error err;

static const char *variable(const char *name)
{
    return strcmp(name, "TOKEN") == 0 ? "from-variable" : NULL;
}

struct row {
    const char *text;
    const char *name, *upstream, *suffix, *user, *secret; /* name NULL: no credential */
};

static void check(const struct row *row, int status, struct inject_spec *spec)
{
    tap_is_int(status, row->name ? 1 : 0, "'%s'", row->text);
    if (row->name && status > 0) {
        tap_is_str(spec->name, row->name, "its name");
        tap_is_str(spec->upstream, row->upstream, "its server");
        tap_is_str(spec->suffix, row->suffix, "its path");
        tap_is_str(spec->user, row->user, "its user");
        tap_is_str(spec->secret, row->secret, "its secret");
    }
    inject_done(spec);
}

static void test_urls(void)
{
    static const struct row rows[] = {
        {"https://me:pa%40ss@git.example/a/b.git", "git.example", "https://git.example", "/a/b.git",
         "me", "pa@ss"},
        {"http://me:p:q@git.example:8080", "git.example", "http://git.example:8080", "", "me",
         "p:q"},
        {"https://:token@git.example/", "git.example", "https://git.example", "/", "", "token"},
        {"https://a:b@10.0.0.1:3000/x", "10-0-0-1.ip.invalid", "https://10.0.0.1:3000", "/x", "a",
         "b"},
        {"https://a:b%@git.example/?q", "git.example", "https://git.example", "/", "a", "b%"},
        {.text = "https://git.example/a@b:c"},
        {.text = "https://me@git.example/"},
        {.text = "https://me:@git.example/"},
        {.text = "ssh://me:pass@git.example/"},
        {.text = "https://me:pass@/"},
        {.text = "me@git.example:a/b"},
        {.text = ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct inject_spec spec = {0};
        int status = inject_from_url(rows[i].text, &spec, &err);
        check(&rows[i], status, &spec);
    }
}

static void test_npmrc(void)
{
    static const struct row rows[] = {
        {"//registry.npmjs.org/:_authToken=abc\n", "registry.npmjs.org",
         "https://registry.npmjs.org", "/", "", "abc"},
        {"registry = \"https://npm.example/a/b/\"\n//npm.example/a/b/:_authToken = ${TOKEN}\n",
         "npm.example", "https://npm.example", "/a/b/", "", "from-variable"},
        {"registry=https://npm.example:1/a/b\n//npm.example:1/:_authToken=x", "npm.example",
         "https://npm.example:1", "/a/b", "", "x"},
        {"//registry.npmjs.org/:_auth=YTpi\n", "registry.npmjs.org", "https://registry.npmjs.org",
         "/", "", "Basic YTpi"},
        {.text = "registry=https://npm.example/\n//other.example/:_authToken=x\n"},
        {.text = "#//registry.npmjs.org/:_authToken=abc\n"},
        {.text = "registry=ftp://npm.example/\n"},
        {.text = ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct inject_spec spec = {0};
        int status = inject_from_npmrc(rows[i].text, variable, &spec, &err);
        check(&rows[i], status, &spec);
    }
}

static void test_pip(void)
{
    autofree char *url = NULL;
    tap_is_int(
        inject_pip_index("[global]\nindex-url = https://a:b@pypi.example/simple\n", &url, &err), 1,
        "an index of pip");
    tap_is_str(url, "https://a:b@pypi.example/simple", "and its URL");
    tap_is_int(inject_pip_index("[global]\nextra-index-url=https://x\n", &url, &err), 0,
               "no index");
}

static void test_presets(void)
{
    static const char *const names[] = {"@anthropic", "@openai", "@gemini", "@openrouter",
                                        "@github",    "@npm",    "@pypi"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct inject_spec spec;
        size_t row = 0;
        for (; inject_parse(names[i], row, &spec, &err) == 0; row++)
            inject_done(&spec);
        tap_is_int((int)row, strcmp(names[i], "@github") == 0 ? 2 : 1, "%s: its services",
                   names[i]);
    }
}

int main(void)
{
    test_urls();
    test_npmrc();
    test_pip();
    test_presets();
    return tap_done();
}
