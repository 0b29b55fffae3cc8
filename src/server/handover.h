/* SPDX-License-Identifier: MIT */
/* Files that the supervisor opens for the http process, which cannot: certificate, key and access
 * log. */
#pragma once

struct brig_error;
struct channel;
struct server_config;

/* Sends the certificate and its key, if TLS is on. */
int handover_tls(const struct server_config *config, struct channel *http, struct brig_error *err);
/* Opens the access log if it is a file, and sends it; called again after a rotation. */
int handover_log(const struct server_config *config, struct channel *http, struct brig_error *err);
/* Checks that the certificate and its key can be read. */
int handover_check(const struct server_config *config, struct brig_error *err);
