/* SPDX-License-Identifier: MIT */
/* The network of a policy as plain data: what may be reached through the door, what is published from
 * inside, and which credentials are added outside. */
#pragma once

#include <brig/brig.h>

#include "policy/net_rules.h"

/* Named limits, each refused by name when passed. */
#define POLICY_PUBLISH_MAX 32
#define POLICY_INJECT_MAX 16
#define POLICY_INJECT_WORDS_MAX 32 /* methods, paths or headers of one */
#define POLICY_SECRET_MAX 4096
#define POLICY_NO_PROXY_MAX 64

/* Where an injected credential is reached inside: a loopback address that nobody else uses. */
#define POLICY_INJECT_ADDRESS "127.18.0.1"
#define POLICY_INJECT_PORT 8001 /* of the first; the others follow */
#define POLICY_INJECT_URL_MAX 64
/* Where those find a proxy who want one. */
#define POLICY_PROXY_ADDRESS "198.18.0.3"
#define POLICY_PROXY_HTTP_PORT 3128
#define POLICY_PROXY_SOCKS_PORT 1080
#define POLICY_PROXY_HTTP_URL "http://" POLICY_PROXY_ADDRESS ":3128"
#define POLICY_PROXY_SOCKS_URL "socks5h://" POLICY_PROXY_ADDRESS ":1080"

/* A rule as it was written, for people; policy_net.rules is what it means. */
struct policy_net_rule {
    bool deny;
    char *text;
    char *origin;
};

struct policy_publish {
    struct net_address address; /* of the host */
    uint16_t host_port;
    uint16_t port; /* inside */
    char *origin;
};

struct policy_inject {
    unsigned port; /* inside, at POLICY_INJECT_ADDRESS */
    char *name;    /* the host it stands for */
    char *header;  /* that is added, */
    char *secret;  /* with this value; wiped when it is released */
    char *upstream;
    char *variable;                   /* gets the address inside; or NULL */
    char **methods, **paths, **strip; /* ended by NULL; NULL: none */
    char *origin;
};

struct brig_policy;

struct policy_net {
    struct net_rules rules;
    struct policy_net_rule *written;
    size_t written_count;
    struct policy_publish *publish;
    size_t publish_count;
    struct policy_inject *inject;
    size_t inject_count;
    bool proxy_env;     /* the usual variables name the proxies inside */
    char *broker;       /* the program, absolute; NULL: the one that was installed with us */
    char *ca;           /* certificates that upstreams of credentials are checked by, or NULL */
    char *proxy;        /* HOST:PORT of the host's own proxy, or NULL */
    char *proxy_secret; /* what it wants as Proxy-Authorization, or NULL */
    char **no_proxy;    /* suffixes of names it is not used for, ended by NULL; or NULL */
};

void policy_net_done(struct policy_net *net);
/* `to` is empty before; on failure it is left for policy_net_done(). */
int policy_net_copy(const struct policy_net *from, struct policy_net *to);

/* "http://127.18.0.1:8001" of the credential `index`. */
void policy_inject_url(size_t index, char url[POLICY_INJECT_URL_MAX]);
/* Of one that may have been given another port. */
void policy_inject_url_of(const struct policy_inject *inject, char url[POLICY_INJECT_URL_MAX]);
/* Once a run has begun nobody needs them here. */
void policy_forget_secrets(struct brig_policy *policy);
/* Wipes and frees a text that nobody may find again. Accepts NULL. */
void policy_free_secret(char *secret);
