/* SPDX-License-Identifier: MIT */
/* The builders of a policy's choices and limits. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"

#define POLICY_FILES_MAX (UINT64_C(1) << 30)
#define POLICY_PROCESSES_MAX (UINT64_C(1) << 22) /* the kernel's highest pid_max */
#define POLICY_CONNECTIONS_MAX 65536             /* as many as one address has ports */
#define POLICY_INODES_MAX (UINT64_C(1) << 32)

int brig_policy_network(struct brig_policy *policy, enum brig_network network,
                        struct brig_error *err)
{
    if (network < BRIG_NET_NONE || network > BRIG_NET_OPEN)
        return policy_bad_value(err, "network", (int)network, policy_network_choices());
    policy->network = network;
    return 0;
}

int brig_policy_seccomp(struct brig_policy *policy, enum brig_seccomp profile,
                        struct brig_error *err)
{
    if (profile < BRIG_SECCOMP_DEV || profile > BRIG_SECCOMP_CODE)
        return policy_bad_value(err, "syscall profile", (int)profile, policy_seccomp_choices());
    policy->seccomp = profile;
    return 0;
}

int brig_policy_terminal(struct brig_policy *policy, enum brig_terminal terminal,
                         struct brig_error *err)
{
    if (terminal < BRIG_TERMINAL_AUTO || terminal > BRIG_TERMINAL_NONE)
        return policy_bad_value(err, "terminal", (int)terminal, "auto or none");
    policy->terminal = terminal;
    return 0;
}

int brig_policy_on_unsupported(struct brig_policy *policy, enum brig_on_unsupported what,
                               struct brig_error *err)
{
    if (what < BRIG_UNSUPPORTED_FAIL || what > BRIG_UNSUPPORTED_IGNORE)
        return policy_bad_value(err, "answer to what is unsupported", (int)what,
                                policy_on_unsupported_choices());
    policy->on_unsupported = what;
    return 0;
}

int brig_policy_allow_nested(struct brig_policy *policy, bool allow, struct brig_error *err)
{
    (void)err; /* the same form as every builder; nothing can be wrong with a truth value */
    policy->allow_nested = allow;
    return 0;
}

int brig_policy_unix_sockets(struct brig_policy *policy, bool allow, struct brig_error *err)
{
    (void)err;
    policy->unix_sockets = allow;
    return 0;
}

int brig_policy_trace(struct brig_policy *policy, bool trace, struct brig_error *err)
{
    (void)err; /* as above */
    policy->trace = trace;
    return 0;
}

int brig_policy_disable(struct brig_policy *policy, unsigned layers, struct brig_error *err)
{
    const unsigned known = BRIG_LAYER_LANDLOCK | BRIG_LAYER_SECCOMP | BRIG_LAYER_CAPS |
                           BRIG_LAYER_NAMESPACES | BRIG_LAYER_NESTED;
    if (layers & ~known)
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown layers 0x%x: %s", layers & ~known,
                         policy_layer_choices());
    policy->disabled_layers |= layers;
    return 0;
}

/* The largest value of each limit that the kernel's own arithmetic can take. */
static const uint64_t limit_max[BRIG_LIMIT_COUNT_] = {
    [BRIG_LIMIT_WALL_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_CPU_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_GRACE_MS] = PARSE_DURATION_MS_MAX,
    [BRIG_LIMIT_ADDRESS_SPACE] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_FILE_SIZE] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_OPEN_FILES] = POLICY_FILES_MAX,
    [BRIG_LIMIT_PROCESSES] = POLICY_PROCESSES_MAX,
    [BRIG_LIMIT_OUTPUT_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_TMP_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_TMP_INODES] = POLICY_INODES_MAX,
    [BRIG_LIMIT_MEMORY_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_CPU_PERCENT] = POLICY_CPU_PERCENT_MAX,
    [BRIG_LIMIT_IO_READ_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_IO_WRITE_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_INOTIFY_WATCHES] = INT32_MAX,
    [BRIG_LIMIT_NET_CONNECTIONS] = POLICY_CONNECTIONS_MAX,
    [BRIG_LIMIT_NET_BYTES] = PARSE_SIZE_MAX,
    [BRIG_LIMIT_NET_IDLE_MS] = PARSE_DURATION_MS_MAX,
};

/* Less memory than this the kernel takes from whoever starts the jail: until its exec the first
 * process has the memory of its caller, and the smallest programs need some. */
static const uint64_t limit_min[BRIG_LIMIT_COUNT_] = {
    [BRIG_LIMIT_MEMORY_BYTES] = UINT64_C(8) << 20,
};

int brig_policy_limit(struct brig_policy *policy, enum brig_limit limit, uint64_t value,
                      struct brig_error *err)
{
    if ((size_t)limit >= ARRAY_LENGTH(limit_max))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown limit %d", (int)limit);
    if (value > limit_max[limit])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "limit %s of %" PRIu64 " is too large: at most %" PRIu64,
                         policy_limit_name(limit), value, limit_max[limit]);
    if (value != 0 && value < limit_min[limit])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "limit %s of %" PRIu64 " is too small: at least %" PRIu64,
                         policy_limit_name(limit), value, limit_min[limit]);
    policy->limits[limit] = value;
    policy->limits_asked |= 1U << limit;
    return 0;
}
