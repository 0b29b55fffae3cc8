/* SPDX-License-Identifier: MIT */
/* One execution: what was asked for, and what came of it. Plain data that the http process, the executor and
 * the history process hand each other as bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct brig_error;
struct json;
struct str;

#define EXECUTION_ID_LENGTH 36 /* a UUID as text */

/* What may come in one request; one past each is refused by name. */
#define EXECUTION_CODE_MAX ((size_t)1 << 20)
#define EXECUTION_STDIN_MAX ((size_t)4 << 20)
#define EXECUTION_ARGS_MAX 64
#define EXECUTION_ENV_MAX 128
#define EXECUTION_FILES_MAX 256
#define EXECUTION_FILE_BYTES_MAX ((size_t)8 << 20) /* of one file */
#define EXECUTION_RETURNS_MAX 32
#define EXECUTION_ALLOW_MAX 64
#define EXECUTION_EVENTS_MAX 64
#define EXECUTION_NAME_MAX 255 /* of a file below /workspace, with its directories */
/* Of it; 256 names of 127 parts would be 32000 directories, which take seconds to make. */
#define EXECUTION_PARTS_MAX 16
#define EXECUTION_PATH_MAX 4096   /* of work_dir */
#define EXECUTION_VALUE_MAX 32768 /* of one argument or variable */
/* Of all of them together: the kernel takes a quarter of the stack's limit, 2 MiB as a rule. */
#define EXECUTION_WORDS_MAX ((size_t)3 << 19)
#define EXECUTION_MEMORY_MB_MIN 8 /* with less a jail cannot be built */
/* What goes back. */
#define EXECUTION_OUTPUT_MAX ((size_t)1 << 20)
#define EXECUTION_STDERR_MAX ((size_t)256 << 10)
#define EXECUTION_RETURNED_FILES_MAX 64
#define EXECUTION_RETURNED_BYTES_MAX ((size_t)8 << 20) /* all together */

/* Bytes of any kind; `data` has a NUL after it that is not counted. */
struct execution_bytes {
    const char *data;
    size_t length;
};

struct execution_pair { /* of the environment */
    const char *name;
    const char *value;
};

struct execution_file {
    const char *name; /* relative, no "." or ".." in it */
    struct execution_bytes content;
    bool truncated; /* returned files: there was more */
};

enum execution_severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };

/* Something suspicious in the code, or a denial that was observed. */
struct execution_event {
    const char *type; /* "escape_attempt", "network_denied", … : one word, a label of the metric */
    const char *detail; /* one line */
    enum execution_severity severity;
};

enum execution_limit {
    EXECUTION_MEMORY_MB,
    EXECUTION_PIDS,
    EXECUTION_DISK_MB,
    EXECUTION_CPU_PERCENT,
    EXECUTION_LIMITS_
};

/* All pointers are into the arena. */
struct execution_request {
    struct arena arena;
    const char
        *id; /* UUID, made by the executor; "" until then. Of a refused one by the http process */
    const char *request_id; /* of the HTTP request */
    const char *client;     /* its address */
    const char *domain; /* which API key asked: the first 16 hex digits of its hash; "" without */
    const char *language;
    struct execution_bytes code;
    struct execution_bytes stdin_bytes;
    const char **args;
    size_t arg_count;
    struct execution_pair *env;
    size_t env_count;
    struct execution_file *files;
    size_t file_count;
    const char **returns; /* globs, relative to the output directory */
    size_t return_count;
    const char **allow; /* names for the network door */
    size_t allow_count;
    bool network;
    bool stream;                        /* output is wanted as it comes */
    const char *work_dir;               /* absolute, or NULL */
    uint64_t timeout_ms;                /* 0: the runtime's own */
    uint64_t limits[EXECUTION_LIMITS_]; /* 0: the runtime's own */
    struct execution_event *events;     /* what the detector saw in the code */
    size_t event_count;
};

enum execution_status {
    EXECUTION_RUNNING,
    EXECUTION_OK,           /* exit code 0 */
    EXECUTION_ERROR,        /* another exit code, or a signal */
    EXECUTION_TIMEOUT,      /* wall clock */
    EXECUTION_CPU_TIMEOUT,  /* CPU time */
    EXECUTION_OOM,          /* memory */
    EXECUTION_KILLED,       /* by DELETE, by a client that went away, or at shutdown */
    EXECUTION_OUTPUT_LIMIT, /* wrote far more than is kept */
    EXECUTION_SETUP_FAILED, /* nothing of the code ran; `message` says why */
    EXECUTION_LOST,         /* the executor died under it */
    EXECUTION_BLOCKED,      /* refused by the detector; in the history only */
    EXECUTION_STATUSES_
};

/* Whose fault it is that nothing ran. */
enum execution_fault {
    FAULT_SERVER,
    FAULT_REQUEST, /* `field` names what of it */
    FAULT_BUSY,    /* it may be tried again */
    FAULTS_
};

/* Where the time of an execution goes, in order. */
enum execution_step {
    STEP_DECODED,  /* http: the request is read, understood and looked through */
    STEP_SENT,     /* to the executor */
    STEP_RECEIVED, /* executor: it has it, */
    STEP_CHECKED,  /* may run it, */
    STEP_JAIL,     /* has a jail that waited, or has made one, */
    STEP_RELEASED, /* and let the command go */
    STEP_OUTPUT,   /* the first byte of it */
    STEP_ENDED,    /* nothing runs any more */
    STEP_ANSWERED, /* http: it has the result */
    STEPS_
};

struct execution_trace {
    bool warm;              /* the jail had waited */
    uint64_t at_us[STEPS_]; /* by the monotonic clock; 0: did not happen */
};

const char *execution_step_name(enum execution_step step);

/* All pointers are into the arena. */
struct execution_result {
    struct arena arena;
    const char *id;
    enum execution_status status;
    int exit_code; /* -1 where there is none */
    int signal;
    struct execution_bytes output;
    struct execution_bytes error_output;
    bool output_truncated;
    bool error_output_truncated;
    uint64_t duration_us;
    uint64_t cpu_time_us;
    uint64_t memory_peak_bytes;
    uint64_t pids_used;
    struct execution_event *events; /* those of the request, then what was observed */
    size_t event_count;
    struct execution_file *files; /* returned */
    size_t file_count;
    const char *message;     /* one line for people, or "" */
    const char **unenforced; /* what this machine could not enforce */
    size_t unenforced_count;
    int64_t started_ns;         /* since 1970 */
    enum execution_fault fault; /* of EXECUTION_SETUP_FAILED */
    const char *field;          /* "files", or "" */
    struct execution_trace trace;
};

void execution_request_done(struct execution_request *request);
void execution_result_done(struct execution_result *result);

/* As bytes for another process (base/wire.h), appended to `out`; and back. Decoding trusts nothing: every length
 * and count is checked against the limits above, and what does not fit is BRIG_E_INVALID. */
int execution_request_encode(const struct execution_request *request, struct str *out,
                             struct brig_error *err);
int execution_request_decode(const void *bytes, size_t length, struct execution_request *ret,
                             struct brig_error *err);
int execution_result_encode(const struct execution_result *result, struct str *out,
                            struct brig_error *err);
int execution_result_decode(const void *bytes, size_t length, struct execution_result *ret,
                            struct brig_error *err);

const char *execution_status_name(enum execution_status status); /* "ok", "timeout", … */
/* EXECUTION_STATUSES_ if it is none. */
enum execution_status execution_status_from_name(const char *name);
const char *execution_severity_name(enum execution_severity severity);

/* "f47ac10b-58cc-4372-a567-0e02b2c3d479", lower or upper case. */
bool execution_id_is_valid(const char *text);
/* A random one (version 4), with its NUL. */
void execution_id_make(char ret_id[EXECUTION_ID_LENGTH + 1]);

/* A name of a file as it may stand in a request: relative, no empty part, "." or "..", no NUL, at most
 * EXECUTION_PARTS_MAX parts. */
bool execution_file_name_is_valid(const char *name);
