/* SPDX-License-Identifier: MIT */
/* Piston's interface: every field and every error of its requests, its results, versions and signal
 * names. */
#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/piston_request.h"
#include "server/config/config.h"
#include "tap.h"

static struct server_config config;
static json_t *runtimes;
static struct piston_call call;
static struct piston_fault fault;

static bool read_text(const char *text, bool interactive)
{
    json_t *body = json_loads(text, 0, NULL);
    if (!body)
        tap_bail("not JSON: %s", text);
    piston_call_done(&call);
    bool taken = piston_read(body, runtimes, &config, interactive, &call, &fault);
    json_decref(body);
    return taken;
}

/* With a language, a version and a file. */
static bool read_with(const char *more)
{
    autostr struct str text = {0};
    str_appendf(&text,
                "{\"language\":\"python\",\"version\":\"*\",\"files\":[{\"content\":\"x\"}]%s%s}",
                *more ? "," : "", more);
    return read_text(text.data, false);
}

/* ---- errors ---- */

#define PYTHON "\"language\":\"python\",\"version\":\"*\""
#define FILES ",\"files\":[{\"content\":\"x\"}]"

static void test_errors(void)
{
    static const struct {
        const char *body;
        unsigned status;
        const char *message;
    } rows[] = {
        {"{}", 400, "language is required as a string"},
        {"[]", 400, "language is required as a string"},
        {"{\"language\":\"\"}", 400, "language is required as a string"},
        {"{\"language\":7}", 400, "language is required as a string"},
        {"{\"language\":null}", 400, "language is required as a string"},
        {"{\"language\":\"python\"}", 400, "version is required as a string"},
        {"{\"language\":\"python\",\"version\":3}", 400, "version is required as a string"},
        {"{\"language\":\"python\",\"version\":\"\"}", 400, "version is required as a string"},
        {"{" PYTHON "}", 400, "files is required as an array"},
        {"{" PYTHON ",\"files\":{}}", 400, "files is required as an array"},
        {"{" PYTHON ",\"files\":[{}]}", 400, "files[0].content is required as a string"},
        {"{" PYTHON ",\"files\":[7]}", 400, "files[0].content is required as a string"},
        {"{" PYTHON ",\"files\":[{\"content\":\"\"},{\"content\":null}]}", 400,
         "files[1].content is required as a string"},
        {"{\"language\":\"cobol\",\"version\":\"1\"" FILES "}", 400, "cobol-1 runtime is unknown"},
        {"{\"language\":\"Python\",\"version\":\"*\"" FILES "}", 400,
         "Python-* runtime is unknown"},
        {"{\"language\":\"python\",\"version\":\"new\"" FILES "}", 400,
         "python-new runtime is unknown"},
        {"{\"language\":\"gone\",\"version\":\"*\"" FILES "}", 400, "gone-* runtime is unknown"},
        {"{\"language\":\"agent\",\"version\":\"*\"" FILES "}", 400, "agent-* runtime is unknown"},
        {"{" PYTHON ",\"files\":[]}", 400, "files must include at least one utf8 encoded file"},
        {"{" PYTHON ",\"files\":[{\"content\":\"eA==\",\"encoding\":\"base64\"}]}", 400,
         "files must include at least one utf8 encoded file"},
        {"{" PYTHON ",\"files\":[{\"name\":\"../x\",\"content\":\"\"}]}", 500, ""},
        {"{" PYTHON ",\"files\":[{\"name\":\"a/../../x\",\"content\":\"\"}]}", 500, ""},
        {"{" PYTHON ",\"files\":[{\"name\":\"/\",\"content\":\"\"}]}", 400,
         "files[0].name is too long, or has too many parts"},
        {"{" PYTHON ",\"files\":[{\"content\":\"\"},{\"content\":\"@\",\"encoding\":\"base64\"}]}",
         400, "files[1].content is not base64"},
        {"{" PYTHON ",\"files\":[{\"content\":\"\"},{\"content\":\"0\",\"encoding\":\"hex\"}]}",
         400, "files[1].content is not hex"},
        {"{" PYTHON ",\"files\":[{\"content\":\"\"},{\"name\":\"a\",\"content\":\"\"},"
         "{\"name\":\"./a\",\"content\":\"\"}]}",
         400, "files[2].name 'a' is there twice"},
        {"{" PYTHON FILES ",\"stdin\":7}", 400, "stdin must be a string"},
        {"{" PYTHON FILES ",\"args\":\"x\"}", 400, "args must be an array of at most 64 strings"},
        {"{" PYTHON FILES ",\"args\":[[]]}", 400,
         "args[0] must be a string of at most 32768 bytes"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        bool taken = read_text(rows[i].body, false);
        tap_ok(!taken && fault.status == rows[i].status &&
                   strcmp(fault.message, rows[i].message) == 0,
               "refused: %s", rows[i].body);
        if (taken || strcmp(fault.message, rows[i].message) != 0)
            tap_diag("%u %s", fault.status, fault.message);
    }
}

static void test_limits(void)
{
    static const struct {
        const char *name;
        unsigned long most;
    } rows[] = {
        {"compile_memory_limit", 512UL << 20},
        {"run_memory_limit", 512UL << 20},
        {"compile_timeout", 60000},
        {"run_timeout", 60000},
        {"compile_cpu_time", 60000},
        {"run_cpu_time", 60000},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const char *name = rows[i].name;
        static const char *const skipped[] = {"0", "null", "\"\"", "false", "0.0"};
        char text[128], message[128];
        for (size_t k = 0; k < ARRAY_LENGTH(skipped); k++) {
            (void)snprintf(text, sizeof text, "\"%s\":%s", name, skipped[k]);
            tap_ok(read_with(text) && call.request.timeout_ms == 0 && call.request.cpu_ms == 0 &&
                       call.request.limits[EXECUTION_MEMORY_MB] == 0,
                   "%s is as good as absent", text);
        }
        (void)snprintf(text, sizeof text, "\"%s\":\"1\"", name);
        (void)snprintf(message, sizeof message, "If specified, %s must be a number", name);
        tap_ok(!read_with(text) && strcmp(fault.message, message) == 0, "%s", message);
        (void)snprintf(text, sizeof text, "\"%s\":%lu.5", name, rows[i].most);
        (void)snprintf(message, sizeof message, "%s cannot exceed the configured limit of %lu",
                       name, rows[i].most);
        tap_ok(!read_with(text) && strcmp(fault.message, message) == 0, "%s", message);
        (void)snprintf(text, sizeof text, "\"%s\":-2", name);
        (void)snprintf(message, sizeof message, "%s must be non-negative", name);
        tap_ok(!read_with(text) && strcmp(fault.message, message) == 0, "%s", message);
        (void)snprintf(text, sizeof text, "\"%s\":-1", name);
        tap_is_int(read_with(text), strstr(name, "memory") != NULL, "-1 for %s", name);
        (void)snprintf(text, sizeof text, "\"%s\":%lu", name, rows[i].most);
        tap_ok(read_with(text), "%s at its limit", name);
    }
    tap_ok(read_with("\"run_timeout\":1000.5,\"run_cpu_time\":2000,\"compile_timeout\":3000,"
                     "\"compile_cpu_time\":4000,\"run_memory_limit\":67108865,"
                     "\"compile_memory_limit\":1"),
           "all limits at once");
    const struct execution_request *request = &call.request;
    tap_is_int((long)request->timeout_ms, 1001, "a fraction is rounded up");
    tap_ok(request->cpu_ms == 2000 && request->compile.timeout_ms == 3000 &&
               request->compile.cpu_ms == 4000,
           "times are where they belong");
    tap_is_int((long)request->limits[EXECUTION_MEMORY_MB], 65, "so are bytes");
    tap_is_int((long)request->compile.memory_mb, EXECUTION_MEMORY_MB_MIN,
               "which are never too few for a jail");
    tap_ok(!read_with("\"run_memory_limit\":-3,\"run_timeout\":\"x\""), "the first error");
    tap_has_str(fault.message, "run_memory_limit", "is the answer: memory before time");
    tap_ok(!read_with("\"run_timeout\":\"x\",\"compile_timeout\":\"x\""), "and");
    tap_has_str(fault.message, "compile_timeout", "compile before run");
}

/* ---- requests ---- */

static void test_request(void)
{
    const struct execution_request *request = &call.request;
    tap_ok(read_text("{\"language\":\"py\",\"version\":\"3.10.0\",\"log\":1,\"files\":["
                     "{\"name\":\"b.bin\",\"content\":\"AAE=\",\"encoding\":\"base64\"},"
                     "{\"name\":\"/dir/../my.py\",\"content\":\"a\",\"encoding\":\"utf-8\"},"
                     "{\"content\":\"00ff\",\"encoding\":\"hex\"},{\"content\":\"\"}],"
                     "\"args\":[\"1\",\"\",2],\"stdin\":\"in\"}",
                     false),
           "a request with everything");
    tap_is_str(request->language, "python", "an alias");
    tap_is_str(call.language, "python", "has its name");
    tap_is_str(call.version, "3.11.2", "and its real version");
    tap_is_str(request->main, "my.py", "the first file of text is the main file");
    tap_is_str(request->code.data, "a", "with its content");
    tap_is_int((long)request->file_count, 3, "the others are files");
    tap_ok(request->files[0].content.length == 2 && request->files[1].content.length == 2 &&
               memcmp(request->files[1].content.data, "\0\xff", 2) == 0,
           "decoded");
    tap_is_str(request->files[1].name, "file2.code", "a file without a name has one");
    tap_ok(request->arg_count == 3 && strcmp(request->args[2], "2") == 0, "arguments");
    tap_ok(request->ordered && request->output_bytes == 65536 && !request->interactive,
           "output has a limit and an order");
    tap_ok(read_with(""), "one file without a name");
    tap_ok(!request->main && request->env_count == 0, "fits a waiting jail");
    static const struct {
        const char *more, *expected;
    } inputs[] = {{"", "\n"},
                  {"\"stdin\":\"\"", "\n"},
                  {"\"stdin\":\"a\"", "a\n"},
                  {"\"stdin\":\"a\\n\"", "a\n"},
                  {"\"stdin\":null", "\n"}};
    for (size_t i = 0; i < ARRAY_LENGTH(inputs); i++) {
        tap_ok(read_with(inputs[i].more), "input: %s", inputs[i].more);
        tap_is_str(request->stdin_bytes.data, inputs[i].expected, "ends in a newline");
    }
    static const struct {
        const char *language, *name, *expected;
    } mains[] = {{"c", "test", "test.c"},         {"c", "a.c", "a.c"},
                 {"cpp", "x/y.cc", "x/y.cc.cpp"}, {"java", "A", "A.java"},
                 {"python", "test", "test"},      {"gcc", "x.code", "x.code.c"},
                 {"javascript", "a", "a"}};
    for (size_t i = 0; i < ARRAY_LENGTH(mains); i++) {
        char text[160];
        (void)snprintf(text, sizeof text,
                       "{\"language\":\"%s\",\"version\":\"*\",\"files\":[{\"name\":\"%s\","
                       "\"content\":\"x\"}]}",
                       mains[i].language, mains[i].name);
        tap_ok(read_text(text, true), "%s", text);
        tap_is_str(call.request.main, mains[i].expected, "its main file");
    }
    tap_ok(call.request.interactive && call.request.output_bytes == 0, "a connection has no limit");
    tap_is_str(call.language, "javascript", "Piston has other names");
}

/* ---- versions ---- */

static void test_versions(void)
{
    static const struct {
        const char *range, *version;
        int has;
    } rows[] = {
        {"*", "3.11.2", 1},
        {"x", "3.11.2", 1},
        {"", "3.11.2", 1},
        {"3", "3.11.2", 1},
        {"3.x", "3.11.2", 1},
        {"3.x.x", "3.11.2", 1},
        {"3.11", "3.11.2", 1},
        {"v3.11.2", "3.11.2", 1},
        {"=3.11.2", "3.11.2", 1},
        {"3.11.2-rc1", "3.11.2", 1},
        {"3.10.0", "3.11.2", 0},
        {"2", "3.11.2", 0},
        {"^3.9", "3.11.2", 1},
        {"^3.12", "3.11.2", 0},
        {"^0.2.3", "0.2.9", 1},
        {"^0.2.3", "0.3.0", 0},
        {"^0.0.3", "0.0.4", 0},
        {"~3.11.1", "3.11.2", 1},
        {"~3.10", "3.11.2", 0},
        {"~3", "3.11.2", 1},
        {">=3.9", "3.11.2", 1},
        {">= 3.9 <4", "3.11.2", 1},
        {">3.11", "3.11.2", 0},
        {">3.10", "3.11.2", 1},
        {"<3.11.2", "3.11.2", 0},
        {"<=3.11", "3.11.2", 1},
        {"<=3.10", "3.11.2", 0},
        {"3.0.0 - 3.11", "3.11.2", 1},
        {"3.0.0 - 3.10", "3.11.2", 0},
        {"2 || 3.11.x", "3.11.2", 1},
        {"2||>4", "3.11.2", 0},
        {"latest", "3.11.2", -1},
        {"3.y", "3.11.2", -1},
        {"3.11.2.1", "3.11.2", -1},
        {"3,4", "3.11.2", -1},
        {"99999999999999999999", "3.11.2", -1},
        {"|| |", "3.11.2", -1},
        {">", "3.11.2", -1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_int(piston_range_has(rows[i].range, rows[i].version), rows[i].has, "'%s' has %s: %d",
                   rows[i].range, rows[i].version, rows[i].has);
    static const char *const versions[][2] = {
        {"3.11", "3.11.0"}, {"", "0.0.0"}, {"17.0.9", "17.0.9"}, {"8.2.29.1", "8.2.29"}};
    for (size_t i = 0; i < ARRAY_LENGTH(versions); i++) {
        char version[PISTON_VERSION_MAX];
        piston_version(versions[i][0], version);
        tap_is_str(version, versions[i][1], "'%s' as a version", versions[i][0]);
    }
    config.piston.version_match = PISTON_STRICT;
    tap_ok(!read_text("{\"language\":\"python\",\"version\":\"3.10.0\"" FILES "}", false),
           "a strict server wants its version");
    tap_is_str(fault.message, "python-3.10.0 runtime is unknown", "and says so");
    tap_ok(read_text("{\"language\":\"python\",\"version\":\"3.11.2\"" FILES "}", false),
           "which it takes");
    config.piston.version_match = PISTON_LENIENT;
}

static void test_signals(void)
{
    const struct {
        const char *name;
        int number;
    } rows[] = {
        {"SIGTERM", SIGTERM},
        {"SIGKILL", SIGKILL},
        {"SIGSEGV", SIGSEGV},
        {"SIGHUP", SIGHUP},
        {"SIGSYS", SIGSYS},
        {"SIGRTMIN", SIGRTMIN},
        {"SIGRTMIN+2", SIGRTMIN + 2},
        {"SIGRTMAX", SIGRTMAX},
        {"SIGRTMAX-1", SIGRTMAX - 1},
        {"TERM", 0},
        {"SIG", 0},
        {"sigterm", 0},
        {"SIGRTMIN+99", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_int(piston_signal_number(rows[i].name), rows[i].number, "'%s' as a signal",
                   rows[i].name);
    unsigned known = 0;
    char name[PISTON_SIGNAL_NAME_MAX];
    for (int i = 1; i <= 31; i++)
        known += piston_signal_number(piston_signal_name(i, name)) == i;
    tap_is_int(known, 31, "the 31 classic signals have names");
}

/* ---- results ---- */

static struct execution_result ended(enum execution_status status, int code, int signal)
{
    static struct execution_piece order[] = {{false, 1}, {true, 1}, {false, 1}};
    return (struct execution_result){.status = status,
                                     .exit_code = code,
                                     .signal = signal,
                                     .output = {"ac", 2},
                                     .error_output = {"b", 1},
                                     .ordered = true,
                                     .order = order,
                                     .order_count = 3,
                                     .cpu_time_us = 5999,
                                     .duration_us = 7000,
                                     .memory_peak_bytes = 1024};
}

static void is_result(const struct execution_result *result, const char *expected, const char *name)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    piston_write_result(&j, &call, result);
    tap_has_str(text.data, expected, "%s", name);
}

static void test_results(void)
{
    static const struct {
        enum execution_status status;
        int code, signal;
        bool out, error;
        const char *expected;
    } rows[] = {
        {EXECUTION_OK, 0, 0, false, false,
         "\"code\":0,\"signal\":null,\"message\":null,\"status\":null"},
        {EXECUTION_ERROR, 3, 0, false, false,
         "\"code\":3,\"signal\":null,\"message\":\"Exited with error status 3\",\"status\":\"RE\""},
        {EXECUTION_ERROR, -1, SIGSEGV, false, false,
         "\"code\":null,\"signal\":\"SIGSEGV\",\"message\":\"Caught fatal signal "
         "11\",\"status\":\"SG\""},
        {EXECUTION_TIMEOUT, -1, 0, false, false,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"Time limit exceeded (wall clock)\","
         "\"status\":\"TO\""},
        {EXECUTION_CPU_TIMEOUT, -1, SIGXCPU, false, false,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"Time limit "
         "exceeded\",\"status\":\"TO\""},
        {EXECUTION_OUTPUT_LIMIT, -1, 0, true, false,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"stdout length "
         "exceeded\",\"status\":\"OL\""},
        {EXECUTION_OUTPUT_LIMIT, -1, 0, false, true,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"stderr length "
         "exceeded\",\"status\":\"EL\""},
        {EXECUTION_OOM, 137, 0, false, false,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"Memory limit "
         "exceeded\",\"status\":\"SG\""},
        {EXECUTION_KILLED, -1, 0, false, false,
         "\"code\":null,\"signal\":\"SIGKILL\",\"message\":\"Caught fatal signal "
         "9\",\"status\":\"SG\""},
        {EXECUTION_LOST, -1, 0, false, false,
         "\"code\":null,\"signal\":null,\"message\":null,\"status\":\"XX\""},
    };
    tap_ok(read_with(""), "a request");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct execution_result result = ended(rows[i].status, rows[i].code, rows[i].signal);
        result.output_truncated = rows[i].out;
        result.error_output_truncated = rows[i].error;
        is_result(&result, rows[i].expected, execution_status_name(rows[i].status));
    }
    struct execution_result run = ended(EXECUTION_OK, 0, 0), compile = ended(EXECUTION_OK, 0, 0);
    is_result(&run,
              "{\"run\":{\"stdout\":\"ac\",\"stderr\":\"b\",\"output\":\"abc\",\"code\":0,"
              "\"signal\":null,\"message\":null,\"status\":null,\"cpu_time\":5,\"wall_time\":7,"
              "\"memory\":1024},\"language\":\"python\",\"version\":\"3.11.2\"}",
              "a whole result");
    run.compile = &compile;
    is_result(&run, "{\"compile\":{\"stdout\":\"ac\",\"stderr\":\"b\",\"output\":\"abc\"",
              "one with a compile stage");
    compile = ended(EXECUTION_ERROR, 1, 0);
    compile.stage = STAGE_COMPILE;
    is_result(&compile, "{\"compile\":{\"stdout\":\"ac\"", "one that does not compile");
    is_result(&compile,
              ",\"run\":{\"stdout\":\"ac\",\"stderr\":\"b\",\"output\":\"abc\",\"code\":1",
              "has it twice");
}

static void test_lists(void)
{
    autostr struct str text = {0}, packages = {0};
    struct json j;
    json_init(&j, &text);
    piston_write_runtimes(&j, runtimes, &config);
    tap_is_str(text.data,
               "[{\"language\":\"python\",\"version\":\"3.11.2\",\"aliases\":[\"py\"]},"
               "{\"language\":\"javascript\",\"version\":\"0.0.0\",\"aliases\":[\"node\",\"js\"],"
               "\"runtime\":\"node\"},{\"language\":\"c\",\"version\":\"12.2.0\",\"aliases\":["
               "\"gcc\"],\"runtime\":\"gcc\"},{\"language\":\"c++\",\"version\":\"12.2.0\","
               "\"aliases\":[\"cpp\"],\"runtime\":\"gcc\"},{\"language\":\"java\",\"version\":"
               "\"17.0.0\",\"aliases\":[]}]",
               "the runtimes");
    json_init(&j, &packages);
    piston_write_packages(&j, runtimes, &config);
    tap_has_str(packages.data,
                "[{\"language\":\"python\",\"language_version\":\"3.11.2\",\"installed\":true},",
                "and packages");
}

int main(void)
{
    static const struct runtime known[] = {
        {.name = "python", .aliases = {"py"}, .file_name = "main.py"},
        {.name = "node", .aliases = {"javascript", "js"}, .file_name = "main.js"},
        {.name = "c", .aliases = {"gcc"}, .compile = {"gcc"}, .file_name = "main.c"},
        {.name = "c++", .aliases = {"cpp"}, .compile = {"g++"}, .file_name = "main.cpp"},
        {.name = "java", .file_name = "Main.java"},
        {.name = "gone", .file_name = "x"},
        {.name = "agent", .agent = true, .input = RUNTIME_STDIN},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
        config.runtimes[i] = known[i];
        config.runtimes[i].max_limits[EXECUTION_MEMORY_MB] = 512;
        config.runtimes[i].limits[EXECUTION_DISK_MB] = 100;
        config.runtimes[i].max_timeout_ms = 60000;
    }
    config.runtime_count = ARRAY_LENGTH(known);
    config.piston.output_max_bytes = 65536;
    runtimes = json_loads(
        "[{\"name\":\"python\",\"version\":\"3.11.2\",\"available\":true},"
        "{\"name\":\"node\",\"available\":true},{\"name\":\"c\",\"version\":\"12.2.0\","
        "\"available\":true},{\"name\":\"c++\",\"version\":\"12.2.0\",\"available\":true},"
        "{\"name\":\"java\",\"version\":\"17.0\",\"available\":true},"
        "{\"name\":\"gone\",\"available\":false},{\"name\":\"agent\",\"available\":true},7]",
        0, NULL);
    test_errors();
    test_limits();
    test_request();
    test_versions();
    test_signals();
    test_results();
    test_lists();
    piston_call_done(&call);
    json_decref(runtimes);
    return tap_done();
}
