/* SPDX-License-Identifier: MIT */
/* A request of the jail's, on its way to the upstream: with the credential, without what the client
 * might have put in its place, and written anew, so that nothing of how it was framed gets through. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "net/broker_inject_parts.h"

/* What a client might bring to be somebody else; dropped always. */
static const char *const credentials[] = {
    "authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key", "private-token",
};

/* What some servers take for the method or the path instead of those that were judged. */
static const char *const overrides[] = {
    "x-http-method-override", "x-http-method",  "x-method-override", "x-original-method",
    "x-original-url",         "x-original-uri", "x-rewrite-url",
};

/* What is made anew: by libcurl, or by us. */
static const char *const remade[] = {"host", "content-length", "expect"};

/* ---- Headers ---- */

static bool is_among(struct http_slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_slice_alias(name, names[i]))
            return true;
    return false;
}

static bool is_restricted(const struct config_inject *inject)
{
    return inject->methods.count > 0 || inject->paths.count > 0 || inject->prefix[0];
}

static bool is_dropped(const struct inject_client *client, const struct http_head *head,
                       const struct http_header *header)
{
    const struct config_inject *inject = client->inject;
    for (size_t i = 0; i < inject->header_count; i++)
        if (http_slice_alias(header->name, inject->headers[i].name))
            return true;
    return http_head_is_hop(head, header) ||
           is_among(header->name, credentials, sizeof credentials / sizeof *credentials) ||
           is_among(header->name, remade, sizeof remade / sizeof *remade) ||
           (is_restricted(inject) &&
            is_among(header->name, overrides, sizeof overrides / sizeof *overrides)) ||
           is_among(header->name, inject->strip.items, inject->strip.count);
}

static bool append(struct inject_client *client, const char *line)
{
    struct curl_slist *longer = client->broker->curl->curl.api.slist_append(client->headers, line);
    if (longer)
        client->headers = longer;
    return longer;
}

/* To libcurl "Name:" means to leave it out, and "Name;" that it has no value. */
static bool append_header(struct inject_client *client, const struct http_header *header)
{
    autostr struct str line = {0};
    str_append_bytes(&line, header->name.at, header->name.length);
    str_append(&line, header->value.length > 0 ? ": " : ";");
    str_append_bytes(&line, header->value.at, header->value.length);
    return !line.failed && append(client, line.data);
}

/* The last of the list are nodes of our own, so that the secret is not copied into another. */
static void add_secrets(struct inject_client *client)
{
    const struct config_inject *inject = client->inject;
    struct curl_slist **end = &client->headers;
    while (*end)
        end = &(*end)->next;
    for (size_t i = 0; i < inject->header_count; i++) {
        struct curl_slist *node = &client->secret_nodes[i];
        /* libcurl only reads it. */
        node->data = (char *)(uintptr_t)client->broker->curl->header_lines[client->index][i];
        node->next = NULL;
        *end = node;
        end = &node->next;
    }
}

static void remove_secrets(struct inject_client *client)
{
    struct curl_slist **end = &client->headers;
    while (*end && *end != &client->secret_nodes[0])
        end = &(*end)->next;
    *end = NULL;
}

/* Whether only a part of the upstream's paths may be asked for. */
static bool is_bounded(const struct config_inject *inject)
{
    bool all = inject->paths.count == 0;
    for (size_t i = 0; i < inject->paths.count; i++)
        all |= strcmp(inject->paths.items[i], "/") == 0;
    return inject->prefix[0] || !all;
}

enum inject_target inject_request_target(struct inject_client *client, const struct http_head *head)
{
    const struct config_inject *inject = client->inject;
    size_t before = strlen(inject->prefix), length = head->path.length;
    autofree char *target = malloc(before + length + 1);
    if (!target)
        return INJECT_TARGET_FAILED;
    memcpy(target, inject->prefix, before);
    if (!is_bounded(inject)) /* the upstream may read it as it likes */
        memcpy(target + before, head->path.at, length);
    else if (!http_path_normalise(head->path, target + before, &length))
        return INJECT_TARGET_AMBIGUOUS;
    target[before + length] = 0;
    client->target = take_ptr(&target);
    return INJECT_TARGET_MADE;
}

bool inject_request_prepare(struct inject_client *client, const struct http_head *head)
{
    bool accepts = false, good = true;
    for (size_t i = 0; i < head->header_count && good; i++) {
        const struct http_header *header = &head->headers[i];
        accepts |= http_slice_like(header->name, "accept");
        if (!is_dropped(client, head, header))
            good = append_header(client, header);
    }
    good = good && append(client, "Expect:") && (accepts || append(client, "Accept:"));
    add_secrets(client);
    return good;
}

/* ---- The body ---- */

/* The next bytes of the body that are there; 0 with body_ended, body_bad, or with none there. */
static size_t take_body(struct inject_client *client, char *to, size_t room)
{
    size_t copied = 0;
    while (copied == 0 && !client->body_ended && client->input_size > 0) {
        size_t consumed = 0;
        struct http_slice data = {0};
        size_t some = client->input_size < room ? client->input_size : room;
        enum http_state state =
            http_body_read(&client->body, client->input, some, &consumed, &data);
        if (state == HTTP_BAD || state == HTTP_TOO_LARGE) {
            client->body_bad = true;
            return 0;
        }
        if (data.length > 0)
            memcpy(to, data.at, data.length);
        copied = data.length;
        client->body_ended = state == HTTP_DONE;
        client->input_size -= consumed;
        memmove(client->input, client->input + consumed, client->input_size);
        if (consumed == 0 && state == HTTP_NEED_MORE)
            break;
    }
    return copied;
}

static size_t read_body(char *to, size_t size, size_t count, void *data)
{
    struct inject_client *client = data;
    size_t taken = client->body_ended ? 0 : take_body(client, to, size * count);
    inject_watch(client); /* there is room for more now, or no more is wanted */
    if (client->body_bad)
        return CURL_READFUNC_ABORT;
    if (taken == 0 && !client->body_ended) {
        client->paused |= CURLPAUSE_SEND;
        return CURL_READFUNC_PAUSE;
    }
    client->bytes_out += taken;
    broker_count_bytes(client->broker, taken);
    return taken;
}

/* ---- libcurl ---- */

#define SET(option, value) (void)api->easy_setopt(client->easy, CURLOPT_##option, value)

static bool is_proxied(const struct inject_client *client)
{
    const struct config_inject *inject = client->inject;
    const struct broker_config *config = &client->broker->config;
    return config->has_proxy && !inject->upstream.is_address &&
           !broker_config_is_direct(config, inject->upstream.name);
}

static void print_host(const struct config_host *host, char text[NET_NAME_MAX + 1])
{
    char address[NET_ADDRESS_TEXT_MAX];
    if (!host->is_address) {
        (void)snprintf(text, NET_NAME_MAX + 1, "%s", host->name);
        return;
    }
    net_address_print(&host->address, address);
    (void)snprintf(text, NET_NAME_MAX + 1, host->address.family == NET_V6 ? "[%s]" : "%s", address);
}

/* The addresses the name has, so that libcurl resolves nothing by itself. */
static bool set_addresses(struct inject_client *client, const struct config_host *host,
                          const struct net_address *addresses, size_t count)
{
    const struct curl_api *api = &client->broker->curl->curl.api;
    autostr struct str line = {0};
    if (host->is_address)
        return true;
    str_appendf(&line, "%s:%u:", host->name, host->port);
    for (size_t i = 0; i < count; i++) {
        char text[NET_ADDRESS_TEXT_MAX];
        net_address_print(&addresses[i], text);
        str_append(&line, i > 0 ? "," : "");
        str_appendf(&line, addresses[i].family == NET_V6 ? "[%s]" : "%s", text);
    }
    client->hosts = line.failed ? NULL : api->slist_append(NULL, line.data);
    SET(RESOLVE, client->hosts);
    return client->hosts;
}

static void set_method(struct inject_client *client)
{
    const struct curl_api *api = &client->broker->curl->curl.api;
    const char *method = client->method;
    bool sends = client->body_length != 0 || strcmp(method, "POST") == 0 ||
                 strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
    if (client->is_head && client->body_length == 0) {
        SET(NOBODY, 1L);
        return;
    }
    if (sends) {
        SET(UPLOAD, 1L);
        SET(INFILESIZE_LARGE, (curl_off_t)client->body_length);
        SET(READFUNCTION, read_body);
        SET(READDATA, client);
    }
    SET(CUSTOMREQUEST, method);
}

static void set_security(struct inject_client *client)
{
    const struct curl_api *api = &client->broker->curl->curl.api;
    SET(FOLLOWLOCATION, 0L);
    SET(SSL_VERIFYPEER, 1L);
    SET(SSL_VERIFYHOST, 2L);
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CAINFO, client->broker->curl->certificates);
    SET(CAPATH, NULL);
    SET(NETRC, (long)CURL_NETRC_IGNORED);
    SET(PROXY, ""); /* and none from the environment */
    SET(NOSIGNAL, 1L);
}

static void set_proxy(struct inject_client *client)
{
    const struct broker *broker = client->broker;
    const struct curl_api *api = &broker->curl->curl.api;
    char host[NET_NAME_MAX + 1], url[NET_NAME_MAX + 32];
    print_host(&broker->config.proxy, host);
    (void)snprintf(url, sizeof url, "http://%s:%u", host, broker->config.proxy.port);
    SET(PROXY, url);
    SET(HTTPPROXYTUNNEL, 1L);
    SET(HEADEROPT, (long)CURLHEADER_SEPARATE);
    if (broker->config.proxy_secret < 0)
        return;
    /* Made with the others: see inject_init(). */
    client->proxy_node.data =
        (char *)(uintptr_t)broker->curl->lines.texts[broker->curl->lines.count - 1];
    SET(PROXYHEADER, &client->proxy_node);
}

static void set_transfer(struct inject_client *client)
{
    const struct curl_api *api = &client->broker->curl->curl.api;
    char url[NET_NAME_MAX + 32], host[NET_NAME_MAX + 1];
    print_host(&client->inject->upstream, host);
    (void)snprintf(url, sizeof url, "%s://%s:%u/", client->inject->tls ? "https" : "http", host,
                   client->inject->upstream.port);
    SET(URL, url);
    SET(REQUEST_TARGET, client->target);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(HTTPHEADER, client->headers);
    SET(HEADERFUNCTION, inject_reply_line);
    SET(HEADERDATA, client);
    SET(WRITEFUNCTION, inject_reply_data);
    SET(WRITEDATA, client);
    SET(PRIVATE, client);
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)client->broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    SET(SUPPRESS_CONNECT_HEADERS, 1L);
}

bool inject_request_start(struct inject_client *client, const struct net_address *addresses,
                          size_t count)
{
    struct broker_inject_curl *shared = client->broker->curl;
    const struct curl_api *api = &shared->curl.api;
    const struct broker_config *config = &client->broker->config;
    client->easy = api->easy_init();
    if (!client->easy)
        return false;
    set_security(client);
    set_transfer(client);
    set_method(client);
    if (is_proxied(client))
        set_proxy(client);
    if (!set_addresses(client, is_proxied(client) ? &config->proxy : &client->inject->upstream,
                       addresses, count))
        return false;
    return api->multi_add_handle(shared->curl.multi, client->easy) == CURLM_OK;
}

void inject_request_drop(struct inject_client *client)
{
    struct broker_inject_curl *shared = client->broker->curl;
    const struct curl_api *api = &shared->curl.api;
    if (client->easy) {
        (void)api->multi_remove_handle(shared->curl.multi, client->easy);
        api->easy_cleanup(client->easy);
    }
    client->easy = NULL;
    remove_secrets(client);
    api->slist_free_all(client->headers);
    api->slist_free_all(client->hosts);
    client->headers = client->hosts = NULL;
    free(client->target);
    client->target = NULL;
    client->paused = 0;
}

void inject_request_go_on(struct inject_client *client)
{
    if (!client->easy || client->paused == 0)
        return;
    client->paused = 0;
    /* Callbacks are called from in here, and may pause it again. */
    (void)client->broker->curl->curl.api.easy_pause(client->easy, CURLPAUSE_CONT);
}

static enum door_because because_of(CURLcode result)
{
    switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return DOOR_BECAUSE_TLS;
    case CURLE_OPERATION_TIMEDOUT:
        return DOOR_BECAUSE_TIMEOUT;
    default:
        return DOOR_BECAUSE_NO_CONNECT;
    }
}

void inject_request_ended(struct broker_curl *curl, CURL *easy, CURLcode result)
{
    const struct curl_api *api = &curl->api;
    struct inject_client *client = NULL;
    char *address = NULL;
    if (api->easy_getinfo(easy, CURLINFO_PRIVATE, &client) != CURLE_OK || !client)
        return;
    if (api->easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address)
        (void)snprintf(client->address, sizeof client->address, "%s", address);
    inject_transferred(client, because_of(result),
                       result == CURLE_OK ? NULL : api->easy_strerror(result));
}
