/* SPDX-License-Identifier: MIT */
/* An execution: its request and its result. The http process, the executor and the history process
 * exchange these as bytes.
 *
 * An execution has a run stage, and before it a compile stage if its runtime has a compiler
 * (runtime.compile). Both stages run in one jail, one after the other, with their own limits,
 * output, times and memory; /workspace and /tmp, which are in the jail's memory, stay. If the
 * compiler fails, the run stage is left out, and the result describes the compile stage
 * (execution_result.stage). Every dialect of the API translates to and from these structs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct brig_error;
struct json;
struct str;

#define EXECUTION_ID_LENGTH 36 /* a UUID as text */

/* Limits on one request; a request beyond one of them is refused with its name. */
#define EXECUTION_CODE_MAX ((size_t)1 << 20)
#define EXECUTION_STDIN_MAX ((size_t)4 << 20)
#define EXECUTION_INPUT_MAX ((size_t)1 << 20) /* more of it that waits for a program that runs */
#define EXECUTION_ARGS_MAX 64
#define EXECUTION_ENV_MAX 128
#define EXECUTION_FILES_MAX 256
#define EXECUTION_FILE_BYTES_MAX ((size_t)8 << 20) /* one file */
#define EXECUTION_RETURNS_MAX 32
#define EXECUTION_ALLOW_MAX 64
#define EXECUTION_EVENTS_MAX 64
#define EXECUTION_NAME_MAX 255 /* a file below /workspace, with its directories */
/* Components of a name: 256 names of 127 components would need 32000 directories, which take
 * seconds to make. */
#define EXECUTION_PARTS_MAX 16
#define EXECUTION_PATH_MAX 4096   /* work_dir */
#define EXECUTION_VALUE_MAX 32768 /* one argument or variable */
/* All arguments and variables: the kernel allows a quarter of the stack limit, usually 2 MiB. */
#define EXECUTION_WORDS_MAX ((size_t)3 << 19)
#define EXECUTION_MEMORY_MB_MIN 8 /* with less, a jail cannot be built */
#define EXECUTION_IDEMPOTENCY_MAX 255
#define EXECUTION_TRACEPARENT_LENGTH 55 /* W3C Trace Context, version 00 */
#define EXECUTION_PRIORITY_MAX 10       /* and -10 */
#define EXECUTION_URL_MAX 2048
#define EXECUTION_SECRET_MAX 256
#define EXECUTION_RLIMIT_KB_MAX ((uint64_t)1 << 20)
#define EXECUTION_NOTE_MAX ((size_t)16 << 20)
/* Limits on a result. */
#define EXECUTION_OUTPUT_MAX ((size_t)1 << 20)
#define EXECUTION_STDERR_MAX ((size_t)256 << 10)
/* Changes between the two streams that are recorded; the output after them is in order by stream. */
#define EXECUTION_PIECES_MAX 4096
#define EXECUTION_RETURNED_FILES_MAX 64
#define EXECUTION_RETURNED_BYTES_MAX ((size_t)8 << 20) /* all files together */

/* Arbitrary bytes; `data` is followed by a NUL that is not counted. */
struct execution_bytes {
    const char *data;
    size_t length;
};

struct execution_pair { /* environment variable */
    const char *name;
    const char *value;
};

struct execution_file {
    const char *name; /* relative, without "." and ".." */
    struct execution_bytes content;
    bool truncated; /* a returned file was cut off */
};

enum execution_severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };

/* Something suspicious in the code, or an observed denial. */
struct execution_event {
    const char *type;   /* "escape_attempt", "network_denied", …: a label of the metric */
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

enum execution_stage { STAGE_RUN, STAGE_COMPILE, STAGES_ };

/* Limits of one stage; 0: the runtime's default. */
struct execution_stage_limits {
    uint64_t timeout_ms; /* wall clock */
    uint64_t cpu_ms;     /* CPU time; there is no default limit */
    uint64_t memory_mb;
    /* Most bytes of each stream; a stage that writes more is ended (EXECUTION_OUTPUT_LIMIT). The
     * default: what is beyond EXECUTION_OUTPUT_MAX and EXECUTION_STDERR_MAX is left out, and a
     * stage that writes more than sandbox.max_output is ended. */
    uint64_t output_bytes;
};

/* All pointers are into the arena. */
struct execution_request {
    struct arena arena;
    const char *id;         /* UUID from the executor (if blocked, from the http process), or "" */
    const char *request_id; /* id of the HTTP request */
    const char *client;     /* address of the client */
    const char *domain;     /* the API key: first 16 hex digits of its hash; "" without keys */
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
    const char **allow; /* names that the network may reach */
    size_t allow_count;
    bool network;
    bool stream;                        /* the client wants output while it is written */
    const char *work_dir;               /* absolute, or NULL */
    uint64_t timeout_ms;                /* 0: the runtime's default */
    uint64_t limits[EXECUTION_LIMITS_]; /* 0: the runtime's default */
    struct execution_event *events;     /* found by the detector in the code */
    size_t event_count;
    const char *traceparent;     /* of the HTTP request, or "" */
    const char *idempotency_key; /* or "" */
    const char *body_sha256;     /* of the route and the body; with an idempotency key */
    /* POST /executions: */
    bool queued; /* waits in the queue of the history process */
    int priority;
    const char *callback_url, *callback_secret; /* or "" */
    const char *sandbox;                        /* id of the sandbox whose command it is, or NULL */
    /* Stages. The run stage has timeout_ms and limits[EXECUTION_MEMORY_MB] above, and: */
    uint64_t cpu_ms, output_bytes;         /* as in execution_stage_limits */
    struct execution_stage_limits compile; /* of the compile stage; ignored if there is none */
    const char **compile_args;             /* more arguments of the compiler */
    size_t compile_arg_count;
    const char *main; /* name of the file with the code, or NULL: the runtime's file_name */
    bool ordered;     /* the result tells in which order output came */
    bool interactive; /* standard input stays open; it arrives as MESSAGE_INPUT */
    uint64_t stack_kb, file_kb;  /* rlimits of the run stage; 0: none */
    bool alone;                  /* {files} of the compiler is the code only */
    struct execution_bytes note; /* of the dialect of the API, for the history (history/notes.h) */
    const char *home;            /* of a sandbox: sandbox_request.home; not encoded */
};

enum execution_status {
    EXECUTION_RUNNING,
    EXECUTION_OK,           /* exit code 0 */
    EXECUTION_ERROR,        /* another exit code, or a signal */
    EXECUTION_TIMEOUT,      /* wall clock */
    EXECUTION_CPU_TIMEOUT,  /* CPU time */
    EXECUTION_OOM,          /* memory */
    EXECUTION_KILLED,       /* by DELETE, by a disconnected client, or at shutdown */
    EXECUTION_OUTPUT_LIMIT, /* wrote too much output */
    EXECUTION_SETUP_FAILED, /* the code did not run; `message` says why */
    EXECUTION_LOST,         /* the executor died */
    EXECUTION_BLOCKED,      /* refused by the detector; in the history only */
    EXECUTION_QUEUED,       /* waits; in the history only */
    EXECUTION_STATUSES_
};

/* Why the code did not run. */
enum execution_fault {
    FAULT_SERVER,
    FAULT_REQUEST, /* `field` names the wrong field */
    FAULT_BUSY,    /* the client may retry */
    FAULTS_
};

/* The steps of an execution, in order, with their times. */
enum execution_step {
    STEP_DECODED,  /* http: the request is parsed and scanned */
    STEP_SENT,     /* http: sent to the executor */
    STEP_RECEIVED, /* executor: received */
    STEP_CHECKED,  /* executor: checked */
    STEP_JAIL,     /* executor: has a waiting jail, or is about to make one */
    STEP_RELEASED, /* executor: the command was released */
    STEP_OUTPUT,   /* executor: first byte of output */
    STEP_ENDED,    /* executor: all processes have ended */
    STEP_ANSWERED, /* http: the result has arrived */
    STEPS_
};

struct execution_trace {
    bool warm;              /* a waiting jail was used */
    uint64_t at_us[STEPS_]; /* monotonic clock; 0: did not happen */
};

const char *execution_step_name(enum execution_step step);

/* Output in order of arrival: so many bytes of one stream. */
struct execution_piece {
    bool error; /* of stderr */
    size_t length;
};

/* All pointers are into the arena. */
struct execution_result {
    struct arena arena;
    const char *id;
    const char *domain; /* of the request */
    bool kept;          /* the history stores the whole result for a while */
    enum execution_status status;
    int exit_code; /* -1: none */
    int signal;
    struct execution_bytes output;
    struct execution_bytes error_output;
    bool output_truncated;
    bool error_output_truncated;
    uint64_t duration_us;
    uint64_t cpu_time_us;
    uint64_t memory_peak_bytes;
    uint64_t pids_used;
    struct execution_event *events; /* events of the request, then observed ones */
    size_t event_count;
    struct execution_file *files; /* returned */
    size_t file_count;
    const char *message;     /* one line of text, or "" */
    const char **unenforced; /* restrictions that this machine could not enforce */
    size_t unenforced_count;
    int64_t started_ns;         /* since 1970 */
    enum execution_fault fault; /* for EXECUTION_SETUP_FAILED */
    const char *field;          /* "files", or "" */
    struct execution_trace trace;
    /* Which stage the members from `status` to `pids_used` describe: STAGE_COMPILE if the compiler
     * failed, and the code did not run. */
    enum execution_stage stage;
    /* The compile stage before the run stage: its members from `status` to `pids_used`, and
     * `order`; or NULL. */
    struct execution_result *compile;
    bool ordered; /* `order` is known; execution_interleave() uses it */
    struct execution_piece *order;
    size_t order_count;
};

/* Appends both streams in order of arrival; what the order does not cover comes last. */
void execution_interleave(const struct execution_result *result, struct str *out);

void execution_request_done(struct execution_request *request);
#define autorequest __attribute__((cleanup(execution_request_done)))
/* Leaves out what the history does not store: input, files, arguments and variables. */
void execution_request_thin(struct execution_request *request);
void execution_result_done(struct execution_result *result);
#define autoresult __attribute__((cleanup(execution_result_done)))

/* Encodes for another process (base/wire.h), appending to `out`, and decodes. Decoding trusts
 * nothing: it checks every length and count against the limits above, and fails with
 * BRIG_E_INVALID. */
int execution_request_encode(const struct execution_request *request, struct str *out,
                             struct brig_error *err);
int execution_request_decode(const void *bytes, size_t length, struct execution_request *ret,
                             struct brig_error *err);
int execution_result_encode(const struct execution_result *result, struct str *out,
                            struct brig_error *err);
int execution_result_decode(const void *bytes, size_t length, struct execution_result *ret,
                            struct brig_error *err);

const char *execution_status_name(enum execution_status status); /* "ok", "timeout", … */
/* Returns whether an execution with this status will not change any more. */
bool execution_status_is_final(enum execution_status status);
/* Returns EXECUTION_STATUSES_ for an unknown name. */
enum execution_status execution_status_from_name(const char *name);
const char *execution_severity_name(enum execution_severity severity);

/* "f47ac10b-58cc-4372-a567-0e02b2c3d479", lower or upper case. */
bool execution_id_is_valid(const char *text);
/* Makes a random UUID (version 4), with its NUL. */
void execution_id_make(char ret_id[EXECUTION_ID_LENGTH + 1]);

/* W3C Trace Context, version 00: lower-case hexadecimal, ids that are not 0. */
bool execution_traceparent_is_valid(const char *text);
/* 1 to EXECUTION_IDEMPOTENCY_MAX printable ASCII characters without blanks. */
bool execution_idempotency_key_is_valid(const char *text);

/* Returns whether a request may use this file name: relative, no empty component, "." or "..", no
 * NUL, at most EXECUTION_PARTS_MAX components. */
bool execution_file_name_is_valid(const char *name);
