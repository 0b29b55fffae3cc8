/* SPDX-License-Identifier: MIT */
/* The HTTPS certificate. */
#include "server/http/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define CHAIN_MAX 16

struct certificate {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_length;
    gnutls_privkey_t key;
    struct certificate *earlier;
};

/* A global, because GnuTLS's callback has no user argument. Earlier certificates may still be used
 * by handshakes in progress, so all are kept until exit: reloads are rare. */
static struct certificate *newest;

static void free_certificate(struct certificate *certificate)
{
    if (!certificate)
        return;
    for (unsigned i = 0; i < certificate->chain_length; i++)
        gnutls_pcert_deinit(&certificate->chain[i]);
    if (certificate->key)
        gnutls_privkey_deinit(certificate->key);
    free(certificate);
}

static void own_certificate(struct certificate **certificate)
{
    free_certificate(*certificate);
}

static int refuse(struct brig_error *err, const char *what, int status)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "tls: %s: %s", what, gnutls_strerror(status));
}

static int read_certificate(const char *pems, size_t length, struct certificate **ret,
                            struct brig_error *err)
{
    size_t first = strnlen(pems, length);
    if (first >= length)
        return brig_fail(err, BRIG_E_INVALID, 0, "tls: no key came with the certificate");
    const gnutls_datum_t chain = {.data = (unsigned char *)(uintptr_t)pems,
                                  .size = (unsigned)first};
    const gnutls_datum_t key = {.data = (unsigned char *)(uintptr_t)(pems + first + 1),
                                .size = (unsigned)(length - first - 1)};
    __attribute__((cleanup(own_certificate))) struct certificate *certificate =
        calloc(1, sizeof *certificate);
    if (!certificate)
        return brig_fail_nomem(err);
    unsigned count = CHAIN_MAX;
    int status = gnutls_pcert_list_import_x509_raw(certificate->chain, &count, &chain,
                                                   GNUTLS_X509_FMT_PEM, 0);
    if (status < 0)
        return refuse(err, "the certificate cannot be read", status);
    certificate->chain_length = count;
    status = gnutls_privkey_init(&certificate->key);
    if (status == 0)
        status =
            gnutls_privkey_import_x509_raw(certificate->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (status < 0)
        return refuse(err, "the key cannot be read", status);
    *ret = take_ptr(&certificate);
    return 0;
}

/* Otherwise only clients would notice a key that does not match the certificate. */
static int check_pair(const struct certificate *certificate, struct brig_error *err)
{
    gnutls_pubkey_t of_key = NULL;
    unsigned char ids[2][64];
    size_t sizes[2] = {sizeof ids[0], sizeof ids[1]};
    int status = gnutls_pubkey_init(&of_key);
    if (status == 0)
        status = gnutls_pubkey_import_privkey(of_key, certificate->key, 0, 0);
    if (status == 0)
        status = gnutls_pubkey_get_key_id(of_key, 0, ids[0], &sizes[0]);
    if (status == 0)
        status = gnutls_pubkey_get_key_id(certificate->chain[0].pubkey, 0, ids[1], &sizes[1]);
    gnutls_pubkey_deinit(of_key);
    if (status < 0)
        return refuse(err, "certificate and key cannot be compared", status);
    if (sizes[0] != sizes[1] || memcmp(ids[0], ids[1], sizes[0]) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "tls: tls.key_file is not the key of tls.cert_file");
    return 0;
}

int tls_replace(const char *pems, size_t length, struct brig_error *err)
{
    __attribute__((cleanup(own_certificate))) struct certificate *certificate = NULL;
    int result = read_certificate(pems, length, &certificate, err);
    if (result == 0)
        result = check_pair(certificate, err);
    if (result < 0)
        return result;
    certificate->earlier = newest;
    newest = take_ptr(&certificate);
    return 0;
}

void tls_done(void)
{
    while (newest) {
        struct certificate *certificate = newest;
        newest = certificate->earlier;
        free_certificate(certificate);
    }
}

static int choose(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
                  const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                  gnutls_pcert_st **ret_chain, unsigned *ret_length, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    if (!newest)
        return -1;
    *ret_chain = newest->chain;
    *ret_length = newest->chain_length;
    *ret_key = newest->key;
    return 0;
}

void *tls_callback(void)
{
    return (void *)(uintptr_t)choose;
}
