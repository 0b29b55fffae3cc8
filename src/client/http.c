/* SPDX-License-Identifier: MIT */
/* Requests to brigd with libcurl. */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/certificates.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"

#define CONNECT_TIMEOUT_MS 10000L
#define UNIX_PREFIX "unix:"

struct transfer {
    CURL *curl;
    struct client_call *call;
    uint64_t started_ms, ticked_ms;
    bool too_long;
};

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct client_call *call = transfer->call;
    size_t length = size * count;
    (void)curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &call->status);
    if (call->take && call->status == 200)
        return call->take(call->context, bytes, length) == 0 ? length : 0;
    transfer->too_long = call->answer->length + length > CLIENT_ANSWER_MAX;
    if (transfer->too_long)
        return 0;
    str_append_bytes(call->answer, bytes, length);
    return call->answer->failed ? 0 : length;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct transfer *transfer = context;
    uint64_t now = clock_now_ms();
    (void)a, (void)b, (void)c, (void)d;
    if (transfer->call->tick && now - transfer->ticked_ms >= 1000) {
        transfer->ticked_ms = now;
        transfer->call->tick(transfer->call->context, now - transfer->started_ms);
    }
    return 0;
}

static int add_header(struct curl_slist **headers, const char *name, const char *value)
{
    autostr struct str line = {0};
    str_appendf(&line, "%s: %s", name, value);
    struct curl_slist *more = line.failed ? NULL : curl_slist_append(*headers, line.data);
    if (!more)
        return BRIG_E_NOMEM;
    *headers = more;
    return 0;
}

static int set_address(const struct client *client, CURL *curl, const char *path,
                       struct brig_error *err)
{
    autostr struct str url = {0};
    bool local = str_starts_with(client->server, UNIX_PREFIX);
    str_appendf(&url, "%s%s", local ? "http://localhost" : client->server, path);
    if (url.failed)
        return brig_fail_nomem(err);
    if (local)
        (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH,
                               client->server + strlen(UNIX_PREFIX));
    if (curl_easy_setopt(curl, CURLOPT_URL, url.data) != CURLE_OK)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not the address of a server",
                         str_shown(client->server).text);
    return 0;
}

static void set_options(const struct client *client, struct transfer *transfer,
                        struct curl_slist *headers)
{
    CURL *curl = transfer->curl;
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, transfer->call->method);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (transfer->call->body) {
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                               (curl_off_t)strlen(transfer->call->body));
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, transfer->call->body);
    }
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    const char *authorities = client->cacert ? client->cacert : certificates_of_system();
    if (authorities)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    /* The server belongs to the operator: ignore the proxies of the environment. */
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
}

/* A hint what to check first if there was no answer. */
static const char *remedy(CURLcode code)
{
    switch ((int)code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return "Is the certificate for this name, and trusted here? See --cacert and BRIG_CACERT";
    case CURLE_SSL_CACERT_BADFILE:
        return "Is that a file of certificates in PEM? See --cacert and BRIG_CACERT";
    case CURLE_SSL_CONNECT_ERROR:
        return "Does brigd speak TLS there? If not, begin the address with http://";
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
        return "Does brigd speak TLS there? If so, begin the address with https://";
    default:
        return "Is brigd running there? See --server and BRIG_SERVER";
    }
}

static int run(const struct client *client, struct transfer *transfer, struct brig_error *err)
{
    struct curl_slist *headers = NULL;
    int result = set_address(client, transfer->curl, transfer->call->path, err);
    if (result == 0 && transfer->call->body)
        result = add_header(&headers, "Content-Type", "application/json");
    /* Otherwise curl waits up to a second for "100 Continue" before it sends a large body. */
    if (result == 0)
        result = add_header(&headers, "Expect", "");
    if (result == 0 && client->key)
        result = add_header(&headers, "X-API-Key", client->key);
    if (result == 0) {
        set_options(client, transfer, headers);
        CURLcode code = curl_easy_perform(transfer->curl);
        (void)curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &transfer->call->status);
        if (transfer->too_long)
            result = brig_fail(err, BRIG_E_SYSTEM, 0, "the answer is too long");
        else if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && transfer->call->take))
            result = brig_fail(err, BRIG_E_SYSTEM, 0, "%s: %s. %s", str_shown(client->server).text,
                               curl_easy_strerror(code), remedy(code));
    }
    curl_slist_free_all(headers);
    return result;
}

int client_perform(const struct client *client, struct client_call *call, struct brig_error *err)
{
    struct transfer transfer = {.curl = curl_easy_init(), .call = call};
    if (!transfer.curl)
        return brig_fail_nomem(err);
    transfer.started_ms = transfer.ticked_ms = clock_now_ms();
    int result = run(client, &transfer, err);
    curl_easy_cleanup(transfer.curl);
    return result;
}

int client_check(const struct client_call *call, struct brig_error *err)
{
    if (call->status >= 200 && call->status < 300)
        return 0;
    const char *text = call->answer->data ? call->answer->data : "";
    json_t *object = json_loadb(text, call->answer->length, 0, NULL);
    const char *message = json_string_value(json_object_get(object, "error"));
    const char *code = json_string_value(json_object_get(object, "code"));
    int result = message ? brig_fail(err, BRIG_E_SYSTEM, 0, "%s (%s)", str_shown(message).text,
                                     str_shown(code ? code : "?").text)
                         : brig_fail(err, BRIG_E_SYSTEM, 0, "the server answers with status %ld",
                                     call->status);
    json_decref(object);
    if (call->status == 401)
        result = brig_advise(err, result, "Give a key with --key or BRIG_API_KEY");
    return result;
}

/* Parses server-sent events as the HTML standard says, except that lines end with \n or \r\n only:
 * the server writes no other line ends. */

void sse_done(struct sse *sse)
{
    str_done(&sse->line);
    str_done(&sse->data);
}

static void clear(struct str *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

static int end_event(struct sse *sse, sse_take *take, void *context)
{
    int result = 0;
    static char nothing[] = "";
    if (sse->has_data)
        result = take(context, sse->event[0] ? sse->event : "message",
                      sse->data.data ? sse->data.data : nothing, sse->data.length);
    clear(&sse->data);
    sse->has_data = false;
    sse->event[0] = '\0';
    return result;
}

static void take_field(struct sse *sse, const char *name, size_t name_length, const char *value)
{
    if (name_length == 5 && memcmp(name, "event", 5) == 0) {
        (void)snprintf(sse->event, sizeof sse->event, "%s", value);
    } else if (name_length == 4 && memcmp(name, "data", 4) == 0) {
        if (sse->has_data)
            str_append_char(&sse->data, '\n');
        str_append(&sse->data, value);
        sse->has_data = true;
    }
}

static int end_line(struct sse *sse, sse_take *take, void *context)
{
    const char *line = sse->line.data ? sse->line.data : "";
    size_t length = strlen(line);
    int result = 0;
    if (length > 0 && line[length - 1] == '\r')
        sse->line.data[--length] = '\0';
    if (length == 0) {
        result = end_event(sse, take, context);
    } else if (line[0] != ':') { /* a line that begins with a colon is a comment */
        const char *colon = strchr(line, ':');
        const char *value = colon ? colon + 1 : "";
        take_field(sse, line, colon ? (size_t)(colon - line) : length, value + (*value == ' '));
    }
    clear(&sse->line);
    return result;
}

int sse_feed(struct sse *sse, const char *bytes, size_t length, sse_take *take, void *context)
{
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        str_append_bytes(&sse->line, bytes, part);
        if (sse->line.failed || sse->data.failed || sse->line.length > SSE_LINE_MAX ||
            sse->data.length > SSE_LINE_MAX) {
            sse->failed = true;
            return -1;
        }
        int result = end ? end_line(sse, take, context) : 0;
        if (result != 0)
            return result;
        bytes += part + (end != NULL);
        length -= part + (end != NULL);
    }
    return 0;
}
