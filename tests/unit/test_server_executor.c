/* SPDX-License-Identifier: MIT */
/* The executor with ordinary runs: what goes in, what comes out, and what it tells whom. */
#include <sys/stat.h>

#include "channel_support.h"
#include "executor_support.h"

static struct rig rig;

static void test_languages(void)
{
    is_output(run_code(&rig, "python", "import sys\nprint(sum(range(100)), sys.executable)"),
              "4950 /usr/bin/python3\n", "python runs, the system's own");
    is_output(run_code(&rig, "node", "console.log([1, 2, 3].map((x) => x * 2).join())"), "2,4,6\n",
              "node runs");
    is_output(run_code(&rig, "bash", "echo $((6 * 7)); echo oops >&2"), "42\n", "a shell runs");
    is_output(run_code(&rig, "perl", "print 'per', 'l'"), "perl", "perl runs, by configuration");
    is_output(run_code(&rig, "ruby", "puts [3, 1, 2].sort.inspect"), "[1, 2, 3]\n", "so does ruby");
    is_output(run_code(&rig, "c", "#include <stdio.h>\nint main(){puts(\"compiled\");}"),
              "compiled\n", "and C, which is compiled first");
    const struct execution_result *result = run_code(&rig, "c", "int main() { return x; }");
    is_status(result, EXECUTION_ERROR, "what does not compile is an error");
    tap_has_str(result->error_output.data, "main.c", "and the compiler's words are there");
    result = run_code(&rig, "bash", "false; exit 7");
    is_status(result, EXECUTION_ERROR, "a failing shell is an error");
    tap_is_int(result->exit_code, 7, "with its exit code");
    result = run_code(&rig, "missing", "");
    is_status(result, EXECUTION_SETUP_FAILED, "a program that is missing");
    tap_has_str(result->message, "no-such-package", "is named with its package");
    is_status(run_code(&rig, "cobol", ""), EXECUTION_SETUP_FAILED, "as is an unknown language");
}

/* Whether the last row is the end of this. */
static bool has_row_of(struct rig *of, uint64_t tag)
{
    const char *id = of->answers[tag % DONES_MAX].result.id;
    return id && of->last_row.id && strcmp(id, of->last_row.id) == 0;
}

static const char busy_code[] =
    "import os, sys\nfrom lib import helper\n"
    "print(sys.argv[1:], sys.stdin.read(), os.environ['GREETING'], helper.x)\n"
    "open('/output/a.txt', 'w').write('A')\n"
    "os.makedirs('/output/deep/er')\nopen('/output/deep/er/b.bin', 'wb').write(b'\\0\\1')\n"
    "open('/output/c.log', 'w').write('no')\n"
    "os.symlink('/etc/passwd', '/output/p.txt')\nos.mkfifo('/output/f.txt')\n";

static void test_request(void)
{
    struct execution_request request = request_for("python", busy_code);
    const char *args[] = {"one", "two words"};
    const char *returns[] = {"*.txt", "**/*.bin"};
    struct execution_pair env[] = {{"GREETING", "hello"}};
    struct execution_file files[] = {{"lib/helper.py", {"x = 7", 5}, false},
                                     {"lib/__init__.py", {"", 0}, false}};
    request.args = args;
    request.arg_count = 2;
    request.env = env;
    request.env_count = 1;
    request.files = files;
    request.file_count = 2;
    request.returns = returns;
    request.return_count = 2;
    request.stdin_bytes = (struct execution_bytes){"input", 5};
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_output(result, "['one', 'two words'] input hello 7\n",
              "arguments, input, variables and files arrive");
    tap_is_int((long)result->file_count, 2, "two files match, and are regular files");
    if (result->file_count == 2) {
        tap_is_str(result->files[0].name, "a.txt", "one at the top");
        tap_is_str(result->files[0].content.data, "A", "with its content");
        tap_is_str(result->files[1].name, "deep/er/b.bin", "one below");
        tap_is_int((long)result->files[1].content.length, 2, "with its NULs");
    }
    tap_ok(wait_for(&rig, has_row_of, rig.tag) && rig.last_row.file_count == 2,
           "the history hears of them");
}

static void test_inside(void)
{
    is_output(
        run_code(&rig, "bash", "id -u; pwd; echo $HOME $PATH; env | cut -d= -f1 | sort | xargs"),
        "65534\n/workspace\n/tmp /usr/bin:/bin:/usr/local/bin\n"
        "HOME LANG LOGNAME PATH PWD SHLVL TMPDIR USER _\n",
        "it is nobody, in /workspace, with a small environment");
    is_output(run_code(&rig, "bash",
                       "for f in /usr/x /etc/x /x; do "
                       "(echo x > $f) 2>/dev/null && echo $f; done; "
                       "for f in x /tmp/x /output/x; do echo x > $f; cat $f; done"),
              "x\nx\nx\n", "it can write to /workspace, /tmp and /output alone");
    is_output(run_code(&rig, "bash",
                       "ls /home /root 2>/dev/null | grep -v sandbox || true; ls /workspace"),
              "/home:\nmain.sh\n", "nothing of the host's homes is there");
    const struct execution_result *result =
        run_code(&rig, "bash", "head -c 150000000 /dev/zero > x");
    is_status(result, EXECUTION_ERROR, "disk_mb bounds what is written");
    tap_has_str(result->error_output.data, "No space left", "and it says so");
    is_output(run_code(&rig, "python",
                       "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"),
              "True\n", "no signal is ignored");
    is_output(run_code(&rig, "bash", "ls -l /proc/self/fd | grep -c -e '->'"), "4\n",
              "no other descriptor is open");
}

static const struct execution_event *find_event(const struct execution_result *result,
                                                const char *detail)
{
    for (size_t i = 0; i < result->event_count; i++)
        if (strcmp(result->events[i].type, "syscall_denied") == 0 &&
            strcmp(result->events[i].detail, detail) == 0)
            return &result->events[i];
    return NULL;
}

static void test_denials(void)
{
    const struct execution_result *result =
        run_code(&rig, "python",
                 "import ctypes\n"
                 "libc = ctypes.CDLL(None, use_errno=True)\n"
                 "for i in range(3): print(libc.ptrace(0, 0, 0, 0), ctypes.get_errno())\n"
                 "print(libc.socket(2, 1, 0), ctypes.get_errno())\n");
    is_output(result, "-1 1\n-1 1\n-1 1\n-1 13\n", "refused calls fail as ever");
    const struct execution_event *event = find_event(result, "ptrace: EPERM, 3 times");
    tap_ok(event && event->severity == SEVERITY_HIGH, "a grave one is an event of high severity");
    event = find_event(result, "socket: EACCES, 1 time");
    tap_ok(event && event->severity == SEVERITY_MEDIUM, "another one of medium severity");
    result = run_code(&rig, "python", "import json, ssl, subprocess, threading; print(1)");
    is_output(result, "1\n", "an ordinary program");
    tap_is_int((int)result->event_count, 0, "makes no event");
}

static void is_refused(const struct execution_request *request, const char *message,
                       const char *name)
{
    const struct execution_result *result = &execute(&rig, request)->result;
    is_status(result, EXECUTION_SETUP_FAILED, name);
    tap_has_str(result->message, message, "with what is allowed");
}

static void test_limits(void)
{
    struct execution_request request = request_for("python", "while True: pass");
    request.timeout_ms = 700;
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_TIMEOUT, "what takes too long is ended");
    tap_is_int(result->exit_code, -1, "without an exit code");
    tap_ok(result->duration_us >= 650000, "and not before");
    request = request_for("python", "print(1)");
    request.timeout_ms = rig.config.sandbox.max_timeout_ms;
    is_output(&execute(&rig, &request)->result, "1\n", "the longest time can be had");
    request = request_for("python", "print(1)");
    request.timeout_ms = rig.config.sandbox.max_timeout_ms + 1;
    is_refused(&request, "timeout is", "one past the longest time is refused");
    request = request_for("python", "print(1)");
    request.limits[EXECUTION_MEMORY_MB] = 1025;
    is_refused(&request, "limits.memory_mb is 1025, 8 to 1024 are allowed",
               "as is too much memory");
}

static void test_refusals(void)
{
    struct execution_request request = request_for("python", "print(1)");
    struct execution_pair env[] = {{"LD_PRELOAD", "/tmp/x.so"}};
    request.env = env;
    request.env_count = 1;
    is_refused(&request, "env 'LD_PRELOAD'", "a variable that steers the linker");
    request = request_for("python", "print(1)");
    struct execution_file file = {"main.py", {"", 0}, false};
    request.files = &file;
    request.file_count = 1;
    is_refused(&request, "where the code is", "a file in the code's place");
    request = request_for("python", "print(1)");
    request.work_dir = "/tmp";
    is_refused(&request, "that is for agents", "a work_dir for code");
    request = request_for("python", "print(1)");
    request.network = true;
    is_refused(&request, "the whole network is not permitted", "the network at large");
    const char *allow[] = {"host:22"};
    request = request_for("python", "print(1)");
    request.network = true;
    request.allow = allow;
    request.allow_count = 1;
    is_refused(&request, "'host:22' is not a host name", "a service of the host");
}

static void test_output(void)
{
    const struct execution_result *result =
        run_code(&rig, "bash", "head -c 1048576 /dev/zero; head -c 262144 /dev/zero >&2");
    tap_is_int((long)result->output.length, 1048576, "as much as is kept");
    tap_ok(!result->output_truncated && !result->error_output_truncated, "is not cut");
    result = run_code(&rig, "bash", "head -c 1048577 /dev/zero; head -c 262145 /dev/zero >&2");
    tap_is_int((long)result->output.length, 1048576, "one more");
    tap_ok(result->output_truncated && result->error_output_truncated, "is, on both");
    is_status(result, EXECUTION_OK, "and all is well");
    result = run_code(&rig, "bash", "yes");
    is_status(result, EXECUTION_OUTPUT_LIMIT, "what writes without end is ended");
    tap_is_int(result->exit_code, -1, "without an exit code");
}

static void test_stream(void)
{
    struct execution_request request = request_for("bash", "echo first; echo e >&2; sleep 60");
    request.stream = true;
    uint64_t tag = send_request(&rig, &request);
    tap_ok(wait_for(&rig, has_output, tag), "output comes while it runs");
    tap_ok(!is_done(&rig, tag), "before its end");
    (void)channel_send(rig.http, MESSAGE_CANCEL, tag, NULL, 0, NULL);
    tap_ok(wait_for(&rig, is_done, tag), "a client that goes away");
    is_status(&rig.answers[tag].result, EXECUTION_KILLED, "ends it");
    tap_is_str(rig.answers[tag].out[0].data, "first\n", "with what was written");
    request = request_for("bash", "head -c 3000000 /dev/zero");
    request.stream = true;
    const struct answer *answer = execute(&rig, &request);
    tap_is_int((long)answer->out[0].length, EXECUTION_OUTPUT_MAX, "a stream has the same bounds");
    request = request_for("bash", "echo x");
    tap_is_int((long)execute(&rig, &request)->pieces, 0, "who did not ask for it gets none");
}

static void test_kill(void)
{
    struct execution_request request = request_for("bash", "echo x; sleep 60");
    request.stream = true;
    uint64_t tag = send_request(&rig, &request);
    (void)wait_for(&rig, has_output, tag);
    const char *id = rig.answers[tag].id;
    rig.killed = -1;
    (void)channel_send(rig.http, MESSAGE_KILL, 1, id, EXECUTION_ID_LENGTH, NULL);
    tap_ok(wait_for(&rig, is_answered, 0) && rig.killed == 1, "what runs can be ended by its id");
    tap_ok(wait_for(&rig, is_done, tag), "and ends");
    is_status(&rig.answers[tag].result, EXECUTION_KILLED, "killed");
    rig.killed = -1;
    (void)channel_send(rig.http, MESSAGE_KILL, 1, id, EXECUTION_ID_LENGTH, NULL);
    tap_ok(wait_for(&rig, is_answered, 0) && rig.killed == 0, "what does not run cannot");
}

/* A http process in a stranger's hands would like to write over a row whose id it knows. */
static void test_ids(void)
{
    struct execution_request request = request_for("bash", "echo x");
    const struct answer *answer = execute(&rig, &request);
    char first[EXECUTION_ID_LENGTH + 1];
    (void)snprintf(first, sizeof first, "%s", answer->result.id);
    tap_is_str(answer->id, first, "a run is given an id, and the http process is told first");
    request.id = first;
    answer = execute(&rig, &request);
    is_output(&answer->result, "x\n", "one that brings the id of another runs");
    tap_ok(strcmp(answer->result.id, first) != 0 && strcmp(answer->id, answer->result.id) == 0,
           "with one of its own");
    (void)wait_for(&rig, has_row_of, rig.tag);
    tap_ok(strcmp(rig.last_row.id, first) != 0, "which its row has");
}

static bool is_inherited(struct rig *of, uint64_t count)
{
    return of->gauges.inherited == count;
}

static void test_inherited(void)
{
    struct execution_request request = request_for("bash", "echo x; sleep 60");
    char id[EXECUTION_ID_LENGTH + 1];
    request.stream = true;
    uint64_t tag = send_request(&rig, &request);
    (void)wait_for(&rig, has_output, tag);
    (void)snprintf(id, sizeof id, "%s", rig.answers[tag].id);
    tap_ok(rig.gauges.inherited == 0, "what a http process has begun is its own");
    channel_free(rig.http);
    rig.http = connect_peer(&rig, ROLE_HTTP);
    tap_ok(wait_for(&rig, is_inherited, 1), "the next one is told of it");
    is_output(run_code(&rig, "bash", "echo own"), "own\n", "its own do not count");
    tap_ok(rig.gauges.inherited == 1, "among these");
    (void)channel_send(rig.http, MESSAGE_KILL, 1, id, EXECUTION_ID_LENGTH, NULL);
    tap_ok(wait_for(&rig, is_inherited, 0), "until it has ended");
}

static void test_keys(void)
{
    struct execution_request request = request_for("bash", "echo x; sleep 60");
    uint64_t tags[3];
    request.stream = true;
    request.domain = "0123456789abcdef";
    for (int i = 0; i < 3; i++) {
        tags[i] = send_request(&rig, &request);
        (void)wait_for(&rig, has_output, tags[i]);
    }
    const struct execution_result *refused = &execute(&rig, &request)->result;
    is_status(refused, EXECUTION_SETUP_FAILED, "a key has as many as it may have");
    tap_is_int(refused->fault, FAULT_BUSY, "and may come again");
    struct execution_request other = request_for("bash", "echo y");
    other.domain = "fedcba9876543210";
    is_output(&execute(&rig, &other)->result, "y\n", "another key has its own");
    for (int i = 0; i < 3; i++)
        (void)channel_send(rig.http, MESSAGE_CANCEL, tags[i], NULL, 0, NULL);
    for (int i = 0; i < 3; i++)
        (void)wait_for(&rig, is_done, tags[i]);
    request.code = (struct execution_bytes){"echo z", 6};
    is_output(&execute(&rig, &request)->result, "z\n", "and then it may again");
}

static bool is_idle(struct rig *of, uint64_t argument)
{
    (void)argument;
    return of->gauges.active == 0;
}

static void test_told(void)
{
    (void)run_code(&rig, "bash", "true");
    tap_has_str(rig.runtimes, "\"name\":\"python\"", "a http process is told of the runtimes");
    tap_has_str(rig.runtimes, "\"package\":\"no-such-package\"", "and of what is missing");
    tap_ok(wait_for(&rig, is_idle, 0), "the gauges go back to nothing");
    tap_is_int(rig.rows[0], MESSAGE_NEW_EXECUTOR,
               "a history process first hears of a new executor");
    (void)wait_for(&rig, has_row_of, rig.tag);
    size_t before = rig.row_count;
    (void)run_code(&rig, "bash", "true");
    tap_ok(wait_for(&rig, has_rows, before + 2), "then of each run twice");
    tap_is_int(rig.rows[before], MESSAGE_BEGIN, "its beginning");
    tap_is_int(rig.rows[before + 1], MESSAGE_END, "and its end");
    autofree char *large = calloc(1, EXECUTION_VALUE_MAX + 1);
    struct execution_pair pairs[] = {{"A", large}, {"B", large}};
    const char *args[] = {large, large};
    struct execution_request request = request_for("bash", "echo ${#A} $# ${#1}");
    memset(large, 'x', EXECUTION_VALUE_MAX);
    request.env = pairs;
    request.args = args;
    request.env_count = request.arg_count = 2;
    before = rig.row_count;
    is_output(&execute(&rig, &request)->result, "32768 2 32768\n", "what it is given may be much");
    (void)wait_for(&rig, has_rows, before + 2);
    tap_ok(rig.begin_bytes < 1024, "but is not kept for the history: %zu bytes", rig.begin_bytes);
}

/* ---- others die ---- */

static void test_history_dies(void)
{
    (void)run_code(&rig, "bash", "true");
    (void)wait_for(&rig, has_row_of, rig.tag);
    rig.deaf = true;
    size_t before = rig.row_count;
    (void)run_code(&rig, "bash", "true");
    (void)wait_for(&rig, has_rows, before + 2);
    channel_free(take_ptr(&rig.history));
    is_output(run_code(&rig, "bash", "echo x"), "x\n", "without a history process runs go on");
    rig.deaf = false;
    before = rig.row_count;
    rig.history = connect_peer(&rig, ROLE_HISTORY);
    tap_ok(wait_for(&rig, has_rows, before + 4), "a new one hears of all that was not safe");
    tap_is_int(rig.rows[before], MESSAGE_BEGIN, "in order");
    tap_is_int(rig.rows[before + 3], MESSAGE_END, "to the last");
    before = rig.row_count;
    (void)run_code(&rig, "bash", "true");
    (void)wait_for(&rig, has_rows, before + 2);
    (void)run_code(&rig, "bash", "true"); /* by now the first is known to be safe */
    (void)wait_for(&rig, has_rows, before + 4);
    channel_free(rig.history);
    rig.history = connect_peer(&rig, ROLE_HISTORY);
    before = rig.row_count;
    (void)run_code(&rig, "bash", "true");
    (void)wait_for(&rig, has_rows, before + 2);
    tap_ok(rig.row_count - before <= 4, "and not again of what was");
}

/* Waits for the executor to close the http process's channel. */
static bool is_cut_off(void)
{
    int got = 1;
    while (got >= 0 && await_readable(channel_fd(rig.http))) {
        automessage struct message message = {.fd = -1};
        got = channel_receive(rig.http, &message, NULL);
    }
    channel_free(rig.http);
    rig.http = connect_peer(&rig, ROLE_HTTP);
    return got < 0;
}

static void test_http_dies(void)
{
    struct execution_request request = request_for("bash", "echo x; sleep 1; echo y");
    request.stream = true;
    (void)wait_for(&rig, has_row_of, rig.tag);
    size_t before = rig.row_count;
    uint64_t tag = send_request(&rig, &request);
    (void)wait_for(&rig, has_output, tag);
    channel_free(take_ptr(&rig.http));
    tap_ok(wait_for(&rig, has_rows, before + 2),
           "a run whose http process died goes on to its end");
    tap_is_int(rig.last_row.status, EXECUTION_OK, "which is in the history");
    tap_is_str(rig.last_row.output.data, "x\ny\n", "with its output");
    free(take_ptr(&rig.runtimes));
    rig.http = connect_peer(&rig, ROLE_HTTP);
    is_output(run_code(&rig, "bash", "echo again"), "again\n", "a new http process is served");
    tap_ok(rig.runtimes != NULL, "and told of the runtimes");
    (void)channel_send(rig.http, MESSAGE_EXECUTE, 1, "nonsense", 8, NULL);
    tap_ok(is_cut_off(), "one that talks nonsense is cut off");
    (void)channel_send(rig.http, MESSAGE_STORED, 1, NULL, 0, NULL);
    tap_ok(is_cut_off(), "as is one that says what is not its to say");
    is_output(run_code(&rig, "bash", "echo again"), "again\n", "and the next one is served");
}

/* Whether a process has used no CPU time since the last looks. */
static bool uses_no_cpu(pid_t pid)
{
    static unsigned long long before;
    static int quiet;
    char path[32], text[512] = "";
    unsigned long long user = 0, system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *end = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strrchr(text, ')') : NULL;
    if (end)
        (void)sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
                     &system);
    quiet = user + system == before ? quiet + 1 : 0;
    before = user + system;
    bool enough = quiet >= 50;
    if (enough)
        quiet = 0; /* the next question is about another time */
    return enough;
}

/* A http process that does not read is not read for, and loses nothing once it does. */
static void test_slow_http(void)
{
    enum { RUNS = 24 };
    uint64_t tags[RUNS];
    for (int i = 0; i < RUNS; i++) {
        struct execution_request request = request_for("bash", "head -c 1000000 /dev/zero");
        request.stream = true;
        tags[i] = send_request(&rig, &request);
    }
    /* Nothing is read until the executor has sent what goes into the socket, and waits. */
    tap_ok(await_readable(channel_fd(rig.http)) && await(uses_no_cpu(rig.executor)),
           "the executor waits for a http process that does not read");
    bool all = true;
    for (int i = 0; i < RUNS; i++)
        all = wait_for(&rig, is_done, tags[i]) && rig.answers[tags[i]].out[0].length == 1000000 &&
              all;
    tap_ok(all, "a http process that was slow has all of it in the end");
}

static bool is_begun(struct rig *of, uint64_t tag)
{
    return of->answers[tag].id[0] != '\0';
}

/* Asks for the output so far. Returns the length of the answer. */
static size_t peek(const char *id)
{
    (void)channel_send(rig.http, MESSAGE_PEEK, UINT64_MAX, id, strlen(id), NULL);
    for (;;) {
        automessage struct message message = {.fd = -1};
        if (channel_wait(rig.http, await_ms(), &message) <= 0)
            tap_bail("no answer");
        if (message.type == MESSAGE_PEEKED)
            return message.length;
    }
}

/* The same with questions, each of which has a long answer: those that wait are not read. */
static void test_slow_asker(void)
{
    enum { QUESTIONS = 300 }; /* of 1 MB each: more than a queue takes */
    struct execution_request request = request_for("bash", "head -c 1000000 /dev/zero; sleep 600");
    request.timeout_ms = 600000;
    struct message message = {.fd = -1};
    int answers = 0;
    uint64_t tag = send_request(&rig, &request);
    char id[EXECUTION_ID_LENGTH + 1];
    if (!wait_for(&rig, is_begun, tag))
        tap_bail("no run");
    memcpy(id, rig.answers[tag].id, sizeof id);
    tap_ok(await(peek(id) > 1000000), "a run has written much");
    for (uint64_t i = 0; i < QUESTIONS; i++)
        (void)channel_send(rig.http, MESSAGE_PEEK, 1000000 + i, id, strlen(id), NULL);
    (void)channel_send(rig.supervisor, MESSAGE_PING, 77, NULL, 0, NULL);
    while (message.type != MESSAGE_PONG && await_readable(channel_fd(rig.supervisor))) {
        message_done(&message);
        if (channel_receive(rig.supervisor, &message, NULL) < 0)
            break;
    }
    tap_ok(message.type == MESSAGE_PONG,
           "the executor goes on while a http process asks and does not read");
    message_done(&message);
    while (answers < QUESTIONS && channel_flush(rig.http, NULL) == 0 &&
           channel_wait(rig.http, await_ms(), &message) > 0) {
        answers += message.type == MESSAGE_PEEKED && message.length > 1000000;
        message_done(&message);
    }
    tap_is_int(answers, QUESTIONS, "and all questions are answered once it reads");
    (void)channel_send(rig.http, MESSAGE_CANCEL, tag, NULL, 0, NULL);
    tap_ok(wait_for(&rig, is_done, tag), "its run is ended");
}

static bool has_socket(pid_t pid, ino_t inode)
{
    char path[64], wanted[64], target[64];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    (void)snprintf(wanted, sizeof wanted, "socket:[%lu]", (unsigned long)inode);
    autodir DIR *fds = opendir(path);
    for (const struct dirent *entry; fds && !found && (entry = readdir(fds));) {
        ssize_t length = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        found = strcmp(target, wanted) == 0;
    }
    return found;
}

/* Connects a new http process. Returns the inode of the executor's socket. */
static ino_t connect_http(void)
{
    int ends[2];
    struct stat info;
    channel_free(take_ptr(&rig.http));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        fstat(ends[1], &info) < 0 || channel_new(&ends[0], &rig.http, NULL) < 0 ||
        channel_send_fd(rig.supervisor, MESSAGE_PEER, ROLE_HTTP, ends[1], NULL) < 0)
        tap_bail("no http process");
    (void)close(ends[1]);
    return info.st_ino;
}

/* A http process that was taken over can end its socket and stay, with answers in it. */
static void test_shut_down(void)
{
    struct execution_request request =
        request_for("bash", "head -c 1000000 /dev/zero; exec sleep 600");
    request.timeout_ms = 600000;
    char id[EXECUTION_ID_LENGTH + 1];
    ino_t inode = connect_http();
    uint64_t tag = send_request(&rig, &request);
    if (!wait_for(&rig, is_begun, tag))
        tap_bail("no run");
    memcpy(id, rig.answers[tag].id, sizeof id);
    tap_ok(await(peek(id) > 1000000), "a run has written much");
    for (uint64_t i = 0; i < 40; i++)
        (void)channel_send(rig.http, MESSAGE_PEEK, i, id, strlen(id), NULL);
    tap_ok(await_readable(channel_fd(rig.http)) && await(uses_no_cpu(rig.executor)),
           "its answers wait for a http process that does not read");
    (void)shutdown(channel_fd(rig.http), SHUT_RDWR);
    tap_ok(await(!has_socket(rig.executor, inode)),
           "the executor closes a socket that was ended so");
    (void)connect_http();
    rig.killed = -1;
    (void)channel_send(rig.http, MESSAGE_KILL, 1, id, EXECUTION_ID_LENGTH, NULL);
    tap_ok(wait_for(&rig, is_answered, 0) && rig.killed == 1, "the next one can end the run");
}

/* Sends what the http process has to send, and takes what there is for it. Returns how many
 * requests were told to come later. */
static int hear_http(void)
{
    int refused = 0;
    struct pollfd ready = {.fd = channel_fd(rig.http),
                           .events = channel_wants_write(rig.http) ? POLLIN | POLLOUT : POLLIN};
    (void)poll(&ready, 1, AWAIT_PAUSE_MS);
    (void)channel_flush(rig.http, NULL);
    for (;;) {
        automessage struct message message = {.fd = -1};
        if (channel_receive(rig.http, &message, NULL) <= 0)
            return refused;
        refused += message.type == MESSAGE_REPEATED && message.bytes[0] == VERDICT_LATER;
        if (message.type == MESSAGE_GAUGES)
            memcpy(&rig.gauges, message.bytes, sizeof rig.gauges);
    }
}

/* Answers what the executor asks the history process. Returns how many answers were sent. */
static int refuse_reservations(void)
{
    const char later = (char)VERDICT_LATER;
    for (int count = 0;; count++) {
        automessage struct message message = {.fd = -1};
        if (channel_receive(rig.history, &message, NULL) <= 0)
            return count;
        if (message.type == MESSAGE_RESERVE)
            (void)channel_send(rig.history, MESSAGE_CLAIMED, message.tag, &later, 1, NULL);
    }
}

/* More waits for the history process than a queue takes. */
static void test_slow_history(void)
{
    enum { REQUESTS = 160 };
    static char code[1000000];
    char key[16];
    int refused = 0, answered = 0;
    memset(code, '#', sizeof code - 1);
    for (int i = 0; i < REQUESTS; i++) {
        struct execution_request request = request_for("bash", code);
        (void)snprintf(key, sizeof key, "key-%d", i);
        request.idempotency_key = key;
        request.body_sha256 = "0";
        while (channel_is_busy(rig.http))
            refused += hear_http();
        (void)send_request(&rig, &request);
    }
    tap_ok(await((refused += hear_http(), rig.gauges.waiting == REQUESTS)),
           "all requests wait for a history process that does not read");
    tap_ok(await((refused += hear_http(), answered += refuse_reservations(), answered >= REQUESTS)),
           "it gets all of them once it reads");
    tap_ok(await((refused += hear_http(), refused >= REQUESTS)), "and each has an answer");
    is_output(run_code(&rig, "bash", "echo 1"), "1\n", "and the executor works");
}

static void test_drain(void)
{
    struct execution_request request = request_for("bash", "echo begun; sleep 1; echo done");
    request.stream = true;
    uint64_t tag = send_request(&rig, &request);
    (void)wait_for(&rig, has_output, tag);
    tap_is_int(rig_drain(&rig), 0, "an executor that is told to drain ends well");
    tap_ok(is_done(&rig, tag), "with the answer to what ran");
    is_status(&rig.answers[tag].result, EXECUTION_OK, "which was not cut short");
    rig.config.server.drain_timeout_ms = 300;
    rig_start(&rig);
    request = request_for("bash", "echo x; sleep 60");
    request.stream = true;
    tag = send_request(&rig, &request);
    (void)wait_for(&rig, has_output, tag);
    tap_is_int(rig_drain(&rig), 0, "one that is impatient");
    tap_ok(is_done(&rig, tag), "ends what runs");
    is_status(&rig.answers[tag].result, EXECUTION_KILLED, "and says so");
    tap_is_int(rmdir(rig.state_dir), 0, "nothing is left in its state directory");
}

int main(int argc, char **argv)
{
    static const struct rig_test tests[] = {
        {"languages", test_languages},
        {"request", test_request},
        {"inside", test_inside},
        {"denials", test_denials},
        {"limits", test_limits},
        {"refusals", test_refusals},
        {"output", test_output},
        {"stream", test_stream},
        {"kill", test_kill},
        {"ids", test_ids},
        {"inherited", test_inherited},
        {"keys", test_keys},
        {"told", test_told},
        {"history-dies", test_history_dies},
        {"http-dies", test_http_dies},
        {"slow-http", test_slow_http},
        {"slow-asker", test_slow_asker},
        {"shut-down", test_shut_down},
        {"slow-history", test_slow_history},
        {"drain", test_drain},
    };
    need_interpreters();
    rig_config(&rig);
    rig.config.security.max_executions_per_key = 3;
    rig_start(&rig);
    run_tests(tests, ARRAY_LENGTH(tests), argc, argv);
    if (rig.supervisor)
        (void)rig_drain(&rig);
    rig_done(&rig);
    return tap_done();
}
