/* SPDX-License-Identifier: MIT */
/* Destinations that wait for the user's answer (--net ask): the run's end of `brig allow`.
 *
 * A run listens on a socket in the directory of the holders' sockets, which no jail sees; a process
 * inside a jail is refused as well. Requests and replies are one packet of text each:
 *
 *     list                     jail NAME, storage PATH, and for each destination a line
 *                              waiting NAME:PORT or refused NAME:PORT
 *     allow RULE, deny RULE    ok, or why not; the rule holds until the run ends */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#define ASK_SOCKET_PREFIX "ask-"
#define ASK_TEXT_MAX 32768
#define ASK_DESTINATIONS_MAX 64 /* as many as the broker lets wait, and the latest refused ones */

struct identity;
struct settings;

struct ask_destination {
    char text[280]; /* NAME:PORT */
    bool waiting;
};

struct ask {
    int listener;  /* -1: none */
    int directory; /* of the socket */
    char key[32];
    unsigned uid; /* the user who may answer, beside root */
    const char *jail, *storage;
    bool titled; /* the terminal's title was changed */
    struct ask_destination destinations[ASK_DESTINATIONS_MAX];
    size_t count;
};

#define ASK_INIT ((struct ask){.listener = -1, .directory = -1})

/* Whether a destination NAME:PORT is the one of a rule NAME or NAME:PORT. Pure. */
bool ask_is_about(const char *destination, const char *rule);

/* Listens, if the network of the settings is `ask`. Release with ask_done(). */
int ask_init(struct ask *ask, const struct settings *settings, const struct identity *identity,
             struct brig_error *err);
void ask_done(struct ask *ask);

/* Takes note of an event of the network door. */
void ask_event(struct ask *ask, const struct brig_net_event *event);
/* Answers the process that connects. */
void ask_serve(struct ask *ask, struct brig_job *job);
/* Says in the title of the terminal that a destination waits: a program uses the whole screen. */
void ask_show_title(struct ask *ask);
