/* SPDX-License-Identifier: MIT */
/* The modes: presets of a policy, one row each. */
#include "policy/modes.h"

#include "base/cleanup.h"

#define MIB (UINT64_C(1) << 20)

/* What describes the terminal and the language. Nothing that names a place, a socket, an agent or
 * a secret of the host. */
static const char *const env_keep_sealed[] = {
    "PATH", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "NO_COLOR", NULL,
};

static const struct policy_mode modes[] = {
    [BRIG_MODE_SEALED] =
        {
            .view = BRIG_VIEW_SYSTEM,
            .network = BRIG_NET_NONE,
            .seccomp = BRIG_SECCOMP_CODE,
            .hostname = "brig",
            .env_keep = env_keep_sealed,
            .limits =
                {
                    [BRIG_LIMIT_OUTPUT_BYTES] = 1 * MIB,
                    [BRIG_LIMIT_TMP_BYTES] = 512 * MIB,
                    [BRIG_LIMIT_TMP_INODES] = 65536,
                    [BRIG_LIMIT_MEMORY_BYTES] = 512 * MIB,
                    [BRIG_LIMIT_CPU_PERCENT] = 100,
                    [BRIG_LIMIT_PROCESSES] = 1024,
                },
        },
    [BRIG_MODE_CASUAL] =
        {
            .view = BRIG_VIEW_HOST,
            .network = BRIG_NET_OPEN,
            .seccomp = BRIG_SECCOMP_DEV,
            .hostname = "brig",
            .home = POLICY_HOME_OVERLAY,
        },
    [BRIG_MODE_BARE] =
        {
            .view = BRIG_VIEW_HOST,
            .network = BRIG_NET_OPEN,
            .seccomp = BRIG_SECCOMP_DEV,
            .hostname = "brig",
            .home = POLICY_HOME_PRIVATE,
        },
    [BRIG_MODE_STRICT] =
        {
            .view = BRIG_VIEW_SYSTEM,
            .network = BRIG_NET_OPEN,
            .seccomp = BRIG_SECCOMP_DEV,
            .hostname = "brig",
            .home = POLICY_HOME_PRIVATE,
        },
};

const struct policy_mode *policy_mode_row(enum brig_mode mode)
{
    return (size_t)mode < ARRAY_LENGTH(modes) ? &modes[mode] : NULL;
}
