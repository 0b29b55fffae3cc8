/* SPDX-License-Identifier: MIT */
/* Finds the CA certificates of this system. libcurl knows only the place on the system that it was
 * built on. */
#include "base/certificates.h"

#include <stddef.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The certificate bundles of distributions; the first one that exists is used. */
static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* earlier Fedora */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/etc/ssl/cert.pem",                                 /* others */
};

const char *certificates_of_system(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(bundles); i++)
        if (access(bundles[i], R_OK) == 0)
            return bundles[i];
    return NULL;
}
