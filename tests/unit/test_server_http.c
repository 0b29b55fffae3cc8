/* SPDX-License-Identifier: MIT */
/* The pure parts of the http process: events, detector, rate, clients, keys, routes, metrics, results. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/http/clients.h"
#include "server/http/detector.h"
#include "server/http/http.h"
#include "server/http/metrics.h"
#include "server/http/result_json.h"
#include "server/http/route.h"
#include "server/http/stream.h"
#include "tap.h"

#define REPLACED "\xef\xbf\xbd"

/* ---- Events ---- */

static void event_is(const char *const *pieces, const char *wanted, const char *name)
{
    autostr struct str out = {0};
    struct sse_text text = {0};
    for (; *pieces; pieces++)
        sse_append_text(&out, "stdout", &text, *pieces, strlen(*pieces), false);
    sse_append_text(&out, "stdout", &text, "", 0, true);
    str_append_bytes(&out, "", 0);
    tap_is_str(out.data, wanted, "%s", name);
}

#define EVENT_IS(wanted, name, ...) event_is((const char *const[]){__VA_ARGS__, NULL}, wanted, name)
#define EVENT "event: stdout\ndata: "

static void events(void)
{
    EVENT_IS(EVENT "hello\n\n", "a piece is an event", "hello");
    EVENT_IS(EVENT "a\ndata: b\ndata: \n\n", "line ends are lines of data", "a\nb\n");
    EVENT_IS(EVENT "a\ndata: b\n\n", "a return and a newline are one", "a\r\nb");
    EVENT_IS(EVENT "a\ndata: \n\n" EVENT "b\n\n", "also in two pieces", "a\r", "\nb");
    EVENT_IS(EVENT "a\ndata: b\n\n", "a return alone is a line end", "a\rb");
    EVENT_IS(EVENT "a\ndata: \ndata: event: done\ndata: data: {}\ndata: \ndata: \n\n",
             "an event in the output begins none", "a\n\nevent: done\ndata: {}\n\n");
    EVENT_IS(EVENT "a\ndata: \ndata: event: done\n\n", "nor with returns", "a\r\revent: done");
    EVENT_IS(EVENT ": x\n\n", "a comment in the output is none", ": x");
    EVENT_IS(EVENT "\xc3\xa9\n\n", "a character in two pieces is one", "\xc3", "\xa9");
    EVENT_IS(EVENT "\xf0\x9f\x98\x80\n\n", "and in four", "\xf0", "\x9f", "\x98", "\x80");
    EVENT_IS(EVENT REPLACED "\n\n", "one that is never finished is replaced at the end", "\xc3");
    EVENT_IS(EVENT REPLACED "x\n\n", "or when something else comes", "\xc3", "x");
    EVENT_IS(EVENT REPLACED REPLACED "x\n\n", "each of its bytes", "\xe2\x82", "x");
    EVENT_IS(EVENT "a" REPLACED "b\n\n", "bytes that are no UTF-8 are replaced",
             "a\xff"
             "b");
    EVENT_IS("", "nothing is no event", "");
    autostr struct str out = {0};
    sse_append_base64(&out, "stderr", "\n\0\n", 3);
    sse_append_json(&out, "done", "{}");
    sse_append_comment(&out);
    tap_is_str(out.data, "event: stderr\ndata: CgAK\n\nevent: done\ndata: {}\n\n: keep-alive\n\n",
               "base64, JSON and comments");
}

/* ---- Detector ---- */

static size_t scan(const char *code, struct execution_event **ret_events, struct arena *arena)
{
    size_t count = 0;
    detector_scan(code, strlen(code), arena, ret_events, &count);
    return count;
}

static void sees(const char *code, const char *type, enum execution_severity severity)
{
    struct arena arena = {0};
    struct execution_event *found = NULL;
    size_t count = scan(code, &found, &arena);
    tap_ok(count > 0 && strcmp(found[0].type, type) == 0 && found[0].severity == severity, "%s: %s",
           type, code);
    arena_done(&arena);
}

static void sees_nothing(const char *code)
{
    struct arena arena = {0};
    struct execution_event *found = NULL;
    tap_is_int(scan(code, &found, &arena), 0, "harmless: %s", code);
    arena_done(&arena);
}

static void detects(void)
{
    struct arena arena = {0};
    struct execution_event *found = NULL;
    for (size_t i = 0; i < detector_pattern_count; i++) {
        const struct detector_pattern *row = &detector_patterns[i];
        bool seen = false;
        size_t count = scan(row->text, &found, &arena);
        for (size_t k = 0; k < count; k++)
            seen = seen || strcmp(found[k].detail, row->detail) == 0;
        if (!seen || strlen(row->text) >= 64)
            tap_fail("the pattern %s finds itself", row->text);
        arena_done(&arena);
    }
    sees("open('/etc/shadow')", "credential_access", SEVERITY_CRITICAL);
    sees("OPEN('/ETC/SHADOW')", "credential_access", SEVERITY_CRITICAL);
    sees(":() { : | : & } ; :", "fork_bomb", SEVERITY_CRITICAL);
    sees("while True:\n    os.fork()\n", "fork_bomb", SEVERITY_CRITICAL);
    sees("curl http://169.254.169.254/latest", "metadata_access", SEVERITY_CRITICAL);
    sees("libc.ptrace(0, 0, 0, 0)", "process_tracing", SEVERITY_HIGH);
    sees("libc.mount(b'none')", "mount_attempt", SEVERITY_HIGH);
    sees("mount -t proc none /proc", "mount_attempt", SEVERITY_HIGH);
    sees("x='/var/run/docker.sock'", "container_escape", SEVERITY_CRITICAL);
    sees("xfinit_module init_module", "kernel_module", SEVERITY_CRITICAL);
    sees_nothing("print('hello')");
    sees_nothing("total = amount(3)");
    sees_nothing("def amount (x): pass");
    sees_nothing("def dismount(x): pass");
    sees_nothing("xinsmod");
    sees_nothing("/etc/hosts");
    sees_nothing("");
    size_t count = scan("/etc/passwd ptrace /etc/shadow ptrace", &found, &arena);
    tap_ok(count == 3 && found[0].severity == SEVERITY_CRITICAL &&
               found[2].severity == SEVERITY_LOW,
           "each once, the gravest first");
    arena_done(&arena);
}

/* ---- Rate ---- */

static struct net_address address(const char *text)
{
    struct net_address found = {0};
    if (!net_address_read(text, strlen(text), &found))
        tap_fail("%s is an address", text);
    return found;
}

static void rates(void)
{
    struct rate *rate = NULL;
    uint64_t wait = 0, now = 1000000000;
    struct net_address a = address("192.0.2.1"), b = address("192.0.2.2");
    (void)rate_new(10, 5, &rate, NULL);
    size_t taken = 0;
    for (int i = 0; i < 20; i++)
        taken += rate_take(rate, &a, now, &wait);
    tap_is_int(taken, 5, "a burst as large as was said");
    tap_ok(wait > 0 && wait <= 101, "then a wait of one token");
    tap_ok(rate_take(rate, &b, now, &wait), "another client has a bucket of its own");
    tap_ok(!rate_take(rate, &a, now + 99000, &wait), "a moment before, it is too early");
    tap_ok(rate_take(rate, &a, now + 100000, &wait), "a token comes each tenth of a second");
    taken = 0;
    for (int i = 0; i < 20; i++)
        taken += rate_take(rate, &a, now + 60000000, &wait);
    tap_is_int(taken, 5, "a bucket does not fill beyond its depth");
    struct net_address six = address("2001:db8::1"), same = address("2001:db8::2"),
                       other = address("2001:db8:0:1::1");
    for (int i = 0; i < 5; i++)
        (void)rate_take(rate, &six, now, &wait);
    tap_ok(!rate_take(rate, &same, now, &wait), "a /64 is one client");
    tap_ok(rate_take(rate, &other, now, &wait), "the next /64 is another");
    for (uint32_t i = 0; i < 200000; i++) {
        struct net_address many = {.family = NET_V4};
        memcpy(many.bytes, &i, sizeof i);
        (void)rate_take(rate, &many, now, &wait);
    }
    tap_pass("two hundred thousand clients need no more memory");
    rate_free(rate);
    (void)rate_new(0, 0, &rate, NULL);
    taken = 0;
    for (int i = 0; i < 1000; i++)
        taken += rate_take(rate, &a, now, &wait);
    tap_is_int(taken, 1000, "0 is no limit");
    rate_free(rate);
}

/* ---- Clients and keys ---- */

static void client_is(const char *peer, const char *forwarded, const char *wanted)
{
    static struct clients clients;
    struct config_list proxies = {.items = {"127.0.0.1", "10.0.0.0/8"}, .count = 2};
    struct sockaddr_in from = {.sin_family = AF_INET};
    (void)clients_init(&clients, &proxies, NULL);
    (void)inet_pton(AF_INET, peer, &from.sin_addr);
    struct client found = clients_find(&clients, (struct sockaddr *)&from, forwarded);
    tap_is_str(found.text, wanted, "%s, forwarded for %s", peer, forwarded ? forwarded : "nobody");
}

static void who_asks(void)
{
    client_is("192.0.2.1", NULL, "192.0.2.1");
    client_is("192.0.2.1", "198.51.100.7", "192.0.2.1");
    client_is("127.0.0.1", NULL, "127.0.0.1");
    client_is("127.0.0.1", "198.51.100.7", "198.51.100.7");
    client_is("127.0.0.1", "198.51.100.7, 203.0.113.5 ,10.1.2.3", "203.0.113.5");
    client_is("127.0.0.1", "6.6.6.6, 203.0.113.5", "203.0.113.5");
    client_is("127.0.0.1", "nonsense, 10.1.2.3", "10.1.2.3");
    client_is("127.0.0.1", "nonsense", "127.0.0.1");
    client_is("127.0.0.1", ",,", "127.0.0.1");
    client_is("127.0.0.1", "2001:db8::1", "2001:db8::1");
    static struct clients clients;
    tap_is_str(clients_find(&clients, NULL, "1.2.3.4").text, "unix", "a local socket is unix");
}

static void keys(void)
{
    char domain[CLIENTS_DOMAIN_LENGTH + 1];
    /* Of "plain" and "secret". */
    const struct config_list allowed = {
        .items = {"sha256:a116c9ed46d6207734a43317d30fd88f52ac8634c37d904bbf4e41d865f90475",
                  "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"},
        .count = 2};
    tap_ok(clients_check_key(&allowed, "plain", domain), "a key is known");
    tap_is_int(strlen(domain), CLIENTS_DOMAIN_LENGTH, "and has a domain");
    tap_ok(clients_check_key(&allowed, "secret", domain), "the second too");
    tap_is_str(domain, "2bb80d537b1da3e3", "whose domain is the beginning of its hash");
    tap_ok(!clients_check_key(&allowed, "plai", domain) && !*domain, "a part of it is not");
    tap_ok(!clients_check_key(&allowed, "", domain), "nor nothing");
    tap_ok(!clients_check_key(&allowed, allowed.items[1], domain), "nor the hash itself");
}

/* ---- Routes ---- */

static void route_is(const char *method, const char *path, enum route_match match)
{
    const struct route *route = NULL;
    char id[EXECUTION_ID_LENGTH + 1];
    tap_is_int(route_find(method, path, &route, id), match, "%s %s", method, path);
}

#define UUID "f47ac10b-58cc-4372-a567-0e02b2c3d479"

static void finds_routes(void)
{
    char text[ROUTE_METHODS_MAX];
    for (size_t i = 0; i < route_count; i++)
        if (!strchr(routes[i].path, '{'))
            route_is(routes[i].method, routes[i].path, ROUTE_FOUND);
    route_is("GET", "/executions/" UUID, ROUTE_FOUND);
    route_is("HEAD", "/executions/" UUID, ROUTE_FOUND);
    route_is("DELETE", "/executions/" UUID, ROUTE_FOUND);
    route_is("GET", "/executions/1", ROUTE_BAD_ID);
    route_is("DELETE", "/executions/..", ROUTE_BAD_ID);
    route_is("GET", "/executions/", ROUTE_NO_PATH);
    route_is("GET", "/executions/" UUID "/x", ROUTE_NO_PATH);
    route_is("PUT", "/executions/" UUID, ROUTE_NO_METHOD);
    route_is("GET", "/execute", ROUTE_NO_METHOD);
    route_is("OPTIONS", "/execute", ROUTE_OPTIONS);
    route_is("GET", "/", ROUTE_FOUND);
    route_is("GET", "/web/main.js", ROUTE_FOUND);
    route_is("GET", "/web", ROUTE_NO_PATH);
    route_is("get", "/health", ROUTE_NO_METHOD);
    tap_ok(route_methods("/executions/" UUID, text), "a path has methods");
    tap_is_str(text, "GET, HEAD, DELETE, OPTIONS", "all of them are listed");
    tap_ok(!route_methods("/x", text), "another has none");
}

static void hosts(void)
{
    const struct config_list hosts = {.items = {"brigd.internal"}, .count = 1};
    const char *const own[] = {"localhost", "LOCALHOST:80",  "127.0.0.1:8080",    "[::1]:8080",
                               "192.0.2.1", "a.localhost:1", "Brigd.internal:80", "brigd.internal"};
    const char *const other[] = {"evil.example",
                                 "evil.example:8080",
                                 "brigd.internal.evil.example",
                                 "brigd",
                                 "localhost.evil.example",
                                 "xlocalhost",
                                 "127.0.0.1.evil.example",
                                 "",
                                 "[",
                                 "[evil]:1"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        tap_ok(clients_host_is_own(&hosts, own[i]), "'%s' is this machine", own[i]);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        tap_ok(!clients_host_is_own(&hosts, other[i]), "'%s' may be a web page's", other[i]);
}

/* ---- Metrics, results, the description ---- */

static void counts(void)
{
    static struct server_config config;
    static struct metrics metrics;
    autostr struct str out = {0};
    config.runtimes[0].name = "python";
    config.runtime_count = 1;
    struct counters *counters = &metrics.journal.counters;
    counters_execution(counters, 0,
                       &(struct execution_result){.status = EXECUTION_OK, .duration_us = 10000});
    counters_execution(
        counters, 0,
        &(struct execution_result){.status = EXECUTION_TIMEOUT, .duration_us = 61000000});
    counters_events(counters,
                    &(struct execution_event){.type = "ptrace", .severity = SEVERITY_HIGH}, 1);
    counters_events(
        counters, &(struct execution_event){.type = "x\"} 1\nevil 2", .severity = SEVERITY_LOW}, 1);
    metrics_request(&metrics, &routes[0], 200, 0.02);
    metrics_request(&metrics, NULL, 99999, 1);
    metrics.queued = 3;
    metrics_write(&metrics, &config, &out);
    const char *const lines[] = {
        "\nsandbox_executions_total{language=\"python\",status=\"ok\"} 1\n",
        "\nsandbox_executions_total{language=\"python\",status=\"timeout\"} 1\n",
        "\nsandbox_execution_duration_seconds_bucket{language=\"python\",le=\"0.005\"} 0\n",
        "\nsandbox_execution_duration_seconds_bucket{language=\"python\",le=\"0.01\"} 1\n",
        "\nsandbox_execution_duration_seconds_bucket{language=\"python\",le=\"60\"} 1\n",
        "\nsandbox_execution_duration_seconds_bucket{language=\"python\",le=\"+Inf\"} 2\n",
        "\nsandbox_execution_duration_seconds_count{language=\"python\"} 2\n",
        "\nsandbox_security_events_total{type=\"ptrace\",severity=\"high\"} 1\n",
        "\nsandbox_security_events_total{type=\"other\",severity=\"low\"} 1\n",
        "\nsandbox_timeouts_total 1\n",
        "\nsandbox_queue_depth 3\n",
        "\noom_kills_total 0\n",
        "\nbrigd_http_requests_total{code=\"200\"} 1\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        tap_ok(strstr(out.data, lines[i]), "there is%s", lines[i]);
    tap_ok(!strstr(out.data, "evil"), "a label cannot forge a metric");
}

static void results(void)
{
    autostr struct str out = {0};
    struct json j;
    struct execution_event event = {.type = "t", .detail = "d", .severity = SEVERITY_LOW};
    struct execution_file files[2] = {{.name = "a", .content = {"x\n", 2}},
                                      {.name = "b", .content = {"\xff", 1}, .truncated = true}};
    const char *unenforced = "u";
    struct execution_result result = {.id = "i",
                                      .status = EXECUTION_ERROR,
                                      .exit_code = 7,
                                      .output = {"a\0\xff", 3},
                                      .error_output = {"e", 1},
                                      .duration_us = 1500000,
                                      .cpu_time_us = 1,
                                      .memory_peak_bytes = 1,
                                      .pids_used = 2,
                                      .events = &event,
                                      .event_count = 1,
                                      .files = files,
                                      .file_count = 2,
                                      .error_output_truncated = true,
                                      .message = "m",
                                      .unenforced = &unenforced,
                                      .unenforced_count = 1};
    json_init(&j, &out);
    result_json_write(&j, &result, false, false);
    tap_is_str(out.data,
               "{\"id\":\"i\",\"status\":\"error\",\"output\":\"a\\u0000" REPLACED
               "\",\"stderr\":\"e\",\"exit_code\":7,\"duration\":\"1.500s\",\"resource_usage\":{"
               "\"cpu_time_ms\":1,\"memory_peak_mb\":1,\"pids_used\":2},\"truncated\":{\"output\":"
               "false,\"stderr\":true},\"security_events\":[{"
               "\"type\":\"t\",\"severity\":\"low\",\"detail\":\"d\"}],\"files\":{\"a\":{"
               "\"content\":\"x\\n\",\"encoding\":\"utf-8\","
               "\"truncated\":false},\"b\":{\"content\":\"/w==\",\"encoding\":\"base64\","
               "\"truncated\":true}},\"message\":\"m\",\"unenforced\":[\"u\"]}",
               "a result with everything");
    str_done(&out);
    char noise[30];
    memset(noise, 'x', sizeof noise);
    noise[0] = noise[1] = '\1';
    files[0].content = files[1].content = (struct execution_bytes){noise, sizeof noise};
    files[1].content.length--;
    json_init(&j, &out);
    result_json_write(&j, &result, false, false);
    tap_has_str(out.data, "\"a\":{\"content\":\"\\u0001\\u0001xxx",
                "few control characters are text");
    tap_has_str(out.data, "\"b\":{\"content\":\"AQF4eHh4", "more of them are shorter in base64");
    str_done(&out);
    struct execution_piece order[] = {{true, 1}, {false, 1}};
    struct execution_result compile = {
        .output = {"w", 1}, .error_output = {"v", 1}, .ordered = true};
    compile.order = order;
    compile.order_count = 2;
    result.compile = &compile;
    json_init(&j, &out);
    result_json_write(&j, &result, false, false);
    tap_has_str(out.data, "\"stage\":\"run\",\"compile\":{\"status\":\"running\",\"output\":\"w\"",
                "one with a compile stage");
    tap_has_str(out.data, "\"combined\":\"vw\"", "whose output is in order, too");
    str_done(&out);
    result = (struct execution_result){.id = "i", .stage = STAGE_COMPILE};
    json_init(&j, &out);
    result_json_write(&j, &result, false, false);
    tap_has_str(out.data, "\"stage\":\"compile\"", "one whose compiler failed");
    str_done(&out);
    result = (struct execution_result){.id = "i", .status = EXECUTION_OK, .duration_us = 45200};
    json_init(&j, &out);
    result_json_write(&j, &result, true, true);
    tap_is_str(out.data,
               "{\"id\":\"i\",\"status\":\"ok\",\"exit_code\":0,\"duration\":\"45.2ms\","
               "\"resource_usage\":{\"cpu_time_ms\":0,\"memory_peak_mb\":0,\"pids_used\":0},"
               "\"truncated\":{\"output\":true,\"stderr\":true},\"security_events\":[]}",
               "one that was streamed to a slow reader");
}

static void errors(void)
{
    for (int i = ERROR_NONE + 1; i < ERRORS_; i++) {
        const struct error_row *row = error_row((enum http_error)i);
        if (!row->code || row->status < 400 || !*row->text || !*row->doc)
            tap_fail("error %d has all its words", i);
    }
    tap_pass("errors are complete");
}

static void utf8(void)
{
    const unsigned char *euro = (const unsigned char *)"\xe2\x82\xac";
    tap_ok(utf8_length(euro, 3) == 3 && utf8_length(euro, 2) == 0, "a character is whole or none");
    tap_ok(utf8_is_beginning(euro, 1) && utf8_is_beginning(euro, 2) && !utf8_is_beginning(euro, 3),
           "a beginning is less than a whole");
    tap_ok(!utf8_is_beginning((const unsigned char *)"\xed\xa0", 2), "a surrogate begins nothing");
    tap_ok(!utf8_is_beginning((const unsigned char *)"\xff", 1), "nor does what never occurs");
    tap_ok(utf8_is_valid("a\xe2\x82\xac", 4) && !utf8_is_valid("a\xe2\x82", 3), "texts");
}

static void memory(void)
{
    struct http *http = calloc(1, sizeof *http);
    struct exchange *one = calloc(1, sizeof *one);
    one->http = http;
    LIST_INSERT_HEAD(&http->exchanges, one, link);
    tap_ok(exchange_hold(one, HTTP_MEMORY_MAX - 1) && exchange_charge(one, 1), "all can be used");
    tap_ok(!exchange_hold(one, 1) && !exchange_charge(one, 1), "and no more");
    exchange_release(one);
    tap_is_int(http->memory, HTTP_MEMORY_MAX - 1, "what is held stays when the rest is given back");
    exchange_free(one);
    tap_is_int(http->memory, 0, "and goes with the exchange");
    free(http);
}

int main(void)
{
    memory();
    utf8();
    events();
    detects();
    rates();
    who_asks();
    keys();
    finds_routes();
    hosts();
    counts();
    results();
    errors();
    return tap_done();
}
