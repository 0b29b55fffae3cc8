/* SPDX-License-Identifier: MIT */
/* The built-in runtimes. A limit or time of 0 is what the configuration says for all of them. */
#include "server/runtime.h"

#include "base/own.h"

#define CODE_UID 65534
#define AGENT_UID 1000

const struct runtime runtime_table[] = {
    {.name = "python",
     .aliases = {"python3", "py"},
     .argv = {"python3", "-u", "-B", "{file}"},
     .file_name = "main.py",
     .package = "python3",
     .profile = BRIG_SECCOMP_CODE,
     .inside_uid = CODE_UID,
     .origin = "built in"},
    {.name = "node",
     .aliases = {"javascript", "js"},
     .argv = {"node", "--max-old-space-size={memory_mb}", "{file}"},
     .file_name = "main.js",
     .package = "nodejs",
     .profile = BRIG_SECCOMP_CODE,
     .inside_uid = CODE_UID,
     .origin = "built in"},
    {.name = "bash",
     .aliases = {"sh", "shell"},
     .argv = {"/bin/sh", "-e", "-u", "{file}"},
     .file_name = "main.sh",
     .package = "dash",
     .profile = BRIG_SECCOMP_CODE,
     .inside_uid = CODE_UID,
     .origin = "built in"},
    {.name = "claude",
     .argv = {"claude", "-p", "--dangerously-skip-permissions"},
     .file_name = "prompt.txt",
     .package = "claude-code",
     .input = RUNTIME_STDIN,
     .profile = BRIG_SECCOMP_DEV,
     .inside_uid = AGENT_UID,
     .agent = true,
     .allow = {"api.anthropic.com"},
     .limits = {[EXECUTION_MEMORY_MB] = 1024,
                [EXECUTION_PIDS] = 200,
                [EXECUTION_DISK_MB] = 500,
                [EXECUTION_CPU_PERCENT] = 200},
     .timeout_ms = 300000,
     .origin = "built in"},
};
const size_t runtime_table_count = ARRAY_LENGTH(runtime_table);
