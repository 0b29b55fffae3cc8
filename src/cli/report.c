/* SPDX-License-Identifier: MIT */
/* Messages to the user on stderr, including how a run ended, and texts on stdout. */
#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "cli/remedy.h"
#include "jail/job/result.h"
#include "policy/policy.h"

/* ---- Messages on stderr ---- */

#define MESSAGE_LINE_MAX 4096
#define MESSAGE_BOLD_RED "\033[1;31m"
#define MESSAGE_YELLOW "\033[33m"
#define MESSAGE_RESET "\033[0m"

/* Whether lines on stderr may be coloured: it is a terminal, and NO_COLOR is unset or empty. */
static bool is_coloured(void)
{
    const char *no_color = getenv("NO_COLOR");
    return isatty(STDERR_FILENO) && (!no_color || *no_color == '\0');
}

/* Whether a control character begins here: of ASCII, or one of the two-byte control characters of
 * UTF-8, which terminals obey as well. */
static bool is_control(const unsigned char *c)
{
    return *c < ' ' || *c == '\177' || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
}

/* A program in a jail may have chosen names in messages. */
static void make_harmless(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (is_control(c))
            *c = '?';
        else if (*c >= 0xc0) /* the first byte of a multibyte character */
            while ((c[1] & 0xc0) == 0x80)
                c++;
        else if (*c >= 0x80) /* a stray byte, which some terminals obey */
            *c = '?';
}

static void translate(char *text, size_t size)
{
    autostr struct str words = {0};
    str_append(&words, text);
    remedy_translate(&words);
    if (!words.failed)
        (void)snprintf(text, size, "%s", words.data);
}

void message_line(enum message_kind kind, const char *format, ...)
{
    static const struct {
        const char *colour, *prefix;
    } kinds[] = {
        [MESSAGE_ERROR] = {MESSAGE_BOLD_RED, ""},
        [MESSAGE_WARNING] = {MESSAGE_YELLOW, "warning: "},
        [MESSAGE_NOTE] = {NULL, ""},
    };
    char text[MESSAGE_LINE_MAX], line[MESSAGE_LINE_MAX + 64];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    translate(text, sizeof text);
    make_harmless(text);
    bool coloured = kinds[kind].colour && is_coloured();
    int length =
        snprintf(line, sizeof(line), "%sbrig:%s %s%s\n", coloured ? kinds[kind].colour : "",
                 coloured ? MESSAGE_RESET : "", kinds[kind].prefix, text);
    if (length > 0)
        (void)write_all(STDERR_FILENO, line, (size_t)length);
}

int message_status(int status, const struct brig_error *err)
{
    if (status < 0)
        message_error("%s", err->message);
    return status < 0 ? APP_FAILED : status;
}

void message_lines(struct str *text)
{
    char *rest = text->data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            message_note("%s", line);
}

int message_print(const struct str *text, struct brig_error *err)
{
    if (text->failed)
        return brig_fail_nomem(err);
    int failed = write_all(STDOUT_FILENO, text->data, text->length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to standard output")
                      : 0;
}

/* ---- How a run ended ---- */

#define DURATION_MAX 32
#define MS_PER_SECOND 1000
#define MS_PER_MINUTE (60 * MS_PER_SECOND)
#define BYTES_PER_MIB (1024.0 * 1024.0)

/* "1.5s", "200ms", "2m30s". */
static void report_duration(uint64_t ms, char text[static DURATION_MAX])
{
    unsigned long long minutes = ms / MS_PER_MINUTE;
    unsigned long long rest = ms % MS_PER_MINUTE;
    if (ms < MS_PER_SECOND)
        (void)snprintf(text, DURATION_MAX, "%llums", rest);
    else if (minutes == 0)
        (void)snprintf(text, DURATION_MAX, "%.4gs", (double)rest / MS_PER_SECOND);
    else if (rest < MS_PER_SECOND)
        (void)snprintf(text, DURATION_MAX, "%llum", minutes);
    else
        (void)snprintf(text, DURATION_MAX, "%llum%llus", minutes, rest / MS_PER_SECOND);
}

/* Reports what the kernel refused because of a limit, whatever the command did then. */
static void report_refused(const struct brig_result *result, const struct brig_policy *policy)
{
    const struct brig_usage *usage = &result->usage;
    const struct str_size memory = str_size(policy->limits[BRIG_LIMIT_MEMORY_BYTES]);
    if (result->outcome == BRIG_OOM)
        message_note("killed: out of memory (limit %s); raise it with --memory", memory.text);
    else if (usage->oom_kills > 0)
        message_note("%llu process%s killed: out of memory (limit %s for all of them); raise it "
                     "with --memory",
                     (unsigned long long)usage->oom_kills,
                     usage->oom_kills == 1 ? " was" : "es were", memory.text);
    if (usage->pids_refused > 0)
        message_note("a new process or thread was refused %llu time%s (limit %llu); raise it with "
                     "--pids",
                     (unsigned long long)usage->pids_refused, usage->pids_refused == 1 ? "" : "s",
                     (unsigned long long)policy->limits[BRIG_LIMIT_PROCESSES]);
    if (result->out.truncated || result->err.truncated)
        message_note("output was cut at %s; raise it with --output",
                     str_size(policy->limits[BRIG_LIMIT_OUTPUT_BYTES]).text);
    if (usage->stuck_pid > 0)
        message_warning("process %d is in uninterruptible sleep and could not be ended yet",
                        usage->stuck_pid);
}

static void report_limit(const struct brig_policy *policy, enum brig_limit limit,
                         const char *of_what, const char *option)
{
    char text[DURATION_MAX];
    report_duration(policy->limits[limit], text);
    message_note("ended after %s%s (%s)", text, of_what, option);
}

/* Ends by a limit of brig are always reported, also in the log of a script, because the command
 * cannot know them. With `all` every other end is, too. */
static void report_end(const struct brig_result *result, const struct brig_policy *policy, bool all)
{
    switch (result->outcome) {
    case BRIG_EXITED:
    case BRIG_SETUP_FAILED:
    case BRIG_OOM: /* see report_refused() */
        break;
    case BRIG_SIGNALLED:
        if (all)
            message_note("ended by signal %d (%s)", result->signal, strsignal(result->signal));
        break;
    case BRIG_TIMEOUT:
        report_limit(policy, BRIG_LIMIT_WALL_MS, "", "--timeout");
        break;
    case BRIG_CPU_TIMEOUT:
        report_limit(policy, BRIG_LIMIT_CPU_MS, " of CPU time", "--cpu-time");
        break;
    case BRIG_DENIED:
    case BRIG_CANCELLED:
        if (!all)
            break;
        __attribute__((fallthrough));
    case BRIG_OUTPUT_LIMIT:
    case BRIG_DISK_LIMIT:
    case BRIG_PIDS_LIMIT:
        message_note("ended: %s", brig_outcome_name(result->outcome));
        break;
    }
}

static void report_usage(const struct brig_result *result)
{
    const struct brig_usage *usage = &result->usage;
    char wall[DURATION_MAX];
    autostr struct str line = {0};
    report_duration(usage->wall_us / 1000, wall);
    str_appendf(&line, "%s, status %d, %s, CPU %.3fs user %.3fs system",
                brig_outcome_name(result->outcome), brig_result_status(result), wall,
                (double)usage->cpu_user_us / 1e6, (double)usage->cpu_sys_us / 1e6);
    if (usage->cpu_throttled_us > 0)
        str_appendf(&line, ", %.3fs held back", (double)usage->cpu_throttled_us / 1e6);
    if (usage->peak_memory_bytes > 0) /* 0: unknown */
        str_appendf(&line, ", peak %.1f MiB", (double)usage->peak_memory_bytes / BYTES_PER_MIB);
    if (usage->peak_pids > 0)
        str_appendf(&line, ", %llu at a time", (unsigned long long)usage->peak_pids);
    if (!line.failed)
        message_note("%s", line.data);
}

void report_result(const struct brig_result *result, const struct brig_policy *policy, bool verbose)
{
    if (result->outcome == BRIG_SETUP_FAILED) {
        message_error("%s", result->error.message);
        return;
    }
    if (verbose || policy->on_unsupported == BRIG_UNSUPPORTED_WARN)
        for (size_t i = 0; i < result->unenforced.count; i++)
            message_warning("not enforced: %s", result->unenforced.text[i]);
    else if (result->inside_jail)
        message_note("inside a jail: Landlock, syscall filter and limits, but no namespaces of its "
                     "own");
    for (size_t i = 0; i < result->notices.count; i++)
        message_note("%s", result->notices.text[i]);
    for (size_t i = 0; result->denials.traced && i < result->denials.count; i++) {
        const struct brig_denial *denial = &result->denials.items[i];
        char text[ERROR_TEXT_MAX];
        message_note("refused: %s (%s), %llu time%s", denial->name,
                     error_text(denial->sys_errno, text), (unsigned long long)denial->count,
                     denial->count == 1 ? "" : "s");
    }
    report_refused(result, policy);
    /* If a signal, for example of Ctrl-C, ended a program, the shell reports it. */
    bool to_people = isatty(STDERR_FILENO) && result->outcome != BRIG_SIGNALLED;
    report_end(result, policy, verbose || to_people);
    if (verbose)
        report_usage(result);
}

/* Whether the syscall filter refused a new namespace; it refuses nothing else of these two. */
static bool has_refused_namespaces(const struct brig_denials *denials)
{
    for (size_t i = 0; i < denials->count; i++)
        if (strcmp(denials->items[i].name, "clone") == 0 ||
            strcmp(denials->items[i].name, "unshare") == 0)
            return true;
    return false;
}

/* Programs that only pass their request on to a service outside. */
static const char *client_of(const char *program)
{
    static const struct {
        const char *name, *service;
    } clients[] = {{"docker", "the Docker daemon"},     {"docker-compose", "the Docker daemon"},
                   {"loginctl", "the system's logind"}, {"machinectl", "systemd"},
                   {"nerdctl", "containerd"},           {"systemctl", "systemd"},
                   {"systemd-run", "systemd"}};
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; i < ARRAY_LENGTH(clients); i++)
        if (strcmp(clients[i].name, slash ? slash + 1 : program) == 0)
            return clients[i].service;
    return NULL;
}

void report_nested(const struct brig_result *result, const char *program)
{
    bool ended = result->outcome == BRIG_EXITED || result->outcome == BRIG_SIGNALLED;
    const char *service = client_of(program);
    if (!ended || brig_result_status(result) == 0)
        return;
    if (has_refused_namespaces(&result->denials))
        message_note("the jail refused namespaces, which sandboxes and container tools create. Run "
                     "the program without its own sandbox, as the jail is one, or use "
                     "--allow-nested, which makes the jail weaker");
    else if (service)
        message_note("%s is outside the jail and cannot be reached. It would run programs without "
                     "the jail, so there is no option for it: run this command outside",
                     service);
}
