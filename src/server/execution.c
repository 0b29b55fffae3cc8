/* SPDX-License-Identifier: MIT */
/* The words of executions. */
#include "server/execution.h"

#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/str.h"

static const char *const status_names[EXECUTION_STATUSES_] = {
    [EXECUTION_RUNNING] = "running",
    [EXECUTION_OK] = "ok",
    [EXECUTION_ERROR] = "error",
    [EXECUTION_TIMEOUT] = "timeout",
    [EXECUTION_CPU_TIMEOUT] = "cpu_timeout",
    [EXECUTION_OOM] = "oom",
    [EXECUTION_KILLED] = "killed",
    [EXECUTION_OUTPUT_LIMIT] = "output_limit",
    [EXECUTION_SETUP_FAILED] = "setup_failed",
    [EXECUTION_LOST] = "lost",
    [EXECUTION_BLOCKED] = "blocked",
};

const char *execution_status_name(enum execution_status status)
{
    return status_names[status];
}

enum execution_status execution_status_from_name(const char *name)
{
    unsigned i = 0;
    while (i < EXECUTION_STATUSES_ && !str_equal(name, status_names[i]))
        i++;
    return (enum execution_status)i;
}

const char *execution_step_name(enum execution_step step)
{
    static const char *const names[STEPS_] = {
        [STEP_DECODED] = "decoded", [STEP_SENT] = "sent",   [STEP_RECEIVED] = "received",
        [STEP_CHECKED] = "checked", [STEP_JAIL] = "jail",   [STEP_RELEASED] = "released",
        [STEP_OUTPUT] = "output",   [STEP_ENDED] = "ended", [STEP_ANSWERED] = "answered",
    };
    return names[step];
}

const char *execution_severity_name(enum execution_severity severity)
{
    static const char *const names[] = {
        [SEVERITY_LOW] = "low",
        [SEVERITY_MEDIUM] = "medium",
        [SEVERITY_HIGH] = "high",
        [SEVERITY_CRITICAL] = "critical",
    };
    return names[severity];
}

bool execution_id_is_valid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (!text || strlen(text) != EXECUTION_ID_LENGTH)
        return false;
    for (size_t i = 0; i < EXECUTION_ID_LENGTH; i++)
        if (form[i] == '-' ? text[i] != '-' : hex_value(text[i]) < 0)
            return false;
    return true;
}

void execution_id_make(char ret_id[EXECUTION_ID_LENGTH + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char r[16];
    /* So few bytes are given whole or, before the machine has gathered any, waited for. */
    while (getrandom(r, sizeof r, 0) != sizeof r)
        ;
    r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
    r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof r; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *ret_id++ = '-';
        *ret_id++ = digits[r[i] >> 4];
        *ret_id++ = digits[r[i] & 15];
    }
    *ret_id = 0;
}

bool execution_file_name_is_valid(const char *name)
{
    size_t length = strlen(name), parts = 0;
    if (length == 0 || length > EXECUTION_NAME_MAX)
        return false;
    for (const char *part = name; parts < EXECUTION_PARTS_MAX; parts++) {
        size_t part_length = strcspn(part, "/");
        if (part_length == 0 || (part_length == 1 && part[0] == '.') ||
            (part_length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[part_length] == 0)
            return true;
        part += part_length + 1;
    }
    return false;
}
