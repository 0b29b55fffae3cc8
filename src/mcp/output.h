/* SPDX-License-Identifier: MIT */
/* Messages to the client, one per line. They wait in memory while the client does not read. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* With more bytes waiting, no further requests are read and progress is not reported. */
#define OUTPUT_WAITING_MAX ((size_t)1 << 20)

struct output {
    int fd;
    struct str waiting;
    size_t sent;
    bool failed; /* the client is gone, or memory was lacking */
};

void output_done(struct output *output);
/* Appends a message and releases it. */
void output_message(struct output *output, json_t *message);
size_t output_waiting(const struct output *output);
/* Writes what the client takes without waiting. */
void output_flush(struct output *output);
