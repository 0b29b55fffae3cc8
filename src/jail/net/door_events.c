/* SPDX-License-Identifier: MIT */
/* The broker's events. */
#include "jail/net/door_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "net/broker_wire.h"

static const char *const because_words[DOOR_BECAUSE_COUNT] = {
    [DOOR_BECAUSE_RULE] = "rule",
    [DOOR_BECAUSE_NO_RULE] = "no-rule",
    [DOOR_BECAUSE_PORT] = "port",
    [DOOR_BECAUSE_ADDRESS] = "address",
    [DOOR_BECAUSE_UNKNOWN] = "unknown-address",
    [DOOR_BECAUSE_NO_SNI] = "no-sni",
    [DOOR_BECAUSE_WRONG_SNI] = "wrong-sni",
    [DOOR_BECAUSE_NOT_TLS] = "not-tls",
    [DOOR_BECAUSE_WRONG_HOST] = "wrong-host",
    [DOOR_BECAUSE_BAD_REQUEST] = "bad-request",
    [DOOR_BECAUSE_METHOD] = "method",
    [DOOR_BECAUSE_PATH] = "path",
    [DOOR_BECAUSE_INJECTED] = "injected",
    [DOOR_BECAUSE_NO_NAME] = "no-such-name",
    [DOOR_BECAUSE_NO_CONNECT] = "no-connection",
    [DOOR_BECAUSE_TIMEOUT] = "timeout",
    [DOOR_BECAUSE_CONNECTIONS] = "limit-connections",
    [DOOR_BECAUSE_NAMES] = "limit-names",
    [DOOR_BECAUSE_BYTES] = "limit-bytes",
    [DOOR_BECAUSE_RESET] = "reset",
    [DOOR_BECAUSE_CLOSED] = "closed",
    [DOOR_BECAUSE_TLS] = "tls",
};

static const char *const via_words[DOOR_SOCKET_COUNT] = {
    [DOOR_SOCKET_DNS_UDP] = "dns",       [DOOR_SOCKET_DNS_TCP] = "dns",
    [DOOR_SOCKET_REDIRECT] = "tcp",      [DOOR_SOCKET_HTTP_PROXY] = "http-proxy",
    [DOOR_SOCKET_SOCKS] = "socks",       [DOOR_SOCKET_INJECT] = "inject",
    [DOOR_SOCKET_QUEUE] = "tcp",         [DOOR_SOCKET_PUBLISH] = "publish",
    [DOOR_SOCKET_CONNECTOR] = "publish",
};

static const char *const verdict_words[] = {
    [BRIG_NET_ALLOWED] = "allowed", [BRIG_NET_DENIED] = "denied",   [BRIG_NET_FAILED] = "failed",
    [BRIG_NET_ENDED] = "ended",     [BRIG_NET_WAITING] = "waiting",
};

_Static_assert((int)BRIG_NET_ALLOWED == (int)DOOR_ALLOWED &&
                   (int)BRIG_NET_DENIED == (int)DOOR_DENIED &&
                   (int)BRIG_NET_FAILED == (int)DOOR_ERROR &&
                   (int)BRIG_NET_ENDED == (int)DOOR_ENDED &&
                   (int)BRIG_NET_WAITING == (int)DOOR_WAITING,
               "the same on the wire");

/* The texts come from a process that communicates with the jail: they are terminated here, and
 * control characters are replaced, so that they cannot control a terminal. */
static void copy_text(char *to, size_t size, const char *from, size_t length)
{
    size_t used = strnlen(from, length < size ? length : size - 1);
    for (size_t i = 0; i < used; i++)
        to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
    to[used] = 0;
}

static void convert(const struct door_event *from, struct brig_net_event *to)
{
    *to = (struct brig_net_event){
        .verdict = (enum brig_net_verdict)from->verdict,
        .because = because_words[from->because],
        .via = via_words[from->via],
        .port = from->port,
        .time_ns = from->time_ns,
        .connection = from->connection,
        .bytes_in = from->bytes_in,
        .bytes_out = from->bytes_out,
        .duration_ms = from->duration_ms,
    };
    copy_text(to->name, sizeof to->name, from->name, sizeof from->name);
    copy_text(to->address, sizeof to->address, from->address, sizeof from->address);
    copy_text(to->rule, sizeof to->rule, from->rule, sizeof from->rule);
    copy_text(to->detail, sizeof to->detail, from->detail, sizeof from->detail);
}

static void count(struct brig_net_totals *sums, const struct brig_net_event *event)
{
    sums->allowed += event->verdict == BRIG_NET_ALLOWED;
    sums->denied += event->verdict == BRIG_NET_DENIED;
    sums->failed += event->verdict == BRIG_NET_FAILED;
    if (event->verdict == BRIG_NET_ENDED) {
        sums->bytes_in += event->bytes_in;
        sums->bytes_out += event->bytes_out;
    }
}

static bool grow(struct door_events *events)
{
    size_t room = events->room ? events->room * 4 : 16;
    if (room > BRIG_NET_EVENTS_MAX)
        room = BRIG_NET_EVENTS_MAX;
    if (room == events->room)
        return false;
    struct brig_net_event *grown = reallocarray(events->items, room, sizeof *grown);
    if (!grown)
        return false;
    events->items = grown;
    events->room = room;
    return true;
}

/* Returns the slot for the next event; if there is no more room, the oldest one's. */
static struct brig_net_event *next_place(struct door_events *events)
{
    if (events->count < events->room || grow(events)) /* it grows before it wraps */
        return &events->items[events->count++];
    events->sums.dropped++;
    if (events->room == 0)
        return NULL;
    struct brig_net_event *place = &events->items[events->first];
    events->first = (events->first + 1) % events->room;
    events->taken -= events->taken > 0;
    return place;
}

bool door_events_add(struct door_events *events, const void *message, size_t length)
{
    struct door_event event;
    if (length != sizeof event)
        return false;
    memcpy(&event, message, sizeof event);
    if (event.head.version != DOOR_WIRE_VERSION || event.head.type != DOOR_EVENT ||
        event.verdict > DOOR_WAITING || event.because >= DOOR_BECAUSE_COUNT ||
        event.via >= DOOR_SOCKET_COUNT || event.port > UINT16_MAX)
        return false;
    struct brig_net_event converted;
    convert(&event, &converted);
    count(&events->sums, &converted);
    struct brig_net_event *place = next_place(events);
    if (place)
        *place = converted;
    return true;
}

static const struct brig_net_event *at(const struct door_events *events, size_t index)
{
    return &events->items[(events->first + index) % events->room];
}

bool door_events_take(struct door_events *events, struct brig_net_event *ret_event)
{
    if (events->taken >= events->count)
        return false;
    *ret_event = *at(events, events->taken++);
    return true;
}

void door_events_take_all(struct door_events *events, struct brig_net_result *ret_result)
{
    *ret_result = (struct brig_net_result){.totals = events->sums};
    if (events->first != 0) {
        /* Wrapped: copy in order. If memory runs out, the events are dropped. */
        struct brig_net_event *ordered = calloc(events->count, sizeof *ordered);
        for (size_t i = 0; ordered && i < events->count; i++)
            ordered[i] = *at(events, i);
        ret_result->totals.dropped += ordered ? 0 : events->count;
        ret_result->count = ordered ? events->count : 0;
        free(events->items);
        ret_result->events = ordered;
    } else {
        ret_result->events = events->items;
        ret_result->count = events->count;
    }
    *events = (struct door_events){0};
}

void door_events_done(struct door_events *events)
{
    free(events->items);
    *events = (struct door_events){0};
}

/* ---- output ---- */

const char *brig_net_verdict_name(enum brig_net_verdict verdict)
{
    return (size_t)verdict < ARRAY_LENGTH(verdict_words) ? verdict_words[verdict] : "?";
}

static void put_time(struct json *j, int64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm parts;
    char text[64];
    if (time_ns < 0 || !gmtime_r(&seconds, &parts)) {
        json_nothing(j, "time");
        return;
    }
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                   parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                   (int)(time_ns / 1000000 % 1000));
    json_text(j, "time", text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
    if (*text)
        json_text(j, key, text);
    else
        json_nothing(j, key);
}

void door_event_write(const struct brig_net_event *event, struct json *j)
{
    json_open_object(j, NULL);
    put_time(j, event->time_ns);
    json_text(j, "verdict", brig_net_verdict_name(event->verdict));
    put_text(j, "name", event->name);
    put_text(j, "address", event->address);
    if (event->port > 0)
        json_uint(j, "port", event->port);
    else
        json_nothing(j, "port");
    json_text(j, "via", event->via);
    json_text(j, "because", event->because);
    put_text(j, "rule", event->rule);
    put_text(j, "detail", event->detail);
    if (event->connection > 0)
        json_uint(j, "connection", event->connection);
    if (event->verdict == BRIG_NET_ENDED) {
        json_uint(j, "bytes_in", event->bytes_in);
        json_uint(j, "bytes_out", event->bytes_out);
        json_uint(j, "duration_ms", event->duration_ms);
    }
    json_close_object(j);
}

int brig_net_event_json(const struct brig_net_event *event, char **ret_text, struct brig_error *err)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    door_event_write(event, &j);
    str_append_char(&out, '\n');
    return str_take(&out, ret_text, err);
}
