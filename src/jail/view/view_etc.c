/* SPDX-License-Identifier: MIT */
/* The files of the host's /etc that a view of the system shows. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "jail/view/view.h"
#include "jail/view/view_build.h"

/* Name resolution depends on the network: when an entry is used. */
enum etc_when {
    ETC_ALWAYS,
    ETC_NO_DOOR,  /* with a network door view_add_door() supplies it */
    ETC_HOST_NET, /* only with the host's network */
    ETC_LINK,     /* always; kept as a symlink if it points into /usr */
    ETC_ALONE,    /* only without namespaces; else brig makes the file or no program needs it */
};

/* What installed programs do not work without, or would do something else without. Each row that exists
 * costs a launch up to 30 µs, so there is none for comfort. It is configuration that every user of the machine can read, and it holds no
 * secret even where an administrator has changed it. For that reason these are left out: environment,
 * profile and profile.d, shells' start-up files, gitconfig, npmrc, pip.conf, wgetrc, xdg (it may hold
 * another pip.conf), php, jupyter, odbc.ini, and of maven and R the files with an administrator's settings. machine-id identifies the
 * host. A '*' stands for any text in the first name below /etc. */
static const struct etc_entry {
    const char *path;
    enum etc_when when;
} etc_entries[] = {
    {"/etc/ImageMagick-*", ETC_ALWAYS},             /* convert: without its policy it allows more */
    {"/etc/R/Makeconf", ETC_ALWAYS},                /* R: building packages */
    {"/etc/R/Renviron", ETC_ALWAYS},                /* R does not start without it */
    {"/etc/R/ldpaths", ETC_ALWAYS},                 /* R does not start without it */
    {"/etc/alternatives", ETC_ALWAYS},              /* /usr/bin/awk and others are links into it */
    {"/etc/ca-certificates/extracted", ETC_ALWAYS}, /* Arch's certificates */
    {"/etc/chromium/initial_preferences", ETC_ALWAYS}, /* chromium: defaults */
    {"/etc/chromium/master_preferences", ETC_ALWAYS},  /* the same in older versions */
    {"/etc/chromium/policies/managed", ETC_ALWAYS},    /* policies; not enrollment, it has tokens */
    {"/etc/chromium/policies/recommended", ETC_ALWAYS}, /* policies */
    {"/etc/chromium.d", ETC_ALWAYS},      /* chromium: Debian's start script reads it */
    {"/etc/crypto-policies", ETC_ALWAYS}, /* Fedora's OpenSSL includes it */
    {"/etc/debian_version", ETC_ALWAYS},  /* which distribution this is */
    {"/etc/emacs", ETC_ALWAYS},           /* emacs: site-start of Debian's packages */
    {"/etc/firefox-esr", ETC_ALWAYS},     /* the same in Debian */
    {"/etc/fonts", ETC_ALWAYS},           /* fontconfig: browsers, emacs, plots, PDF */
    {"/etc/fpc*.cfg", ETC_ALWAYS},        /* Free Pascal: where its units are */
    {"/etc/ghostscript", ETC_ALWAYS},     /* gs: fonts */
    {"/etc/gnucobol", ETC_ALWAYS},        /* cobc: the COBOL dialects */
    {"/etc/group", ETC_ALONE},            /* getgrgid */
    {"/etc/hosts", ETC_ALONE},            /* getaddrinfo */
    {"/etc/java-*-openjdk", ETC_ALWAYS},  /* java, javac: security properties, logging */
    {"/etc/ld.so.cache", ETC_ALWAYS},     /* the dynamic linker */
    {"/etc/ld.so.conf", ETC_ALONE},       /* ldconfig */
    {"/etc/ld.so.conf.d", ETC_ALONE},     /* ldconfig */
    {"/etc/localtime", ETC_LINK},         /* local time */
    {"/etc/lsb-release", ETC_LINK},       /* which distribution this is */
    {"/etc/man_db.conf", ETC_ALWAYS},     /* man, as Fedora names it */
    {"/etc/manpath.config", ETC_ALWAYS},  /* man finds no page without it */
    {"/etc/maven/logging/simplelogger.properties", ETC_ALWAYS}, /* mvn */
    {"/etc/maven/m2.conf", ETC_ALWAYS},                         /* mvn does not start without it */
    {"/etc/mime.types", ETC_ALWAYS},       /* web servers and Python: types of files */
    {"/etc/mono", ETC_ALWAYS},             /* mono: which libraries it loads */
    {"/etc/nsswitch.conf", ETC_NO_DOOR},   /* getpwuid, getaddrinfo */
    {"/etc/os-release", ETC_LINK},         /* which distribution this is */
    {"/etc/passwd", ETC_ALONE},            /* getpwuid */
    {"/etc/pki/ca-trust", ETC_ALWAYS},     /* Fedora's certificates */
    {"/etc/pki/tls/cert.pem", ETC_ALWAYS}, /* Fedora's certificates, never /etc/pki/tls/private */
    {"/etc/pki/tls/certs", ETC_ALWAYS},    /* Fedora's certificates */
    {"/etc/pki/tls/ct_log_list.cnf", ETC_ALWAYS}, /* Fedora's OpenSSL */
    {"/etc/pki/tls/openssl.cnf", ETC_ALWAYS},     /* Fedora's OpenSSL */
    {"/etc/pki/tls/openssl.d", ETC_ALWAYS},       /* Fedora's OpenSSL includes it */
    {"/etc/protocols", ETC_ALWAYS},               /* getprotobyname */
    {"/etc/resolv.conf", ETC_HOST_NET},           /* name resolution */
    {"/etc/services", ETC_ALWAYS},                /* getservbyname: ports */
    {"/etc/ssl/certs", ETC_ALWAYS},               /* certificates, never /etc/ssl/private */
    {"/etc/ssl/openssl.cnf", ETC_ALWAYS},         /* OpenSSL */
    {"/etc/texmf", ETC_ALWAYS},                   /* TeX */
    {"/etc/timezone", ETC_ALWAYS},                /* local time, for Java and Python */
    {"/etc/xml", ETC_ALWAYS},                     /* catalogs of xmllint and xsltproc */
};

#define ETC "/etc/"

static bool is_pattern(const struct etc_entry *entry)
{
    return strchr(entry->path, '*') != NULL;
}

static bool fits(const struct etc_entry *entry, const char *name)
{
    return fnmatch(entry->path + strlen(ETC), name, FNM_NOESCAPE | FNM_PERIOD) == 0;
}

/* For scandir(). */
static int fits_a_pattern(const struct dirent *item)
{
    for (size_t i = 0; i < ARRAY_LENGTH(etc_entries); i++)
        if (is_pattern(&etc_entries[i]) && fits(&etc_entries[i], item->d_name))
            return 1;
    return 0;
}

typedef void etc_visit(struct view *view, const char *path, enum etc_when when);

/* Calls visit with each path of the table that may exist, in the order of the table. */
static void visit_entries(struct view *view, etc_visit *visit)
{
    struct dirent **names = NULL;
    int count = scandir(ETC, &names, fits_a_pattern, alphasort);
    for (size_t i = 0; i < ARRAY_LENGTH(etc_entries); i++) {
        const struct etc_entry *entry = &etc_entries[i];
        if (!is_pattern(entry))
            visit(view, entry->path, entry->when);
        for (int k = 0; is_pattern(entry) && k < count; k++)
            if (fits(entry, names[k]->d_name))
                visit(view, arena_concat(&view->plan->arena, ETC, names[k]->d_name), entry->when);
    }
    for (int k = 0; k < count; k++)
        free(names[k]);
    free(names);
}

static bool is_shown(enum etc_when when, const struct brig_policy *policy)
{
    switch (when) {
    case ETC_ALWAYS:
    case ETC_LINK:
        return true;
    case ETC_NO_DOOR:
        return !policy_has_door(policy);
    case ETC_HOST_NET:
        return policy->network == BRIG_NET_HOST;
    case ETC_ALONE:
        return false;
    }
    return false;
}

static bool leads_into_usr(const char *target)
{
    return strncmp(target, "/usr/", 5) == 0 || strncmp(target, "../usr/", 7) == 0;
}

/* Whether every user can read the file. If root starts the jail, a copy, or a mount of a file in
 * a directory, would show what an administrator has hidden from others. */
static bool is_for_all(const char *path, struct stat *ret_info)
{
    char part[PATH_LENGTH_MAX + 1];
    for (const char *at = path + strlen(ETC); (at = strchr(at, '/')); at++) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        if (stat(part, ret_info) < 0 || !(ret_info->st_mode & S_IXOTH))
            return false;
    }
    if (stat(path, ret_info) < 0)
        return false;
    mode_t needed = S_ISDIR(ret_info->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    return (ret_info->st_mode & needed) == needed;
}

static void show(struct view *view, const char *path, enum etc_when when)
{
    struct stat info;
    char target[VIEW_LINK_BYTES];
    if (!path || !is_shown(when, view->policy))
        return;
    if (when == ETC_LINK && view_read_link(path, target) && leads_into_usr(target))
        view_repeat_link(view, path, target);
    else if (is_for_all(path, &info) && !(S_ISREG(info.st_mode) && view_copy_file(view, path)))
        view_bind_read_only(view, path, &info);
}

void view_add_etc(struct view *view)
{
    visit_entries(view, show);
}

static void allow(struct view *view, const char *path, enum etc_when when)
{
    (void)when;
    if (path)
        view_path_rule(view, path, LANDLOCK_GRANT_READ);
}

void view_add_etc_rules(struct view *view)
{
    visit_entries(view, allow);
}
