/* SPDX-License-Identifier: MIT */
/* Says in a line how a run ended. */
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/message.h"
#include "policy/policy.h"

#define MS_PER_SECOND 1000
#define MS_PER_MINUTE (60 * MS_PER_SECOND)
#define BYTES_PER_MIB (1024.0 * 1024.0)

void report_duration(uint64_t ms, char text[static REPORT_DURATION_MAX])
{
    unsigned long long minutes = ms / MS_PER_MINUTE;
    unsigned long long rest = ms % MS_PER_MINUTE;
    if (ms < MS_PER_SECOND)
        (void)snprintf(text, REPORT_DURATION_MAX, "%llums", rest);
    else if (minutes == 0)
        (void)snprintf(text, REPORT_DURATION_MAX, "%.4gs", (double)rest / MS_PER_SECOND);
    else if (rest < MS_PER_SECOND)
        (void)snprintf(text, REPORT_DURATION_MAX, "%llum", minutes);
    else
        (void)snprintf(text, REPORT_DURATION_MAX, "%llum%llus", minutes, rest / MS_PER_SECOND);
}

static void report_size(uint64_t bytes, char text[static REPORT_DURATION_MAX])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LENGTH(units); unit++)
        value /= 1024;
    (void)snprintf(text, REPORT_DURATION_MAX, "%.4g %s", value, units[unit]);
}

/* What the kernel refused for a limit; how the command took it is its own affair. */
static void report_refused(const struct brig_result *result, const struct brig_policy *policy)
{
    const struct brig_usage *usage = &result->usage;
    char text[REPORT_DURATION_MAX];
    report_size(policy->limits[BRIG_LIMIT_MEMORY_BYTES], text);
    if (result->outcome == BRIG_OOM)
        message_note("killed: out of memory (limit %s); raise it with --memory", text);
    else if (usage->oom_kills > 0)
        message_note("%llu process%s killed: out of memory (limit %s for all of them); raise it "
                     "with --memory",
                     (unsigned long long)usage->oom_kills,
                     usage->oom_kills == 1 ? " was" : "es were", text);
    if (usage->pids_refused > 0)
        message_note("a new process or thread was refused %llu time%s (limit %llu); raise it with "
                     "--pids",
                     (unsigned long long)usage->pids_refused, usage->pids_refused == 1 ? "" : "s",
                     (unsigned long long)policy->limits[BRIG_LIMIT_PROCESSES]);
    report_size(policy->limits[BRIG_LIMIT_OUTPUT_BYTES], text);
    if (result->out.truncated || result->err.truncated)
        message_note("output was cut at %s; raise it with --output", text);
    if (usage->stuck_pid > 0)
        message_warning("process %d is in uninterruptible sleep and could not be ended yet",
                        usage->stuck_pid);
}

static void report_limit(const struct brig_policy *policy, enum brig_limit limit,
                         const char *of_what, const char *option)
{
    char text[REPORT_DURATION_MAX];
    report_duration(policy->limits[limit], text);
    message_note("ended after %s%s (%s)", text, of_what, option);
}

static void report_end(const struct brig_result *result, const struct brig_policy *policy)
{
    switch (result->outcome) {
    case BRIG_EXITED:
    case BRIG_SETUP_FAILED:
        break;
    case BRIG_SIGNALLED:
        message_note("ended by signal %d (%s)", result->signal, strsignal(result->signal));
        break;
    case BRIG_TIMEOUT:
        report_limit(policy, BRIG_LIMIT_WALL_MS, "", "--timeout");
        break;
    case BRIG_CPU_TIMEOUT:
        report_limit(policy, BRIG_LIMIT_CPU_MS, " of CPU time", "--cpu-time");
        break;
    case BRIG_OOM: /* see report_refused() */
        break;
    case BRIG_OUTPUT_LIMIT:
    case BRIG_DISK_LIMIT:
    case BRIG_PIDS_LIMIT:
    case BRIG_DENIED:
    case BRIG_CANCELLED:
        message_note("ended: %s", brig_outcome_name(result->outcome));
        break;
    }
}

/* Whether a limit of the policy ended the run. */
static bool is_limit(enum brig_outcome outcome)
{
    switch (outcome) {
    case BRIG_EXITED:
    case BRIG_SIGNALLED:
    case BRIG_SETUP_FAILED:
    case BRIG_DENIED:
    case BRIG_CANCELLED:
        return false;
    case BRIG_TIMEOUT:
    case BRIG_CPU_TIMEOUT:
    case BRIG_OOM:
    case BRIG_OUTPUT_LIMIT:
    case BRIG_DISK_LIMIT:
    case BRIG_PIDS_LIMIT:
        return true;
    }
    return false;
}

static void report_usage(const struct brig_result *result)
{
    const struct brig_usage *usage = &result->usage;
    char wall[REPORT_DURATION_MAX];
    report_duration(usage->wall_us / 1000, wall);
    char peak[32] = "";
    if (usage->peak_memory_bytes > 0) /* 0: not known */
        (void)snprintf(peak, sizeof peak, ", peak %.1f MiB",
                       (double)usage->peak_memory_bytes / BYTES_PER_MIB);
    char pids[32] = "", throttled[48] = "";
    if (usage->peak_pids > 0)
        (void)snprintf(pids, sizeof pids, ", %llu at a time", (unsigned long long)usage->peak_pids);
    if (usage->cpu_throttled_us > 0)
        (void)snprintf(throttled, sizeof throttled, ", %.3fs held back",
                       (double)usage->cpu_throttled_us / 1e6);
    message_note("%s, status %d, %s, CPU %.3fs user %.3fs system%s%s%s",
                 brig_outcome_name(result->outcome), brig_result_status(result), wall,
                 (double)usage->cpu_user_us / 1e6, (double)usage->cpu_sys_us / 1e6, throttled, peak,
                 pids);
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
    for (size_t i = 0; i < result->denials.count; i++) {
        const struct brig_denial *denial = &result->denials.items[i];
        char text[ERROR_TEXT_MAX];
        message_note("refused: %s (%s), %llu time%s", denial->name,
                     error_text(denial->sys_errno, text), (unsigned long long)denial->count,
                     denial->count == 1 ? "" : "s");
    }
    /* Limits of ours are always told of, also in the log of a script: the command cannot know of them. A
     * program that a signal ended, say by Ctrl-C, is the shell's to comment. */
    report_refused(result, policy);
    bool to_people = isatty(STDERR_FILENO) && result->outcome != BRIG_SIGNALLED;
    if (verbose || to_people || is_limit(result->outcome))
        report_end(result, policy);
    if (verbose)
        report_usage(result);
}
