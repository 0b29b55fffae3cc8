/* SPDX-License-Identifier: MIT */
/* What the commands of brigctl share. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct brig_error;

#define CLIENT_ANSWER_MAX ((size_t)48 << 20) /* of what is kept of an answer */
#define CLIENT_FAILED 125                    /* exit status when it is not the program's */
#define CLIENT_USAGE 2

struct client {
    const char *server; /* http://…, https://… or unix:/path */
    const char *key;    /* or NULL */
    const char *cacert; /* a file of certificates to trust instead of the system's, or NULL */
    bool json;          /* answers as they are */
    bool colour;        /* on standard output */
    bool raw;           /* control characters go to a terminal as they are */
};

/* ---- settings.c ---- */

/* Each is on the heap, or NULL. */
struct client_settings {
    char *server, *key, *cacert;
};
void client_settings_done(struct client_settings *settings);
/* From the environment and ~/.config/brig/brigctl.conf, for what the options left open. What `client`
 * then points to is in `storage`, for the caller to release. */
int client_settle(struct client *client, struct client_settings *storage, struct brig_error *err);
/* Pure: takes what the text of such a file says ("server = URL"), copied. A line that is none of these
 * is an error that names it. */
int client_settings_read(const char *name, const char *text, struct client_settings *settings,
                         struct brig_error *err);

/* ---- http.c ---- */

/* Takes a piece of the body; nonzero ends the transfer. */
typedef int client_take(void *context, const char *bytes, size_t length);
typedef void client_tick(void *context, uint64_t elapsed_ms);

struct client_call {
    const char *method, *path;
    const char *body;  /* JSON, or NULL */
    client_take *take; /* of an answer with status 200; NULL: into `answer` */
    client_tick *tick; /* about once a second; may be NULL */
    void *context;
    /* What came. */
    long status;
    struct str *answer; /* the body, or of an error its object */
};
/* Fails if there was no answer. */
int client_perform(const struct client *client, struct client_call *call, struct brig_error *err);
/* Turns an answer that is an error into a message with what the server said. */
int client_check(const struct client_call *call, struct brig_error *err);

/* ---- http.c: server-sent events. Pure ---- */

#define SSE_LINE_MAX ((size_t)24 << 20)
#define SSE_EVENT_MAX 64

/* Zero-initialise; sse_done() at the end. */
struct sse {
    struct str line; /* that has begun */
    char event[SSE_EVENT_MAX];
    struct str data;
    bool has_data;
    bool failed; /* a line was too long, or memory too short */
};
void sse_done(struct sse *sse);

/* An event that is whole; `data` may be changed. Nonzero stops. */
typedef int sse_take(void *context, const char *event, char *data, size_t length);
/* 0, or what `take` returned, or -1 if it cannot go on. */
int sse_feed(struct sse *sse, const char *bytes, size_t length, sse_take *take, void *context);

/* ---- request.c: what exec and claude are asked for, and the request it makes ---- */

#define REQUEST_INPUT_MAX ((size_t)16 << 20) /* of a file that is sent */
#define REQUEST_ITEMS_MAX 128

struct request_list {
    const char *items[REQUEST_ITEMS_MAX];
    size_t count;
};

struct request {
    const char *language, *code, *code_file; /* code_file "-": standard input */
    const char *timeout, *memory, *work_dir, *out;
    bool stdin_wanted, no_stream, network, raw, json, help;
    struct request_list env, files, allow, returns, args;
    char directory[PATH_MAX]; /* where work_dir points to */
};

/* Appends; fails where there is no more room. */
int request_add(struct request_list *list, const char *item, const char *what,
                struct brig_error *err);
/* The body of POST /execute, for the caller to free. Reads the files it names. */
int request_body(const struct request *request, char **ret_text, struct brig_error *err);

/* ---- output.c: what a program wrote, which may be hostile ---- */

/* Writes output of a program: to a terminal without what could steer it. */
void client_write(const struct client *client, int fd, const void *bytes, size_t length);
/* Writes an answer of the server to standard output, with one line end behind it. */
void client_write_answer(const struct client *client, const struct str *answer);
const char *client_colour(const struct client *client,
                          const char *status);         /* to begin with, or "" */
const char *client_plain(const struct client *client); /* and to end it */
/* Writes a file below a directory, which is made. A name cannot lead out of it, also not by links that
 * are there. */
int returned_write(const char *directory, const char *name, const void *bytes, size_t length,
                   struct brig_error *err);

/* ---- commands: argv[0] is the command's name; the exit status ---- */

int client_exec(struct client *client, int argc, char **argv);
int client_claude(struct client *client, int argc, char **argv);
/* ls, show, kill, health, runtimes. */
int client_ask(struct client *client, int argc, char **argv);
/* Says what went wrong. Returns the status to end with. */
int client_complain(const struct brig_error *err);
