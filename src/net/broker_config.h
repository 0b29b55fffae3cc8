/* SPDX-License-Identifier: MIT */
/* What a broker is to do: the text that door_wire.h describes, taken apart. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "net/broker_wire.h"
#include "policy/net_rules.h"

struct brig_error;

#define CONFIG_RESOLVERS_MAX 4
#define CONFIG_NO_PROXY_MAX 64
#define CONFIG_INJECT_HEADERS_MAX 4
#define CONFIG_INJECT_LIST_MAX 32 /* methods, paths, headers to strip: of each */
#define CONFIG_CONNECTIONS_MAX 16384

#define CONFIG_CONNECT_MS 30000
#define CONFIG_INSPECT_MS 15000

enum config_limit {
    CONFIG_LIMIT_CONNECTIONS,
    CONFIG_LIMIT_NAMES,
    CONFIG_LIMIT_BYTES,
    CONFIG_LIMIT_IDLE_MS,
    CONFIG_LIMIT_CONNECT_MS,
    CONFIG_LIMIT_INSPECT_MS,
    CONFIG_LIMIT_COUNT
};

/* A host as an address or as a name. */
struct config_host {
    bool is_address;
    struct net_address address;
    char name[NET_NAME_MAX + 1];
    uint16_t port;
};

struct config_list {
    const char *items[CONFIG_INJECT_LIST_MAX];
    size_t count;
};

struct config_header {
    const char *name;
    unsigned secret;
};

struct config_inject {
    char name[NET_NAME_MAX + 1];
    bool has_upstream;
    bool tls;
    struct config_host upstream;
    const char *prefix; /* of the upstream's paths: "", or "/…" without a '/' at its end */
    struct config_header headers[CONFIG_INJECT_HEADERS_MAX];
    size_t header_count;
    struct config_list strip, methods, paths;
};

/* Strings are in the arena. */
struct broker_config {
    struct arena arena;
    bool open;
    struct net_rules rules; /* the name of each inject is denied in them */
    bool watches_names;     /* a rule denies a name, so names are looked at where all are allowed */
    bool denies_names;      /* one of these is the user's, and not for an injected credential */
    bool has_user;
    uid_t uid;
    gid_t gid;
    struct config_host resolvers[CONFIG_RESOLVERS_MAX];
    size_t resolver_count;
    bool has_proxy;
    struct config_host proxy;
    int proxy_secret; /* -1: none */
    const char *no_proxy[CONFIG_NO_PROXY_MAX];
    size_t no_proxy_count;
    const char *ca;
    uint64_t limits[CONFIG_LIMIT_COUNT];
    struct config_inject injects[DOOR_INJECT_MAX];
    size_t inject_count; /* one more than the highest that was named */
    uint16_t publish[DOOR_PUBLISH_MAX];
    size_t publish_count;
    unsigned secret_count; /* how many the configuration needs */
};

/* Fails with the line that was not understood. Whatever was read, broker_config_done() it. */
int broker_config_read(struct broker_config *config, const char *text, size_t length,
                       struct brig_error *err);
void broker_config_done(struct broker_config *config);

/* Is the name one that goes past the proxy? */
bool broker_config_is_direct(const struct broker_config *config, const char *name);
/* The inject that stands for the name, or NULL. */
const struct config_inject *broker_config_injected(const struct broker_config *config,
                                                   const char *name);
