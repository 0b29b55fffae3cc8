/* SPDX-License-Identifier: MIT */
/* Shared by the commands of brigctl. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct brig_error;

#define CLIENT_ANSWER_MAX ((size_t)48 << 20) /* bytes of an answer that are kept */
#define CLIENT_FAILED 125                    /* exit status for errors of brigctl itself */
#define CLIENT_USAGE 2

struct client {
    const char *server; /* http://…, https://… or unix:/path */
    const char *key;    /* or NULL */
    const char *cacert; /* a file of certificates to trust instead of the system's, or NULL */
    bool json;          /* print answers unchanged */
    bool colour;        /* on standard output */
    bool raw;           /* do not filter control characters written to a terminal */
};

/* ---- settings.c ---- */

/* Strings are on the heap, or NULL. */
struct client_settings {
    char *server, *key, *cacert;
};
void client_settings_done(struct client_settings *settings);
/* Fills in what the options left unset from the environment and ~/.config/brig/brigctl.conf.
 * `client` then points into `storage`, which the caller releases. */
int client_settle(struct client *client, struct client_settings *storage, struct brig_error *err);
/* Parses the text of a settings file ("server = URL") and copies its values. An unknown line is an
 * error that names it. Pure. */
int client_settings_read(const char *name, const char *text, struct client_settings *settings,
                         struct brig_error *err);

/* ---- http.c ---- */

/* Receives a piece of the body; nonzero aborts the transfer. */
typedef int client_take(void *context, const char *bytes, size_t length);
typedef void client_tick(void *context, uint64_t elapsed_ms);

struct client_call {
    const char *method, *path;
    const char *body;  /* JSON, or NULL */
    client_take *take; /* gets the body of an answer with status 200; NULL: append it to `answer` */
    client_tick *tick; /* called about once a second; may be NULL */
    void *context;
    /* Filled in by client_perform(). */
    long status;
    struct str *answer; /* the body, or the error object */
};
/* Fails if there was no answer at all. */
int client_perform(const struct client *client, struct client_call *call, struct brig_error *err);
/* Turns an error answer into a message with the server's text. */
int client_check(const struct client_call *call, struct brig_error *err);

/* ---- http.c: server-sent events. Pure ---- */

#define SSE_LINE_MAX ((size_t)24 << 20)
#define SSE_EVENT_MAX 64

/* Zero-initialise; release with sse_done(). */
struct sse {
    struct str line; /* an incomplete line */
    char event[SSE_EVENT_MAX];
    struct str data;
    bool has_data;
    bool failed; /* a line was too long, or memory ran out */
};
void sse_done(struct sse *sse);

/* Receives a complete event; may change `data`. Nonzero stops. */
typedef int sse_take(void *context, const char *event, char *data, size_t length);
/* Returns 0, or what `take` returned, or -1 after a failure. */
int sse_feed(struct sse *sse, const char *bytes, size_t length, sse_take *take, void *context);

/* ---- request.c: the options of exec and claude, and the request made from them ---- */

#define REQUEST_INPUT_MAX ((size_t)16 << 20) /* of one input file */
#define REQUEST_ITEMS_MAX 128

struct request_list {
    const char *items[REQUEST_ITEMS_MAX];
    size_t count;
};

struct request {
    const char *language, *code, *code_file; /* code_file "-": standard input */
    const char *timeout, *memory, *work_dir, *out;
    const char *priority, *callback, *secret; /* of submit */
    bool stdin_wanted, no_stream, network, raw, json, help;
    struct request_list env, files, allow, returns, args;
    char directory[PATH_MAX]; /* absolute path of work_dir */
};

/* Appends; fails if the list is full. */
int request_add(struct request_list *list, const char *item, const char *what,
                struct brig_error *err);
/* Builds the body of POST /execute, for the caller to free. Reads the files that the request
 * names. */
int request_body(const struct request *request, char **ret_text, struct brig_error *err);

/* ---- output.c: output of programs, which may be hostile ---- */

/* Writes output of a program; replaces control characters if fd is a terminal. */
void client_write(const struct client *client, int fd, const void *bytes, size_t length);
/* Writes an answer of the server to standard output, ending in one newline. */
void client_write_answer(const struct client *client, const struct str *answer);
const char *client_colour(const struct client *client,
                          const char *status);         /* escape sequence, or "" */
const char *client_plain(const struct client *client); /* ends the colour */
/* Writes a file below `directory`, which is created. Neither the name nor existing symlinks can
 * lead outside of it. */
int returned_write(const char *directory, const char *name, const void *bytes, size_t length,
                   struct brig_error *err);

/* ---- commands: argv[0] is the command's name; each returns the exit status ---- */

int client_exec(struct client *client, int argc, char **argv);
int client_claude(struct client *client, int argc, char **argv);
int client_submit(struct client *client, int argc, char **argv);
int client_wait(struct client *client, int argc, char **argv);
/* ls, show, kill, health, runtimes. */
int client_ask(struct client *client, int argc, char **argv);
/* Prints the error. Returns the exit status. */
int client_complain(const struct brig_error *err);
