/* SPDX-License-Identifier: MIT */
/* The OAuth token of an agent: how it is stored and refreshed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#define TOKEN_TEXT_MAX 4096 /* of a token */

/* What a profile says about an agent; texts are borrowed, NULL if not given. */
struct token_facts {
    const char *endpoint, *client, *secret, *format, *scope;
    const char *access, *refresh, *expires, *account; /* members in the agent's file: "a.b" */
    const char *ca;                                   /* CA certificates, instead of the system's */
    uint64_t stale; /* refresh a token with this serial number even if it has not expired */
};

/* Zero-initialise; release with token_done(), which wipes it. */
struct token {
    char *access, *refresh, *account; /* refresh and account may be NULL */
    int64_t expires;                  /* seconds since 1970; 0: unknown */
    uint64_t serial;                  /* counts the tokens of a store */
};
void token_done(struct token *token);

/* ---- store.c ---- */

/* Opens the directory and takes its lock, which is held until the descriptor is closed. */
int store_open(const char *path, int *ret_directory, int *ret_lock, struct brig_error *err);
/* Reads the token; 0 with an empty token if there is none. */
int store_read(int directory, struct token *ret_token, struct brig_error *err);
/* Replaces the token in one step; it is on the disk when this returns. */
int store_write(int directory, const struct token *token, struct brig_error *err);
/* Reads the file of an agent from a descriptor. */
int store_import(int fd, const struct token_facts *facts, struct token *ret_token,
                 struct brig_error *err);
/* The time in the claim "exp" of a JWT, or 0. */
int64_t token_jwt_expires(const char *text);

/* ---- refresh.c ---- */

/* Asks the server for a new token; *token is changed only on success. */
int token_refresh(struct token *token, const struct token_facts *facts, struct brig_error *err);
