/* SPDX-License-Identifier: MIT */
/* Which files a broker reads while it runs. */
#include "net/broker_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define RESOLV_CONF "/etc/resolv.conf"

/* How to resolve; c-ares reads all of these. Where a program writes resolv.conf, its directory stands
 * for the file: a new one takes the old one's place, and a rule for a file is not for its successor. */
static const char *const resolving[] = {
    RESOLV_CONF,
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/svc.conf",
    "/dev/urandom", /* for the ids of its queries, when it begins anew */
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/connman",
};

/* Where distributions have their certificates; the first that is there is used. */
static const char *const certificates[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* the same, earlier */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/etc/ssl/cert.pem",                                 /* others */
};

const char *files_certificates(const struct broker_config *config)
{
    if (config->ca)
        return config->ca;
    for (size_t i = 0; i < ARRAY_LENGTH(certificates); i++)
        if (access(certificates[i], R_OK) == 0)
            return certificates[i];
    return NULL;
}

/* The directory in which resolv.conf really is. A plain file in /etc means: the files of /etc, those
 * that everybody may read. */
static const char *resolv_directory(struct broker_config *config)
{
    autofree char *path = realpath(RESOLV_CONF, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash || slash == path)
        return NULL;
    *slash = 0;
    return arena_strdup(&config->arena, path);
}

void files_needed(struct broker_config *config, const char *files[FILES_MAX + 1])
{
    size_t count = 0;
    const char *directory = resolv_directory(config);
    for (size_t i = 0; i < ARRAY_LENGTH(resolving); i++)
        files[count++] = resolving[i];
    if (directory && config->resolver_count == 0)
        files[count++] = directory;
    const char *ca = config->inject_count > 0 ? files_certificates(config) : NULL;
    if (ca)
        files[count++] = ca;
    files[count] = NULL;
}
