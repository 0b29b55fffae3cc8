/* SPDX-License-Identifier: MIT */
/* Executions with a compile stage and a run stage, and those with input while they run. */
#include "executor_support.h"

static struct rig rig;

static const char hello[] = "#include <stdio.h>\n"
                            "int main(){puts(\"out\"); fflush(stdout); fputs(\"err\\n\", stderr);}";

static struct execution_request staged(const char *code)
{
    struct execution_request request = request_for("c", code);
    request.ordered = true;
    return request;
}

static const struct execution_result *run_staged(const char *code)
{
    struct execution_request request = staged(code);
    return &execute(&rig, &request)->result;
}

static void test_both(void)
{
    const struct execution_result *result = run_staged("#warning careful\n#include <stdio.h>\n"
                                                       "int main(){puts(\"out\"); return 3;}");
    autostr struct str text = {0};
    is_status(result, EXECUTION_ERROR, "the code ran");
    tap_is_int(result->stage, STAGE_RUN, "in the run stage");
    tap_is_int(result->exit_code, 3, "with its exit code");
    tap_is_str(result->output.data, "out\n", "and its output");
    tap_is_int((long)result->error_output.length, 0, "without the compiler's");
    if (!result->compile) {
        tap_fail("there was a compile stage");
        return;
    }
    is_status(result->compile, EXECUTION_OK, "the compiler ended well");
    tap_is_int(result->compile->exit_code, 0, "with its own exit code");
    tap_has_str(result->compile->error_output.data, "careful", "and output");
    tap_ok(result->compile->cpu_time_us > 0 && result->compile->duration_us > 0 &&
               result->cpu_time_us < result->compile->cpu_time_us,
           "and times");
    tap_ok(result->compile->memory_peak_bytes > result->memory_peak_bytes, "and memory");
    execution_interleave(result->compile, &text);
    tap_has_str(text.data, "careful", "its output in order");
}

static void test_failure(void)
{
    const struct execution_result *result = run_staged("int main() { return x; }");
    is_status(result, EXECUTION_ERROR, "a program that does not compile");
    tap_is_int(result->stage, STAGE_COMPILE, "does not run");
    tap_ok(!result->compile, "the result is that of the compiler");
    tap_has_str(result->error_output.data, "main.c", "with its words");
    const char *arguments[] = {"-fsyntax-only"};
    struct execution_request request = staged(hello);
    request.compile_args = arguments;
    request.compile_arg_count = 1;
    result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_ERROR, "a compiler that makes no program");
    tap_is_int(result->exit_code, 127, "is followed by none");
    tap_ok(result->stage == STAGE_RUN && result->compile && strstr(result->message, "/tmp/main"),
           "and it says so");
    result = run_staged("int main() { *(volatile int *)0 = 1; }");
    is_status(result, EXECUTION_ERROR, "a program that crashes");
    tap_is_int(result->signal, SIGSEGV, "has its signal");
    tap_is_int(result->stage, STAGE_RUN, "and was compiled");
}

static void test_order(void)
{
    /* Each byte is read before the next is written. */
    const struct execution_result *result = run_staged(
        "#include <sys/ioctl.h>\n#include <unistd.h>\nvoid say(int fd, char *t)\n"
        "{ int n = write(fd, t, 1); while (!ioctl(fd, FIONREAD, &n) && n) usleep(1000); }\n"
        "int main(){say(1,\"a\");say(2,\"b\");say(1,\"c\");say(1,\"d\");say(2,\"e\");}");
    autostr struct str text = {0};
    execution_interleave(result, &text);
    tap_is_str(text.data, "abcde", "output is in order of arrival");
    tap_is_str(result->output.data, "acd", "and by stream");
    tap_is_int((long)result->order_count, 4, "neighbours are one piece");
    struct execution_request request = request_for("bash", "echo a; echo b >&2; exit 0");
    request.ordered = true;
    result = &execute(&rig, &request)->result;
    tap_is_int((long)result->order_count, 2, "also without a compiler");
}

/* /workspace and /tmp stay, processes do not. */
static void test_jail(void)
{
    struct execution_file files[] = {{"more.c", {"int seven(void){return 7;}", 26}, false},
                                     {"more.h", {"int seven(void);", 16}, false},
                                     {"data.txt", {"data", 4}, false}};
    static const char code[] =
        "#include <stdio.h>\n#include \"more.h\"\n"
        "int main(int c, char **v){char b[9]={0}; FILE *f=fopen(\"data.txt\",\"r\"); "
        "fread(b,1,8,f);"
        "f=fopen(\"new.txt\",\"w\"); printf(\"%d %s %s %s %d %d\\n\", seven(), b, f?\"w\":\"r\", "
        "c>1?v[1]:\"\", N, getchar());}";
    const char *args[] = {"one"}, *compile_args[] = {"-DN=5"};
    struct execution_request request = staged(code);
    request.files = files;
    request.file_count = 3;
    request.args = args;
    request.arg_count = 1;
    request.compile_args = compile_args;
    request.compile_arg_count = 1;
    request.main = "deep/own.c";
    request.stdin_bytes = (struct execution_bytes){"A", 1};
    files[0].name = "deep/more.c";
    files[1].name = "deep/more.h";
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_output(result, "7 data w one 5 65\n", "files, arguments and input arrive");
}

static void test_limits(void)
{
    struct execution_request request = staged("int main(){for(;;);}");
    request.cpu_ms = 200;
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_CPU_TIMEOUT, "the run stage has a limit of CPU time");
    tap_ok(result->compile && result->compile->status == EXECUTION_OK, "after compiling");
    request = staged("int main(){for(;;);}");
    request.timeout_ms = 300;
    is_status(&execute(&rig, &request)->result, EXECUTION_TIMEOUT, "and one of time");
    request = staged("#include <stdlib.h>\n#include <string.h>\n"
                     "int main(){for(;;) memset(malloc(1<<20), 1, 1<<20);}");
    request.limits[EXECUTION_MEMORY_MB] = 32;
    is_status(&execute(&rig, &request)->result, EXECUTION_OOM, "and of memory");
    request = staged("#define A 1,1,1,1,1,1,1,1,1,1,\n#define B A A A A A A A A A A\n"
                     "#define C B B B B B B B B B B\n#define D C C C C C C C C C C\n"
                     "int x[] = {D D D D D D D D D D}; int main(){}");
    request.compile.memory_mb = 8;
    result = &execute(&rig, &request)->result;
    tap_is_int(result->stage, STAGE_COMPILE, "the compiler has its own limit of memory");
    request = staged("#include \"/dev/stdin\"\n#include \"/proc/self/fd/0\"\nint main(){}");
    is_status(&execute(&rig, &request)->result, EXECUTION_OK, "the compiler has no input");
    request = staged("#include <stdio.h>\nint main(){for(;;) puts(\"much\");}");
    request.output_bytes = 10;
    result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_OUTPUT_LIMIT, "output has a limit, if one is asked for");
    tap_ok(result->output_truncated && !result->error_output_truncated, "which stream is known");
    tap_is_int((long)result->output.length, 10, "and the beginning is there");
    request = staged("#define X X X\nint main(){ X; return x; }");
    request.compile.output_bytes = 20;
    result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_OUTPUT_LIMIT, "so has the compiler's");
    tap_is_int((long)result->error_output.length, 20, "of its own");
    request = staged(hello);
    request.compile.timeout_ms = 700000;
    result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_SETUP_FAILED, "a limit above the maximum is refused");
    tap_is_str(result->field, "compile.timeout", "by its name");
    request.compile.timeout_ms = 0;
    request.compile.memory_mb = 4;
    tap_is_str(execute(&rig, &request)->result.field, "compile.memory_mb", "as is one too low");
}

static void test_single(void)
{
    struct execution_request request = request_for("bash", "while :; do :; done");
    request.cpu_ms = 200;
    is_status(&execute(&rig, &request)->result, EXECUTION_CPU_TIMEOUT,
              "CPU time is limited without a compiler, too");
    request = request_for("python", "import sys; print(sys.argv[0]); open('x', 'w').write('y')");
    request.main = "own name.py";
    is_output(&execute(&rig, &request)->result, "/workspace/own name.py\n",
              "the code has the name that was asked for");
}

static void test_stream(void)
{
    struct execution_request request = staged(hello);
    request.stream = true;
    const struct answer *answer = execute(&rig, &request);
    tap_is_str(answer->stages, " +compile -compile=0/0 +run -run=0/0", "stages are told");
    tap_is_str(answer->out[0].data, "out\n", "with the output");
    request.code = (struct execution_bytes){"x", 1};
    tap_is_str(execute(&rig, &request)->stages, " +compile -compile=1/0", "also one that fails");
}

static bool has_line(struct rig *of, uint64_t tag)
{
    const struct str *out = &of->answers[tag % DONES_MAX].out[0];
    return out->length > 0 && out->data[out->length - 1] == '\n';
}

static void say(uint64_t tag, const char *text)
{
    str_done(&rig.answers[tag % DONES_MAX].out[0]);
    (void)channel_send(rig.http, MESSAGE_INPUT, tag, text, strlen(text), NULL);
}

static void talk(const char *language, const char *code)
{
    struct execution_request request = request_for(language, code);
    const char term = SIGTERM;
    request.stream = request.interactive = true;
    uint64_t tag = send_request(&rig, &request);
    const struct answer *answer = &rig.answers[tag % DONES_MAX];
    say(tag, "one\n"); /* before it runs */
    tap_ok(wait_for(&rig, has_line, tag), "%s: an answer comes", language);
    tap_is_str(answer->out[0].data, "<one>\n", "%s: to what was said", language);
    say(tag, "two\n");
    tap_ok(wait_for(&rig, has_line, tag), "%s: and another", language);
    tap_is_str(answer->out[0].data, "<two>\n", "%s: to the next", language);
    (void)channel_send(rig.http, MESSAGE_SIGNAL, tag, &term, 1, NULL);
    tap_ok(wait_for(&rig, is_done, tag), "%s: a signal ends it", language);
    tap_is_int(answer->result.signal, SIGTERM, "%s: as it is", language);
}

static void test_interactive(void)
{
    talk("bash", "while read -r x; do echo \"<$x>\"; done");
    talk("c", "#include <stdio.h>\nint main(){char b[99]; while(scanf(\"%98s\", b)==1)"
              "{printf(\"<%s>\\n\", b); fflush(stdout);}}");
    struct execution_request request = request_for("bash", "sleep 1000");
    request.stream = request.interactive = true;
    uint64_t tag = send_request(&rig, &request);
    static char much[40000];
    for (int i = 0; i < 40 && !is_done(&rig, tag); i++)
        (void)channel_send(rig.http, MESSAGE_INPUT, tag, much, sizeof much, NULL);
    tap_ok(wait_for(&rig, is_done, tag), "a run that does not read its input");
    is_status(&rig.answers[tag % DONES_MAX].result, EXECUTION_KILLED, "is ended");
    tap_has_str(rig.answers[tag % DONES_MAX].result.message, "standard input", "and it says why");
}

static void test_events(void)
{
    const struct execution_result *result =
        run_staged("#include <sys/ptrace.h>\nint main(){return ptrace(PTRACE_TRACEME) == -1;}");
    tap_is_int(result->exit_code, 1, "a refused call fails in a stage");
    tap_ok(result->event_count == 1 && strstr(result->events[0].detail, "ptrace"),
           "and is an event");
}

static void test_cancel(void)
{
    struct execution_request request = staged("int main(){for(;;);}");
    request.stream = true;
    uint64_t tag = send_request(&rig, &request);
    (void)channel_send(rig.http, MESSAGE_CANCEL, tag, NULL, 0, NULL);
    tap_ok(wait_for(&rig, is_done, tag), "a client that goes away");
    is_status(&rig.answers[tag % DONES_MAX].result, EXECUTION_KILLED, "ends the compiler");
    struct execution_file wide[] = {{"main.c", {"", 0}, false}};
    request = staged(hello);
    request.files = wide;
    request.file_count = 1;
    tap_is_str(execute(&rig, &request)->result.field, "files", "a file in place of the code");
    request.main = "other.c";
    is_status(&execute(&rig, &request)->result, EXECUTION_OK, "is fine if the code has another");
}

int main(int argc, char **argv)
{
    static const struct rig_test tests[] = {
        {"both", test_both},     {"failure", test_failure},         {"order", test_order},
        {"jail", test_jail},     {"limits", test_limits},           {"single", test_single},
        {"stream", test_stream}, {"interactive", test_interactive}, {"cancel", test_cancel},
        {"events", test_events},
    };
    need_interpreters();
    rig_config(&rig);
    rig_start(&rig);
    run_tests(tests, ARRAY_LENGTH(tests), argc, argv);
    tap_is_int(rig_drain(&rig), 0, "the executor ends");
    rig_done(&rig);
    return tap_done();
}
