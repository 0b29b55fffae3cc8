/* SPDX-License-Identifier: MIT */
/* Connections that were answered before their request was read to its end. Closed at once, the
 * kernel would answer what still comes with a reset, and the client would lose the answer: so they
 * are read, and what is read is thrown away, for a while. */
#pragma once

struct http;

/* A copy of the socket is kept; does nothing where there are too many. */
void linger_add(struct http *http, int fd);
void linger_read(struct http *http);
/* Closes those whose time is over. */
void linger_tick(struct http *http);
