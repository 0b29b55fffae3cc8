/* SPDX-License-Identifier: MIT */
/* Submissions of Judge0: their fields, read from an untrusted JSON object, checked as Judge0 does, and
 * turned into a request for an execution. The fields are also the note of the execution. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/api/judge0_languages.h"
#include "server/execution.h"

struct brig_error;
struct json;
struct server_config;
struct str;

#define JUDGE0_OPTIONS_MAX 512 /* characters of compiler_options and command_line_arguments */
#define JUDGE0_EXTRACT_KB 10240
#define JUDGE0_BATCH_MAX 20
#define JUDGE0_MICROS 1000000 /* decimals are kept as millionths */

/* The order is that of Judge0's checks. */
enum judge0_field {
    JUDGE0_SOURCE_CODE,
    JUDGE0_ADDITIONAL_FILES,
    JUDGE0_LANGUAGE_ID,
    JUDGE0_NUMBER_OF_RUNS,
    JUDGE0_CPU_TIME_LIMIT,
    JUDGE0_CPU_EXTRA_TIME,
    JUDGE0_WALL_TIME_LIMIT,
    JUDGE0_MEMORY_LIMIT,
    JUDGE0_STACK_LIMIT,
    JUDGE0_MAX_PROCESSES,
    JUDGE0_PER_PROCESS_TIME,
    JUDGE0_PER_PROCESS_MEMORY,
    JUDGE0_MAX_FILE_SIZE,
    JUDGE0_COMPILER_OPTIONS,
    JUDGE0_ARGUMENTS,
    JUDGE0_STDIN,
    JUDGE0_EXPECTED_OUTPUT,
    JUDGE0_REDIRECT_STDERR,
    JUDGE0_CALLBACK_URL,
    JUDGE0_ENABLE_NETWORK,
    JUDGE0_REQUEST_FIELDS_
};

enum judge0_kind {
    JUDGE0_STRING,
    JUDGE0_ENCODED, /* base64 if the client says so */
    JUDGE0_BINARY,  /* always base64 */
    JUDGE0_INTEGER,
    JUDGE0_DECIMAL,
    JUDGE0_BOOLEAN,
};

struct judge0_rule {
    const char *name;
    enum judge0_kind kind;
    bool above;      /* the value must be greater than min */
    int64_t min;     /* of numbers; decimals in millionths */
    int64_t initial; /* of numbers */
    int64_t most;    /* of numbers; 0: no check */
    const char *doc;
};
extern const struct judge0_rule judge0_rules[JUDGE0_REQUEST_FIELDS_];

/* Ranges of the numbers, which are Judge0's, or less if the server allows less. */
struct judge0_bounds {
    int64_t initial[JUDGE0_REQUEST_FIELDS_], most[JUDGE0_REQUEST_FIELDS_];
};
void judge0_bounds(const struct server_config *config, struct judge0_bounds *ret_bounds);

/* Texts are in the arena; `text.data` NULL stands for null. Numbers and booleans are in `number`. */
struct judge0_submission {
    struct arena arena;
    bool given[JUDGE0_REQUEST_FIELDS_]; /* by the client; others have their default */
    struct execution_bytes text[JUDGE0_REQUEST_FIELDS_];
    int64_t number[JUDGE0_REQUEST_FIELDS_];
    char language_name[JUDGE0_NAME_MAX];
};
void judge0_submission_done(struct judge0_submission *submission);

#define JUDGE0_ERRORS_MAX 32
#define JUDGE0_ERROR_MAX 192

/* What is wrong, in the order of Judge0's checks. */
struct judge0_errors {
    struct {
        enum judge0_field field;
        char text[JUDGE0_ERROR_MAX];
    } list[JUDGE0_ERRORS_MAX];
    size_t count;
};
__attribute__((format(printf, 3, 4))) void
judge0_error(struct judge0_errors *errors, enum judge0_field field, const char *format, ...);
/* {"language_id": ["can't be blank"], …} */
void judge0_errors_write(const struct judge0_errors *errors, struct json *j);

/* Reads the fields of an object; other members are ignored. Returns false if memory ran out. */
bool judge0_read(const json_t *object, bool base64, const struct judge0_bounds *bounds,
                 struct judge0_submission *ret_submission, struct judge0_errors *errors);
/* Checks all fields, and the language, whose name is stored in the submission. `found` tells whether
 * there is a language with this number. */
void judge0_check(const struct server_config *config, const struct judge0_bounds *bounds,
                  const struct judge0_language *language, bool found,
                  struct judge0_submission *submission, struct judge0_errors *errors);
/* Makes the request of a submission without errors; its strings belong to the submission or to the
 * request. Returns false with an error added, or if memory ran out. */
bool judge0_translate(const struct server_config *config, const struct judge0_language *language,
                      const struct judge0_submission *submission, struct execution_request *ret,
                      struct judge0_errors *errors);

/* The submission as the note of its execution. */
int judge0_note_encode(const struct judge0_submission *submission, struct str *out,
                       struct brig_error *err);
int judge0_note_decode(const void *bytes, size_t length, struct judge0_submission *ret_submission,
                       struct brig_error *err);
