/* SPDX-License-Identifier: MIT */
/* Writes submissions of Judge0: what became of them, as JSON with the members that a client asks
 * for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "server/execution.h"

struct brig_error;
struct json;
struct judge0_submission;
struct note;

/* Members of an answer, as bits. */
typedef uint64_t judge0_members;

/* The members that a client gets if it does not ask for any. */
judge0_members judge0_members_usual(void);
/* Reads "stdout,status" or "*"; NULL and "" give the usual ones. Unknown names are appended to
 * *ret_unknown, separated by ", ". */
judge0_members judge0_members_read(const char *text, struct str *ret_unknown);

enum judge0_status {
    JUDGE0_IN_QUEUE = 1,
    JUDGE0_PROCESSING,
    JUDGE0_ACCEPTED,
    JUDGE0_WRONG_ANSWER,
    JUDGE0_TIME_LIMIT,
    JUDGE0_COMPILATION_ERROR,
    JUDGE0_SIGSEGV,
    JUDGE0_SIGXFSZ,
    JUDGE0_SIGFPE,
    JUDGE0_SIGABRT,
    JUDGE0_NZEC,
    JUDGE0_OTHER,
    JUDGE0_INTERNAL_ERROR,
    JUDGE0_EXEC_FORMAT_ERROR,
};
const char *judge0_status_name(enum judge0_status status);
/* The array of GET /statuses. */
void judge0_statuses_write(struct json *j);

#define JUDGE0_MESSAGE_MAX 512

/* What became of a submission. Texts are of the result. */
struct judge0_outcome {
    enum judge0_status status;
    struct execution_bytes out, error, compiled; /* "" stands for null */
    struct str together, compiler;               /* owned: both outputs in their order */
    char message[JUDGE0_MESSAGE_MAX];            /* "" stands for null */
    bool ran;                                    /* the members below are known */
    int exit_code, exit_signal;                  /* signal 0: null */
    uint64_t time_us, wall_us, memory_kb;
    int64_t finished_ns; /* 0: null */
};

/* The submission is from its note; `result` NULL: it has not ended, and `queued` or runs. */
void judge0_judge(const struct judge0_submission *submission, const struct execution_result *result,
                  bool queued, struct judge0_outcome *ret_outcome);
void judge0_outcome_done(struct judge0_outcome *outcome);

/* Writes an object with these members. Without `base64` returns false, having written nothing, if one
 * of the texts is not UTF-8. */
bool judge0_write(struct json *j, const struct note *note, const char *token,
                  judge0_members members, bool base64);

/* Writes the body of the callback for a note and an encoded result, which may be empty: lost. */
int judge0_write_callback(const char *token, struct execution_bytes note,
                          struct execution_bytes result, struct str *out, struct brig_error *err);
