/* SPDX-License-Identifier: MIT */
/* Piston's interface (version 2): translation of its requests and results to and from executions.
 * Pure. piston.c has the routes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

struct json;
struct runtime;
struct server_config;

#define PISTON_VERSION_MAX 64
#define PISTON_MESSAGE_MAX 512

/* What a request is answered with that is refused. */
struct piston_fault {
    unsigned status;
    char message[PISTON_MESSAGE_MAX]; /* "": the answer has no body, as Piston's */
};

/* A request of POST /execute, or of an init message. */
struct piston_call {
    struct execution_request request; /* the caller fills in what concerns the client */
    const struct runtime *runtime;
    const char *language; /* Piston's name of it; static, or the configuration's */
    char version[PISTON_VERSION_MAX];
};
void piston_call_done(struct piston_call *call);

/* Reads a request. `runtimes` is the array of GET /runtimes. Without `interactive` output has a limit
 * and its order is kept; with it there is standard input while the code runs. On failure returns
 * false with the fault filled in, and there is nothing to release. */
bool piston_read(const json_t *body, const json_t *runtimes, const struct server_config *config,
                 bool interactive, struct piston_call *ret, struct piston_fault *fault);

/* GET /runtimes and GET /packages. */
void piston_write_runtimes(struct json *j, const json_t *runtimes,
                           const struct server_config *config);
void piston_write_packages(struct json *j, const json_t *runtimes,
                           const struct server_config *config);
/* The answer of POST /execute. */
void piston_write_result(struct json *j, const struct piston_call *call,
                         const struct execution_result *result);

/* Whether a version is in a range as npm knows them: "*", "3.x", "^3.9", ">=1.2 <2 || 3". Returns 1
 * or 0; negative if it is not a range. */
int piston_range_has(const char *range, const char *version);
/* "3.11" becomes "3.11.0"; no version "0.0.0". */
void piston_version(const char *text, char ret_version[PISTON_VERSION_MAX]);

/* The number of "SIGTERM" or "SIGRTMIN+2"; 0: there is none. */
int piston_signal_number(const char *name);
#define PISTON_SIGNAL_NAME_MAX 16
/* "SIGTERM" */
const char *piston_signal_name(int number, char ret_name[PISTON_SIGNAL_NAME_MAX]);
