/* SPDX-License-Identifier: MIT */
/* The certificate of HTTPS: handed over by the supervisor, replaced while connections go on. */
#pragma once

#include <stddef.h>

struct brig_error;
struct tls;

/* PEM, NUL, PEM: certificates and key. The bytes are wiped by the caller. */
int tls_new(const char *pems, size_t length, struct tls **ret_tls, struct brig_error *err);
/* For handshakes that begin from now on. The one before stays for those that have begun. */
int tls_replace(struct tls *tls, const char *pems, size_t length, struct brig_error *err);
void tls_free(struct tls *tls); /* accepts NULL */

/* For MHD_OPTION_HTTPS_CERT_CALLBACK; NULL for NULL. There is one certificate for a process, as the
 * library's callback has no argument of ours. */
void *tls_callback(struct tls *tls);
