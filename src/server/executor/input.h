/* SPDX-License-Identifier: MIT */
/* Standard input that arrives while a program runs. It waits, up to EXECUTION_INPUT_MAX bytes, until
 * the program reads it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "server/executor/source.h"

struct brig_error;
struct executor;

/* Zeroed with source.fd -1: the program has not started. */
struct executor_input {
    struct executor *executor;
    struct executor_source source; /* the pipe's end; fd -1: not open */
    struct str waiting;
    size_t sent; /* bytes of it that were written */
    bool watching, closed;
    bool last; /* nothing follows `waiting`: close the pipe when all of it is written */
};

/* Opens the input. Takes the fd, which may be -1 with errno set. */
int executor_input_open(struct executor_input *input, struct executor *executor, int fd,
                        struct brig_error *err);
/* Opens it with a new pipe, and writes what waits; *ret_end is the end for the program. */
int executor_input_start(struct executor_input *input, struct executor *executor, int *ret_end,
                         struct brig_error *err);
/* Writes the bytes, or lets them wait. Returns false if too many would wait. After the program has
 * closed its end, bytes are dropped. */
bool executor_input_take(struct executor_input *input, const void *bytes, size_t length);
/* Writes what the program takes now of the bytes that wait. */
void executor_input_feed(struct executor_input *input);
void executor_input_done(struct executor_input *input);
