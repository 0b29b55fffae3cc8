/* SPDX-License-Identifier: MIT */
/* What can be run: a table of built-in runtimes, over which the configuration lays its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "server/execution.h"

#define RUNTIME_ARGV_MAX 16
#define RUNTIMES_MAX 64

enum runtime_input {
    RUNTIME_FILE,  /* the code is a read-only file in /workspace; "{file}" in argv is its path */
    RUNTIME_STDIN, /* the code is the standard input: a prompt */
};

/* How a jail waits for its code; see executor/pool.h. */
enum runtime_parking {
    PARKING_EXEC, /* as PARKING_OPEN a word of earlier configurations: none */
    PARKING_OPEN,
    PARKING_NODE,   /* Node runs, and waits before the file */
    PARKING_ZYGOTE, /* forked from a running Python of the same API key */
    PARKING_NONE,
};

/* Strings are owned by the config, or static. In argv: {file} the code, {memory_mb} the limit. */
struct runtime {
    const char *name;
    const char *aliases[4];                /* "python3", "javascript", … */
    const char *argv[RUNTIME_ARGV_MAX];    /* ended by NULL; argv[0] is looked up in the jail */
    const char *compile[RUNTIME_ARGV_MAX]; /* run first, in the same jail; argv[0] NULL: none */
    const char *file_name;                 /* "main.py" */
    const char *package;                   /* to install where the interpreter is missing */
    const char *root;                      /* a root directory for it, or NULL: the host's system */
    enum runtime_input input;
    enum brig_seccomp profile;
    bool agent;           /* fresh writable home, work_dir, network to `allow` alone, credentials */
    bool disabled;        /* by configuration */
    const char *allow[8]; /* names its network always reaches */
    /* Defaults, and the most that a request may ask for. 0 means the server's until the configuration
     * is complete. */
    uint64_t limits[EXECUTION_LIMITS_], max_limits[EXECUTION_LIMITS_];
    uint64_t timeout_ms, max_timeout_ms;
    enum runtime_parking parking;
    uint64_t pool_min, pool_max; /* how many jails wait; 0: as many as the server's say */
    const char *origin;          /* "built in", or file:line */
};

/* "memory_mb", "pids_limit", "disk_mb", "cpu_percent". */
extern const char *const runtime_limit_names[EXECUTION_LIMITS_];

/* The built-in ones: python, node, bash, claude. */
extern const struct runtime runtime_table[];
extern const size_t runtime_table_count;

/* The uid inside the jail: of code, and of agents, which have a home. */
#define RUNTIME_CODE_UID 65534
#define RUNTIME_AGENT_UID 1000

/* Where things are in every jail. */
#define RUNTIME_WORKSPACE "/workspace" /* the code and the request's files, or the work_dir */
#define RUNTIME_OUTPUT "/output"       /* what is returned is looked for here */
#define RUNTIME_HOME "/home/agent"     /* of agents */
/* The system's own programs before what somebody put beside them. */
#define RUNTIME_PATH "/usr/bin:/bin:/usr/local/bin"

#define RUNTIME_REASON_MAX 512

/* Whether it can be run on this machine; if not, `reason` says what is missing and the remedy. */
bool runtime_is_available(const struct runtime *runtime, char reason[RUNTIME_REASON_MAX]);

/* Which file its program is, to notice another one. */
struct runtime_program {
    uint64_t device, inode, bytes;
    int64_t modified_ns;
};
/* False if there is none. */
bool runtime_find_program(const struct runtime *runtime, struct runtime_program *ret_program);

/* What is executed in the jail, ended by NULL, in the arena: its argv with {file} and {memory_mb} put in
 * and the arguments behind. With a compile step it is a shell that does one after the other. NULL when
 * memory is short. */
const char **runtime_command(const struct runtime *runtime, uint64_t memory_mb,
                             const char *const *args, size_t arg_count, struct arena *arena);

/* One runtime for GET /runtimes, as an object of an array. */
void runtime_json(const struct runtime *runtime, struct json *json);
