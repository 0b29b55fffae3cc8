/* SPDX-License-Identifier: MIT */
/* The public API as its users see it: what a run answers, what goes in and what comes out, and
 * what is enforced. Works as root and as an ordinary user. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "job_support.h"

#define MEBIBYTE (1u << 20)

/* ---- What a run answers ------------------------------------------------------------------- */

static void test_exits(void)
{
    static const int codes[] = {0, 1, 7, 125, 127, 255};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char script[32], name[64];
        (void)snprintf(script, sizeof(script), "exit %d", codes[i]);
        (void)snprintf(name, sizeof(name), "a command that exits with %d", codes[i]);
        tap_is_int(run_shell(policy, script, &result), 0, "%s: the run works", name);
        is_exit(&result, codes[i], name);
        tap_is_int(brig_result_status(&result), codes[i], "%s: so does the status", name);
        result_done(&result);
    }
    (void)run_shell(policy, "echo out; echo err >&2; exit 3", &result);
    is_exit(&result, 3, "output does not change the exit code");
    tap_is_str(result.out.data, "out\n", "stdout is captured, with a NUL after it");
    tap_is_str(result.err.data, "err\n", "stderr is captured apart");
    tap_ok(!result.out.truncated && !result.err.truncated, "nothing is marked as truncated");
    tap_is_int(result.usage.out_bytes[0], 4, "the bytes of stdout are counted");
    tap_ok(result.usage.wall_us > 0, "wall time is measured");
    char *json = NULL;
    tap_is_int(brig_result_json(&result, &json, NULL), 0, "a result can be told as JSON");
    tap_has_str(json, "exited", "the JSON names the outcome");
    free(json);
    result_done(&result);
    /* tail keeps the one line it gets. */
    (void)run_shell(policy, "head -c 64000000 /dev/zero | tail >/dev/null", &result);
    tap_ok(result.usage.peak_memory_bytes > 60000000, "the peak memory of a large command is told");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_signals(void)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGSEGV, SIGABRT};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        char script[32];
        (void)snprintf(script, sizeof(script), "kill -%d $$", signals[i]);
        (void)run_shell(policy, script, &result);
        is_outcome(&result, BRIG_SIGNALLED, "a signal that ends the command is told");
        tap_is_int(result.signal, signals[i], "it is the right signal");
        tap_is_int(result.exit_code, -1, "there is no exit code then");
        tap_is_int(brig_result_status(&result), 128 + signals[i], "the status is 128 and it");
        result_done(&result);
    }
    brig_policy_free(policy);
}

static void cannot_run(const char *program, int code, int status, const char *name)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    struct brig_result result;
    const char *const argv[] = {program, NULL};
    const struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    tap_is_int(job_run(policy, &command, &result, &err), code, "%s: the code says so", name);
    is_outcome(&result, BRIG_SETUP_FAILED, "the outcome is that nothing ran");
    tap_is_int(result.error.code, code, "%s: the result has the error as well", name);
    tap_is_int(brig_result_status(&result), status, "%s: status %d", name, status);
    tap_has_str(err.message, program, "%s: the message names it", name);
    result_done(&result);
    tap_is_int(job_run(policy, &command, &result, NULL), code, "%s: without an error too", name);
    result_done(&result);
    struct brig_job *job = NULL;
    tap_is_int(brig_start(policy, &command, &job, &err), code, "%s: brig_start agrees", name);
    tap_ok(job == NULL, "%s: and gives no job", name);
    brig_policy_free(policy);
}

static void test_not_runnable(void)
{
    cannot_run("/no/such/program", BRIG_E_NOT_FOUND, 127, "a missing path");
    cannot_run("no-such-program-anywhere", BRIG_E_NOT_FOUND, 127, "a missing name");
    cannot_run("/etc/passwd", BRIG_E_NOT_EXEC, 126, "a file that is no program");
    cannot_run("/usr", BRIG_E_NOT_EXEC, 126, "a directory");
}

static void refused(struct brig_command command, const char *name)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    struct brig_result result;
    tap_is_int(job_run(policy, &command, &result, &err), BRIG_E_INVALID, "%s is refused", name);
    tap_ok(err.message[0] != '\0', "%s: with words", name);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_bad_commands(void)
{
    static const char *const none[] = {NULL};
    static const char *const empty[] = {"", NULL};
    static const char *const argv[] = {"/bin/true", NULL};
    static struct brig_pass_fd many[BRIG_PASS_FD_MAX + 1];
    const struct brig_pass_fd low = {0, 2}, high = {0, 256}, closed = {-1, 5};
    for (int i = 0; i <= BRIG_PASS_FD_MAX; i++)
        many[i] = (struct brig_pass_fd){0, 3 + i};
    refused((struct brig_command){.size = sizeof(struct brig_command), .argv = NULL},
            "a command without words");
    refused((struct brig_command){.size = sizeof(struct brig_command), .argv = none},
            "a command of no words");
    refused((struct brig_command){.size = sizeof(struct brig_command), .argv = empty},
            "an empty program name");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .stdio = {{.kind = BRIG_STDIO_CAPTURE}}},
            "capturing stdin");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .stdio = {[1] = {.kind = BRIG_STDIO_BYTES}}},
            "bytes for stdout");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .stdio = {{.kind = BRIG_STDIO_FD, .fd = -1}}},
            "a stdin that is no fd");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .pass_fds = &low,
                                  .pass_fd_count = 1},
            "passing an fd as 2");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .pass_fds = &high,
                                  .pass_fd_count = 1},
            "passing an fd as 256");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .pass_fds = &closed,
                                  .pass_fd_count = 1},
            "passing what is no fd");
    refused((struct brig_command){.size = sizeof(struct brig_command),
                                  .argv = argv,
                                  .pass_fds = many,
                                  .pass_fd_count = BRIG_PASS_FD_MAX + 1},
            "passing one fd too many");
}

/* ---- Input and output --------------------------------------------------------------------- */

static void test_capture_limit(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_OUTPUT_BYTES, 1000);
    (void)run_shell(policy, "head -c 1000 /dev/zero", &result);
    is_exit(&result, 0, "output at the limit");
    tap_is_int(result.out.length, 1000, "output at the limit is kept whole");
    tap_ok(!result.out.truncated, "output at the limit is not marked");
    result_done(&result);
    (void)run_shell(policy, "head -c 1001 /dev/zero; head -c 5 /dev/zero >&2", &result);
    is_exit(&result, 0, "output one past the limit");
    tap_is_int(result.out.length, 1000, "output one past the limit is cut to it");
    tap_ok(result.out.truncated, "output one past the limit is marked");
    tap_is_int(result.usage.out_bytes[0], 1001, "all of it is counted");
    tap_ok(result.err.length == 5 && !result.err.truncated, "the other stream is not touched");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_capture_flood(void)
{
    struct rusage before, after;
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_OUTPUT_BYTES, 65536);
    (void)getrusage(RUSAGE_SELF, &before);
    (void)run_shell(policy, "head -c 104857600 /dev/zero", &result);
    (void)getrusage(RUSAGE_SELF, &after);
    is_exit(&result, 0, "a command that writes 100 MiB is not blocked and not killed");
    tap_is_int(result.out.length, 65536, "of 100 MiB the limit is kept");
    tap_is_int(result.usage.out_bytes[0], 104857600, "100 MiB are counted");
    tap_ok(result.out.truncated, "100 MiB are marked as truncated");
    tap_ok(after.ru_maxrss - before.ru_maxrss < 16 * 1024, "the caller did not grow");
    result_done(&result);
    brig_policy_free(policy);
}

/* More than a struct str holds. */
static void test_capture_large(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_OUTPUT_BYTES, 80 * MEBIBYTE);
    (void)run_shell(policy, "head -c 73400320 /dev/zero", &result);
    is_exit(&result, 0, "a command that writes 70 MiB");
    tap_is_int(result.out.length, 70 * MEBIBYTE, "70 MiB of at most 80 are kept");
    tap_ok(!result.out.truncated, "and not marked as truncated");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_stdin(void)
{
    static char bytes[MEBIBYTE];
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    set_limit(policy, BRIG_LIMIT_OUTPUT_BYTES, 2 * MEBIBYTE);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 31 + i / 256);

    shell_init(&shell, "cat");
    shell.command.stdio[0] =
        (struct brig_stdio){.kind = BRIG_STDIO_BYTES, .bytes = bytes, .length = sizeof(bytes)};
    (void)run(policy, &shell.command, &result);
    is_exit(&result, 0, "a mebibyte of input");
    tap_ok(result.out.length == sizeof(bytes) && memcmp(result.out.data, bytes, sizeof(bytes)) == 0,
           "input passes through unchanged");
    result_done(&result);

    shell_init(&shell, "exec <&-; exit 6");
    shell.command.stdio[0] =
        (struct brig_stdio){.kind = BRIG_STDIO_BYTES, .bytes = bytes, .length = sizeof(bytes)};
    (void)run(policy, &shell.command, &result);
    is_exit(&result, 6, "a command that does not read its input harms nobody");
    result_done(&result);

    shell_init(&shell, "cat");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_BYTES};
    (void)run(policy, &shell.command, &result);
    is_exit(&result, 0, "no bytes are the end of the input");
    result_done(&result);
    (void)run_shell(policy, "cat", &result);
    is_exit(&result, 0, "without a word about it, stdin is empty");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_stdio_fd(void)
{
    int fds[2];
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    if (pipe2(fds, O_CLOEXEC) < 0 || write(fds[1], "piped\n", 6) != 6)
        tap_bail("pipe2: %s", strerror(errno));
    shell_init(&shell, "read -r word; echo \"got $word\"");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = fds[0]};
    (void)run(policy, &shell.command, &result);
    tap_is_str(result.out.data, "got piped\n", "an fd of the caller can be stdin");
    tap_ok(fcntl(fds[0], F_GETFD) >= 0, "it stays the caller's");
    (void)close(fds[0]);
    (void)close(fds[1]);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_passed_fds(void)
{
    char text[64] = "";
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    struct leash leash;
    /* A careless caller: an fd that would survive exec. */
    int stray = fcntl(STDOUT_FILENO, F_DUPFD, 90);
    shell_init(&shell,
               "echo through >&7; for fd in /proc/self/fd/*; do echo \"=${fd##*/}=\"; done");
    leash_init(&leash, &shell.command);
    (void)run(policy, &shell.command, &result);
    is_exit(&result, 0, "a command with a passed fd");
    (void)close(leash.write_fd); /* there is an end if nothing was written */
    leash.write_fd = -1;
    tap_ok(read(leash.read_fd, text, sizeof(text) - 1) == 8 && strcmp(text, "through\n") == 0,
           "the passed fd is there under its number");
    tap_has_str(result.out.data, "=7=", "it is in the list of the command's fds");
    char stray_text[16];
    (void)snprintf(stray_text, sizeof(stray_text), "=%d=", stray);
    tap_ok(!strstr(result.out.data ? result.out.data : stray_text, stray_text),
           "no other fd of the caller is");
    (void)close(stray);
    tap_ok(leash_ends(&leash), "nothing keeps the passed fd open");
    result_done(&result);
    brig_policy_free(policy);
}

/* ---- What is enforced --------------------------------------------------------------------- */

static void test_unenforced(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    (void)run_shell(policy, "set -- $(grep ^Groups: /proc/self/status); echo $#", &result);
    is_exit(&result, 0, "a run with everything on");
    /* The word "Groups:", and possibly the jail's own group; more are those that stayed. */
    bool stayed = result.out.data && strtol(result.out.data, NULL, 10) > 2;
    if (geteuid() == 0)
        tap_ok(!stayed, "root's jail has no supplementary groups");
    bool listed = false;
    for (size_t i = 0; i < result.unenforced.count; i++) {
        listed = listed || strstr(result.unenforced.text[i], "group");
        tap_diag("not enforced: %s", result.unenforced.text[i]);
    }
    tap_is_int(listed, stayed, "groups are listed exactly if they stayed");
    tap_is_int(result.unenforced.count, stayed ? 1 : 0, "nothing else is left unenforced");
    result_done(&result);

    tap_is_int(brig_policy_disable(policy, BRIG_LAYER_LANDLOCK, &err), 0,
               "a layer can be switched off");
    (void)run_shell(policy, "true", &result);
    bool told = false;
    for (size_t i = 0; i < result.unenforced.count; i++)
        told = told || strcasestr(result.unenforced.text[i], "landlock");
    tap_ok(told, "a layer switched off is listed in the result");
    result_done(&result);
    brig_policy_free(policy);
}

/* Whether this is a user namespace of one id, as `unshare -Ur` makes it. */
static bool only_one_id(void)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    char line[64] = "", *rest = line;
    if (file && fgets(line, sizeof(line), file)) {
        (void)strtoul(rest, &rest, 10);
        (void)strtoul(rest, &rest, 10);
    }
    if (file)
        (void)fclose(file);
    return strtoul(rest, NULL, 10) == 1;
}

static void test_identity(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    struct leash leash;
    char path[64];
    struct stat info;
    shell_init(&shell, "echo >&7; read -r word");
    leash_init(&leash, &shell.command);
    int quiet[2];
    if (pipe2(quiet, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = quiet[0]};
    struct brig_job *job = start(policy, &shell.command);
    if (!job || !leash_ready(&leash))
        tap_bail("no job, no test");
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)brig_job_pid(job));
    FILE *file = fopen(path, "re");
    char line[256];
    unsigned uid = 0;
    while (file && fgets(line, sizeof(line), file))
        (void)sscanf(line, "Uid: %u", &uid);
    if (file)
        (void)fclose(file);
    if (geteuid() == 0 && only_one_id())
        tap_is_int(uid, 0, "root of a namespace with one id has no other to take");
    else if (geteuid() == 0)
        tap_ok(uid != 0, "a jail of root is not root on the host");
    else
        tap_is_int(uid, geteuid(), "a jail of a user is that user");
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)brig_job_pid(job));
    tap_ok(stat(path, &info) == 0, "its process can be looked at");
    (void)close(quiet[1]);
    (void)close(quiet[0]);
    (void)finish(job, &result);
    tap_ok(leash_ends(&leash), "it is gone");
    result_done(&result);
    brig_policy_free(policy);
}

/* The root is a part of the private tmpfs, which was attached in the host's tree. */
static void test_root(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    (void)run_shell(policy,
                    "grep -c '^[0-9]* [0-9]* [^ ]* [^ ]* / ' /proc/self/mountinfo; "
                    "[ / -ef /.. ] && echo top; echo x 2>/dev/null >/x || echo read-only; "
                    "echo x >/tmp/x && cat /tmp/x",
                    &result);
    tap_is_str(
        result.out.data, "1\ntop\nread-only\nx\n",
        "the root is one mount, there is nothing above it, and only what is in it is written");
    result_done(&result);
    (void)brig_policy_limit(policy, BRIG_LIMIT_TMP_BYTES, 1 << 20, &err);
    (void)run_shell(policy, "head -c 2097152 /dev/zero 2>/dev/null >/tmp/x; wc -c </tmp/x",
                    &result);
    tap_is_str(result.out.data, "1048576\n", "what the root takes is not the jail's");
    result_done(&result);
    brig_policy_free(policy);
}

static const struct job_test tests[] = {
    {"exits", test_exits},
    {"signals", test_signals},
    {"not runnable", test_not_runnable},
    {"bad commands", test_bad_commands},
    {"capture at the limit", test_capture_limit},
    {"capture of a flood", test_capture_flood},
    {"capture of much", test_capture_large},
    {"stdin", test_stdin},
    {"stdio fds", test_stdio_fd},
    {"passed fds", test_passed_fds},
    {"unenforced", test_unenforced},
    {"identity", test_identity},
    {"root", test_root},
};

int main(int argc, char **argv)
{
    return job_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
