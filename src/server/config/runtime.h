/* SPDX-License-Identifier: MIT */
/* The runtimes: a built-in table, which the configuration can change and extend. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "server/execution.h"

#define RUNTIME_ARGV_MAX 16
#define RUNTIME_ALIASES_MAX 8
#define RUNTIMES_MAX 64

enum runtime_input {
    RUNTIME_FILE,  /* the code is a file in /workspace; "{file}" in argv is its path */
    RUNTIME_STDIN, /* the code is the standard input (a prompt) */
};

/* How far a jail gets before its code arrives; see executor/pool.h. */
enum runtime_parking {
    PARKING_EXEC, /* like PARKING_OPEN accepted from earlier configurations: same as PARKING_NONE */
    PARKING_OPEN,
    PARKING_NODE,   /* Node is running, and waits before it opens the file */
    PARKING_ZYGOTE, /* forked from a running Python for the same API key */
    PARKING_NONE,
};

/* What runs a runtime with an image: see executor/backend.h. */
enum runtime_backend {
    BACKEND_BRIG, /* brig's own jail */
    BACKEND_CRUN,
    BACKEND_RUNC,
    BACKEND_RUNSC,
};
/* "brig", "crun", "runc", "runsc", NULL. */
extern const char *const runtime_backend_names[];

/* Strings are owned by the config, or static. In argv and compile {file} is replaced by the code's
 * path, {memory_mb} by the limit, and a word {files} by the paths of the code and of all files of
 * the request with the suffix of file_name. */
struct runtime {
    const char *name;
    const char *aliases[RUNTIME_ALIASES_MAX]; /* ended by NULL: "python3", "py", … */
    const char *argv[RUNTIME_ARGV_MAX];       /* ended by NULL; argv[0] is searched in the jail */
    const char *compile[RUNTIME_ARGV_MAX];    /* the compile stage; its argv[0] NULL: none */
    const char *file_name;                    /* "main.py" */
    const char *version_argument; /* makes the program print its version; NULL: "--version" */
    const char *package;          /* package to install if the interpreter is missing */
    const char *root;             /* root directory, or NULL: the host's system */
    const char *image;            /* the same of an image, see docs/images.md; or NULL */
    struct image *opened;         /* the image, in the executor: executor/images.h */
    const char *image_problem;    /* why it, or its backend, cannot be used */
    enum runtime_backend backend;
    const char *backend_program; /* its path, in the executor; NULL: see image_problem */
    enum runtime_input input;
    enum brig_seccomp profile;
    bool agent;           /* writable home, work_dir, network limited to `allow`, credentials */
    bool disabled;        /* disabled in the configuration */
    const char *allow[8]; /* names that its network can always reach */
    /* Defaults, and maxima for requests. 0 means the server's value until the configuration is
     * complete. */
    uint64_t limits[EXECUTION_LIMITS_], max_limits[EXECUTION_LIMITS_];
    uint64_t timeout_ms, max_timeout_ms;
    enum runtime_parking parking;
    uint64_t pool_min, pool_max; /* number of waiting jails; 0: the server's values */
    const char *origin;          /* "built in", or file:line */
};

/* "memory_mb", "pids_limit", "disk_mb", "cpu_percent". */
extern const char *const runtime_limit_names[EXECUTION_LIMITS_];

/* The built-in runtimes. */
extern const struct runtime runtime_table[];
extern const size_t runtime_table_count;

/* The uid inside the jail, for code and for agents; agents have a home. */
#define RUNTIME_CODE_UID 65534
#define RUNTIME_AGENT_UID 1000

/* Paths in every jail. */
#define RUNTIME_WORKSPACE "/workspace" /* the code and the request's files, or the work_dir */
#define RUNTIME_OUTPUT "/output"       /* returned files are searched here */
#define RUNTIME_HOME "/home/agent"     /* for agents */
/* The distribution's programs take precedence over /usr/local. */
#define RUNTIME_PATH "/usr/bin:/bin:/usr/local/bin"

#define RUNTIME_REASON_MAX 512

/* Returns whether the runtime can run on this machine; if not, `reason` says what is missing and
 * the remedy. */
bool runtime_is_available(const struct runtime *runtime, char reason[RUNTIME_REASON_MAX]);

/* The program that must be installed: the compiler, or the interpreter. */
const char *runtime_program_name(const struct runtime *runtime);
/* Identifies the program file, to notice when it is replaced. */
struct runtime_program {
    uint64_t device, inode, bytes;
    int64_t modified_ns;
};
/* Returns false if the program does not exist. */
bool runtime_find_program(const struct runtime *runtime, struct runtime_program *ret_program);

/* The name of the file with the code, in /workspace: the request's, or the runtime's. */
const char *runtime_file_name(const struct runtime *runtime,
                              const struct execution_request *request);
/* Returns the command of a stage, ended by NULL, in the arena: `compile` or `argv` with {file},
 * {files} and {memory_mb} replaced, followed by the request's arguments for the stage. NULL if
 * memory ran out. */
const char **runtime_command(const struct runtime *runtime, enum execution_stage stage,
                             const struct execution_request *request, uint64_t memory_mb,
                             struct arena *arena);

/* Writes one runtime for GET /runtimes, as an object in an array. The version may be "". */
void runtime_json(const struct runtime *runtime, const char *version, struct json *json);
