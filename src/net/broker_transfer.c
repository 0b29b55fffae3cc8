/* SPDX-License-Identifier: MIT */
/* Sends requests with a credential to the upstream and relays the responses: libcurl in the
 * broker's loop. */
#include "net/broker_inject.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define LIBRARY "libcurl.so.4"
#define LIBRARY_GNUTLS "libcurl-gnutls.so.4" /* Debian may have only this one */
#define REPLY_HEAD_MAX 65536

struct transfer_socket {
    struct node node; /* must be first */
    struct watch watch;
    struct transfer_engine *engine;
};

/* ---- Memory. Buffers that libcurl frees may contain a credential. ---- */

static void wiping_free(void *memory)
{
    if (memory)
        explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

static void *wiping_realloc(void *memory, size_t size)
{
    void *larger = malloc(size);
    if (!larger || !memory)
        return larger;
    size_t had = malloc_usable_size(memory);
    memcpy(larger, memory, had < size ? had : size);
    wiping_free(memory);
    return larger;
}

/* ---- libcurl in the loop ---- */

#ifdef BRIG_STATIC
/* A static program cannot load libraries: libcurl is a part of it. */
static int load(struct curl_api *api, struct brig_error *err)
{
#define ROW(name) .name = curl_##name,
    *api = (struct curl_api){CURL_FUNCTIONS(ROW)};
#undef ROW
    (void)err;
    return 0;
}
#else
static int load(struct curl_api *api, struct brig_error *err)
{
#define ROW(name) {"curl_" #name, offsetof(struct curl_api, name)},
    static const struct {
        const char *symbol;
        size_t place;
    } rows[] = {CURL_FUNCTIONS(ROW)};
#undef ROW
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen(LIBRARY_GNUTLS, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "injecting credentials needs " LIBRARY ", which is not installed");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        void *function = dlsym(library, rows[i].symbol);
        if (!function)
            return brig_fail(err, BRIG_E_UNSUPPORTED, 0, LIBRARY " has no %s: it is too old",
                             rows[i].symbol);
        memcpy((char *)api + rows[i].place, &function, sizeof function);
    }
    return 0;
}
#endif

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

static void ended(const struct curl_api *api, CURL *easy, CURLcode result)
{
    struct inject_client *client = NULL;
    char *address = NULL;
    if (api->easy_getinfo(easy, CURLINFO_PRIVATE, &client) != CURLE_OK || !client)
        return;
    if (api->easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address)
        (void)snprintf(client->address, sizeof client->address, "%s", address);
    if (result == CURLE_OK && client->upgrade.phase == UPGRADE_CONNECT) {
        upgrade_connected(client);
        return;
    }
    inject_transferred(client, because_of(result),
                       result == CURLE_OK ? NULL : api->easy_strerror(result));
}

static void act(struct transfer_engine *engine, curl_socket_t fd, int events)
{
    struct inject *inject = engine->inject;
    const struct curl_api *api = &inject->api;
    int running, left;
    CURLMsg *message;
    (void)api->multi_socket_action(engine->multi, fd, events, &running);
    /* The end of a transfer may also be the end of an engine that is not the common one. */
    while (engine->multi && (message = api->multi_info_read(engine->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            ended(api, message->easy_handle, message->data.result);
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    int mask =
        (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
    if (events & (EPOLLERR | EPOLLHUP))
        mask |= CURL_CSELECT_ERR;
    act(container_of(watch, struct transfer_socket, watch)->engine, watch->fd, mask);
}

static void timer_fires(struct timer *timer)
{
    act(container_of(timer, struct transfer_engine, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int timer_changes(CURLM *multi, long wait_ms, void *data)
{
    struct transfer_engine *engine = data;
    (void)multi;
    if (wait_ms < 0)
        loop_disarm(&engine->timer);
    else
        loop_arm(engine->inject->loop, &engine->timer, (uint64_t)wait_ms);
    return 0;
}

static int socket_changes(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    struct transfer_engine *engine = data;
    struct inject *inject = engine->inject;
    struct transfer_socket *socket = socket_data;
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket) {
            (void)loop_forget(inject->loop, &socket->watch);
            loop_free_later(inject->loop, &socket->node);
        }
        return 0;
    }
    if (socket) {
        loop_rewatch(inject->loop, &socket->watch, events);
        return 0;
    }
    socket = calloc(1, sizeof *socket);
    if (!socket)
        return -1;
    socket->watch = (struct watch){.fd = fd, .ready = socket_ready};
    socket->engine = engine;
    if (!loop_watch(inject->loop, &socket->watch, events)) {
        free(socket);
        return -1;
    }
    (void)inject->api.multi_assign(engine->multi, fd, socket);
    return 0;
}

bool transfer_engine_init(struct transfer_engine *engine, struct inject *inject)
{
    const struct curl_api *api = &inject->api;
    engine->inject = inject;
    engine->timer.fire = timer_fires;
    engine->multi = api->multi_init();
    if (!engine->multi)
        return false;
    (void)api->multi_setopt(engine->multi, CURLMOPT_SOCKETFUNCTION, socket_changes);
    (void)api->multi_setopt(engine->multi, CURLMOPT_SOCKETDATA, engine);
    (void)api->multi_setopt(engine->multi, CURLMOPT_TIMERFUNCTION, timer_changes);
    (void)api->multi_setopt(engine->multi, CURLMOPT_TIMERDATA, engine);
    return true;
}

void transfer_engine_done(struct transfer_engine *engine)
{
    if (engine->multi)
        (void)engine->inject->api.multi_cleanup(engine->multi);
    engine->multi = NULL;
    loop_disarm(&engine->timer);
}

struct transfer_engine *transfer_engine_of(struct inject_client *client)
{
    return client->upgrade.phase == UPGRADE_NONE ? &client->broker->inject->engine
                                                 : &client->upgrade.engine;
}

int transfer_init(struct inject *inject, struct loop *loop, struct brig_error *err)
{
    inject->loop = loop;
    int status = load(&inject->api, err);
    if (status < 0)
        return status;
    if (inject->api.global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc,
                                    strdup, calloc) != CURLE_OK ||
        !transfer_engine_init(&inject->engine, inject))
        return brig_fail(err, BRIG_E_SYSTEM, 0, LIBRARY " cannot be used");
    return 0;
}

void transfer_done(struct inject *inject)
{
    transfer_engine_done(&inject->engine);
}

/* ---- The request's body ---- */

/* Returns the next bytes of the body; 0 with body_ended, body_bad, or if none have arrived yet. */
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
    size_t taken = take_body(client, to, size * count);
    inject_watch(client); /* there is room for more input, or no more is wanted */
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

/* ---- The response: its head without hop-by-hop headers, its body as received ---- */

/* Hop-by-hop headers, and headers that would make a client bypass the door. */
static const char *const dropped[] = {
    "connection",        "keep-alive", "proxy-authenticate",
    "proxy-connection",  "te",         "trailer",
    "transfer-encoding", "upgrade",    "alt-svc",
};

/* "HTTP/1.1 200 OK" or "HTTP/2 200" begins a new head; an earlier one was an interim response. */
static bool begin_head(struct inject_client *client, const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    size_t rest = space ? length - (size_t)(space - line) : 0;
    if (rest < 4)
        return false;
    client->status = 0;
    for (size_t i = 1; i <= 3; i++) {
        if (!http_is_digit(space[i]))
            return false;
        client->status = client->status * 10 + (unsigned)(space[i] - '0');
    }
    str_done(&client->reply_head);
    str_append(&client->reply_head, "HTTP/1.1");
    str_append_bytes(&client->reply_head, space, rest);
    str_append(&client->reply_head, "\r\n");
    client->reply_length[0] = 0;
    client->reply_encoded = false;
    return true;
}

bool transfer_has_body(const struct inject_client *client)
{
    return strcmp(client->method, "HEAD") != 0 && client->status != 204 && client->status != 304;
}

static bool send_head(struct inject_client *client)
{
    struct str *head = &client->reply_head;
    str_append(head, "\r\n");
    bool sent = !head->failed && inject_send(client, head->data, head->length);
    str_done(head);
    return sent;
}

/* The upstream agrees to a WebSocket. */
static bool finish_upgrade(struct inject_client *client)
{
    client->reply_begun = true;
    client->keep_alive = client->chunked = false;
    str_append(&client->reply_head, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    return send_head(client);
}

static bool finish_head(struct inject_client *client)
{
    struct str *head = &client->reply_head;
    if (client->status == 101)
        return client->upgrade.phase != UPGRADE_NONE && finish_upgrade(client);
    if (client->status < 200)
        return true; /* 100 was sent already, 103 is optional */
    client->reply_begun = true;
    /* Refused before the whole body was sent: libcurl stops sending, but not while it is paused. */
    if (!client->body_ended && client->status >= 400) {
        client->keep_alive = false;
        loop_queue(&client->broker->loop, &client->go_on);
    }
    bool known = client->reply_length[0] && !client->reply_encoded;
    bool unknown = transfer_has_body(client) && !known;
    client->chunked = unknown && client->minor > 0;
    if (unknown && !client->chunked)
        client->keep_alive = false; /* its end is the end of the connection */
    if (known)
        str_concat(head, "Content-Length: ", client->reply_length, "\r\n");
    if (client->chunked)
        str_append(head, "Transfer-Encoding: chunked\r\n");
    if (!client->keep_alive)
        str_append(head, "Connection: close\r\n");
    return send_head(client);
}

/* Accepts only digits, and the same value in each Content-Length header. */
static bool take_length(struct inject_client *client, struct http_slice value)
{
    char digits[sizeof client->reply_length] = "";
    if (value.length == 0 || value.length >= sizeof digits)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        if (!http_is_digit(value.at[i]))
            return false;
        digits[i] = value.at[i];
    }
    if (client->reply_length[0] && strcmp(client->reply_length, digits) != 0)
        return false;
    memcpy(client->reply_length, digits, sizeof digits);
    return true;
}

bool transfer_take_line(struct inject_client *client, const char *line, size_t length)
{
    if (client->reply_begun)
        return true; /* trailers */
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        length--;
    if (length == 0)
        return finish_head(client);
    if (length >= 5 && memcmp(line, "HTTP/", 5) == 0)
        return begin_head(client, line, length);
    if (client->reply_head.length + length > REPLY_HEAD_MAX)
        return false;
    const char *colon = memchr(line, ':', length);
    struct http_slice name = {.at = line, .length = colon ? (size_t)(colon - line) : 0};
    client->reply_encoded |= http_slice_like(name, "transfer-encoding");
    for (size_t i = 0; i < ARRAY_LENGTH(dropped); i++)
        if (http_slice_like(name, dropped[i]))
            return true;
    if (http_slice_like(name, "content-length"))
        return take_length(client, http_trim((struct http_slice){
                                       .at = colon + 1, .length = length - name.length - 1}));
    str_append_bytes(&client->reply_head, line, length);
    str_append(&client->reply_head, "\r\n");
    return true;
}

static size_t write_line(char *line, size_t size, size_t count, void *data)
{
    return transfer_take_line(data, line, size * count) ? size * count : 0;
}

bool transfer_take_body(struct inject_client *client, const char *bytes, size_t length)
{
    client->bytes_in += length;
    broker_count_bytes(client->broker, length);
    if (!client->chunked)
        return inject_send(client, bytes, length);
    autostr struct str chunk = {0};
    str_appendf(&chunk, "%zx\r\n", length);
    str_append_bytes(&chunk, bytes, length);
    str_append(&chunk, "\r\n");
    return !chunk.failed && inject_send(client, chunk.data, chunk.length);
}

static size_t write_body(char *bytes, size_t size, size_t count, void *data)
{
    struct inject_client *client = data;
    if (inject_has_output(client)) {
        client->paused |= CURLPAUSE_RECV;
        return CURL_WRITEFUNC_PAUSE;
    }
    return transfer_take_body(client, bytes, size * count) ? size * count : 0;
}

/* ---- A transfer ---- */

#define SET(option, value) (void)api->easy_setopt(client->easy, CURLOPT_##option, value)

static const struct curl_api *api_of(const struct inject_client *client)
{
    return &client->broker->inject->api;
}

bool transfer_add_header(struct inject_client *client, const char *line)
{
    struct curl_slist *longer = api_of(client)->slist_append(client->headers, line);
    if (longer)
        client->headers = longer;
    return longer;
}

/* The last nodes of the list are ours, so that libcurl does not copy the secret. */
static void add_secrets(struct inject_client *client)
{
    struct curl_slist **end = &client->headers;
    while (*end)
        end = &(*end)->next;
    for (size_t i = 0; i < client->inject->header_count; i++) {
        struct curl_slist *node = &client->secret_nodes[i];
        /* libcurl does not modify it. */
        node->data = (char *)(uintptr_t)client->broker->inject->header_lines[client->index][i];
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

static const char *printed(const struct net_address *address, char text[NET_ADDRESS_TEXT_MAX + 2])
{
    char plain[NET_ADDRESS_TEXT_MAX];
    net_address_print(address, plain);
    (void)snprintf(text, NET_ADDRESS_TEXT_MAX + 2, address->family == NET_V6 ? "[%s]" : "%s",
                   plain);
    return text;
}

static void print_url(const char *scheme, const struct http_authority *host, char *url, size_t size)
{
    char address[NET_ADDRESS_TEXT_MAX + 2];
    (void)snprintf(url, size, "%s://%s:%u/", scheme,
                   host->is_address ? printed(&host->address, address) : host->name, host->port);
}

/* Sets the addresses of the name, so that libcurl does not resolve it. */
static bool set_addresses(struct inject_client *client, const struct http_authority *host,
                          const struct net_address *addresses, size_t count)
{
    const struct curl_api *api = api_of(client);
    autostr struct str line = {0};
    if (host->is_address)
        return true;
    str_appendf(&line, "%s:%u:", host->name, host->port);
    for (size_t i = 0; i < count; i++) {
        char text[NET_ADDRESS_TEXT_MAX + 2];
        str_concat(&line, i > 0 ? "," : "", printed(&addresses[i], text));
    }
    client->hosts = line.failed ? NULL : api->slist_append(NULL, line.data);
    SET(RESOLVE, client->hosts);
    return client->hosts;
}

static void set_method(struct inject_client *client)
{
    const struct curl_api *api = api_of(client);
    const char *method = client->method;
    if (client->body_length == 0 && strcmp(method, "HEAD") == 0) {
        SET(NOBODY, 1L);
        return;
    }
    if (client->body_length != 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
        strcmp(method, "PATCH") == 0) {
        SET(UPLOAD, 1L);
        SET(INFILESIZE_LARGE, (curl_off_t)client->body_length);
        SET(READFUNCTION, read_body);
        SET(READDATA, client);
    }
    SET(CUSTOMREQUEST, method);
}

static void set_security(struct inject_client *client)
{
    const struct curl_api *api = api_of(client);
    SET(FOLLOWLOCATION, 0L);
    SET(SSL_VERIFYPEER, 1L);
    SET(SSL_VERIFYHOST, 2L);
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CAINFO, client->broker->inject->certificates);
    SET(CAPATH, NULL);
    SET(NETRC, (long)CURL_NETRC_IGNORED);
    SET(PROXY, ""); /* ignore the environment, too */
    SET(NOSIGNAL, 1L);
}

static void set_proxy(struct inject_client *client)
{
    const struct broker *broker = client->broker;
    const struct curl_api *api = &broker->inject->api;
    char url[NET_NAME_MAX + 32];
    print_url("http", &broker->config.proxy, url, sizeof url);
    SET(PROXY, url);
    SET(HTTPPROXYTUNNEL, 1L);
    SET(HEADEROPT, (long)CURLHEADER_SEPARATE);
    if (!broker->inject->proxy_line)
        return;
    client->proxy_node.data = (char *)(uintptr_t)broker->inject->proxy_line;
    SET(PROXYHEADER, &client->proxy_node);
}

static void set_transfer(struct inject_client *client)
{
    const struct curl_api *api = api_of(client);
    char url[NET_NAME_MAX + 32];
    print_url(client->inject->tls ? "https" : "http", &client->inject->upstream, url, sizeof url);
    SET(URL, url);
    SET(REQUEST_TARGET, client->target);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(HTTPHEADER, client->headers);
    SET(HEADERFUNCTION, write_line);
    SET(HEADERDATA, client);
    SET(WRITEFUNCTION, write_body);
    SET(WRITEDATA, client);
    SET(PRIVATE, client);
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)client->broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    SET(SUPPRESS_CONNECT_HEADERS, 1L);
}

bool transfer_start(struct inject_client *client, const struct net_address *addresses, size_t count)
{
    const struct curl_api *api = api_of(client);
    const struct http_authority *host = inject_first_hop(client);
    client->easy = api->easy_init();
    if (!client->easy)
        return false;
    inject_refresh(client->broker, client->index);
    if (client->upgrade.phase == UPGRADE_NONE)
        add_secrets(client);
    else if (!upgrade_prepare(client))
        return false;
    set_security(client);
    set_transfer(client);
    if (client->upgrade.phase == UPGRADE_NONE)
        set_method(client);
    else
        SET(CONNECT_ONLY, 1L);
    if (host == &client->broker->config.proxy)
        set_proxy(client);
    return set_addresses(client, host, addresses, count) &&
           api->multi_add_handle(transfer_engine_of(client)->multi, client->easy) == CURLM_OK;
}

void transfer_drop(struct inject_client *client)
{
    const struct curl_api *api = api_of(client);
    upgrade_drop(client);
    if (client->easy) {
        (void)api->multi_remove_handle(transfer_engine_of(client)->multi, client->easy);
        api->easy_cleanup(client->easy);
    }
    if (client->upgrade.phase != UPGRADE_NONE)
        transfer_engine_done(&client->upgrade.engine);
    client->upgrade.phase = UPGRADE_NONE;
    remove_secrets(client);
    api->slist_free_all(client->headers);
    api->slist_free_all(client->hosts);
    free(client->target);
    client->easy = NULL;
    client->headers = client->hosts = NULL;
    client->target = NULL;
    client->paused = 0;
}

void transfer_go_on(struct inject_client *client)
{
    if (client->upgrade.phase != UPGRADE_NONE) {
        upgrade_go_on(client);
        return;
    }
    if (!client->easy || client->paused == 0)
        return;
    client->paused = 0;
    /* This invokes callbacks, which may pause the transfer again. */
    (void)api_of(client)->easy_pause(client->easy, CURLPAUSE_CONT);
}
