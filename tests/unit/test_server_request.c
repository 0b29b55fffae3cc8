/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: every field, every limit at it and one past it, and what is refused. */
#include "server/http/request.h"

#include <stdlib.h>

#include "base/encode.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "tap.h"

#define AGENT(more) "{\"language\":\"agent\",\"code\":\"x\"," more "}"

static struct server_config config;

static struct execution_request request;
static struct request_fault fault;
static const struct runtime *runtime;
static const struct config_list *key_roots; /* NULL: the key has none of its own */

static bool decode_bytes(const char *text, size_t length)
{
    execution_request_done(&request);
    return request_read(text, length, &config,
                        key_roots ? key_roots : &config.sandbox.allowed_workdir_roots, &request,
                        &runtime, &fault);
}

static bool decode(const char *text)
{
    return decode_bytes(text, strlen(text));
}

/* With language and code. */
static bool decode_with(const char *more)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"language\":\"python\",\"code\":\"x\",%s}", more);
    return decode_bytes(text.data, text.length);
}

static void refused(const char *text, enum http_error error, const char *field, const char *name)
{
    bool taken = decode(text);
    tap_ok(!taken && fault.error == error && strcmp(fault.field, field) == 0 && fault.message[0],
           "refused: %s", name);
    if (!taken)
        tap_diag("%s [%s] %s", error_row(fault.error)->code, fault.field, fault.message);
}

static void refused_with(const char *more, enum http_error error, const char *field)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"language\":\"python\",\"code\":\"x\",%s}", more);
    refused(text.data, error, field, more);
}

static void whole(void)
{
    tap_ok(decode("{\"language\":\"python\",\"code\":\"print(1)\"}"),
           "language and code are enough");
    tap_is_str(request.language, "python", "the language");
    tap_is_str(request.code.data, "print(1)", "the code");
    tap_ok(request.timeout_ms == 0 && request.limits[EXECUTION_MEMORY_MB] == 0 && !request.network,
           "what is not said is left to the runtime");
    tap_ok(decode("{\"language\":\"python3\",\"code\":\"x\"}"), "an alias is taken");
    tap_is_str(request.language, "python", "and is its language");
    tap_ok(decode_with("\"timeout\":null,\"limits\":null,\"env\":null,\"stdin\":null"),
           "null is as good as absent");
    tap_ok(decode_with("\"stdin\":\"a\\u0000b\",\"args\":[\"1\",\"\"],\"env\":{\"A\":\"b\"},"
                       "\"files\":{\"d/a.txt\":\"t\",\"b.bin\":{\"content\":\"AAH/\",\"encoding\":"
                       "\"base64\"}},\"return_files\":[\"*.png\"],\"timeout\":\"1.5s\","
                       "\"limits\":{\"memory_mb\":128,\"pids_limit\":9,\"disk_mb\":10,"
                       "\"cpu_percent\":50},\"permissions\":{\"network\":{\"enabled\":true,"
                       "\"allow\":[\"pypi.org\",\"*.example.com:443\"]}}"),
           "everything at once");
    tap_ok(request.stdin_bytes.length == 3 && memcmp(request.stdin_bytes.data, "a\0b", 3) == 0,
           "the standard input has a NUL in it");
    tap_ok(request.arg_count == 2 && strcmp(request.args[0], "1") == 0 && !*request.args[1],
           "arguments, an empty one too");
    tap_ok(request.env_count == 1 && strcmp(request.env[0].name, "A") == 0 &&
               strcmp(request.env[0].value, "b") == 0,
           "a variable");
    tap_ok(request.file_count == 2 && strcmp(request.files[0].name, "d/a.txt") == 0 &&
               request.files[1].content.length == 3 &&
               memcmp(request.files[1].content.data, "\0\1\xff", 3) == 0,
           "a file of text, and one of base64");
    tap_ok(request.return_count == 1 && strcmp(request.returns[0], "*.png") == 0, "returned files");
    tap_is_int(request.timeout_ms, 1500, "the timeout");
    tap_ok(request.limits[EXECUTION_MEMORY_MB] == 128 && request.limits[EXECUTION_PIDS] == 9 &&
               request.limits[EXECUTION_DISK_MB] == 10 &&
               request.limits[EXECUTION_CPU_PERCENT] == 50,
           "the limits");
    tap_ok(request.network && request.allow_count == 2, "the network");
}

static void stages(void)
{
    tap_ok(decode_with("\"run\":{\"timeout\":2,\"cpu_time\":\"1s\",\"memory_mb\":64,"
                       "\"output_bytes\":1048576},\"compile\":{\"timeout\":3,\"cpu_time\":4,"
                       "\"memory_mb\":65,\"output_bytes\":7,\"args\":[\"-g\"]},"
                       "\"main\":\"a/b.py\",\"combined\":true"),
           "limits of stages");
    tap_ok(request.timeout_ms == 2000 && request.cpu_ms == 1000 &&
               request.limits[EXECUTION_MEMORY_MB] == 64 && request.output_bytes == 1048576,
           "of the run stage");
    tap_ok(request.compile.timeout_ms == 3000 && request.compile.cpu_ms == 4000 &&
               request.compile.memory_mb == 65 && request.compile.output_bytes == 7 &&
               request.compile_arg_count == 1,
           "and of the compile stage");
    tap_ok(str_equal(request.main, "a/b.py") && request.ordered, "are read");
}

static void json(void)
{
    refused("", ERROR_INVALID_JSON, "", "nothing at all");
    refused("[]", ERROR_INVALID_JSON, "", "an array");
    refused("{\"language\":", ERROR_INVALID_JSON, "", "half an object");
    refused("{\"language\":\"python\",\"code\":\"x\",\"code\":\"y\"}", ERROR_INVALID_JSON, "",
            "a key that is there twice");
    refused("{\"language\":\"python\",\"code\":\"x\",\"files\":{\"a\":\"\",\"a\":\"\"}}",
            ERROR_INVALID_JSON, "", "a file that is there twice");
    refused("{\"language\":\"python\",\"code\":\"\xff\"}", ERROR_INVALID_JSON, "", "bad UTF-8");
    refused("{\"language\":\"python\",\"code\":\"\\ud800\"}", ERROR_INVALID_JSON, "",
            "half a surrogate");
    refused("{\"language\":\"python\",\"code\":\"x\"} x", ERROR_INVALID_JSON, "", "what follows");
    refused("{\"a\":[[[[[[[[1]]]]]]]]}", ERROR_INVALID_JSON, "", "deep nesting");
    autostr struct str bomb = {0};
    for (int i = 0; i < 100000; i++)
        str_append(&bomb, "[");
    tap_ok(!decode_bytes(bomb.data, bomb.length) && fault.error == ERROR_INVALID_JSON,
           "a hundred thousand brackets are refused");
    str_done(&bomb);
    str_append(&bomb, "{\"language\":\"python\",\"code\":\"x\",\"args\":[0");
    for (int i = 0; i < 1000000; i++)
        str_append(&bomb, ",0");
    str_append(&bomb, "]}");
    tap_ok(!decode_bytes(bomb.data, bomb.length) && fault.error == ERROR_INVALID_JSON &&
               strstr(fault.message, "values"),
           "a million numbers are refused before they are read");
    tap_is_int(request_shape("[[]]", 4, 2, 9), REQUEST_SHAPE_OK, "nesting at the limit");
    tap_is_int(request_shape("[[]]", 4, 1, 9), REQUEST_TOO_DEEP, "and one past it");
    tap_is_int(request_shape("\"[[[[\\\"[[[\"", 11, 1, 9), REQUEST_SHAPE_OK,
               "brackets in a string are none");
    tap_is_int(request_shape("[1,1]", 5, 9, 2), REQUEST_SHAPE_OK, "values at the limit");
    tap_is_int(request_shape("[1,1,1]", 7, 9, 2), REQUEST_TOO_MANY, "and one past it");
}

static void fields(void)
{
    refused("{}", ERROR_MISSING_FIELD, "language", "no language");
    refused("{\"language\":\"python\"}", ERROR_MISSING_FIELD, "code", "no code");
    refused("{\"language\":\"python\",\"code\":null}", ERROR_MISSING_FIELD, "code", "null as code");
    refused("{\"language\":\"cobol\",\"code\":\"x\"}", ERROR_UNKNOWN_LANGUAGE, "language", "cobol");
    refused("{\"language\":\"off\",\"code\":\"x\"}", ERROR_UNKNOWN_LANGUAGE, "language",
            "a language that is switched off");
    tap_has_str(fault.message, "'off' is switched off by the operator", "and says so");
    refused("{\"language\":7,\"code\":\"x\"}", ERROR_INVALID_FIELD, "language",
            "a number as language");
    refused("{\"language\":\"python\",\"code\":\"\"}", ERROR_INVALID_FIELD, "code", "empty code");
    refused("{\"language\":\"python\",\"code\":[\"x\"]}", ERROR_INVALID_FIELD, "code",
            "code as array");
    refused_with("\"colour\":1", ERROR_UNKNOWN_FIELD, "colour");
    refused_with("\"limits\":{\"memory\":1}", ERROR_UNKNOWN_FIELD, "limits.memory");
    refused_with("\"permissions\":{\"network\":{\"on\":true}}", ERROR_UNKNOWN_FIELD,
                 "permissions.network.on");
    refused_with("\"timeout\":true", ERROR_INVALID_FIELD, "timeout");
    refused_with("\"timeout\":1,\"run\":{\"timeout\":1}", ERROR_INVALID_FIELD, "run.timeout");
    refused_with("\"run\":{\"cpu_time\":\"61s\"}", ERROR_INVALID_FIELD, "run.cpu_time");
    refused_with("\"run\":{\"output_bytes\":1048577}", ERROR_INVALID_FIELD, "run.output_bytes");
    refused_with("\"compile\":{\"timeout\":61}", ERROR_INVALID_FIELD, "compile.timeout");
    refused_with("\"compile\":{\"memory_mb\":7}", ERROR_INVALID_FIELD, "compile.memory_mb");
    refused_with("\"compile\":{\"args\":\"x\"}", ERROR_INVALID_FIELD, "compile.args");
    refused_with("\"compile\":{\"memory\":7}", ERROR_UNKNOWN_FIELD, "compile.memory");
    refused_with("\"main\":\"../x\"", ERROR_INVALID_FIELD, "main");
    refused_with("\"main\":\"a\",\"files\":{\"a\":\"\"}", ERROR_INVALID_FIELD, "files.a");
    refused_with("\"combined\":1", ERROR_INVALID_FIELD, "combined");
    refused_with("\"timeout\":\"soon\"", ERROR_INVALID_FIELD, "timeout");
    refused_with("\"timeout\":0", ERROR_INVALID_FIELD, "timeout");
    refused_with("\"timeout\":-1", ERROR_INVALID_FIELD, "timeout");
    refused_with("\"timeout\":1e300", ERROR_INVALID_FIELD, "timeout");
    refused_with("\"timeout\":\"60.001s\"", ERROR_INVALID_FIELD, "timeout");
    tap_ok(decode_with("\"timeout\":60") && request.timeout_ms == 60000, "60 seconds are allowed");
    tap_ok(decode_with("\"timeout\":0.25") && request.timeout_ms == 250, "and a quarter of one");
    refused_with("\"limits\":[]", ERROR_INVALID_FIELD, "limits");
    refused_with("\"limits\":{\"memory_mb\":0}", ERROR_INVALID_FIELD, "limits.memory_mb");
    refused_with("\"limits\":{\"memory_mb\":1.5}", ERROR_INVALID_FIELD, "limits.memory_mb");
    refused_with("\"limits\":{\"memory_mb\":\"1\"}", ERROR_INVALID_FIELD, "limits.memory_mb");
    refused_with("\"limits\":{\"memory_mb\":513}", ERROR_INVALID_FIELD, "limits.memory_mb");
    tap_ok(decode_with("\"limits\":{\"memory_mb\":512}"), "the runtime's maximum is allowed");
    refused_with("\"limits\":{\"pids_limit\":201}", ERROR_INVALID_FIELD, "limits.pids_limit");
    tap_ok(decode_with("\"limits\":{\"pids_limit\":200}"), "the server's, where it has none");
    refused_with("\"work_dir\":\"x\"", ERROR_INVALID_FIELD, "work_dir");
    refused_with("\"work_dir\":\"/x\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    config.sandbox.allowed_workdir_roots = (struct config_list){.items = {"/x"}, .count = 1};
    tap_ok(decode(AGENT("\"work_dir\":\"/x\"")) && strcmp(request.work_dir, "/x") == 0,
           "a work_dir is handed on where there are roots");
    tap_ok(decode(AGENT("\"work_dir\":\"/x/y\"")), "and one below a root");
    refused_with("\"work_dir\":\"/xy\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    refused_with("\"work_dir\":\"/x/../y\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    refused_with("\"work_dir\":\"/x/.ssh\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    key_roots = &(const struct config_list){.items = {"/k"}, .count = 1};
    refused_with("\"work_dir\":\"/x\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    tap_has_str(fault.message, "workdir_roots of this API key", "where the key has its own roots");
    tap_ok(decode(AGENT("\"work_dir\":\"/k/y\"")), "one below these is allowed");
    key_roots = &(const struct config_list){0};
    refused_with("\"work_dir\":\"/k\"", ERROR_WORK_DIR_NOT_ALLOWED, "work_dir");
    key_roots = NULL;
    refused_with("\"args\":\"x\"", ERROR_INVALID_FIELD, "args");
    refused_with("\"args\":[1]", ERROR_INVALID_FIELD, "args.0");
    refused_with("\"args\":[\"a\\u0000\"]", ERROR_INVALID_FIELD, "args.0");
    refused_with("\"stdin\":7", ERROR_INVALID_FIELD, "stdin");
    refused_with("\"stdin\":{\"content\":\"A\",\"encoding\":\"base64\"}", ERROR_INVALID_FIELD,
                 "stdin.content");
    refused_with("\"stdin\":{\"content\":\"A\",\"encoding\":\"rot13\"}", ERROR_INVALID_FIELD,
                 "stdin.encoding");
    refused_with("\"stdin\":{\"content\":\"A\",\"mode\":1}", ERROR_INVALID_FIELD, "stdin");
    refused_with("\"files\":[]", ERROR_INVALID_FIELD, "files");
    refused_with("\"files\":{\"../x\":\"\"}", ERROR_INVALID_FIELD, "files.../x");
    refused_with("\"files\":{\"/x\":\"\"}", ERROR_INVALID_FIELD, "files./x");
    refused_with("\"files\":{\"main.py\":\"\"}", ERROR_INVALID_FIELD, "files.main.py");
    refused_with("\"return_files\":[\"../*\"]", ERROR_INVALID_FIELD, "return_files");
}

static void network(void)
{
#define NETWORK(text) "\"permissions\":{\"network\":" text "}"
    config.sandbox.allow_network = false;
    tap_ok(decode_with(NETWORK("{\"enabled\":false}")) && !request.network,
           "the network can be off");
    refused_with(NETWORK("{\"enabled\":1}"), ERROR_INVALID_FIELD, "permissions.network.enabled");
    refused_with(NETWORK("{\"allow\":[\"pypi.org\"]}"), ERROR_INVALID_FIELD, "permissions.network");
    refused_with(NETWORK("{\"enabled\":true}"), ERROR_NETWORK_NOT_PERMITTED, "permissions.network");
    const char *const wide[] = {"*",       "*.com",    "10.0.0.1:80", "10.0.0.0/8:443",
                                "host:22", "[::1]:80", "127.0.0.1"};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        autostr struct str more = {0};
        str_appendf(&more, NETWORK("{\"enabled\":true,\"allow\":[\"%s\"]}"), wide[i]);
        tap_ok(!decode_with(more.data), "%s cannot be asked for", wide[i]);
    }
    refused_with(NETWORK("{\"enabled\":true,\"allow\":[\"a b\"]}"), ERROR_INVALID_FIELD,
                 "permissions.network.allow");
    const char *const names[] = {"example.com", "example.com.", "*.example.com.:8443", "a_b.c.org"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        autostr struct str more = {0};
        str_appendf(&more, NETWORK("{\"enabled\":true,\"allow\":[\"%s\"]}"), names[i]);
        tap_ok(decode_with(more.data), "%s can be asked for", names[i]);
    }
    const char *const odd[] = {"intranet", "a.b:443,80", "a.b:*", "a.b:80-90", "a.b/tls", "0x7f.b"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        autostr struct str more = {0};
        str_appendf(&more, NETWORK("{\"enabled\":true,\"allow\":[\"%s\"]}"), odd[i]);
        refused_with(more.data, ERROR_INVALID_FIELD, "permissions.network.allow");
        tap_ok(strstr(fault.message, odd[i]), "%s is named", odd[i]);
    }
    config.sandbox.allow_network = true;
    tap_ok(decode_with(NETWORK("{\"enabled\":true}")) && request.network && !request.allow_count,
           "the whole network where the operator permits it");
    tap_ok(decode_with(NETWORK("{\"enabled\":true,\"allow\":[\"*\"]}")),
           "and then by its star too");
    refused_with(NETWORK("{\"enabled\":true,\"allow\":[\"host:22\"]}"), ERROR_NETWORK_NOT_PERMITTED,
                 "permissions.network.allow");
    config.sandbox.allow_network = false;
}

static void environment(void)
{
    const char *const bad[] = {"LD_PRELOAD", "PATH",      "HOME",       "NODE_OPTIONS",
                               "PYTHONPATH", "BASH_ENV",  "ENV",        "IFS",
                               "PERL5LIB",   "RUBYOPT",   "ld_preload", "https_proxy",
                               "GCONV_PATH", "JAVA_HOME", "SSL_DIR",    "BASHX",
                               "CLAUDECODE", "GLIBC_X",   "JDK_HOME"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        autostr struct str more = {0};
        str_appendf(&more, "\"env\":{\"%s\":\"x\"}", bad[i]);
        tap_ok(!decode_with(more.data) && fault.error == ERROR_INVALID_FIELD, "%s is refused",
               bad[i]);
    }
    tap_ok(!environment_name_is_refused("LANG") && !environment_name_is_refused("MY_PATH") &&
               !environment_name_is_refused("OPENAI_MODEL"),
           "other variables are not");
    refused_with("\"env\":{\"1A\":\"x\"}", ERROR_INVALID_FIELD, "env.1A");
    refused_with("\"env\":{\"A=B\":\"x\"}", ERROR_INVALID_FIELD, "env.A=B");
    refused_with("\"env\":{\"\":\"x\"}", ERROR_INVALID_FIELD, "env.");
    refused_with("\"env\":{\"A\":1}", ERROR_INVALID_FIELD, "env.A");
}

/* One field whose string or list has this many parts. */
static bool decode_many(const char *before, const char *part, size_t count, const char *after)
{
    autostr struct str text = {0};
    str_append(&text, before);
    for (size_t i = 0; i < count; i++)
        str_append(&text, part);
    str_append(&text, after);
    return decode_bytes(text.data, text.length);
}

/* The same with a number in each part. */
static bool decode_named(const char *field, size_t count)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"language\":\"python\",\"code\":\"x\",\"%s\":{", field);
    for (size_t i = 0; i < count; i++)
        str_appendf(&text, "%s\"N%zu\":\"\"", i ? "," : "", i);
    str_append(&text, "}}");
    return decode_bytes(text.data, text.length);
}

#define START "{\"language\":\"python\",\"code\":\"x\","

static void limits(void)
{
    const char *code = "{\"language\":\"python\",\"code\":\"";
    tap_ok(decode_many(code, "x", EXECUTION_CODE_MAX, "\"}"), "code at its limit");
    tap_ok(!decode_many(code, "x", EXECUTION_CODE_MAX + 1, "\"}"), "and one past it");
    tap_is_str(fault.field, "code", "is named");
    tap_ok(decode_many(code, "\\u0041", EXECUTION_CODE_MAX, "\"}"),
           "it is what was decoded that counts");
    tap_ok(decode_many(START "\"stdin\":\"", "x", EXECUTION_STDIN_MAX, "\"}"),
           "stdin at its limit");
    tap_ok(!decode_many(START "\"stdin\":\"", "x", EXECUTION_STDIN_MAX + 1, "\"}"),
           "and one past it");
    tap_ok(decode_many(START "\"args\":[\"\"", ",\"\"", EXECUTION_ARGS_MAX - 1, "]}"),
           "arguments at their limit");
    tap_ok(!decode_many(START "\"args\":[\"\"", ",\"\"", EXECUTION_ARGS_MAX, "]}"),
           "and one past it");
    tap_ok(decode_many(START "\"args\":[\"", "x", EXECUTION_VALUE_MAX, "\"]}"),
           "an argument at its limit");
    tap_ok(!decode_many(START "\"args\":[\"", "x", EXECUTION_VALUE_MAX + 1, "\"]}"),
           "and one past it");
    tap_ok(decode_named("env", EXECUTION_ENV_MAX), "variables at their limit");
    tap_ok(!decode_named("env", EXECUTION_ENV_MAX + 1), "and one past it");
    tap_ok(decode_named("files", EXECUTION_FILES_MAX), "files at their limit");
    tap_ok(!decode_named("files", EXECUTION_FILES_MAX + 1), "and one past it");
    tap_ok(decode_many(START "\"files\":{\"", "n", EXECUTION_NAME_MAX, "\":\"\"}}"),
           "a file's name at its limit");
    tap_ok(!decode_many(START "\"files\":{\"", "n", EXECUTION_NAME_MAX + 1, "\":\"\"}}"),
           "and one past it");
    tap_ok(decode_many(START "\"return_files\":[\"a\"", ",\"a\"", EXECUTION_RETURNS_MAX - 1, "]}"),
           "patterns at their limit");
    tap_ok(!decode_many(START "\"return_files\":[\"a\"", ",\"a\"", EXECUTION_RETURNS_MAX, "]}"),
           "and one past it");
    const char *allow = START "\"permissions\":{\"network\":{\"enabled\":true,\"allow\":[\"a.b\"";
    tap_ok(decode_many(allow, ",\"a.b\"", EXECUTION_ALLOW_MAX - 1, "]}}}"),
           "allowed names at their limit");
    tap_ok(!decode_many(allow, ",\"a.b\"", EXECUTION_ALLOW_MAX, "]}}}"), "and one past it");
}

/* Arguments that take so many bytes, with their NULs. */
static bool decode_words(size_t bytes)
{
    autostr struct str text = {0};
    str_append(&text, START "\"args\":[\"\"");
    for (bytes--; bytes > 0;) {
        size_t length = bytes < EXECUTION_VALUE_MAX ? bytes : EXECUTION_VALUE_MAX;
        str_append(&text, ",\"");
        for (size_t i = 1; i < length; i++)
            str_append_char(&text, 'x');
        str_append_char(&text, '"');
        bytes -= length;
    }
    str_append(&text, "]}");
    return decode_bytes(text.data, text.length);
}

static void with_agents(void)
{
    const char *script = "{\"language\":\"script\",\"code\":\"x\",\"work_dir\":\"/x/a\"}";
    tap_ok(decode(AGENT("\"work_dir\":\"/x/a\"")), "an agent has a directory");
    refused_with("\"work_dir\":\"/x/a\"", ERROR_INVALID_FIELD, "work_dir");
    refused(script, ERROR_INVALID_FIELD, "work_dir", "nor has an agent whose code is a file in it");
    refused(AGENT("\"work_dir\":\"/x/a\",\"files\":{\"b\":\"\"}"), ERROR_INVALID_FIELD, "work_dir",
            "files and a directory");
    refused(AGENT("\"permissions\":{\"network\":{\"enabled\":true}}"), ERROR_NETWORK_NOT_PERMITTED,
            "permissions.network",
            "an agent that asks for the whole network is told that it has none");
    tap_has_str(fault.message, "leave out permissions.network", "and what to do");
    tap_ok(decode(AGENT("\"permissions\":{\"network\":{\"enabled\":false}}")),
           "it has destinations of its own without asking");
    config.sandbox.allow_network = true;
    tap_ok(decode(AGENT("\"permissions\":{\"network\":{\"enabled\":true}}")) && request.network,
           "it gets the network where the operator permits it");
    config.sandbox.allow_network = false;
    refused(AGENT("\"permissions\":{\"network\":{\"enabled\":true,\"allow\":[\"a.b\"]}}"),
            ERROR_NETWORK_NOT_PERMITTED, "permissions.network", "and no others");
    tap_ok(!decode_many("{\"language\":\"agent\",\"code\":\"x\",\"work_dir\":\"/x/a", "/.",
                        EXECUTION_PATH_MAX / 2, "\"}") &&
               strcmp(fault.field, "work_dir") == 0,
           "a path is as long as paths may be");
}

/* What each field alone says nothing of: the executor would refuse it, and that would be a 500. */
static void together(void)
{
    tap_ok(decode_with("\"files\":{\"a\":\"1\",\"a-b\":\"2\",\"ab/c\":\"3\"}"),
           "names that only look alike");
    refused_with("\"files\":{\"a\":\"1\",\"a-b\":\"2\",\"a/b\":\"3\"}", ERROR_INVALID_FIELD,
                 "files");
    refused_with("\"files\":{\"a/b/c\":\"1\",\"a/b\":\"2\"}", ERROR_INVALID_FIELD, "files");
    refused_with("\"files\":{\"main.py/x\":\"1\"}", ERROR_INVALID_FIELD, "files");
    tap_ok(decode_many(START "\"limits\":{\"disk_mb\":1},\"files\":{\"a\":\"", "x", 255 * 4096,
                       "\"}}"),
           "code and files as large as the disk");
    tap_ok(!decode_many(START "\"limits\":{\"disk_mb\":1},\"files\":{\"a\":\"", "x", 255 * 4096 + 1,
                        "\"}}") &&
               strcmp(fault.field, "files") == 0,
           "and a byte larger");
    tap_ok(decode_words(EXECUTION_WORDS_MAX), "arguments together at their limit");
    tap_ok(!decode_words(EXECUTION_WORDS_MAX + 1) && strcmp(fault.field, "args") == 0,
           "and one past it");
    refused("{\"language\":\"cat\",\"code\":\"x\",\"stdin\":\"y\"}", ERROR_INVALID_FIELD, "stdin",
            "stdin where the code is");
    tap_ok(decode("{\"language\":\"cat\",\"code\":\"x\",\"stdin\":\"\"}"), "an empty one is none");
    with_agents();
}

static void base64(void)
{
    char bytes[16];
    size_t length = 99;
    tap_ok(base64_decode("", 0, bytes, &length) && length == 0, "empty base64");
    tap_ok(base64_decode("QQ==", 4, bytes, &length) && length == 1 && bytes[0] == 'A', "one byte");
    tap_ok(base64_decode("QUI=", 4, bytes, &length) && length == 2, "two bytes");
    const char *const bad[] = {"Q", "QQ=", "QQ=A", "=QQQ", "QR==", "QQ==QQ==", "QQ\n=", "Q-_="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        tap_ok(!base64_decode(bad[i], strlen(bad[i]), bytes, &length), "'%s' is none", bad[i]);
    autostr struct str text = {0};
    base64_append(&text, "\0\1\xff\xfe", 4);
    tap_is_str(text.data, "AAH//g==", "bytes as base64");
}

int main(void)
{
    config.runtimes[0] =
        (struct runtime){.name = "python", .aliases = {"python3"}, .file_name = "main.py"};
    config.runtimes[1] = (struct runtime){.name = "off", .disabled = true};
    config.runtimes[2] = (struct runtime){.name = "cat", .input = RUNTIME_STDIN};
    config.runtimes[3] = (struct runtime){.name = "agent", .input = RUNTIME_STDIN, .agent = true};
    config.runtimes[4] = (struct runtime){.name = "script", .file_name = "a.sh", .agent = true};
    config.runtime_count = 5;
    for (size_t i = 0; i < config.runtime_count; i++) { /* as the configuration does it */
        const uint64_t most[EXECUTION_LIMITS_] = {i == 0 ? 512 : 1024, 200, 200, 400};
        memcpy(config.runtimes[i].max_limits, most, sizeof most);
        config.runtimes[i].limits[EXECUTION_DISK_MB] = 100;
        config.runtimes[i].max_timeout_ms = 60000;
    }
    whole();
    stages();
    json();
    fields();
    network();
    environment();
    limits();
    together();
    base64();
    execution_request_done(&request);
    return tap_done();
}
