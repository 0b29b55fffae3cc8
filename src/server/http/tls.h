/* SPDX-License-Identifier: MIT */
/* The certificate of HTTPS: handed over by the supervisor, replaced while connections go on. */
#pragma once

#include <stddef.h>

struct brig_error;

/* PEM, NUL, PEM: certificates and key, for handshakes that begin from now on. The bytes are wiped by the
 * caller. */
int tls_replace(const char *pems, size_t length, struct brig_error *err);
void tls_done(void);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK. */
void *tls_callback(void);
