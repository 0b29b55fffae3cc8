/* SPDX-License-Identifier: MIT */
/* The broker as a whole: what its parts share. See broker_main.c for what it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/broker_config.h"
#include "net/broker_events.h"
#include "net/broker_loop.h"
#include "net/broker_names.h"
#include "net/broker_relay.h"
#include "net/broker_resolve.h"
#include "net/broker_secrets.h"
#include "net/broker_wire.h"

struct brig_error;
struct broker;
struct broker_inject_curl;
struct connection;
struct dns_stream;
struct inject_client;
struct publish_request;

/* A socket the job has sent. */
struct listener {
    struct watch watch;
    struct timer rest; /* until it is tried again, when there was no descriptor to be had */
    struct broker *broker;
    enum door_socket kind;
    unsigned index;
};

#define DENIED_NAMES_MAX 64

/* A name that was refused a moment ago, so that asking for both kinds of addresses is one event. */
struct denied_name {
    char name[NET_NAME_MAX + 1];
    int64_t when_ms;
};

struct broker {
    struct loop loop;
    struct broker_config config;
    struct secrets secrets;
    struct names names;
    struct resolver resolver;
    struct relay_shared relays;
    int routes; /* to ask the kernel with */
    struct watch control;
    struct events events;
    bool paused; /* nothing new begins: the job does not read its events, or there is no room */

    bool finishing; /* the jail has ended; what is under way may end too */
    struct timer finish;

    struct listener listeners[DOOR_SOCKETS_MAX];
    size_t listener_count;

    struct connection *connections;
    struct dns_stream *dns_streams;
    struct inject_client *inject_clients;
    size_t connection_count; /* with those of inject */
    size_t dns_stream_count;
    uint64_t last_connection;
    uint64_t bytes;
    struct task over_bytes; /* ends everything */

    struct denied_name denied[DENIED_NAMES_MAX];
    size_t next_denied;

    struct watch connector; /* fd -1: none */
    struct publish_request *publish_first, **publish_last;
    struct broker_inject_curl *curl; /* NULL: nothing is injected */
};

/* ---- broker.c ---- */

void broker_init(struct broker *broker);
/* Takes the configuration; the job's messages are then read in the loop. */
int broker_start(struct broker *broker, const char *config, size_t length, struct brig_error *err);
void broker_done(struct broker *broker);
/* Takes a socket of the job; false if it is of no use. */
bool broker_add_socket(struct broker *broker, enum door_socket kind, unsigned index, int fd);

/* Tells the job; `head`, `time_ns` are filled in. */
void broker_tell(struct broker *broker, struct door_event *event);
/* That there was no room for a connection. */
void broker_tell_full(struct broker *broker, enum door_socket via);

/* The job reads again: sends on what waits, and lets things begin again. */
void broker_control_writable(struct broker *broker);

/* The jail has ended: nothing new begins, and the broker ends with its last connection or soon. */
void broker_finish(struct broker *broker);
/* A connection was counted off. */
void broker_count_off(struct broker *broker);

/* Counts bytes against the limit. */
void broker_count_bytes(struct broker *broker, size_t bytes);
/* Is there room for one more connection? */
bool broker_has_room(const struct broker *broker);

/* ---- The kinds of sockets; each is called when its socket has something. ---- */

void dns_udp_ready(struct listener *listener);
void dns_tcp_accepted(struct listener *listener, int fd);
void dns_streams_end(struct broker *broker);
void connection_accepted(struct listener *listener, int fd);
void connections_end(struct broker *broker, enum door_because because);
void publish_accepted(struct listener *listener, int fd);
bool publish_connector(struct broker *broker, int fd);
