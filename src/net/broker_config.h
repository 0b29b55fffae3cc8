/* SPDX-License-Identifier: MIT */
/* What the job tells a broker before it starts: the configuration that broker_wire.h describes, and the
 * credentials. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "net/broker_wire.h"
#include "net/http.h"
#include "policy/net_rules.h"

struct brig_error;

#define CONFIG_RESOLVERS_MAX 4
#define CONFIG_INJECT_HEADERS_MAX 4
#define CONFIG_LIST_MAX 64 /* no-proxy; of each inject methods, paths, headers to strip */
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

struct config_list {
    const char *items[CONFIG_LIST_MAX];
    size_t count;
};

struct config_inject {
    char name[NET_NAME_MAX + 1];
    bool tls;
    struct http_authority upstream; /* port 0: not given yet */
    const char *prefix; /* of the upstream's paths: "", or "/…" without a '/' at its end */
    struct {
        const char *name;
        unsigned secret;
    } headers[CONFIG_INJECT_HEADERS_MAX];
    size_t header_count;
    struct config_list strip, methods, paths;
};

/* Strings are in the arena. */
struct broker_config {
    struct arena arena;
    bool open;
    struct net_rules rules; /* the name of each inject is denied in them */
    bool watches_names;     /* a rule denies a name: look at names even where all are allowed */
    bool denies_names;      /* such a rule is the user's, and not for an injected credential */
    bool has_user;
    uid_t uid;
    gid_t gid;
    struct http_authority resolvers[CONFIG_RESOLVERS_MAX];
    size_t resolver_count;
    bool has_proxy;
    struct http_authority proxy;
    int proxy_secret; /* -1: none */
    struct config_list no_proxy;
    const char *ca;
    uint64_t limits[CONFIG_LIMIT_COUNT];
    struct config_inject injects[DOOR_INJECT_MAX];
    size_t inject_count; /* one more than the highest that was named */
    uint16_t publish[DOOR_PUBLISH_MAX];
    size_t publish_count;
    unsigned secret_count; /* how many the configuration needs */
};

/* Fails with the line that was not understood. Call broker_config_done() in every case. */
int broker_config_read(struct broker_config *config, const char *text, size_t length,
                       struct brig_error *err);
void broker_config_done(struct broker_config *config);

/* Does a connection to this host go through the host's proxy? */
bool broker_config_is_proxied(const struct broker_config *config, const char *name);
/* How the job is told of a refusal by the rules; the detail is a constant. */
enum door_because broker_config_because(const struct broker_config *config, const char *name,
                                        enum net_reason reason, const char **ret_detail);

/* ---- Credentials: in memory that is locked, left out of core dumps, and wiped ---- */

#define SECRETS_MAX 256

/* Zero-initialised it is empty. */
struct secrets {
    char *memory; /* a mapping */
    size_t size;
    const char *texts[SECRETS_MAX]; /* each ends with a NUL */
    size_t count;
};

/* Reads them from a memfd: texts that each end with a NUL. Refuses what could not be the value of a
 * header; messages name no secret, only its number. */
int secrets_read(struct secrets *secrets, int fd, struct brig_error *err);
/* Empty memory of the same kind. */
int secrets_map(struct secrets *secrets, size_t size, struct brig_error *err);
void secrets_done(struct secrets *secrets);
