/* SPDX-License-Identifier: MIT */
/* Which environment variables a request may set. The jail is safe with all of them. Some are
 * refused so that a program which fills in `env` from untrusted data does not give away control of
 * the interpreter. */
#include "server/environment.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* Compared without case, as some programs do. */
static const char *const refused[] = {
    /* the dynamic loader, and what glibc loads or resolves */
    "LD_*", "GLIBC_*", "MALLOC_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS",
    "LOCALDOMAIN",
    /* location of programs and configuration, and identity; TMPDIR is limited by disk_mb */
    "PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "XDG_*",
    /* how a shell splits words, what it reads first, what it runs */
    "IFS", "ENV", "BASH*", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "ZDOTDIR",
    /* what interpreters and compilers load */
    "PYTHON*", "NODE_*", "NPM_CONFIG_*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "JAVA_*", "_JAVA_*",
    "JDK_*", "CLASSPATH", "PHP_INI_SCAN_DIR", "PHPRC", "LUA_*", "R_*", "GOFLAGS", "GOROOT",
    "RUSTC_WRAPPER", "CARGO_*",
    /* what git and others run */
    "GIT_*", "EDITOR", "PAGER", "BROWSER", "LESSOPEN",
    /* engines that OpenSSL loads, trusted CAs, and ways around the broker */
    "OPENSSL_CONF", "OPENSSL_ENGINES", "SSL_*", "CURL_*", "*_PROXY",
    /* credentials belong to the operator */
    "ANTHROPIC_*", "CLAUDE*", "BRIG_*"};

bool environment_name_is_valid(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    return true;
}

bool environment_name_is_refused(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++)
        if (fnmatch(refused[i], name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

bool environment_takes(const char *name)
{
    return environment_name_is_valid(name) && !environment_name_is_refused(name);
}
