/* SPDX-License-Identifier: MIT */
/* Presets of the network, one row each. */
#include "policy/net_presets.h"

#include <string.h>

#include "base/cleanup.h"

#define NPM_HOSTS "registry.npmjs.org"
#define PYPI_HOSTS "pypi.org", "files.pythonhosted.org"
#define CRATES_HOSTS "crates.io", "static.crates.io", "index.crates.io"
#define GO_HOSTS "proxy.golang.org", "sum.golang.org"

static const char *const npm_rules[] = {NPM_HOSTS, NULL};
static const char *const pypi_rules[] = {PYPI_HOSTS, NULL};
static const char *const crates_rules[] = {CRATES_HOSTS, NULL};
static const char *const go_rules[] = {GO_HOSTS, NULL};
static const char *const registries_rules[] = {NPM_HOSTS, PYPI_HOSTS, CRATES_HOSTS, GO_HOSTS, NULL};

/* Git over https and ssh, the API, and where archives, releases and large files come from. */
static const char *const github_rules[] = {
    "github.com:443,80,22",        "api.github.com:443",
    "codeload.github.com:443",     "gist.github.com:443,22",
    "ssh.github.com:443",          "uploads.github.com:443",
    "lfs.github.com:443",          "github-cloud.s3.amazonaws.com:443",
    "*.githubusercontent.com:443", NULL,
};

/* The API, and what its command line needs to log in. */
static const char *const anthropic_rules[] = {
    "api.anthropic.com:443", "console.anthropic.com:443", "statsig.anthropic.com:443",
    "claude.ai:443",         "platform.claude.com:443",   NULL,
};

static const char *const openai_rules[] = {
    "api.openai.com:443",
    "auth.openai.com:443",
    "chatgpt.com:443",
    NULL,
};

#define ALL_TOOLS (NET_TOOL_NPM | NET_TOOL_PYPI | NET_TOOL_CRATES | NET_TOOL_GO)

static const struct net_preset presets[] = {
    {"@registries", "the package registries of npm, PyPI, crates.io and Go", registries_rules,
     ALL_TOOLS},
    {"@npm", "the registry of npm", npm_rules, NET_TOOL_NPM},
    {"@pypi", "the Python package index", pypi_rules, NET_TOOL_PYPI},
    {"@crates", "the registry of Rust", crates_rules, NET_TOOL_CRATES},
    {"@go", "the module proxy of Go and its checksums", go_rules, NET_TOOL_GO},
    {"@github", "GitHub: git by https and ssh, its API, releases", github_rules, 0},
    {"@anthropic", "Anthropic's API and logging in to it", anthropic_rules, 0},
    {"@openai", "OpenAI's API and logging in to it", openai_rules, 0},
};

static const struct net_policy_alias aliases[] = {
    {"deny_all", "none", NULL},
    {"registry_allowlist", "allow", "@registries"},
};

const struct net_preset *net_presets(size_t *ret_count)
{
    *ret_count = ARRAY_LENGTH(presets);
    return presets;
}

const struct net_preset *net_preset_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (strlen(presets[i].name) == length && memcmp(presets[i].name, name, length) == 0)
            return &presets[i];
    return NULL;
}

const struct net_policy_alias *net_policy_alias_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return &aliases[i];
    return NULL;
}
