/* SPDX-License-Identifier: MIT */
/* The HTTPS certificate: sent by the supervisor, and replaced while connections stay open. */
#pragma once

#include <stddef.h>

struct brig_error;

/* Loads certificates and key ("PEM, NUL, PEM") for new handshakes. The caller wipes the bytes. */
int tls_replace(const char *pems, size_t length, struct brig_error *err);
void tls_done(void);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK. */
void *tls_callback(void);
