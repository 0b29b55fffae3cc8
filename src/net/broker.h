/* SPDX-License-Identifier: MIT */
/* The state shared by the parts of the broker. See broker_main.c for an overview. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/broker_config.h"
#include "net/broker_dial.h"
#include "net/broker_loop.h"
#include "net/broker_names.h"
#include "net/broker_relay.h"
#include "net/broker_wire.h"

struct brig_error;
struct broker;
struct inject;

/* A socket that the job has sent. */
struct listener {
    struct watch watch;
    struct timer rest; /* until accept() is retried after it ran out of descriptors */
    struct broker *broker;
    enum door_socket kind;
    unsigned index;
};

#define DENIED_NAMES_MAX 64

/* A name that was refused recently: queries for its IPv4 and IPv6 addresses are one event. */
struct denied_name {
    char name[NET_NAME_MAX + 1];
    int64_t when_ms;
};

struct broker {
    struct loop loop;
    struct broker_config config;
    struct secrets secrets;
    int live; /* the job's memfd of live secrets, or -1 */
    struct names names;
    struct resolver resolver;
    int routes; /* a netlink socket */

    struct watch control; /* the job's socket */
    bool unheard;         /* the job does not read events any more */

    bool finishing; /* the jail has ended; open connections may finish */
    struct timer finish;

    struct listener listeners[DOOR_SOCKETS_MAX];
    size_t listener_count;

    struct node *connections;    /* struct connection */
    struct node *dns_streams;    /* struct dns_stream */
    struct node *lookups;        /* struct lookup: names that are being resolved for a query */
    struct node *inject_clients; /* struct inject_client */
    size_t connection_count;     /* includes inject_clients */
    size_t dns_stream_count;
    size_t lookup_count, asker_count;
    uint64_t last_connection;
    uint64_t bytes;
    struct task over_bytes; /* ends all connections at the byte limit */
    struct task job_ended;  /* after what arrived at the same time */

    struct denied_name denied[DENIED_NAMES_MAX];
    size_t next_denied;

    int queue; /* of held connections; -1: none */

    struct watch connector; /* fd -1: none */
    struct inject *inject;  /* NULL: nothing is injected */
};

/* ---- broker.c ---- */

void broker_init(struct broker *broker);
/* Waits for the configuration on the job's socket, which is borrowed, and does everything that
 * needs more privileges than the broker keeps. */
int broker_start(struct broker *broker, int control, struct brig_error *err);
/* Reports to the job that the broker is ready, and serves until the job ends or closes its
 * socket. */
int broker_serve(struct broker *broker, struct brig_error *err);
/* Reports to the job why the broker cannot start. */
void broker_fail(int control, const struct brig_error *err);
void broker_done(struct broker *broker);

/* Sends an event to the job; fills in the texts (rule may be NULL), `head` and `time_ns`. */
void broker_tell(struct broker *broker, struct door_event *event, const char *name,
                 const struct net_rule *rule, const char *detail);

/* Counts one more connection. If there are too many, or `memory` is NULL, sends an event, resets
 * and closes fd, and returns false. */
bool broker_admit(struct broker *broker, enum door_socket via, const void *memory, int fd);
/* Uncounts a connection. */
void broker_count_off(struct broker *broker);

/* Adds to the byte count, and ends all connections when the limit is exceeded. broker_is_spent()
 * tells whether the limit is reached. */
void broker_count_bytes(struct broker *broker, size_t bytes);
bool broker_is_spent(const struct broker *broker);

/* ---- The kinds of sockets; each function is called when its socket is readable ---- */

void dns_udp_ready(struct listener *listener);
void dns_tcp_accepted(struct listener *listener, int fd);
/* Ends the connections to the name server, and forgets the queries that wait. */
void dns_end(struct broker *broker);

void connection_accepted(struct listener *listener, int fd);
void hold_ready(struct listener *listener);
void connections_end(struct broker *broker, enum door_because because);
/* The rules were changed, and may have moved from `before`: decides about those that wait. */
void connections_ask_again(struct broker *broker, const struct net_rule *before);

/* Takes the messages of the job that have arrived. Called before each decision, so that the rules are
 * those that the job sent before the jail asked. */
void broker_hear(struct broker *broker);
/* The rules were replaced: decides again about those that wait, and ends those that are not allowed
 * any more. */
void connections_judge_again(struct broker *broker);

void publish_accepted(struct listener *listener, int fd);
bool publish_connector(struct broker *broker, int fd);
/* The connector: a process in the jail's network namespace that connects to the jail's loopback for
 * the broker. Serves requests from the socket until the other end is closed. */
int connector_run(int socket, struct brig_error *err);

/* Endpoints inside the jail that speak plain HTTP; the broker adds the credential outside. */
int inject_init(struct broker *broker, struct brig_error *err);
void inject_done(struct broker *broker);
void inject_accepted(struct listener *listener, int fd);
void inject_clients_end(struct broker *broker, enum door_because because);
