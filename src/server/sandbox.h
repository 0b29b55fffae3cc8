/* SPDX-License-Identifier: MIT */
/* Sandboxes: long-lived jails, commands in them, and their files. Requests of the http process and
 * the executor's answers, which they exchange as bytes. Every dialect of the API translates to and
 * from these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/execution.h"

struct brig_error;
struct str;

#define SANDBOX_NAME_MAX 128
#define SANDBOX_METADATA_MAX 64     /* pairs */
#define SANDBOX_METADATA_BYTES 4096 /* one value */
#define SANDBOX_PATH_MAX 4095       /* of a file */
#define SANDBOX_LIST_MAX 10000      /* entries of a directory; sandboxes */
#define SANDBOX_CONTEXTS_MAX 16     /* of one sandbox */
#define SANDBOX_COMMANDS_MAX 128    /* of one sandbox, running and ended ones that are kept */
#define SANDBOX_FILE_MAX ((size_t)24 << 20) /* one request for the content of a file */
#define SANDBOX_DEPTH_MAX 64
#define SANDBOX_SIZE_MAX 10000 /* rows or columns of a terminal */
#define SANDBOX_TOKEN_LENGTH 36

enum sandbox_operation {
    SANDBOX_CREATE,
    SANDBOX_LIST,
    SANDBOX_GET,
    SANDBOX_END,
    SANDBOX_TIMEOUT, /* a new deadline */
    SANDBOX_PAUSE,
    SANDBOX_RESUME,
    SANDBOX_START, /* a command */
    SANDBOX_COMMANDS,
    SANDBOX_COMMAND, /* one command */
    SANDBOX_INPUT,
    SANDBOX_SIGNAL,
    SANDBOX_RESIZE,
    /* Files. The executor passes them to a program in the sandbox. */
    SANDBOX_READ,
    SANDBOX_WRITE,
    SANDBOX_REMOVE,
    SANDBOX_ENTRIES,
    SANDBOX_STAT,
    SANDBOX_MOVE,
    SANDBOX_MAKE,
    SANDBOX_WATCH,
    SANDBOX_RELAY, /* `bytes` to a TCP port in the sandbox, which is `command`, and what it answers */
    /* Contexts: interpreters that keep their state. `command` is the number of one. */
    SANDBOX_CONTEXT_CREATE,
    SANDBOX_CONTEXTS,
    SANDBOX_CONTEXT, /* one context */
    SANDBOX_CONTEXT_END,
    SANDBOX_CONTEXT_RESTART,
    SANDBOX_CONTEXT_INTERRUPT,
    SANDBOX_CONTEXT_RUN, /* code, which is `bytes`; context 0: the default one of the language */
    /* Others. */
    SANDBOX_NETWORK, /* new rules */
    SANDBOX_FORK,    /* a new sandbox with a copy of the files */
    SANDBOX_OPERATIONS_
};

/* How long the answer to SANDBOX_START and SANDBOX_COMMAND takes. */
enum sandbox_wait {
    SANDBOX_AT_ONCE,
    SANDBOX_UNTIL_END,
    SANDBOX_FOLLOW, /* the same, and output is sent as it comes (MESSAGE_SANDBOX_PIECE) */
};

enum sandbox_state { SANDBOX_RUNNING, SANDBOX_PAUSED, SANDBOX_ENDING, SANDBOX_STATES_ };

/* One struct for all operations, each of which uses a part of it. Pointers are into the arena. */
struct sandbox_request {
    struct arena arena;
    enum sandbox_operation operation;
    const char *request_id, *client, *domain; /* as in execution_request */
    const char *id;                           /* of the sandbox, "" for SANDBOX_CREATE and _LIST */
    uint64_t command;                         /* its number */
    const char *language, *name;              /* SANDBOX_CREATE; language NULL: the default */
    uint64_t timeout_ms;                      /* deadline; time limit of a command; 0: default */
    uint64_t cpu_ms;                          /* CPU time of a command; 0: no limit */
    uint64_t limits[EXECUTION_LIMITS_];       /* 0: default */
    struct execution_pair *env;
    size_t env_count;
    struct execution_pair *metadata; /* SANDBOX_LIST: those that must be equal */
    size_t metadata_count;
    bool network;
    const char **allow;
    size_t allow_count;
    const char **args; /* of a command */
    size_t arg_count;
    const char *cwd;              /* or NULL */
    struct execution_bytes bytes; /* standard input, or the content of a file */
    bool keep_input;              /* standard input stays open; SANDBOX_INPUT: not the last bytes */
    bool pty;
    uint64_t rows, columns;
    enum sandbox_wait wait;
    uint64_t signal;
    unsigned states; /* SANDBOX_LIST: bits of enum sandbox_state; 0: all */
    /* Files */
    const char *path, *target;
    uint64_t offset, length, depth, mode;
    bool append, recursive;
    /* Proves that the client may use the sandbox, in place of its API key; or "". */
    const char *token;
    const char *home;  /* SANDBOX_CREATE: a home and working directory of its own, or NULL */
    const char *image; /* SANDBOX_CREATE: its root directory; NULL: the runtime's */
    bool pauses;       /* SANDBOX_CREATE: it is paused at its deadline, not ended */
    bool tied;         /* SANDBOX_START: the command ends when its caller leaves */
    /* SANDBOX_START: a repeated request gets the same command; or NULL. */
    const char *idempotency_key, *body_sha256;
};

/* Why a request was not carried out. */
enum sandbox_fault {
    SANDBOX_OK,
    SANDBOX_NOT_FOUND,   /* no such sandbox */
    SANDBOX_NO_COMMAND,  /* no such command */
    SANDBOX_LOST,        /* it ended with an earlier executor */
    SANDBOX_INVALID,     /* `field` has a wrong value */
    SANDBOX_LANGUAGE,    /* unknown */
    SANDBOX_UNAVAILABLE, /* the language is not installed */
    SANDBOX_FORBIDDEN,   /* network */
    SANDBOX_LIMIT,       /* as many as the key may have */
    SANDBOX_BUSY,        /* too many; try again later */
    SANDBOX_CONFLICT,    /* not in this state */
    SANDBOX_UNSUPPORTED, /* this machine cannot */
    SANDBOX_FAILED,      /* the jail or the command could not be started */
    SANDBOX_NO_FILE,
    SANDBOX_EXISTS,
    SANDBOX_REFUSED,  /* the file's permissions */
    SANDBOX_KIND,     /* not a regular file, or not a directory */
    SANDBOX_LARGE,    /* file */
    SANDBOX_NO_SPACE, /* disk limit */
    SANDBOX_NO_FILES, /* the program that serves files was killed or does not answer */
    SANDBOX_KEY_USED, /* the idempotency key, by another request */
    SANDBOX_FAULTS_
};

struct sandbox_info {
    const char *id, *name, *language;
    const char *image; /* or NULL */
    enum sandbox_state state;
    int64_t created_ns;
    int64_t deadline_ns; /* 0 while it is paused */
    uint64_t left_ms;    /* until the deadline, also while it is paused */
    struct execution_pair *metadata;
    size_t metadata_count;
    uint64_t limits[EXECUTION_LIMITS_];
    bool network;
    const char **allow;
    size_t allow_count;
    uint64_t commands; /* running */
    /* Usage, for SANDBOX_GET; 0 if it is not counted. */
    uint64_t memory_bytes, memory_peak_bytes, pids, cpu_us, oom_kills;
    const char **unenforced;
    size_t unenforced_count;
    const char *token; /* see sandbox_request; "" in lists */
    bool pauses;
};

struct sandbox_command {
    uint64_t number;
    const char *id; /* of the execution */
    const char **args;
    size_t arg_count;
    const char *cwd; /* or NULL */
    bool pty;
    int64_t started_ns;
    /* An encoded execution_result, with what is kept of the output; status EXECUTION_RUNNING while
     * it runs. "" in lists of commands that run. */
    struct execution_bytes result;
};

struct sandbox_context {
    uint64_t number;
    const char *language, *cwd; /* cwd may be NULL: the sandbox's */
    bool is_default;            /* of its language */
    uint64_t runs;              /* that run or wait */
    uint64_t count;             /* runs since its interpreter was started */
    int64_t created_ns;
};

enum sandbox_kind { SANDBOX_FILE, SANDBOX_DIRECTORY, SANDBOX_LINK, SANDBOX_OTHER };

struct sandbox_entry {
    const char *path, *target; /* target NULL: not a link */
    enum sandbox_kind kind;
    uint64_t mode, uid, gid, size;
    int64_t modified_ns;
};

/* Pointers are into the arena, or borrowed. */
struct sandbox_answer {
    struct arena arena;
    enum sandbox_fault fault;
    const char *field, *message; /* "" */
    bool more;                   /* of SANDBOX_FOLLOW or SANDBOX_WATCH: it has begun */
    struct sandbox_info *sandboxes;
    size_t sandbox_count;
    struct sandbox_command *commands;
    size_t command_count;
    struct sandbox_entry *entries;
    size_t entry_count;
    bool incomplete;              /* a list was cut off; SANDBOX_MAKE: it existed */
    struct execution_bytes bytes; /* of a file */
    uint64_t file_size;
    bool replayed; /* SANDBOX_START: the command of an earlier request */
    bool ending;   /* the sandbox ends, and its commands with it */
    /* Of SANDBOX_CONTEXT_RUN the context and, as `commands`, the run; its results are `bytes`: lines
     * as SANDBOX_RESULT and SANDBOX_FAILURE. */
    struct sandbox_context *contexts;
    size_t context_count;
};

/* The first byte of a MESSAGE_SANDBOX_PIECE. */
enum sandbox_piece {
    SANDBOX_STDOUT = 1,
    SANDBOX_STDERR,
    SANDBOX_TERMINAL,
    SANDBOX_CHANGE, /* of a watched directory: one byte enum guest_change, then the name */
    SANDBOX_GAP,    /* output before was dropped */
    /* What an interpreter says, as JSON; whatever runs in the sandbox may have written it. */
    SANDBOX_RESULT,  /* {"type":"result","run":1,"main":true,"data":{MIME type: text or JSON}} */
    SANDBOX_FAILURE, /* {"type":"error","run":1,"name":"…","value":"…","traceback":"…"} */
};

void sandbox_request_done(struct sandbox_request *request);
#define autosandbox __attribute__((cleanup(sandbox_request_done)))
void sandbox_answer_done(struct sandbox_answer *answer);
#define autoanswer __attribute__((cleanup(sandbox_answer_done)))

/* Copies a path without "." components, repeated slashes and a slash at its end; ".." stays. What is
 * left of "./" is ".". */
void sandbox_tidy_path(const char *path, char ret_path[SANDBOX_PATH_MAX + 1]);

/* As for executions: decoding checks every length and count, and fails with BRIG_E_INVALID. The
 * texts of a decoded answer point into the bytes. */
int sandbox_request_encode(const struct sandbox_request *request, struct str *out,
                           struct brig_error *err);
int sandbox_request_decode(const void *bytes, size_t length, struct sandbox_request *ret,
                           struct brig_error *err);
int sandbox_answer_encode(const struct sandbox_answer *answer, struct str *out,
                          struct brig_error *err);
int sandbox_answer_decode(const void *bytes, size_t length, struct sandbox_answer *ret,
                          struct brig_error *err);
