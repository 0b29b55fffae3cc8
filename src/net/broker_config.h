/* SPDX-License-Identifier: MIT */
/* The input of a broker: the configuration that broker_wire.h describes, and the credentials. */
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
#define CONFIG_LIST_MAX 64 /* no-proxy; and methods, paths, headers to strip of each inject */
#define CONFIG_CONNECTIONS_MAX 16384

#define CONFIG_CONNECT_MS 30000
#define CONFIG_INSPECT_MS 15000
#define CONFIG_ASK_MS 120000

enum config_limit {
    CONFIG_LIMIT_CONNECTIONS,
    CONFIG_LIMIT_NAMES,
    CONFIG_LIMIT_BYTES,
    CONFIG_LIMIT_IDLE_MS,
    CONFIG_LIMIT_CONNECT_MS,
    CONFIG_LIMIT_INSPECT_MS,
    CONFIG_LIMIT_ASK_MS,
    CONFIG_LIMIT_COUNT
};

struct config_list {
    const char *items[CONFIG_LIST_MAX];
    size_t count;
};

struct config_inject {
    char name[NET_NAME_MAX + 1];
    bool tls;
    struct http_authority upstream; /* port 0: not set yet */
    const char *prefix; /* prefix of the upstream's paths: "", or "/…" without a trailing '/' */
    struct {
        const char *name;
        unsigned secret;
    } headers[CONFIG_INJECT_HEADERS_MAX];
    size_t header_count;
    bool is_live; /* the value of the first header is live secret `live` */
    unsigned live;
    struct config_list strip, methods, paths;
};

/* Strings are in the arena. */
struct broker_config {
    struct arena arena;
    bool open;
    bool ask;               /* destinations that no rule mentions wait for one */
    struct net_rules rules; /* include a deny rule for the name of each inject */
    bool watches_names;     /* a rule denies a name: inspect names even where all are allowed */
    bool denies_names;      /* the user denies a name; denials for inject do not count */
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
    size_t inject_count; /* the highest number that was used, plus one */
    uint16_t publish[DOOR_PUBLISH_MAX];
    size_t publish_count;
    unsigned secret_count; /* how many secrets the configuration refers to */
};

/* Errors name the malformed line. Call broker_config_done() in every case. */
int broker_config_read(struct broker_config *config, const char *text, size_t length,
                       struct brig_error *err);
void broker_config_done(struct broker_config *config);
/* Replaces the rules; the caller releases the old ones, which *ret_old has, with net_rules_done()
 * when nothing refers to them any more. Changes nothing on failure. */
int broker_config_replace(struct broker_config *config, char *text, struct net_rules *ret_old,
                          struct brig_error *err);

/* Whether a connection to this host goes through the host's proxy. */
bool broker_config_is_proxied(const struct broker_config *config, const char *name);
/* The reason that is reported to the job for a denial by the rules; the detail is a constant. */
enum door_because broker_config_because(const struct broker_config *config, const char *name,
                                        enum net_reason reason, const char **ret_detail);

/* ---- Credentials: in memory that is locked, excluded from core dumps, and wiped ---- */

#define SECRETS_MAX 256

/* Zero-initialise. */
struct secrets {
    char *memory; /* from mmap() */
    size_t size;
    const char *texts[SECRETS_MAX]; /* each terminated by a NUL */
    size_t count;
};

/* Reads the secrets from a memfd: texts, each terminated by a NUL. Refuses a text that is not a
 * valid header value. Errors contain the number of a secret, never its text. */
int secrets_read(struct secrets *secrets, int fd, struct brig_error *err);
/* Whether a text can be the value of a header. */
bool secrets_is_value(const char *text);
/* Maps empty memory of the same kind. */
int secrets_map(struct secrets *secrets, size_t size, struct brig_error *err);
void secrets_done(struct secrets *secrets);
