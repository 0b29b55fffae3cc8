/* SPDX-License-Identifier: MIT */
/* Where the user keeps tokens that an agent would find: start-up files of shells, .env files of this project and of
 * those beside it, and passwords in git remotes. Names of variables and files are reported, never values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct brig_policy;
struct identity;
struct setup;
struct str;

#define TOKENS_MAX 32 /* that are reported */

struct token {
    const char *kind;  /* "startup", "env" or "remote" */
    const char *where; /* the file, or the name of the remote */
    const char *names; /* of variables, separated by ", "; "" for a URL with a password */
    const char *state; /* what a jail has of it */
    const char *remedy;
};
typedef void (*tokens_tell)(void *context, const struct token *token);

struct tokens_query {
    const struct identity *identity;
    const struct brig_policy *policy; /* its environment filters count */
    const char *cwd;
    bool startup, project, siblings, remotes; /* what to search */
    /* Whether a file is hidden from the jail already; may be NULL. */
    bool (*is_hidden)(void *context, const char *path);
    tokens_tell tell;
    void *context;
};

/* Searches for a short time. Files are read with the ids of the user. */
void tokens_find(const struct tokens_query *query);

/* Before the first run in a project: tells about a few. With a dry run nothing is told. */
void tokens_show_once(const struct setup *setup);

/* Appends a line. */
void tokens_append_line(struct str *out, const struct token *token);
