/* SPDX-License-Identifier: MIT */
/* The lines that the executor and an interpreter in a sandbox exchange: JSON objects, of which the
 * executor reads only the beginning. Whatever runs in the sandbox may have written them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution_pair;
struct str;

#define INTERPRETER_LINE_MAX ((size_t)8 << 20)
#define INTERPRETER_NAME_MAX 64 /* of an error */

enum interpreter_word {
    INTERPRETER_READY,  /* {"type":"ready"} */
    INTERPRETER_BEGUN,  /* {"type":"begun","run":1} */
    INTERPRETER_RESULT, /* {"type":"result","run":1,"main":true,"data":{…}} */
    INTERPRETER_ERROR,  /* {"type":"error","run":1,"name":"ValueError",…} */
    INTERPRETER_DONE,   /* {"type":"done","run":1} */
};

struct interpreter_line {
    enum interpreter_word word;
    uint64_t run;                        /* 0 for INTERPRETER_READY */
    char name[INTERPRETER_NAME_MAX + 1]; /* of an error: letters, digits, _ and . alone; or "" */
};

/* Reads a line without its end. Returns false if it is none of them; the members after `run`, and
 * after the name of an error, are not looked at. */
bool interpreter_line_read(const char *line, size_t length, struct interpreter_line *ret);

/* Appends {"run":1,"env":["NAME=value"],"code":"…"} and a line end. Everything but text without
 * quotes and backslashes is written as \uXXXX. The code has to be UTF-8. */
void interpreter_line_write(struct str *out, uint64_t run, const struct execution_pair *env,
                            size_t env_count, const char *code, size_t length);
