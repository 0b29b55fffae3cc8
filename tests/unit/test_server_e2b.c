/* SPDX-License-Identifier: MIT */
/* E2B: Connect frames, multipart bodies, paths, and what clients send. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/connect.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/api/multipart.h"
#include "server/api/port_head.h"
#include "server/config/config.h"
#include "tap.h"

#define UUID "f47ac10b-58cc-4372-a567-0e02b2c3d479"

/* ---- Connect ---- */

static void check_frames(void)
{
    autostr struct str out = {0};
    unsigned flags;
    const char *payload;
    size_t length;
    connect_frame(&out, 0, "{\"a\":1}", 7);
    tap_ok(out.length == 12 && memcmp(out.data, "\0\0\0\0\7{\"a\":1}", 12) == 0,
           "a frame is flags, a length and the message");
    tap_is_int(connect_read(out.data, out.length, 7, &flags, &payload, &length), 12,
               "a frame of the largest size is read");
    tap_ok(flags == 0 && length == 7 && memcmp(payload, "{\"a\":1}", 7) == 0, "with its message");
    tap_is_int(connect_read(out.data, out.length, 6, &flags, &payload, &length), -1,
               "one byte more is refused");
    size_t incomplete = 0;
    for (size_t i = 0; i < out.length; i++)
        incomplete += connect_read(out.data, i, 7, &flags, &payload, &length) == 0;
    tap_is_int(incomplete, 12, "one that is cut off anywhere is incomplete");
    tap_is_int(connect_read("\0\xff\xff\xff\xff", 5, 1 << 20, &flags, &payload, &length), -1,
               "four gigabytes are refused");
    out.length = 0;
    connect_last_frame(&out, CONNECT_UNKNOWN, NULL);
    tap_ok(out.length == 7 && memcmp(out.data, "\2\0\0\0\2{}", 7) == 0, "the last frame is {}");
    out.length = 0;
    connect_last_frame(&out, CONNECT_NOT_FOUND, "a \"b\"");
    tap_is_str(out.data + 5, "{\"error\":{\"code\":\"not_found\",\"message\":\"a \\\"b\\\"\"}}",
               "or an error");
    tap_is_int(out.data[4], (int)out.length - 5, "of its length");
}

static void check_codes(void)
{
    static const struct {
        unsigned status;
        const char *name;
    } rows[] = {{400, "invalid_argument"},   {401, "unauthenticated"}, {403, "permission_denied"},
                {404, "not_found"},          {409, "already_exists"},  {413, "resource_exhausted"},
                {429, "resource_exhausted"}, {500, "internal"},        {501, "unimplemented"},
                {502, "unavailable"},        {503, "unavailable"},     {504, "deadline_exceeded"},
                {507, "resource_exhausted"}, {418, "unknown"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_str(connect_rows[connect_code_of(rows[i].status)].name, rows[i].name, "%u is %s",
                   rows[i].status, rows[i].name);
    for (int i = 0; i < CONNECT_CODES_; i++)
        if (!connect_rows[i].name || connect_rows[i].status < 400)
            tap_fail("code %d has a name and a status", i);
}

static void check_timeouts(void)
{
    unsigned long long ms = 1;
    tap_ok(connect_timeout("60000", &ms) && ms == 60000, "a time limit is read");
    tap_ok(connect_timeout("9999999999", &ms) && ms == 9999999999, "of ten digits at most");
    static const char *const bad[] = {"", "-1", "1s", "99999999999", " 1"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(!connect_timeout(bad[i], &ms), "'%s' is refused", bad[i]);
}

/* ---- multipart ---- */

static void check_boundaries(void)
{
    static const struct {
        const char *type, *boundary;
    } rows[] = {
        {"multipart/form-data; boundary=abc", "abc"},
        {"Multipart/Form-Data;charset=utf-8;Boundary=\"a b\"", "a b"},
        {"multipart/form-data; boundary=----formdata-undici-012345678901",
         "----formdata-undici-012345678901"},
        {"multipart/form-data", NULL},
        {"multipart/form-data; boundary=", NULL},
        {"multipart/form-data; boundary=\"\"", NULL},
        {"multipart/form-data; boundary=\"a", NULL},
        {"multipart/mixed; boundary=abc", NULL},
        {"multipart/form-datax; boundary=abc", NULL},
        {"text/plain", NULL},
        {"", NULL},
        {"multipart/form-data; boundary="
         "1234567890123456789012345678901234567890123456789012345678901234567890",
         "1234567890123456789012345678901234567890123456789012345678901234567890"},
        {"multipart/form-data; boundary="
         "12345678901234567890123456789012345678901234567890123456789012345678901",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char boundary[MULTIPART_BOUNDARY_MAX + 1] = "";
        bool found = multipart_boundary(rows[i].type, boundary);
        tap_is_str(found ? boundary : NULL, rows[i].boundary, "the boundary of '%s'", rows[i].type);
    }
}

/* Writes the parts as NAME|FILENAME|CONTENT; … */
static const char *parts_of(const char *body, size_t length, struct str *out)
{
    struct arena arena = {0};
    struct multipart *parts = NULL;
    size_t count = 0;
    str_done(out);
    if (!multipart_read(body, length, "B", &arena, &parts, &count)) {
        arena_done(&arena);
        return NULL;
    }
    str_append(out, "");
    for (size_t i = 0; i < count; i++)
        str_appendf(out, "%s%s|%s|%.*s", i ? ";" : "", parts[i].name, parts[i].file_name,
                    (int)parts[i].length, parts[i].bytes);
    arena_done(&arena);
    return out->data ? out->data : "";
}

#define FILE_HEAD "Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n"

static void check_parts(void)
{
    static const struct {
        const char *body, *parts;
    } rows[] = {
        {"--B\r\n" FILE_HEAD "\r\nabc\r\n--B--\r\n", "file|f|abc"},
        {"--B\r\n" FILE_HEAD "\r\nabc\r\n--B--", "file|f|abc"},
        {"preamble\r\n--B\r\n" FILE_HEAD "\r\nabc\r\n--B--", "file|f|abc"},
        {"--B\r\n" FILE_HEAD "Content-Type: text/plain\r\n\r\n\r\n--B--", "file|f|"},
        {"--B\r\n" FILE_HEAD "\r\n--B--", "file|f|"},
        {"--B\r\n" FILE_HEAD "\r\na\r\n--b\r\n-B--\r\n--B--", "file|f|a\r\n--b\r\n-B--"},
        {"--B\r\n" FILE_HEAD "\r\n1\r\n--B\r\n" FILE_HEAD "\r\n2\r\n--B--", "file|f|1;file|f|2"},
        {"--B--", ""},
        {"--B\r\ncontent-disposition:form-data;name=a;filename=b c\r\n\r\nx\r\n--B--", "a|b|x"},
        {"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--B--", "a||x"},
        {"--B\r\nX: y\r\n\r\nx\r\n--B--", "||x"},
        {"--B\r\nContent-Disposition: form-data; name=\"a\\\"b\\\\c\\d\"; "
         "filename=\"%22%0a%0D%2f\"\r\n\r\nx\r\n--B--",
         "a\"b\\c\\d|\"\n\r%2f|x"},
        {"--B\r\nContent-Disposition: form-data; filename=\"a; name=b\"; name=c\r\n\r\nx\r\n--B--",
         "c|a; name=b|x"},
        {"", NULL},
        {"--C\r\n\r\n--C--", NULL},
        {"--B", NULL},
        {"--B\r\n", NULL},
        {"--B\r\n" FILE_HEAD, NULL},
        {"--B\r\n" FILE_HEAD "\r\nabc", NULL},
        {"--B\r\n" FILE_HEAD "\r\nabc\r\n--", NULL},
        {"--B\r\n" FILE_HEAD "\r\nabc\r\n--B", NULL},
        {"--Bx\r\n" FILE_HEAD "\r\nabc\r\n--B--", NULL},
        {"--B\r\n" FILE_HEAD "\r\nabc\r\n--B\r\n", NULL},
    };
    autostr struct str out = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_str(parts_of(rows[i].body, strlen(rows[i].body), &out), rows[i].parts,
                   "the parts of body %zu", i);
    static const char binary[] = "--B\r\n" FILE_HEAD "\r\n\0\r\n\0\r\n--B--";
    struct arena arena = {0};
    struct multipart *parts;
    size_t count;
    tap_ok(multipart_read(binary, sizeof binary - 1, "B", &arena, &parts, &count) && count == 1 &&
               parts[0].length == 4 && memcmp(parts[0].bytes, "\0\r\n", 4) == 0,
           "a part has any bytes");
    arena_done(&arena);
}

static bool takes_parts(size_t wanted)
{
    autostr struct str body = {0};
    struct arena arena = {0};
    struct multipart *parts;
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++)
        str_append(&body, "--B\r\n" FILE_HEAD "\r\nx\r\n");
    str_append(&body, "--B--");
    bool read = multipart_read(body.data, body.length, "B", &arena, &parts, &count);
    arena_done(&arena);
    return read && count == wanted;
}

static bool takes_head(size_t length)
{
    autostr struct str body = {0}, out = {0};
    str_append(&body, "--B\r\nX: ");
    for (size_t i = 0; i < length - strlen("X: \r\n\r\n"); i++)
        str_append_char(&body, 'x');
    str_append(&body, "\r\n\r\nx\r\n--B--");
    return parts_of(body.data, body.length, &out);
}

static void check_part_limits(void)
{
    tap_ok(takes_parts(MULTIPART_PARTS_MAX), "there may be 1024 parts");
    tap_ok(!takes_parts(MULTIPART_PARTS_MAX + 1), "not one more");
    tap_ok(takes_head(MULTIPART_HEAD_MAX), "the headers of a part may have 16 KiB");
    tap_ok(!takes_head(MULTIPART_HEAD_MAX + 1), "not a byte more");
}

/* ---- paths ---- */

static void route_is(unsigned port, const char *method, const char *path, const char *id)
{
    char found[EXECUTION_ID_LENGTH + 1] = "";
    const struct e2b_route *route = e2b_find(port, method, path, found);
    tap_is_str(route ? found : NULL, id, "%u %s %s", port, method, path);
}

static void check_routes(void)
{
    route_is(E2B_API, "POST", "/sandboxes", "");
    route_is(E2B_API, "POST", "/v2/sandboxes", "");
    route_is(E2B_API, "GET", "/sandboxes/abc", "abc");
    route_is(E2B_API, "DELETE", "/sandboxes/abc", "abc");
    route_is(E2B_API, "POST", "/v2/sandboxes/abc/connect", "abc");
    route_is(E2B_API, "POST", "/sandboxes/abc/pause", "abc");
    route_is(E2B_API, "GET", "/sandboxes/", NULL);
    route_is(E2B_API, "GET", "/sandboxes/a/b", NULL);
    route_is(E2B_API, "PATCH", "/sandboxes/abc", NULL);
    route_is(E2B_API, "POST", "/process.Process/Start", NULL);
    route_is(E2B_API, "GET", "/sandboxes/1234567890123456789012345678901234567", NULL);
    route_is(E2B_ENVD, "POST", "/process.Process/Start", "");
    route_is(E2B_ENVD, "HEAD", "/files", "");
    route_is(E2B_ENVD, "GET", "/sandboxes/abc", NULL);
    route_is(8080, "GET", "/files", NULL);
}

static void check_hosts(void)
{
    static const struct {
        const char *host;
        unsigned port; /* 0: another name */
    } rows[] = {
        {"3000-" UUID ".example.com", 3000},
        {"49983-" UUID ".localhost:8080", 49983},
        {"65535-" UUID ".x", 65535},
        {"65536-" UUID ".x", 0},
        {"0-" UUID ".x", 0},
        {"3000-" UUID, 0},
        {"3000-" UUID ".", 0},
        {"3000" UUID ".x", 0},
        {"-" UUID ".x", 0},
        {"100000-" UUID ".x", 0},
        {"3000-f47ac10b-58cc-4372-a567-0e02b2c3d47g.x", 0},
        {"3000-f47ac10b", 0},
        {"localhost:8080", 0},
        {"127.0.0.1", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        unsigned port = 0;
        char id[EXECUTION_ID_LENGTH + 1] = "";
        bool found = e2b_read_host(rows[i].host, &port, id);
        tap_is_int(found ? port : 0, rows[i].port, "the host '%s'", rows[i].host);
        if (found)
            tap_is_str(id, UUID, "its sandbox");
    }
}

/* ---- answers of programs ---- */

static void check_heads(void)
{
    static const struct {
        const char *head;
        long used; /* -2: all of it */
        unsigned status;
        const char *names; /* names and values, each with a comma */
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", -2, 200, "Content-Type,text/html,"},
        {"HTTP/1.0 404\r\n\r\n", -2, 404, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 25, 100, ""},
        {"HTTP/1.1 200 OK\r\nX:  a b \t\r\nY:\r\nz: ä\r\n\r\nbody", 41, 200, "X,a b,z,ä,"},
        {"HTTP/1.1 200 OK\r\nset-cookie: a\r\nConnection: close\r\ncontent-length: 1\r\nDate: x\r\n"
         "Access-Control-Allow-Origin: *\r\nX-Frame-Options: a\r\n\r\n",
         -2, 200, ""},
        {"HTTP/1.1 200 OK\r\naccess-control-allow-origin: *\r\nAccess: a\r\n\r\n", -2, 200,
         "Access,a,"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 200 OK\r\nnothing\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 200 OK\r\n: b\r\n\r\n", -1, 0, ""},
        {"HTTP/2 200 OK\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 99 X\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 600 X\r\n\r\n", -1, 0, ""},
        {"HTTP/1.1 2000\r\n\r\n", -1, 0, ""},
        {"\r\n\r\n", -1, 0, ""},
        {"SSH-2.0-x\r\n", 0, 0, ""},
        {"HTTP/1.1 200 OK\r\nA: b\r\n", 0, 0, ""},
        {"", 0, 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autostr struct str headers = {0}, names = {0};
        unsigned status = 0;
        size_t length = strlen(rows[i].head);
        long used = port_head_read(rows[i].head, length, &status, &headers);
        tap_is_int(used, rows[i].used == -2 ? (long)length : rows[i].used, "head %zu", i);
        if (used <= 0)
            continue;
        for (const char *at = NULL; (at = str_list_next(&headers, at));)
            str_concat(&names, at, ",");
        tap_is_int(status, rows[i].status, "its status");
        tap_is_str(names.data ? names.data : "", rows[i].names, "its headers");
    }
}

static long read_long_head(size_t length)
{
    autostr struct str head = {0}, headers = {0};
    unsigned status;
    str_append(&head, "HTTP/1.1 200 OK\r\nX: ");
    while (head.length < length - 4)
        str_append_char(&head, 'x');
    str_append(&head, "\r\n\r\n");
    return port_head_read(head.data, head.length, &status, &headers);
}

static void check_head_limits(void)
{
    tap_is_int(read_long_head(PORT_HEAD_MAX), PORT_HEAD_MAX, "a head may have 32 KiB");
    tap_is_int(read_long_head(PORT_HEAD_MAX + 1), -1, "not a byte more");
}

/* ---- requests ---- */

static struct server_config config;
static struct sandbox_request parsed;
static char message[E2B_MESSAGE_MAX];

static json_t *load(const char *text)
{
    json_t *body = json_loads(text, 0, NULL);
    if (!body)
        tap_fail("%s is JSON", text);
    sandbox_request_done(&parsed);
    return body;
}

static unsigned create(const char *text)
{
    json_auto_t *body = load(text);
    return e2b_read_create(body, &config, &parsed, message);
}

static bool start(const char *text)
{
    json_auto_t *body = load(text);
    return e2b_read_start(body, &parsed, message);
}

static void check_creation(void)
{
    static const struct {
        const char *body;
        unsigned status;
    } rows[] = {
        {"{}", 0},
        {"{\"templateID\":\"base\",\"timeout\":10,\"autoPause\":false,\"secure\":true}", 0},
        {"{\"templateID\":\"code-interpreter-v1\",\"unknown\":[1]}", 0},
        {"{\"templateID\":\"python\",\"metadata\":null,\"envVars\":null,\"network\":null}", 0},
        {"{\"templateID\":\"nonesuch\"}", 404},
        {"{\"templateID\":7}", 400},
        {"{\"timeout\":0}", 400},
        {"{\"timeout\":-1}", 400},
        {"{\"timeout\":\"10\"}", 400},
        {"{\"timeout\":31536001}", 400},
        {"{\"metadata\":{\"a\":1}}", 400},
        {"{\"metadata\":{\"e2b.template\":\"x\"}}", 400},
        {"{\"metadata\":[]}", 400},
        {"{\"envVars\":{\"a b\":\"c\"}}", 400},
        {"{\"envVars\":\"a\"}", 400},
        {"{\"network\":{\"allowOut\":[1]}}", 400},
        {"{\"network\":{\"denyOut\":[\"10.0.0.0/8\"]}}", 400},
        {"{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}", 0},
        {"{\"volumeMounts\":[{\"name\":\"a\",\"path\":\"/b\"}]}", 501},
        {"{\"volumeMounts\":[]}", 0},
        {"{\"mcp\":{}}", 501},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_int(create(rows[i].body), rows[i].status, "%s", rows[i].body);
    (void)create("{\"templateID\":\"code-interpreter-v1\",\"metadata\":{\"a\":\"b\"},\"envVars\":{"
                 "\"C\":\"d\"}}");
    const struct sandbox_info info = {
        .metadata = parsed.metadata, .metadata_count = parsed.metadata_count, .language = "x"};
    tap_is_str(e2b_template_of(&info), "code-interpreter-v1", "the template is kept");
    tap_is_str(parsed.language, "python", "as a runtime");
    tap_is_str(parsed.home, "/home/user", "with a home");
    tap_ok(parsed.timeout_ms == 300000, "five minutes are the default");
    tap_ok(parsed.metadata_count == 2 && parsed.env_count == 1, "with metadata and variables");
    tap_ok(!parsed.pauses, "and it ends at its deadline");
    (void)create("{\"autoPause\":true}");
    tap_ok(parsed.pauses, "or is paused then");
}

static void check_networks(void)
{
    (void)create("{}");
    tap_ok(!parsed.network, "without the operator's permission there is no network");
    (void)create("{\"network\":{\"allowOut\":[\"pypi.org\",\"*.example.com\"],\"denyOut\":[\"0.0.0."
                 "0/0\"]}}");
    tap_ok(parsed.network && parsed.allow_count == 2 && strcmp(parsed.allow[0], "pypi.org") == 0,
           "but one for a list of names");
    (void)create("{\"allow_internet_access\":false,\"network\":{\"allowOut\":[\"pypi.org\"]}}");
    tap_ok(!parsed.network && parsed.allow_count == 0, "unless it is not wanted");
    config.sandbox.allow_network = true;
    (void)create("{}");
    tap_ok(parsed.network, "with the permission there is");
    (void)create("{\"allow_internet_access\":false}");
    tap_ok(!parsed.network, "unless it is not wanted");
    (void)create("{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}");
    tap_ok(!parsed.network, "or all of it is denied");
    config.sandbox.allow_network = false;
}

static void check_filters(void)
{
    static const struct {
        const char *text;
        int count; /* -1: refused */
        const char *name, *value;
    } rows[] = {
        {NULL, 0, NULL, NULL},
        {"", 0, NULL, NULL},
        {"a=b", 1, "a", "b"},
        {"a=b&c=d", 2, "a", "b"},
        {"a=", 1, "a", ""},
        {"a%2520b=c%253Dd", 1, "a b", "c=d"},
        {"%2526=%25C3%25A4", 1, "&", "ä"},
        {"a", -1, NULL, NULL},
        {"a&b=c", -1, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        sandbox_request_done(&parsed);
        bool good = e2b_read_filter(rows[i].text, &parsed);
        tap_is_int(good ? (int)parsed.metadata_count : -1, rows[i].count, "the filter '%s'",
                   rows[i].text ? rows[i].text : "");
        if (rows[i].count > 0) {
            tap_is_str(parsed.metadata[0].name, rows[i].name, "its name");
            tap_is_str(parsed.metadata[0].value, rows[i].value, "its value");
        }
    }
}

static void check_commands(void)
{
    tap_ok(start("{\"process\":{\"cmd\":\"/bin/"
                 "bash\",\"args\":[\"-l\",\"-c\",\"x\"],\"envs\":{\"A\":\"b\"},"
                 "\"cwd\":\"/tmp\"},\"stdin\":false}"),
           "a command is read");
    tap_ok(parsed.arg_count == 4 && strcmp(parsed.args[3], "x") == 0 && parsed.env_count == 1 &&
               strcmp(parsed.cwd, "/tmp") == 0 && !parsed.keep_input && !parsed.pty,
           "with its words");
    tap_ok(start("{\"process\":{\"cmd\":\"a\",\"cwd\":\"\"}}") && parsed.keep_input && !parsed.cwd,
           "standard input is open if nothing is said");
    tap_ok(start("{\"process\":{\"cmd\":\"a\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}") &&
               parsed.pty && parsed.columns == 80 && parsed.rows == 24,
           "a terminal has a size");
    static const char *const bad[] = {
        "{}",
        "{\"process\":{}}",
        "{\"process\":[]}",
        "{\"process\":{\"cmd\":1}}",
        "{\"process\":{\"cmd\":\"a\",\"args\":\"b\"}}",
        "{\"process\":{\"cmd\":\"a\",\"args\":[1]}}",
        "{\"process\":{\"cmd\":\"a\",\"cwd\":1}}",
        "{\"process\":{\"cmd\":\"a\",\"envs\":[]}}",
        "{\"process\":{\"cmd\":\"a\",\"envs\":{\"\":\"\"}}}",
        "{\"process\":{\"cmd\":\"a\"},\"pty\":{\"size\":{\"cols\":10001,\"rows\":1}}}",
        "{\"process\":{\"cmd\":\"a\"},\"pty\":{\"size\":{\"cols\":-1,\"rows\":1}}}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(!start(bad[i]), "%s is refused", bad[i]);
}

typedef bool reader(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX]);

static bool read_with(reader *read, const char *text)
{
    json_auto_t *body = load(text);
    return read(body, &parsed, message);
}

static void check_calls(void)
{
    tap_ok(read_with(e2b_read_selector, "{\"process\":{\"pid\":7}}") && parsed.command == 7,
           "a command is selected");
    static const char *const selectors[] = {"{}", "{\"process\":{\"tag\":\"a\"}}",
                                            "{\"process\":{\"pid\":0}}",
                                            "{\"process\":{\"pid\":\"7\"}}"};
    for (size_t i = 0; i < ARRAY_LENGTH(selectors); i++)
        tap_ok(!read_with(e2b_read_selector, selectors[i]), "%s is refused", selectors[i]);
    tap_ok(read_with(e2b_read_input, "{\"input\":{\"stdin\":\"YWI=\"}}") && parsed.keep_input &&
               parsed.bytes.length == 2 && memcmp(parsed.bytes.data, "ab", 2) == 0,
           "input is read");
    tap_ok(read_with(e2b_read_input, "{\"input\":{\"pty\":\"YWI=\"}}") && parsed.bytes.length == 2,
           "also a terminal's");
    tap_ok(read_with(e2b_read_input, "{\"input\":{\"stdin\":\"\"}}") && parsed.bytes.length == 0,
           "also none");
    tap_ok(!read_with(e2b_read_input, "{\"input\":{\"stdin\":\"a\"}}"), "other text is refused");
    tap_ok(!read_with(e2b_read_input, "{\"input\":{\"stdin\":1}}"), "and numbers");
    static const struct {
        const char *body;
        int number;
    } signals[] = {{"{\"signal\":\"SIGNAL_SIGKILL\"}", SIGKILL},
                   {"{\"signal\":\"SIGNAL_SIGTERM\"}", SIGTERM},
                   {"{\"signal\":9}", SIGKILL},
                   {"{\"signal\":15}", SIGTERM},
                   {"{\"signal\":\"SIGNAL_UNSPECIFIED\"}", 0},
                   {"{\"signal\":2}", 0},
                   {"{}", 0}};
    for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
        bool good = read_with(e2b_read_signal, signals[i].body);
        tap_is_int(good ? (int)parsed.signal : 0, signals[i].number, "%s", signals[i].body);
    }
    sandbox_request_done(&parsed);
}

int main(void)
{
    static const char *const env[] = {NULL};
    if (config_defaults(env, &config, NULL) < 0)
        return EXIT_FAILURE;
    check_frames();
    check_codes();
    check_timeouts();
    check_boundaries();
    check_parts();
    check_part_limits();
    check_routes();
    check_hosts();
    check_heads();
    check_head_limits();
    check_creation();
    check_networks();
    check_filters();
    check_commands();
    check_calls();
    config_done(&config);
    return tap_done();
}
