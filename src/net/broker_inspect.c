/* SPDX-License-Identifier: MIT */
/* What a connection begins with has to agree with where it goes: TLS on 443 and where a rule asks
 * for it, HTTP on 80. Where everything is allowed but for some names, only those are looked for; but a
 * connection to an address that was not asked for by a name has to say which name it is for. */
#include <stdio.h>
#include <string.h>

#include "net/broker_connection.h"
#include "net/client_hello.h"
#include "net/http_head.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

enum connection_inspect inspect_choose(const struct connection *connection, bool tls_rule)
{
    const struct broker_config *config = &connection->broker->config;
    bool all = config->open || (connection->rule && connection->rule->kind == NET_RULE_ANY);
    bool tls = tls_rule || connection->port == HTTPS_PORT;
    if (!tls && (connection->rewritten || connection->port != HTTP_PORT))
        return INSPECT_NOTHING; /* a plain request through a proxy was read already */
    if (all && !tls_rule) {
        if (!config->watches_names)
            return INSPECT_NOTHING;
        return tls ? WATCH_TLS : WATCH_HTTP;
    }
    if (!connection->has_name || (connection->rule && connection->rule->kind == NET_RULE_HOST))
        return INSPECT_NOTHING; /* there is no name to agree with */
    return tls ? INSPECT_TLS : INSPECT_HTTP;
}

bool inspect_must_name(const struct connection *connection)
{
    const struct broker_config *config = &connection->broker->config;
    bool granted = connection->rule && (connection->rule->kind == NET_RULE_RANGE ||
                                        connection->rule->kind == NET_RULE_HOST);
    return config->denies_names && !connection->has_name && !granted;
}

static void refuse(struct connection *connection, enum door_because because, const char *detail)
{
    connection_refuse(connection, DOOR_DENIED, because, detail);
}

static void refuse_other(struct connection *connection, enum door_because because, const char *what,
                         const char *other)
{
    char detail[DOOR_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail, "%s '%.200s'", what, other);
    refuse(connection, because, detail);
}

/* Is the name, which was not the one connected to, denied? */
static bool is_denied(struct connection *connection, const char *name)
{
    const struct broker_config *config = &connection->broker->config;
    struct net_verdict verdict = net_rules_name(&config->rules, name, connection->port);
    if (verdict.reason != NET_DENIED)
        return false;
    connection->rule = verdict.rule;
    (void)snprintf(connection->name, sizeof connection->name, "%s", name);
    bool injected = broker_config_injected(config, name);
    refuse(connection, injected ? DOOR_BECAUSE_INJECTED : DOOR_BECAUSE_RULE,
           injected ? "reached through its own endpoint only" : "a rule denies it");
    return true;
}

/* Browsers send an encrypted hello that is none with every connection, so that where a name was asked
 * for this cannot be refused. They do not with an address. */
static void watch_hello(struct connection *connection, const struct client_hello *hello)
{
    if (!hello->has_name && connection->broker->config.denies_names)
        refuse(connection, DOOR_BECAUSE_NO_SNI,
               "TLS without a server name, while a name is denied");
    else if (hello->ech && inspect_must_name(connection))
        refuse(connection, DOOR_BECAUSE_NO_SNI,
               "TLS with an encrypted server name to an address, while a name is denied");
    else if (!hello->has_name || !is_denied(connection, hello->name))
        connection_passed(connection);
}

static void inspect_tls(struct connection *connection)
{
    struct client_hello hello;
    bool watch = connection->inspect == WATCH_TLS;
    enum client_hello_state state =
        client_hello_read((const uint8_t *)connection->input, connection->input_size, &hello);
    connection->is_tls = state == CLIENT_HELLO_DONE || state == CLIENT_HELLO_BAD;
    switch (state) {
    case CLIENT_HELLO_NEED_MORE:
        return;
    case CLIENT_HELLO_NOT_TLS:
        if (watch && !inspect_must_name(connection))
            connection_passed(connection);
        else
            refuse(connection, DOOR_BECAUSE_NOT_TLS, "TLS is due on this port");
        return;
    case CLIENT_HELLO_BAD:
        refuse(connection, DOOR_BECAUSE_BAD_REQUEST, hello.reason);
        return;
    case CLIENT_HELLO_DONE:
        break;
    }
    if (watch)
        watch_hello(connection, &hello);
    else if (!hello.has_name)
        refuse(connection, DOOR_BECAUSE_NO_SNI, "TLS without a server name");
    else if (strcmp(hello.name, connection->name) != 0)
        refuse_other(connection, DOOR_BECAUSE_WRONG_SNI, "TLS for another server,", hello.name);
    else
        connection_passed(connection);
}

static void judge_host(struct connection *connection, const struct http_head *head)
{
    if (!head->has_host || head->host.is_address) {
        refuse(connection, DOOR_BECAUSE_WRONG_HOST, "a request that names no host");
        return;
    }
    if (strcmp(head->host.name, connection->name) != 0) {
        refuse_other(connection, DOOR_BECAUSE_WRONG_HOST, "a request for another host,",
                     head->host.name);
        return;
    }
    connection_passed(connection);
}

static void inspect_http(struct connection *connection)
{
    struct http_head head;
    bool watch = connection->inspect == WATCH_HTTP;
    enum http_state state =
        http_head_read(connection->input, connection->input_size, connection->input_seen, &head);
    connection->input_seen = connection->input_size;
    switch (state) {
    case HTTP_NEED_MORE:
        return;
    case HTTP_BAD:
    case HTTP_TOO_LARGE:
        refuse(connection, DOOR_BECAUSE_BAD_REQUEST, head.reason);
        return;
    case HTTP_DONE:
        break;
    }
    bool named = head.has_host && !head.host.is_address;
    if (!watch)
        judge_host(connection, &head);
    else if (!named && inspect_must_name(connection))
        refuse(connection, DOOR_BECAUSE_WRONG_HOST,
               "a request that names no host, while a name is denied");
    else if (!named || !is_denied(connection, head.host.name))
        connection_passed(connection);
}

static void inspect_input(struct connection *connection)
{
    if (connection->inspect == INSPECT_TLS || connection->inspect == WATCH_TLS)
        inspect_tls(connection);
    else
        inspect_http(connection);
}

void inspect_start(struct connection *connection)
{
    struct broker *broker = connection->broker;
    if (!front_succeed(connection)) /* the client of a proxy waits for that */
        return;
    connection->stage = CONNECTION_INSPECT;
    loop_arm(&broker->loop, &connection->timer,
             (int64_t)broker->config.limits[CONFIG_LIMIT_INSPECT_MS]);
    loop_rewatch(&broker->loop, &connection->client, EPOLLIN | EPOLLRDHUP);
    if (connection->input_size > 0)
        inspect_input(connection);
}

void inspect_ready(struct connection *connection)
{
    if (connection_read(connection))
        inspect_input(connection);
}
