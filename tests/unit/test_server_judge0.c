/* SPDX-License-Identifier: MIT */
/* Judge0's dialect: every field with its range and its errors, every status, and the texts it reads and
 * writes. */
#include "server/api/judge0_answer.h"

#include <signal.h>

#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/judge0_languages.h"
#include "server/api/judge0_request.h"
#include "server/api/judge0_text.h"
#include "server/config/config.h"
#include "server/history/notes.h"
#include "server/zip.h"
#include "tap.h"

#define TOKEN "f47ac10b-58cc-4372-a567-0e02b2c3d479"

/* With the files run, a/b.txt, ../up and the directory d. */
static const char archive[] =
    "UEsDBBQAAAAIAAAAIVw5bih4CwAAABUAAAADAAAAcnVuS03OyFcw5EpFoQBQSwMEFAAAAAAAAAAhXMen"
    "izsEAAAABAAAAAcAAABhL2IudHh0dGV4dFBLAwQUAAAACAAAACFcgxbcjAMAAAABAAAABQAAAC4uL3Vw"
    "qwAAUEsDBBQAAAAIAAAAIVwAAAAAAgAAAAAAAAACAAAAZC8DAFBLAQIUAxQAAAAIAAAAIVw5bih4CwAA"
    "ABUAAAADAAAAAAAAAAAAAACAAQAAAABydW5QSwECFAMUAAAAAAAAACFcx6eLOwQAAAAEAAAABwAAAAAA"
    "AAAAAAAAgAEsAAAAYS9iLnR4dFBLAQIUAxQAAAAIAAAAIVyDFtyMAwAAAAEAAAAFAAAAAAAAAAAAAACA"
    "AVUAAAAuLi91cFBLAQIUAxQAAAAIAAAAIVwAAAAAAgAAAAAAAAACAAAAAAAAAAAAAACAAXsAAABkL1BL"
    "BQYAAAAABAAEAMkAAACdAAAAAAA=";

static struct server_config config;
static const char runtimes_text[] =
    "{\"runtimes\":[{\"name\":\"python\",\"version\":\"3.11.2\",\"available\":true},"
    "{\"name\":\"bash\",\"available\":true},{\"name\":\"project\",\"available\":true},"
    "{\"name\":\"c\",\"version\":\"12.2.0\",\"available\":true},"
    "{\"name\":\"ruby\",\"available\":false}]}";
static struct str runtimes;

static struct judge0_submission submission;
static struct judge0_errors errors;
static struct judge0_bounds bounds;
static struct judge0_language language;
static struct execution_request request;

/* Reads, checks and translates; whether nothing was wrong. */
static bool take(const char *text, bool base64)
{
    json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
    judge0_submission_done(&submission);
    execution_request_done(&request);
    request = (struct execution_request){0};
    bool read = judge0_read(object, base64, &bounds, &submission, &errors);
    bool found =
        judge0_language_find(&config, &runtimes, submission.number[JUDGE0_LANGUAGE_ID], &language);
    judge0_check(&config, &bounds, &language, found, &submission, &errors);
    json_decref(object);
    return read && errors.count == 0 &&
           judge0_translate(&config, &language, &submission, &request, &errors);
}

static bool take_with(const char *more)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"language_id\":71,\"source_code\":\"print(1)\",%s}", more);
    return take(text.data, false);
}

/* ---- fields ---- */

static void test_ranges(void)
{
    static const struct {
        const char *good, *bad, *error;
        enum judge0_field field;
    } rows[] = {
        {"\"number_of_runs\":1", "\"number_of_runs\":0", "must be greater than 0",
         JUDGE0_NUMBER_OF_RUNS},
        {"\"number_of_runs\":20", "\"number_of_runs\":21", "must be less than or equal to 20",
         JUDGE0_NUMBER_OF_RUNS},
        {"\"cpu_time_limit\":0", "\"cpu_time_limit\":-0.1", "must be greater than or equal to 0",
         JUDGE0_CPU_TIME_LIMIT},
        {"\"cpu_time_limit\":15", "\"cpu_time_limit\":15.001", "must be less than or equal to 15.0",
         JUDGE0_CPU_TIME_LIMIT},
        {"\"cpu_extra_time\":5", "\"cpu_extra_time\":5.1", "must be less than or equal to 5.0",
         JUDGE0_CPU_EXTRA_TIME},
        {"\"wall_time_limit\":1", "\"wall_time_limit\":0.9", "must be greater than or equal to 1",
         JUDGE0_WALL_TIME_LIMIT},
        {"\"wall_time_limit\":\"20\"", "\"wall_time_limit\":\"20.5\"",
         "must be less than or equal to 20.0", JUDGE0_WALL_TIME_LIMIT},
        {"\"memory_limit\":2048", "\"memory_limit\":2047", "must be greater than or equal to 2048",
         JUDGE0_MEMORY_LIMIT},
        {"\"memory_limit\":512000", "\"memory_limit\":512001",
         "must be less than or equal to 512000", JUDGE0_MEMORY_LIMIT},
        {"\"stack_limit\":0", "\"stack_limit\":-1", "must be greater than or equal to 0",
         JUDGE0_STACK_LIMIT},
        {"\"stack_limit\":128000", "\"stack_limit\":128001", "must be less than or equal to 128000",
         JUDGE0_STACK_LIMIT},
        {"\"max_processes_and_or_threads\":1", "\"max_processes_and_or_threads\":0",
         "must be greater than 0", JUDGE0_MAX_PROCESSES},
        {"\"max_processes_and_or_threads\":120", "\"max_processes_and_or_threads\":121",
         "must be less than or equal to 120", JUDGE0_MAX_PROCESSES},
        {"\"max_file_size\":0", "\"max_file_size\":-1", "must be greater than or equal to 0",
         JUDGE0_MAX_FILE_SIZE},
        {"\"max_file_size\":4096", "\"max_file_size\":4097", "must be less than or equal to 4096",
         JUDGE0_MAX_FILE_SIZE},
        {"\"memory_limit\":\"4096\"", "\"memory_limit\":\"much\"", "is not a number",
         JUDGE0_MEMORY_LIMIT},
        {"\"memory_limit\":\"\"", "\"memory_limit\":true", "is not a number", JUDGE0_MEMORY_LIMIT},
        {"\"enable_network\":false", "\"enable_network\":1", "enabling network is not allowed",
         JUDGE0_ENABLE_NETWORK},
        {"\"enable_network\":\"off\"", "\"enable_network\":\"yes\"",
         "enabling network is not allowed", JUDGE0_ENABLE_NETWORK},
        {"\"callback_url\":\"\"", "\"callback_url\":\"http://a/\"",
         "setting callback is not allowed", JUDGE0_CALLBACK_URL},
        {"\"compiler_options\":\" \"", "\"compiler_options\":\"-O2\"",
         "setting compiler options is only allowed for compiled languages",
         JUDGE0_COMPILER_OPTIONS},
        {"\"additional_files\":\"\"", "\"additional_files\":\"YWJj\"", "is not a zip archive",
         JUDGE0_ADDITIONAL_FILES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_ok(take_with(rows[i].good), "%s is taken", rows[i].good);
        tap_ok(!take_with(rows[i].bad), "%s is not", rows[i].bad);
        tap_is_int(errors.list[0].field, rows[i].field, "the field is named");
        tap_is_str(errors.list[0].text, rows[i].error, "with Judge0's words");
        tap_is_int(errors.count, 1, "and nothing else");
    }
}

static void test_lengths(void)
{
    static const char *const fields[] = {"compiler_options", "command_line_arguments"};
    char many[JUDGE0_OPTIONS_MAX];
    memset(many, 'a', sizeof many);
    for (size_t i = 0; i < 2; i++)
        for (int more = 0; more < 2; more++) {
            autostr struct str text = {0};
            str_appendf(&text, "{\"language_id\":50,\"source_code\":\"x\",\"%s\":\"%.*s\xc3\xa4\"}",
                        fields[i], JUDGE0_OPTIONS_MAX - 1 + more, many);
            tap_ok(take(text.data, false) == !more, "%s of %d characters", fields[i], 512 + more);
        }
    tap_is_str(errors.list[0].text, "is too long (maximum is 512 characters)", "it says why");
    autostr struct str words = {0};
    for (int i = 0; i < EXECUTION_ARGS_MAX + 1; i++)
        str_append(&words, "a ");
    autostr struct str text = {0};
    str_appendf(&text, "\"command_line_arguments\":\"%s\"", words.data);
    tap_ok(!take_with(text.data), "more words than there may be arguments are refused");
}

static void test_language(void)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{\"source_code\":\"x\"}", "can't be blank"},
        {"{\"source_code\":\"x\",\"language_id\":0}", "language with id 0 doesn't exist"},
        {"{\"source_code\":\"x\",\"language_id\":\"py\"}", "language with id 0 doesn't exist"},
        {"{\"source_code\":\"x\",\"language_id\":114}", "language with id 114 doesn't exist"},
        {"{\"source_code\":\"x\",\"language_id\":42}",
         "language with id 42 is archived and cannot be used anymore"},
        {"{\"source_code\":\"x\",\"language_id\":72}",
         "language with id 72 is archived and cannot be used anymore"},
        {"{\"source_code\":\" \\n\",\"language_id\":71}", "can't be blank"},
        {"{\"language_id\":71}", "can't be blank"},
        {"{\"source_code\":[1],\"language_id\":71}", "can't be blank"},
        {"{\"source_code\":\"x\",\"language_id\":89}", "must be blank"},
        {"{\"language_id\":89}", "can't be blank"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_ok(!take(rows[i].text, false), "%s is refused", rows[i].text);
        tap_is_str(errors.list[0].text, rows[i].error, "with Judge0's words");
    }
    autostr struct str out = {0};
    struct json j;
    (void)take("{}", false);
    json_init(&j, &out);
    judge0_errors_write(&errors, &j);
    tap_is_str(out.data,
               "{\"source_code\":[\"can't be blank\"],\"language_id\":[\"can't be blank\","
               "\"language with id  doesn't exist\"]}",
               "errors are written by field");
}

static void test_names(void)
{
    static const struct {
        int64_t id;
        const char *name;
        bool runs;
    } rows[] = {
        {71, "Python (3.11.2)", true},      {113, "Python (3.11.2)", true},
        {70, "Python (2.7.17)", false},     {50, "C (GCC 12.2.0)", true},
        {110, "C (GCC 12.2.0)", true},      {46, "Bash (installed)", true},
        {72, "Ruby (2.7.0)", false},        {1, "Bash (4.4)", false},
        {43, "Plain Text", true},           {89, "Multi-file program", true},
        {82, "SQL (SQLite 3.27.2)", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_ok(judge0_language_find(&config, &runtimes, rows[i].id, &language), "language %d is",
               (int)rows[i].id);
        tap_is_str(language.name, rows[i].name, "its name");
        tap_ok((language.runtime != NULL) == rows[i].runs, "whether it runs");
    }
    tap_ok(!judge0_language_find(&config, &runtimes, 114, &language), "114 is not");
}

/* ---- translation ---- */

static void test_translation(void)
{
    tap_ok(take_with("\"stdin\":\"in\""), "a plain submission");
    tap_is_str(request.language, "python", "its runtime");
    tap_ok(request.timeout_ms == 10000 && request.cpu_ms == 0 && request.queued, "its time");
    tap_ok(request.limits[EXECUTION_MEMORY_MB] == 0 && request.limits[EXECUTION_PIDS] == 0,
           "limits that were not given are the runtime's");
    tap_is_int(request.output_bytes, 1024 << 10, "its output");
    tap_ok(take_with("\"memory_limit\":100000,\"cpu_time_limit\":0.5,\"cpu_extra_time\":0.25,"
                     "\"wall_time_limit\":1.5,\"max_processes_and_or_threads\":7"),
           "one with limits");
    tap_is_int(request.limits[EXECUTION_MEMORY_MB], 98, "memory is rounded up");
    tap_is_int(request.limits[EXECUTION_PIDS], 7, "processes");
    tap_ok(request.cpu_ms == 750 && request.timeout_ms == 1500, "both times");
    tap_ok(request.stack_kb == 0 && request.file_kb == 0,
           "a stack and files that were not given need no jail of their own");
    tap_ok(take_with("\"stack_limit\":8000,\"max_file_size\":3"), "one with a stack and files");
    tap_ok(request.stack_kb == 8000 && request.file_kb == 3 && request.output_bytes == 3072,
           "which are limited");
    tap_ok(take_with("\"memory_limit\":2048"), "very little memory");
    tap_is_int(request.limits[EXECUTION_MEMORY_MB], EXECUTION_MEMORY_MB_MIN,
               "is what a jail needs");
    tap_ok(
        take("{\"language_id\":50,\"source_code\":\"aW50\",\"stdin\":\"aGk=\",\"compiler_options\":"
             "\"-O1 -g\",\"command_line_arguments\":\"a b\"}",
             true),
        "one in base64");
    tap_ok(request.code.length == 3 && request.stdin_bytes.length == 2, "is decoded");
    tap_is_int(request.stack_kb, 64000, "a compiled program has Judge0's stack");
    tap_ok(request.arg_count == 2 && request.compile_arg_count == 2 && request.alone, "its words");
    tap_ok(take("{\"language_id\":43,\"source_code\":\"text\"}", false), "plain text");
    tap_ok(request.file_count == 1 && strcmp(request.files[0].name, "text.txt") == 0,
           "is a file, which a script prints");
}

static void test_files(void)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"language_id\":89,\"additional_files\":\"%s\"}", archive);
    tap_ok(take(text.data, false), "a project");
    tap_is_str(request.main, "run", "its script is the code");
    tap_is_int(request.code.length, 21, "which was inflated");
    tap_ok(request.file_count == 1 && strcmp(request.files[0].name, "a/b.txt") == 0,
           "a name that leaves the directory is left out, and a directory");
    char bytes[sizeof archive];
    struct zip_reader zip;
    struct zip_entry entry;
    size_t length = judge0_base64_decode(archive, sizeof archive - 1, bytes);
    for (size_t cut = 0; cut < length; cut++) {
        if (zip_open(bytes, cut, &zip)) {
            tap_fail("an archive that was cut at %zu is opened", cut);
            return;
        }
    }
    tap_pass("an archive that was cut is not opened");
    size_t damaged = 0, whole = 0;
    for (size_t i = 0; i < length; i++) {
        char before = bytes[i];
        char out[64];
        bytes[i] ^= 0x40;
        for (bool open = zip_open(bytes, length, &zip); open && zip_next(&zip, &entry) > 0;) {
            bool good = entry.size <= sizeof out && zip_extract(&entry, out);
            damaged += !good;
            whole += good;
        }
        bytes[i] = before;
    }
    tap_ok(damaged > 0 && whole > 0, "damage is found, %zu times, and never read beyond", damaged);
}

/* ---- texts ---- */

static void test_words(void)
{
    static const struct {
        const char *text;
        size_t count;
        const char *words[4];
    } rows[] = {
        {"", 0, {0}},
        {"  ", 0, {0}},
        {"a b", 2, {"a", "b"}},
        {" 'a b' \"c \\\" d\" e\\ f", 3, {"a b", "c \" d", "e f"}},
        {"a$(b) ; c", 2, {"a(b)", "c"}},
        {"''", 1, {""}},
        {"a'b'c", 1, {"abc"}},
        {"'open", 1, {"open"}},
        {"a #b c", 1, {"a"}},
        {"a#b \\", 2, {"a#b", "\\"}},
        {"|&;<>`$", 0, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = {0};
        const char **words = NULL;
        size_t count = 0;
        tap_ok(judge0_words(rows[i].text, strlen(rows[i].text), &arena, 4, &words, &count) &&
                   count == rows[i].count,
               "%s has %zu words", rows[i].text, rows[i].count);
        for (size_t k = 0; k < count && k < 4; k++)
            tap_is_str(words[k], rows[i].words[k], "word");
        arena_done(&arena);
    }
    struct arena arena = {0};
    const char **words = NULL;
    size_t count = 0;
    tap_ok(judge0_words("a b c d", 7, &arena, 4, &words, &count), "as many as there may be");
    tap_ok(!judge0_words("a b c d e", 9, &arena, 4, &words, &count), "one more");
    arena_done(&arena);
}

static void test_same(void)
{
    static const struct {
        const char *one, *two;
        bool same;
    } rows[] = {
        {"a\n", "a", true},           {"a  \nb\t\n\n", "a\nb", true},
        {"a\nb", "a b", false},       {" a", "a", false},
        {"", "\n \n", true},          {"a\n\nb", "a\nb", false},
        {"a\r\nb\r\n", "a\nb", true}, {"a", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_ok(judge0_is_same(rows[i].one, strlen(rows[i].one), rows[i].two, strlen(rows[i].two)) ==
                   rows[i].same,
               "row %zu", i);
        tap_ok(judge0_is_same(rows[i].two, strlen(rows[i].two), rows[i].one, strlen(rows[i].one)) ==
                   rows[i].same,
               "and the other way round");
    }
}

static void test_base64(void)
{
    static const struct {
        const char *text, *bytes;
    } rows[] = {
        {"aGVsbG8=\n", "hello"},
        {"aGVs\nbG8", "hello"},
        {"aGVsbG8=YWE=", "hello"},
        {"a-GVs*bG8", "hello"},
        {"", ""},
        {"a", ""},
        {"=aGk=", "hi"},
    };
    char bytes[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = judge0_base64_decode(rows[i].text, strlen(rows[i].text), bytes);
        tap_ok(length == strlen(rows[i].bytes) && memcmp(bytes, rows[i].bytes, length) == 0,
               "%s is decoded as Ruby does", rows[i].text);
    }
    autostr struct str out = {0};
    char many[46];
    memset(many, 'a', sizeof many);
    judge0_base64_encode(&out, many, sizeof many);
    tap_ok(out.length == 60 + 1 + 4 + 1 && out.data[60] == '\n' && out.data[65] == '\n',
           "lines have 60 characters");
}

static void test_form(void)
{
    json_t *form = judge0_form("a=1+2&b=%41%zz&c&a=3", 20, 4);
    tap_is_str(json_string_value(json_object_get(form, "a")), "3", "the last field counts");
    tap_is_str(json_string_value(json_object_get(form, "b")), "A%zz", "escapes are decoded");
    tap_ok(json_is_null(json_object_get(form, "c")), "one without a value is null");
    json_decref(form);
    tap_ok(!judge0_form("a=1&b=2", 7, 1), "too many fields are refused");
    tap_ok(!judge0_form("a=\xff", 3, 1) && !judge0_form("a%00b=1", 7, 1),
           "so is what is not UTF-8, and a NUL in a name");
}

/* ---- answers ---- */

static struct judge0_outcome judge(struct execution_result result)
{
    struct judge0_outcome outcome;
    if (!result.output.data)
        result.output.data = "";
    if (!result.error_output.data)
        result.error_output.data = "";
    judge0_judge(&submission, &result, false, &outcome);
    return outcome;
}

static void test_statuses(void)
{
    static const struct {
        enum execution_status status;
        int exit_code, signal;
        enum judge0_status wanted;
        int code, number;
        const char *message;
    } rows[] = {
        {EXECUTION_OK, 0, 0, JUDGE0_ACCEPTED, 0, 0, ""},
        {EXECUTION_ERROR, 3, 0, JUDGE0_NZEC, 3, 0, "Exited with error status 3"},
        {EXECUTION_ERROR, -1, SIGSEGV, JUDGE0_SIGSEGV, 0, 11, "Caught fatal signal 11"},
        {EXECUTION_ERROR, -1, SIGXFSZ, JUDGE0_SIGXFSZ, 0, 25, "Caught fatal signal 25"},
        {EXECUTION_ERROR, -1, SIGFPE, JUDGE0_SIGFPE, 0, 8, "Caught fatal signal 8"},
        {EXECUTION_ERROR, -1, SIGABRT, JUDGE0_SIGABRT, 0, 6, "Caught fatal signal 6"},
        {EXECUTION_ERROR, -1, SIGTERM, JUDGE0_OTHER, 0, 15, "Caught fatal signal 15"},
        {EXECUTION_TIMEOUT, -1, 9, JUDGE0_TIME_LIMIT, 0, 0, "Time limit exceeded (wall clock)"},
        {EXECUTION_CPU_TIMEOUT, -1, 9, JUDGE0_TIME_LIMIT, 0, 0, "Time limit exceeded"},
        {EXECUTION_OOM, -1, 0, JUDGE0_OTHER, 0, 9, "Caught fatal signal 9"},
        {EXECUTION_KILLED, -1, 0, JUDGE0_OTHER, 0, 9, "Caught fatal signal 9"},
        {EXECUTION_OUTPUT_LIMIT, -1, 0, JUDGE0_SIGXFSZ, 0, 25, "Caught fatal signal 25"},
        {EXECUTION_SETUP_FAILED, -1, 0, JUDGE0_INTERNAL_ERROR, 0, 0, "why"},
        {EXECUTION_LOST, -1, 0, JUDGE0_INTERNAL_ERROR, 0, 0, "why"},
    };
    (void)take_with("\"x\":1");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct judge0_outcome outcome =
            judge((struct execution_result){.status = rows[i].status,
                                            .exit_code = rows[i].exit_code,
                                            .signal = rows[i].signal,
                                            .message = "why"});
        tap_is_int(outcome.status, rows[i].wanted, "%s and signal %d",
                   execution_status_name(rows[i].status), rows[i].signal);
        tap_ok(outcome.exit_code == rows[i].code && outcome.exit_signal == rows[i].number,
               "its code and its signal");
        tap_is_str(outcome.message, rows[i].message, "its message");
    }
    struct judge0_outcome late = judge((struct execution_result){
        .status = EXECUTION_ERROR, .exit_code = 1, .cpu_time_us = 5000001});
    tap_ok(late.status == JUDGE0_TIME_LIMIT && late.exit_code == 0, "more than the usual CPU time");
}

static void test_stages(void)
{
    static struct execution_piece pieces[] = {{false, 1}, {true, 1}, {false, 1}};
    struct execution_result compiler = {
        .status = EXECUTION_OK, .output = {"o", 1}, .error_output = {"e", 1}, .ordered = true};
    (void)take_with("\"redirect_stderr_to_stdout\":true,\"expected_output\":\"aXb\"");
    struct judge0_outcome outcome = judge((struct execution_result){.status = EXECUTION_OK,
                                                                    .output = {"ab", 2},
                                                                    .error_output = {"X", 1},
                                                                    .order = pieces,
                                                                    .order_count = 3,
                                                                    .compile = &compiler});
    tap_is_int(outcome.status, JUDGE0_ACCEPTED, "both outputs in their order are compared");
    tap_ok(outcome.error.length == 0 && outcome.compiled.length == 2, "the compiler's are apart");
    judge0_outcome_done(&outcome);
    outcome = judge((struct execution_result){.status = EXECUTION_ERROR,
                                              .exit_code = 1,
                                              .stage = STAGE_COMPILE,
                                              .error_output = {"bad", 3}});
    tap_ok(outcome.status == JUDGE0_COMPILATION_ERROR && !outcome.ran && outcome.out.length == 0 &&
               outcome.compiled.length == 3 && !*outcome.message,
           "a program that cannot be compiled");
    judge0_outcome_done(&outcome);
    outcome = judge((struct execution_result){.status = EXECUTION_TIMEOUT, .stage = STAGE_COMPILE});
    tap_is_str(outcome.compiled.data, "Compilation time limit exceeded.",
               "one that takes too long");
    judge0_outcome_done(&outcome);
    outcome = judge((struct execution_result){
        .status = EXECUTION_SETUP_FAILED, .stage = STAGE_COMPILE, .message = "no room"});
    tap_ok(outcome.status == JUDGE0_INTERNAL_ERROR, "a jail that could not be made");
    judge0_outcome_done(&outcome);
}

static void test_members(void)
{
    autostr struct str unknown = {0};
    tap_ok(judge0_members_read(NULL, &unknown) == judge0_members_usual() &&
               judge0_members_read("", &unknown) == judge0_members_usual() && unknown.length == 0,
           "the usual members");
    judge0_members all = judge0_members_read("stdout,*", &unknown);
    tap_is_int(__builtin_popcountll(all), 35, "all members");
    tap_is_int(__builtin_popcountll(judge0_members_usual()), 8, "and the usual ones");
    tap_is_int(__builtin_popcountll(judge0_members_read("stdout,,status", &unknown)), 2, "two");
    (void)judge0_members_read("a,stdout, b", &unknown);
    tap_is_str(unknown.data, "a,  b", "unknown ones");
}

static void test_note(void)
{
    autostr struct str bytes = {0}, out = {0}, callback = {0}, packed = {0};
    struct json j;
    struct note note = {.state = NOTE_QUEUED, .created_ns = INT64_C(1700000000123456789)}, again;
    (void)take_with("\"stdin\":\"\",\"expected_output\":null,\"cpu_time_limit\":2.5");
    tap_is_int(judge0_note_encode(&submission, &bytes, NULL), 0, "a note");
    note.text = (struct execution_bytes){bytes.data, bytes.length};
    note.result = (struct execution_bytes){.data = ""};
    tap_is_int(note_encode(&note, &packed, NULL), 0, "is sent");
    tap_is_int(note_decode(packed.data, packed.length, &again, NULL), 0, "and read");
    json_init(&j, &out);
    tap_ok(judge0_write(&j, &again, TOKEN,
                        judge0_members_read("stdin,expected_output,cpu_time_limit,created_at,"
                                            "status,time,exit_code,language,stdout,message",
                                            &callback),
                        false),
           "and written");
    tap_is_str(out.data,
               "{\"stdin\":\"\",\"expected_output\":null,\"stdout\":null,\"created_at\":"
               "\"2023-11-14T22:13:20.123Z\",\"time\":null,\"cpu_time_limit\":\"2.5\","
               "\"exit_code\":null,\"message\":null,\"status\":{\"id\":1,\"description\":"
               "\"In Queue\"},\"language\":{\"id\":71,\"name\":\"Python (3.11.2)\"}}",
               "as Judge0 does");
    note_done(&again);
    for (size_t cut = 0; cut < bytes.length; cut += 7) {
        struct judge0_submission part;
        if (judge0_note_decode(bytes.data, cut, &part, NULL) == 0)
            tap_fail("a note that was cut at %zu is read", cut);
    }
    tap_is_int(judge0_write_callback(TOKEN, note.text, note.result, &callback, NULL), 0,
               "a callback of one that was lost");
    tap_has_str(callback.data, "\"status\":{\"id\":13,\"description\":\"Internal Error\"}",
                "says so");
}

static void test_lists(void)
{
    autostr struct str bytes = {0}, question = {0};
    const char *ids[] = {TOKEN};
    struct note_list list = {.total = 5, .ids = ids, .count = 1}, again;
    struct note_page page = {.domain = "d", .offset = 20, .limit = NOTES_PAGE_MAX}, read;
    tap_is_int(note_list_encode(&list, &bytes, NULL), 0, "a list");
    tap_is_int(note_list_decode(bytes.data, bytes.length, &again, NULL), 0, "is read");
    tap_ok(again.total == 5 && strcmp(again.ids[0], TOKEN) == 0, "as it was");
    note_list_done(&again);
    note_page_encode(&page, &question);
    tap_is_int(note_page_decode(question.data, question.length, &read, NULL), 0, "a question");
    tap_ok(read.offset == 20 && strcmp(read.domain, "d") == 0, "as it was");
    page.limit++;
    question.length = 0;
    note_page_encode(&page, &question);
    tap_ok(note_page_decode(question.data, question.length, &read, NULL) < 0, "for too many");
}

int main(void)
{
    config.runtimes[0] = (struct runtime){.name = "python", .file_name = "main.py"};
    config.runtimes[1] = (struct runtime){.name = "bash", .file_name = "main.sh"};
    config.runtimes[2] = (struct runtime){.name = "c",
                                          .file_name = "main.c",
                                          .parking = PARKING_NONE,
                                          .compile = {"gcc", "{files}"},
                                          .argv = {"/tmp/program"}};
    config.runtimes[3] =
        (struct runtime){.name = "project", .file_name = "run", .compile = {"bash"}};
    config.runtimes[4] = (struct runtime){.name = "ruby", .file_name = "main.rb"};
    config.runtime_count = 5;
    const uint64_t usual[EXECUTION_LIMITS_] = {256, 50, 100, 100};
    const uint64_t most[EXECUTION_LIMITS_] = {1024, 500, 1024, 400};
    for (size_t i = 0; i < config.runtime_count; i++) { /* as the configuration does it */
        memcpy(config.runtimes[i].limits, usual, sizeof usual);
        memcpy(config.runtimes[i].max_limits, most, sizeof most);
        config.runtimes[i].timeout_ms = 10000;
        config.runtimes[i].max_timeout_ms = 60000;
    }
    memcpy(config.sandbox.limits, usual, sizeof usual);
    memcpy(config.sandbox.max_limits, most, sizeof most);
    config.sandbox.max_timeout_ms = 60000;
    str_append(&runtimes, runtimes_text);
    judge0_bounds(&config, &bounds);
    test_ranges();
    test_lengths();
    test_language();
    test_names();
    test_translation();
    test_files();
    test_words();
    test_same();
    test_base64();
    test_form();
    test_statuses();
    test_stages();
    test_members();
    test_note();
    test_lists();
    judge0_submission_done(&submission);
    execution_request_done(&request);
    str_done(&runtimes);
    return tap_done();
}
