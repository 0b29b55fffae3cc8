/* SPDX-License-Identifier: MIT */
/* HTTP requests to a port of a sandbox, /sandboxes/{id}/ports/{port}/…, and the same for E2B: the
 * http process writes the request anew, a program of ours in the sandbox carries it to the port, and
 * the answer is passed on as it comes. Only clients that have the API key or the sandbox's token
 * reach a port. */
#pragma once

struct exchange;

/* A handler of the route table. */
void ports_handle(struct exchange *exchange);
/* `path` begins with a slash, and is decoded; exchange->path_id is the sandbox. */
void ports_ask(struct exchange *exchange, unsigned port, const char *path);
