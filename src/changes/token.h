/* SPDX-License-Identifier: MIT */
/* Tokens: what an item was when it was shown, and why it was flagged. A decision names an item by its token; an item
 * with another token is not what was decided about. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

struct change;
struct git_item;

#define TOKEN_LENGTH 32 /* hexadecimal digits */
/* While a run is active, a process may write to a file that it has mapped without a new time of the file, so its
 * contents are part of the token. Larger files have no token then. */
#define TOKEN_CONTENTS_MAX ((uint64_t)16 << 20)
#define TOKEN_NOT_JUDGED                                                                           \
    "not judged: a run is active, and it is larger than 16 MiB or cannot be read"

struct token {
    char text[TOKEN_LENGTH + 1]; /* "": there is none */
};

/* Incremental: begin, add texts, which may be NULL, and end. */
struct token_maker {
    struct sha256 hash;
};
void token_begin(struct token_maker *maker);
void token_add(struct token_maker *maker, const char *text);
struct token token_end(struct token_maker *maker);

/* The token of a changed file: kind, mode, owner, inode, size and times on both sides, of a deleted directory those of
 * everything in it, and `reason`, the reason of its mark or NULL. With `contents`, the jail's file is read, or the copy
 * of it that `change` names. "" if that is too large or cannot be read. */
struct token token_of_change(const struct change *change, const char *reason, bool contents);

/* The token of what was done in git: its repository, name, objects or values on both sides, and `reason`. */
struct token token_of_git(const struct git_item *item, const char *reason);

/* Whether a token is the present one of a change: of its contents while a run is `active`, else with or without. */
bool token_fits(const char *token, const struct change *change, const char *reason, bool active);
