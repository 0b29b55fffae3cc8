/* SPDX-License-Identifier: MIT */
/* The languages of Judge0: its numbers and names, and the runtimes of brigd that stand for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct server_config;
struct str;

/* How the source code is run. */
enum judge0_form {
    JUDGE0_CODE,       /* is the code of the runtime */
    JUDGE0_TEXT,       /* is printed */
    JUDGE0_EXECUTABLE, /* is a program */
    JUDGE0_SQL,        /* is the input of sqlite3 with the file db.sqlite */
    JUDGE0_PROJECT,    /* there is none: additional_files has the scripts `run` and `compile` */
};

/* The files and scripts of the other forms; "$@" are the arguments. */
#define JUDGE0_TEXT_FILE "text.txt"
#define JUDGE0_TEXT_SCRIPT "cat text.txt \"$@\""
#define JUDGE0_EXECUTABLE_FILE "a.out"
#define JUDGE0_EXECUTABLE_SCRIPT                                                                   \
    "cp a.out /tmp/a.out && chmod +x /tmp/a.out && exec /tmp/a.out \"$@\""
#define JUDGE0_SQL_FILE "script.sql"
#define JUDGE0_SQL_SCRIPT                                                                          \
    "cp db.sqlite /tmp/db.sqlite 2>/dev/null; cat script.sql | sqlite3 /tmp/db.sqlite \"$@\""

#define JUDGE0_NAME_MAX 64

/* A language that exists. */
struct judge0_language {
    int64_t id;
    char name[JUDGE0_NAME_MAX];    /* with the version that is installed */
    const struct runtime *runtime; /* NULL: archived, or not installed */
    enum judge0_form form;
};

/* `runtimes` is the JSON of GET /runtimes. Returns false if there is no language of this number. */
bool judge0_language_find(const struct server_config *config, const struct str *runtimes,
                          int64_t id, struct judge0_language *ret_language);
/* Whether a language is compiled, and so has compiler options. */
bool judge0_language_is_compiled(const struct judge0_language *language);

/* Writes the array of GET /languages, or with `all` that of GET /languages/all. */
void judge0_languages_write(const struct server_config *config, const struct str *runtimes,
                            bool all, struct json *j);
/* Writes the object of GET /languages/{id}. */
void judge0_language_write(const struct judge0_language *language, struct json *j);
