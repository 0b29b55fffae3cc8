/* SPDX-License-Identifier: MIT */
/* What `exec` and `claude` are asked for, and the request that it makes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

#define REQUEST_INPUT_MAX ((size_t)16 << 20) /* of a file that is sent */
#define REQUEST_ITEMS_MAX 128

struct request_list {
    const char *items[REQUEST_ITEMS_MAX];
    size_t count;
};

struct request {
    const char *language, *code, *code_file; /* code_file "-": standard input */
    const char *timeout, *memory, *work_dir, *out;
    bool stdin_wanted, no_stream, network;
    struct request_list env, files, allow, returns, args;
};

/* Appends; fails where there is no more room. */
int request_add(struct request_list *list, const char *item, const char *what,
                struct brig_error *err);
/* The body of POST /execute, for the caller to free. Reads the files it names. */
int request_body(const struct request *request, char **ret_text, struct brig_error *err);
