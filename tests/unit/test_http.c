/* SPDX-License-Identifier: MIT */
/* Heads and bodies of HTTP requests: what is read, and what is refused as two readers could
 * understand it differently. */
#include "base/cleanup.h"
#include "net/http.h"
#include "tap.h"

static const char *state_name(enum http_state state)
{
    static const char *const names[] = {"need more", "done", "bad", "too large"};
    return names[state];
}

/* The bytes stay until the next call: a head points into them. */
static enum http_state look(const char *bytes, size_t length, struct http_head *head)
{
    static char *copy;
    free(copy);
    copy = malloc(length ? length : 1);
    if (!copy)
        tap_bail("out of memory");
    memcpy(copy, bytes, length);
    memset(head, 0x55, sizeof *head);
    return http_head_read(copy, length, 0, head);
}

static enum http_state look_text(const char *text, struct http_head *head)
{
    return look(text, strlen(text), head);
}

/* ---- Heads ---- */

static void test_plain(void)
{
    static const char text[] = "POST /v1/messages?x=1 HTTP/1.1\r\n"
                               "Host: API.example.com\r\n"
                               "X-Empty:\r\n"
                               "x-blanks: \t a b \t\r\n"
                               "Content-Length: 5\r\n"
                               "\r\nhello";
    struct http_head head;
    tap_is_int(look_text(text, &head), HTTP_DONE, "a request is read");
    tap_is_int(head.length, sizeof text - 1 - 5, "to where its body begins");
    tap_ok(http_slice_is(head.method, "POST"), "its method");
    tap_ok(http_slice_is(head.path, "/v1/messages?x=1"), "its path");
    tap_is_int(head.form, HTTP_FORM_ORIGIN, "of the usual form");
    tap_ok(head.minor == 1 && head.keep_alive && !head.upgrade && !head.expect_continue,
           "what it means for the connection");
    tap_is_str(head.host.name, "api.example.com", "its host in lower case");
    tap_ok(head.has_host && !head.host.is_address && head.host.port == 0, "without a port");
    tap_is_int(head.header_count, 4, "its headers");
    tap_ok(http_slice_is(head.headers[1].value, ""), "an empty value");
    tap_ok(http_slice_is(head.headers[2].value, "a b"), "a value without the blanks around it");
    tap_is_int(http_head_find(&head, "X-BLANKS", 0), 2, "found in any case");
    tap_is_int(http_head_find(&head, "x-blanks", 3), -1, "from there on");
    tap_ok(head.framing == HTTP_BODY_LENGTH && head.content_length == 5, "the length of its body");
    size_t early = 0;
    for (size_t length = 0; length < head.length; length++) {
        struct http_head part;
        early += look(text, length, &part) != HTTP_NEED_MORE;
    }
    tap_is_int(early, 0, "with any byte missing, or all of them, more is needed");
}

/* As it comes, byte by byte, with what was seen before. */
static void test_pieces(void)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
    struct http_head head;
    size_t length = 0;
    enum http_state state = HTTP_NEED_MORE;
    while (state == HTTP_NEED_MORE && length < sizeof text - 1) {
        length++;
        state = http_head_read(text, length, length - 1, &head);
    }
    tap_ok(state == HTTP_DONE && length == head.length, "byte by byte it ends where it ends");
    static const char bad[] = "GET / HTTP/1.1\r\nHost: a\n";
    state = HTTP_NEED_MORE;
    for (length = 1; length < sizeof bad && state == HTTP_NEED_MORE; length++)
        state = http_head_read(bad, length, length - 1, &head);
    tap_ok(state == HTTP_BAD && length == sizeof bad, "and is bad where it is bad");
}

static void test_hosts(void)
{
    static const struct {
        const char *text, *name;
        bool address;
        unsigned port;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example", false, 0},
        {"GET / HTTP/1.1\r\nhOST:a.example:8080\r\n\r\n", "a.example", false, 8080},
        {"GET / HTTP/1.1\r\nHost: 10.1.2.3:80\r\n\r\n", "10.1.2.3", true, 80},
        {"GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", "2001:db8::1", true, 80},
        {"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n", "2001:db8::1", true, 0},
        {"GET http://A.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example", false, 0},
        {"GET http://a.example:80/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example", false, 80},
        {"GET https://a.example/x HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "a.example", false, 0},
        {"GET HTTP://a.example HTTP/1.0\r\n\r\n", "a.example", false, 0},
        {"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "a.example", false, 443},
        {"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example", false, 443},
        {"CONNECT [::1]:443 HTTP/1.0\r\n\r\n", "::1", true, 443},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct http_head head;
        tap_is_int(look_text(rows[i].text, &head), HTTP_DONE, "%s is read", rows[i].text);
        char text[NET_ADDRESS_TEXT_MAX] = "";
        if (head.host.is_address)
            net_address_print(&head.host.address, text);
        tap_is_str(head.host.is_address ? text : head.host.name, rows[i].name, "its host");
        tap_ok(head.has_host && head.host.is_address == rows[i].address, "its kind");
        tap_is_int(head.host.port, rows[i].port, "and its port");
    }
    struct http_head head;
    tap_is_int(look_text("GET / HTTP/1.0\r\n\r\n", &head), HTTP_DONE, "HTTP/1.0 may have no host");
    tap_ok(!head.has_host && !head.keep_alive, "and has none then, and ends");
    tap_ok(look_text("GET http://a.example HTTP/1.0\r\n\r\n", &head) == HTTP_DONE &&
               http_slice_is(head.path, "/") && head.form == HTTP_FORM_ABSOLUTE,
           "a URL without a path has the root");
    tap_ok(look_text("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &head) == HTTP_DONE &&
               head.form == HTTP_FORM_ASTERISK,
           "OPTIONS may be for the whole server");
    tap_ok(look_text("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", &head) == HTTP_DONE &&
               head.form == HTTP_FORM_AUTHORITY && head.path.length == 0,
           "CONNECT has no path");
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

static void test_refused(void)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        /* Lines. */
        {"GET / HTTP/1.1\nHost: a\n\n", "LF without CR"},
        {GET "X: a\nY: b\r\n\r\n", "LF without CR"},
        {GET "X: a\rY: b\r\n\r\n", "CR without LF"},
        {GET "X: a\r\r\n\r\n", "CR without LF"},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "begin as a request"},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "begin as a request"},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "begin as a request"},
        {"\x16\x03\x01", "begin as a request"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n\r\n", "begin as a request"},
        {"GET\r\n\r\n", "begin as a request"},
        {"GET /\r\n\r\n", "no version"},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "version"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/0.9\r\n\r\n", "version"},
        {"GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n", "target has a character"},
        {"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n", "target has a character"},
        {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "target has a character"},
        {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "not a path or a URL"},
        {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "not a path or a URL"},
        {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "not a path or a URL"},
        /* Headers. */
        {GET "X : a\r\n\r\n", "header's name"},
        {GET ": a\r\n\r\n", "header's name"},
        {GET "X Y: a\r\n\r\n", "header's name"},
        {GET "X\x01: a\r\n\r\n", "header's name"},
        {GET "X(: a\r\n\r\n", "header's name"},
        {GET "X: a\r\n b\r\n\r\n", "folded"},
        {GET "\tX: a\r\n\r\n", "folded"},
        {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "folded"},
        {GET "X\r\n\r\n", "no colon"},
        {GET "X: a\x01\r\n\r\n", "control character"},
        {GET "X: a\x7f\r\n\r\n", "control character"},
        /* Hosts. */
        {"GET / HTTP/1.1\r\n\r\n", "no Host"},
        {GET "Host: a\r\n\r\n", "two Host"},
        {GET "host: b\r\n\r\n", "two Host"},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a:0\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a:+80\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: [::1]x:80\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: [10.1.2.3]\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: [a.example]\r\n\r\n", "not a host"},
        {"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n", "not a host"},
        {"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "not that of its target"},
        {"GET http://a/ HTTP/1.1\r\nHost: a:8080\r\n\r\n", "not that of its target"},
        {"GET http://10.1.2.3/ HTTP/1.1\r\nHost: 10.1.2.4\r\n\r\n", "not that of its target"},
        {"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "not a host"},
        {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "not a host"},
        {"GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n", "not a host"},
        {"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n", "no path"},
        {"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", "a host and a port"},
        {"CONNECT /a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "a host and a port"},
        {"CONNECT http://a:1/ HTTP/1.1\r\nHost: a\r\n\r\n", "a host and a port"},
        {"CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", "not that of its target"},
        {"CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n", "not that of its target"},
        /* Bodies. */
        {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "both"},
        {POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", "both"},
        {POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "two Content-Length"},
        {POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", "two Content-Length"},
        {POST "Content-Length: 5, 5\r\n\r\n", "not a length"},
        {POST "Content-Length: +5\r\n\r\n", "not a length"},
        {POST "Content-Length: -5\r\n\r\n", "not a length"},
        {POST "Content-Length: 0x5\r\n\r\n", "not a length"},
        {POST "Content-Length: 5 5\r\n\r\n", "not a length"},
        {POST "Content-Length:\r\n\r\n", "not a length"},
        {POST "Content-Length: 1000000000000000000\r\n\r\n", "not a length"},
        {POST "Content-Length: 18446744073709551621\r\n\r\n", "not a length"},
        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "two Transfer"},
        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", "two Transfer"},
        {POST "Transfer-Encoding: chunked, chunked\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding: identity\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding: xchunked\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding: \"chunked\"\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding:\r\n\r\n", "just chunked"},
        {POST "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n",
         "control character"},
        {POST "Transfer-Encoding : chunked\r\n\r\n", "header's name"},
        {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "of HTTP/1.1"},
        {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 0\r\n\r\n", "CONNECT has a body"},
        {POST "Expect: x\r\n\r\n", "expects something"},
        {POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", "two Expect"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct http_head head;
        tap_is_str(state_name(look_text(rows[i].text, &head)), "bad", "%s is bad", rows[i].text);
        tap_has_str(head.reason, rows[i].reason, "for its reason");
    }
    struct http_head head;
    static const char nul[] = GET "X: a\0b\r\n\r\n";
    tap_is_int(look(nul, sizeof nul - 1, &head), HTTP_BAD, "a NUL is bad");
    tap_is_int(look("GE\0", 3, &head), HTTP_BAD, "wherever it is");
}

/* The twins of what is refused. */
static void test_framing(void)
{
    struct http_head head;
    tap_ok(look_text(GET "\r\n", &head) == HTTP_DONE && head.framing == HTTP_BODY_NONE,
           "no body if none is spoken of");
    tap_ok(look_text(POST "Transfer-Encoding: Chunked\r\n\r\n", &head) == HTTP_DONE &&
               head.framing == HTTP_BODY_CHUNKED,
           "a body in chunks");
    tap_ok(look_text(POST "Content-Length: 999999999999999999\r\n\r\n", &head) == HTTP_DONE &&
               head.content_length == UINT64_C(999999999999999999),
           "a long body");
    tap_ok(look_text(POST "Content-Length: 0\r\nExpect: 100-Continue\r\n\r\n", &head) ==
                   HTTP_DONE &&
               head.framing == HTTP_BODY_LENGTH && head.expect_continue,
           "an empty one that is waited with");
    tap_ok(look_text(GET "X: \xc3\xbc\t \"(),/:;<=>?@[\\]{}\r\n\r\n", &head) == HTTP_DONE,
           "values may be of anything else");
    tap_ok(look_text(GET "Connection: x, Upgrade\r\nUpgrade: websocket\r\n\r\n", &head) ==
                   HTTP_DONE &&
               head.upgrade,
           "another protocol can be asked for");
    tap_ok(look_text(GET "Upgrade: websocket\r\n\r\n", &head) == HTTP_DONE && !head.upgrade,
           "but by both headers");
    tap_ok(look_text(GET "Connection: keep-alive , close\r\n\r\n", &head) == HTTP_DONE &&
               !head.keep_alive,
           "the connection can be ended");
    tap_ok(look_text("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", &head) == HTTP_DONE &&
               head.keep_alive,
           "or kept, as of old");
}

static void test_limits(void)
{
    static char text[HTTP_HEAD_MAX + 2];
    struct http_head head;
    size_t at = (size_t)snprintf(text, sizeof text, GET "X: ");
    memset(text + at, 'x', sizeof text - at);
    memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
    tap_is_int(look(text, HTTP_HEAD_MAX, &head), HTTP_DONE, "a head has 65536 bytes");
    tap_is_int(look(text, HTTP_HEAD_MAX + 1, &head), HTTP_DONE, "whatever follows");
    memset(text + HTTP_HEAD_MAX - 4, 'x', 4);
    tap_is_int(look(text, HTTP_HEAD_MAX - 1, &head), HTTP_NEED_MORE, "as long as it has fewer");
    memcpy(text + HTTP_HEAD_MAX - 3, "\r\n\r\n", 4);
    tap_is_int(look(text, HTTP_HEAD_MAX + 1, &head), HTTP_TOO_LARGE, "and not one more");
    at = (size_t)snprintf(text, sizeof text, GET);
    for (int i = 1; i < HTTP_HEADERS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "X: %d\r\n", i);
    (void)snprintf(text + at, sizeof text - at, "\r\n");
    tap_is_int(look_text(text, &head), HTTP_DONE, "it has 128 headers");
    (void)snprintf(text + at, sizeof text - at, "X: x\r\n\r\n");
    tap_is_int(look_text(text, &head), HTTP_TOO_LARGE, "and not 129");
    tap_ok(look_text("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.0\r\n\r\n", &head) == HTTP_DONE,
           "a method has 32 letters");
}

/* As servers see names that make variables of them. */
static void test_aliases(void)
{
    static const char *const same[] = {"x-api-key", "X-API-KEY", "x_api_key", "X.Api_Key",
                                       "x!api~key"};
    static const char *const other[] = {"x-api-keys", "xapikey", "x-api-kez", "x--pi-key", ""};
    for (size_t i = 0; i < ARRAY_LENGTH(same); i++)
        tap_ok(http_slice_alias((struct http_slice){same[i], strlen(same[i])}, "X-Api-Key"),
               "%s is x-api-key", same[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(other); i++)
        tap_ok(!http_slice_alias((struct http_slice){other[i], strlen(other[i])}, "X-Api-Key"),
               "'%s' is not", other[i]);
}

static void test_hops(void)
{
    static const char text[] =
        GET "Connection: close, X-Mine ,authorization\r\nX-Mine: 1\r\nX-Other: 1\r\n"
            "Authorization: x\r\nTE: trailers\r\nProxy-Authorization: x\r\nUpgrade: x\r\n"
            "Keep-Alive: x\r\nTransfer_Encoding: x\r\nAccept: x\r\n\r\n";
    static const char *const passed[] = {"Host", "X-Other", "Accept"};
    struct http_head head;
    tap_is_int(look_text(text, &head), HTTP_DONE, "headers for the next hop");
    for (size_t i = 0; i < head.header_count; i++) {
        bool pass = false;
        for (size_t k = 0; k < ARRAY_LENGTH(passed); k++)
            pass |= http_slice_is(head.headers[i].name, passed[k]);
        tap_is_int(http_head_is_hop(&head, &head.headers[i]), !pass, "%.*s is %s",
                   (int)head.headers[i].name.length, head.headers[i].name.at,
                   pass ? "passed on" : "not passed on");
    }
}

/* ---- Paths ---- */

static struct http_slice slice(const char *text)
{
    return (struct http_slice){.at = text, .length = strlen(text)};
}

/* In a block of just the size, so that a sanitizer sees a write past it. */
static bool normalise(const char *path, char *text, size_t size)
{
    size_t length = strlen(path);
    autofree char *to = malloc(length ? length : 1);
    if (!to || !http_path_normalise(slice(path), to, &length) || length >= size)
        return false;
    memcpy(text, to, length);
    text[length] = 0;
    return true;
}

static void test_paths(void)
{
    static const struct {
        const char *path, *normal;
    } spelt[] = {
        {"/", "/"},
        {"/v1", "/v1"},
        {"/v1/", "/v1/"},
        {"/v1/x?y=../..;\\", "/v1/x?y=../..;\\"},
        {"/a.b/..c/...", "/a.b/..c/..."},
        {"/%41%7e%2D%5f", "/A~-_"},
        {"/a%20b%c3%a9", "/a%20b%C3%A9"},
        {"/v1?", "/v1?"},
        {"/@x/y:z", "/@x/y:z"},
        {"/?..", "/?.."},
        {"//", "/"},
        {"///a//b///", "/a/b/"},
        {"/v1//x", "/v1/x"},
        {"/v1/./x", "/v1/x"},
        {"/.", "/"},
        {"/v1/.", "/v1/"},
        {"/v1/..", "/"},
        {"/v1/../", "/"},
        {"/v1/../x", "/x"},
        {"/v1/%2e%2E/x", "/x"},
        {"/v1/.%2e?x", "/?x"},
        {"/a/b/../../c/./d", "/c/d"},
        {"/a//../b", "/b"},
        {"/@scope%2fname", "/@scope%2Fname"},
        {"/a%2Fb/../c", "/c"},
        {"/a%2f.b/..%41", "/a%2F.b/..A"},
    };
    static const char *const ambiguous[] = {
        "",
        "*",
        "v1",
        "?",
        "/..",
        "/../x",
        "/v1/../../x",
        "/%2e%2e/x",
        "//../x",
        "/a/.././..",
        "/%2f",
        "/a%2f",
        "/%2fa",
        "/a%2f%2fb",
        "/..%2fx",
        "/v1/..%2Fx",
        "/a%2f..",
        "/a%2f.%2fb",
        "/.%2e%2f",
        "/a%5cb",
        "/a\\b",
        "/a%00b",
        "/a%",
        "/a%4",
        "/a%4g",
        "/a%252e",
        "/..;/x",
        "/a;b=c",
        "/a%3fb",
        "/a%23b",
        "/a%0ab",
        "/a%3bb",
        "/a%7f",
        "/%c0%ae",
        "/%C1%9c",
        "/%e0%80%ae",
        "/%f0%80%80%ae",
        "/\xc0\xae",
    };
    char text[64];
    for (size_t i = 0; i < ARRAY_LENGTH(spelt); i++) {
        tap_ok(normalise(spelt[i].path, text, sizeof text), "'%s' has one spelling", spelt[i].path);
        tap_is_str(text, spelt[i].normal, "'%s' is normalised", spelt[i].path);
        tap_ok(normalise(spelt[i].normal, text, sizeof text) && strcmp(text, spelt[i].normal) == 0,
               "and stays so");
    }
    for (size_t i = 0; i < ARRAY_LENGTH(ambiguous); i++)
        tap_ok(!normalise(ambiguous[i], text, sizeof text), "'%s' is ambiguous", ambiguous[i]);
    static const struct {
        const char *path, *prefix;
        bool below;
    } rows[] = {
        {"/v1", "/v1", true},   {"/v1/x", "/v1", true},    {"/v1?x", "/v1", true},
        {"/v10", "/v1", false}, {"/v1", "/v1/", false},    {"/v1/x", "/v1/", true},
        {"/v1/", "/v1/", true}, {"/V1/x", "/v1", false},   {"/x", "/v1", false},
        {"/", "/v1", false},    {"/v1%2Fx", "/v1", false}, {"/@a%2Fb", "/", true},
        {"*", "/", false},      {"/v1", "", false},        {"", "/", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_int(http_path_below(slice(rows[i].path), rows[i].prefix), rows[i].below,
                   "'%s' is %s '%s'", rows[i].path, rows[i].below ? "below" : "not below",
                   rows[i].prefix);
}

/* ---- Bodies ---- */

/* Reads the bytes in pieces of this size. Says what the body is, and what follows it. */
static enum http_state follow(const struct http_head *head, const char *bytes, size_t length,
                              size_t piece, char *data, size_t *ret_consumed,
                              const char **ret_reason)
{
    struct http_body body;
    size_t at = 0, have = 0;
    http_body_init(&body, head);
    enum http_state state = HTTP_NEED_MORE;
    while (state == HTTP_NEED_MORE && at < length) {
        size_t part = length - at < piece ? length - at : piece, consumed;
        struct http_slice found;
        autofree char *copy = malloc(part);
        if (!copy)
            tap_bail("out of memory");
        memcpy(copy, bytes + at, part);
        state = http_body_read(&body, copy, part, &consumed, &found);
        memcpy(data + have, found.at, found.length);
        have += found.length;
        at += consumed;
        if (consumed == 0 && state == HTTP_NEED_MORE)
            tap_bail("nothing was consumed");
    }
    data[have] = '\0';
    *ret_consumed = at;
    *ret_reason = body.reason;
    return state;
}

static void test_chunks(void)
{
    static const struct http_head chunked = {.framing = HTTP_BODY_CHUNKED};
    static const struct {
        const char *text, *data; /* data NULL: bad */
        enum http_state state;
    } rows[] = {
        {"0\r\n\r\n", "", HTTP_DONE},
        {"5\r\nhello\r\n0\r\n\r\n", "hello", HTTP_DONE},
        {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", HTTP_DONE},
        {"00005\r\nhello\r\n000\r\n\r\n", "hello", HTTP_DONE},
        {"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", HTTP_DONE},
        {"5;x=y;z=\"a b\"\r\nhello\r\n0;x\r\n\r\n", "hello", HTTP_DONE},
        {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n", HTTP_DONE},
        {"5\r\nhello\r\n0\r\nX: y\r\nZ:\r\n\r\n", "hello", HTTP_DONE},
        {"5\r\nhello\r\n0\r\n", "hello", HTTP_NEED_MORE},
        {"5\r\nhel", "hel", HTTP_NEED_MORE},
        {"5\nhello\r\n0\r\n\r\n", NULL, HTTP_BAD},
        {"5\r\nhello\n0\r\n\r\n", NULL, HTTP_BAD},
        {"5\r\nhello0\r\n\r\n", NULL, HTTP_BAD},
        {"5\r\nhello!\r\n0\r\n\r\n", NULL, HTTP_BAD},
        {"\r\nhello", NULL, HTTP_BAD},
        {";x\r\n", NULL, HTTP_BAD},
        {" 5\r\nhello", NULL, HTTP_BAD},
        {"5 \r\nhello", NULL, HTTP_BAD},
        {"5 ;x\r\nhello", NULL, HTTP_BAD},
        {"-5\r\nhello", NULL, HTTP_BAD},
        {"+5\r\nhello", NULL, HTTP_BAD},
        {"0x5\r\nhello", NULL, HTTP_BAD},
        {"5\rhello", NULL, HTTP_BAD},
        {"5;x\n\r\nhello", NULL, HTTP_BAD},
        {"5;x\x01\r\nhello", NULL, HTTP_BAD},
        {"10000000000000005\r\nhello", NULL, HTTP_BAD},
        {"0000000000000000\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\nX y\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\n: y\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\nX : y\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\n X: y\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\nX: y\n\r\n", NULL, HTTP_BAD},
        {"0\r\nGET / HTTP/1.1\r\n\r\n", NULL, HTTP_BAD},
        {"0\r\n\rX", NULL, HTTP_BAD},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        for (size_t piece = 1; piece < 40; piece++) {
            char bytes[128], data[128];
            size_t length = (size_t)snprintf(bytes, sizeof bytes, "%sGET", rows[i].text), consumed;
            const char *reason;
            if (rows[i].state != HTTP_DONE)
                length -= 3;
            enum http_state state =
                follow(&chunked, bytes, length, piece, data, &consumed, &reason);
            bool same = state == rows[i].state && (state == HTTP_BAD) == (reason != NULL) &&
                        (!rows[i].data || strcmp(data, rows[i].data) == 0) &&
                        (state != HTTP_DONE || consumed == length - 3);
            if (!same)
                tap_fail("%s in pieces of %zu: %s, '%s', %zu", rows[i].text, piece,
                         state_name(state), data, consumed);
        }
        tap_pass("%s: %s, in pieces of any size", rows[i].text, state_name(rows[i].state));
    }
}

static void test_lengths(void)
{
    struct http_head head = {.framing = HTTP_BODY_LENGTH, .content_length = 5};
    char data[64];
    size_t consumed;
    const char *reason;
    for (size_t piece = 1; piece < 10; piece++) {
        enum http_state state = follow(&head, "helloGET", 8, piece, data, &consumed, &reason);
        tap_ok(state == HTTP_DONE && consumed == 5 && strcmp(data, "hello") == 0,
               "five bytes in pieces of %zu", piece);
    }
    tap_is_int(follow(&head, "hell", 4, 9, data, &consumed, &reason), HTTP_NEED_MORE,
               "four are not all");
    struct http_body body = {.step = 0};
    struct http_slice found;
    head.content_length = 0;
    http_body_init(&body, &head);
    tap_ok(http_body_read(&body, "GET", 3, &consumed, &found) == HTTP_DONE && consumed == 0 &&
               found.length == 0,
           "none are there at once");
    http_body_init(&body, &(struct http_head){.framing = HTTP_BODY_NONE});
    tap_ok(http_body_read(&body, "", 0, &consumed, &found) == HTTP_DONE, "as with no body");
}

static void test_body_limits(void)
{
    static const struct http_head chunked = {.framing = HTTP_BODY_CHUNKED};
    static char bytes[HTTP_TRAILERS_MAX + 64], data[sizeof bytes];
    size_t consumed;
    const char *reason;
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "1;", 2);
    memcpy(bytes + 2 + HTTP_CHUNK_LINE_MAX - 1, "\r\na\r\n0\r\n\r\n", 10);
    tap_is_int(
        follow(&chunked, bytes, 2 + HTTP_CHUNK_LINE_MAX - 1 + 10, 4096, data, &consumed, &reason),
        HTTP_DONE, "extensions have 256 bytes with their end");
    memset(bytes + 2, 'x', HTTP_CHUNK_LINE_MAX);
    tap_is_int(follow(&chunked, bytes, 2 + HTTP_CHUNK_LINE_MAX + 1, 4096, data, &consumed, &reason),
               HTTP_TOO_LARGE, "and not one more");
    /* "X:" and its CR, then that of the empty line. */
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "0\r\nX:", 5);
    memcpy(bytes + 3 + HTTP_TRAILERS_MAX - 2, "\r\n\r\n", 4);
    tap_is_int(follow(&chunked, bytes, 3 + HTTP_TRAILERS_MAX + 2, 4096, data, &consumed, &reason),
               HTTP_DONE, "trailers have 8192 bytes");
    memcpy(bytes + 3 + HTTP_TRAILERS_MAX - 2, "x\r\n\r\n", 5);
    tap_is_int(follow(&chunked, bytes, 3 + HTTP_TRAILERS_MAX + 3, 4096, data, &consumed, &reason),
               HTTP_TOO_LARGE, "and not one more");
    struct http_body body;
    struct http_slice found;
    http_body_init(&body, &chunked);
    (void)http_body_read(&body, "x", 1, &consumed, &found);
    tap_is_int(http_body_read(&body, "0\r\n\r\n", 5, &consumed, &found), HTTP_BAD,
               "what was bad stays bad");
    tap_ok(body.reason != NULL, "with its reason");
}

int main(void)
{
    test_plain();
    test_pieces();
    test_hosts();
    test_refused();
    test_framing();
    test_limits();
    test_aliases();
    test_hops();
    test_paths();
    test_chunks();
    test_lengths();
    test_body_limits();
    return tap_done();
}
