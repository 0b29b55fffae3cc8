/* SPDX-License-Identifier: MIT */
/* Which variables a request may set. They are refused not because the jail would not hold, but
 * because a program that fills in `env` from elsewhere must not hand over the interpreter with it. */
#include "server/environment.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* Compared whatever the case, as some programs do. */
static const char *const refused[] = {
    "LD_*",             /* the dynamic loader */
    "GLIBC_*",          /* the same */
    "MALLOC_*",         /* glibc's allocator */
    "GCONV_PATH",       /* libraries that iconv loads */
    "LOCPATH",          /* locales */
    "NLSPATH",          /* message catalogues */
    "HOSTALIASES",      /* names of hosts */
    "RES_OPTIONS",      /* the resolver */
    "LOCALDOMAIN",      /* the same */
    "PATH",             /* where programs are */
    "HOME",             /* where configuration is */
    "SHELL",            /* */
    "USER",             /* who the jail is */
    "LOGNAME",          /* the same */
    "TMPDIR",           /* what is bounded by disk_mb */
    "XDG_*",            /* where configuration is */
    "IFS",              /* how a shell splits */
    "ENV",              /* what a shell reads first */
    "BASH*",            /* the same, and functions */
    "SHELLOPTS",        /* */
    "PROMPT_COMMAND",   /* what a shell runs */
    "PS4",              /* the same */
    "ZDOTDIR",          /* what a shell reads first */
    "PYTHON*",          /* */
    "NODE_*",           /* */
    "NPM_CONFIG_*",     /* */
    "PERL*",            /* PERL5LIB, PERL5OPT, PERLLIB */
    "RUBY*",            /* */
    "GEM_*",            /* */
    "BUNDLE_*",         /* */
    "JAVA_*",           /* */
    "_JAVA_*",          /* */
    "JDK_*",            /* */
    "CLASSPATH",        /* */
    "PHP_INI_SCAN_DIR", /* */
    "PHPRC",            /* */
    "LUA_*",            /* */
    "R_*",              /* R_PROFILE and its kind */
    "GOFLAGS",          /* */
    "GOROOT",           /* */
    "RUSTC_WRAPPER",    /* */
    "CARGO_*",          /* */
    "GIT_*",            /* what git runs */
    "EDITOR",           /* the same for others */
    "PAGER",            /* */
    "BROWSER",          /* */
    "LESSOPEN",         /* */
    "OPENSSL_CONF",     /* engines that OpenSSL loads */
    "OPENSSL_ENGINES",  /* */
    "SSL_*",            /* whom TLS trusts */
    "CURL_*",           /* */
    "*_PROXY",          /* past the network door */
    "ANTHROPIC_*",      /* credentials are the operator's */
    "CLAUDE*",          /* */
    "BRIG_*",           /* */
};

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
