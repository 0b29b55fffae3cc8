/* SPDX-License-Identifier: MIT */
/* Certificate and key for the http process, which cannot read files. */
#pragma once

struct brig_error;
struct channel;
struct server_config;

/* Reads both and sends them as MESSAGE_TLS; nothing without TLS. */
int supervisor_tls_send(const struct server_config *config, struct channel *http,
                        struct brig_error *err);
