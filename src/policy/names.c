/* SPDX-License-Identifier: MIT */
/* The words of the policy: one table per vocabulary. */
#include <string.h>

#include "base/cleanup.h"
#include "policy/layers.h"
#include "policy/policy.h"

struct word {
    int value;
    const char *name;
};

static const struct word mode_words[] = {{BRIG_MODE_CASUAL, "casual"},
                                         {BRIG_MODE_BARE, "bare"},
                                         {BRIG_MODE_STRICT, "strict"},
                                         {BRIG_MODE_SEALED, "sealed"}};

static const struct word view_words[] = {
    {BRIG_VIEW_SYSTEM, "system"}, {BRIG_VIEW_HOST, "host"}, {BRIG_VIEW_ROOT, "root"},
    {BRIG_VIEW_EMPTY, "empty"},   {VIEW_LAYERS, "layers"},
};

static const struct word access_words[] = {
    {BRIG_READ_WRITE, "read-write"}, {BRIG_READ_ONLY, "read-only"}, {BRIG_MASK, "mask"},
    {BRIG_DEVICE, "device"},         {BRIG_PROTECT, "protect"},
};

static const struct word network_words[] = {{BRIG_NET_NONE, "none"},
                                            {BRIG_NET_LOOPBACK, "loopback"},
                                            {BRIG_NET_ALLOW, "allow"},
                                            {BRIG_NET_OPEN, "open"},
                                            {BRIG_NET_HOST, "host"}};

static const struct word seccomp_words[] = {{BRIG_SECCOMP_DEV, "dev"}, {BRIG_SECCOMP_CODE, "code"}};

static const struct word limit_words[] = {
    {BRIG_LIMIT_WALL_MS, "wall_ms"},
    {BRIG_LIMIT_CPU_MS, "cpu_ms"},
    {BRIG_LIMIT_GRACE_MS, "grace_ms"},
    {BRIG_LIMIT_ADDRESS_SPACE, "address_space_bytes"},
    {BRIG_LIMIT_FILE_SIZE, "file_size_bytes"},
    {BRIG_LIMIT_OPEN_FILES, "open_files"},
    {BRIG_LIMIT_PROCESSES, "processes"},
    {BRIG_LIMIT_OUTPUT_BYTES, "output_bytes"},
    {BRIG_LIMIT_TMP_BYTES, "disk_bytes"},
    {BRIG_LIMIT_TMP_INODES, "disk_inodes"},
    {BRIG_LIMIT_MEMORY_BYTES, "memory_bytes"},
    {BRIG_LIMIT_CPU_PERCENT, "cpu_percent"},
    {BRIG_LIMIT_IO_READ_BYTES, "io_read_bytes_per_second"},
    {BRIG_LIMIT_IO_WRITE_BYTES, "io_write_bytes_per_second"},
    {BRIG_LIMIT_INOTIFY_WATCHES, "inotify_watches"},
    {BRIG_LIMIT_NET_CONNECTIONS, "net_connections"},
    {BRIG_LIMIT_NET_BYTES, "net_bytes"},
    {BRIG_LIMIT_NET_IDLE_MS, "net_idle_ms"},
};
_Static_assert(ARRAY_LENGTH(limit_words) == BRIG_LIMIT_COUNT_, "each limit has a name");

static const struct word layer_words[] = {
    {BRIG_LAYER_LANDLOCK, "landlock"}, {BRIG_LAYER_SECCOMP, "seccomp"},
    {BRIG_LAYER_CAPS, "caps"},         {BRIG_LAYER_NAMESPACES, "namespaces"},
    {BRIG_LAYER_NESTED, "nested"},
};

static const struct word on_unsupported_words[] = {
    {BRIG_UNSUPPORTED_FAIL, "fail"},
    {BRIG_UNSUPPORTED_WARN, "warn"},
    {BRIG_UNSUPPORTED_IGNORE, "ignore"},
};

#define WORDS(array) array, ARRAY_LENGTH(array)

/* The choices are constants, because a library without state cannot build them; the unit test
 * compares them with the tables. */
static const struct {
    const struct word *words;
    size_t count;
    const char *choices;
} vocabularies[] = {
    [POLICY_MODE] = {WORDS(mode_words), "casual, bare, strict or sealed"},
    [POLICY_VIEW] = {WORDS(view_words), "system, host, root or empty"},
    [POLICY_ACCESS] = {WORDS(access_words), "read-write, read-only, mask, device or protect"},
    [POLICY_NETWORK] = {WORDS(network_words), "none, loopback, allow, open or host"},
    [POLICY_SECCOMP] = {WORDS(seccomp_words), "dev or code"},
    [POLICY_LIMIT] = {WORDS(limit_words), NULL},
    [POLICY_LAYER] = {WORDS(layer_words), "landlock, seccomp, caps, namespaces or nested"},
    [POLICY_ON_UNSUPPORTED] = {WORDS(on_unsupported_words), "fail, warn or ignore"},
};

const char *policy_word(enum policy_vocabulary of, int value)
{
    for (size_t i = 0; i < vocabularies[of].count; i++)
        if (vocabularies[of].words[i].value == value)
            return vocabularies[of].words[i].name;
    return "?";
}

int policy_word_value(enum policy_vocabulary of, const char *word)
{
    for (size_t i = 0; word && i < vocabularies[of].count; i++)
        if (strcmp(vocabularies[of].words[i].name, word) == 0)
            return vocabularies[of].words[i].value;
    return -1;
}

const char *policy_choices(enum policy_vocabulary of)
{
    return vocabularies[of].choices;
}

/* ---- Modes: presets of a policy, one row each ---------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

/* Variables that describe the terminal and the language, but not a path, a socket, an agent or a
 * secret of the host. */
static const char *const env_keep_sealed[] = {
    "PATH", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "NO_COLOR", NULL,
};

static const struct policy_mode modes[] = {
    [BRIG_MODE_SEALED] =
        {
            .view = BRIG_VIEW_SYSTEM,
            .network = BRIG_NET_NONE,
            .seccomp = BRIG_SECCOMP_CODE,
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
            .home = POLICY_HOME_OVERLAY,
        },
    [BRIG_MODE_BARE] =
        {
            .view = BRIG_VIEW_HOST,
            .network = BRIG_NET_OPEN,
            .seccomp = BRIG_SECCOMP_DEV,
            .home = POLICY_HOME_PRIVATE,
        },
    [BRIG_MODE_STRICT] =
        {
            .view = BRIG_VIEW_SYSTEM,
            .network = BRIG_NET_OPEN,
            .seccomp = BRIG_SECCOMP_DEV,
            .home = POLICY_HOME_PRIVATE,
        },
};

const struct policy_mode *policy_mode_row(enum brig_mode mode)
{
    return (size_t)mode < ARRAY_LENGTH(modes) ? &modes[mode] : NULL;
}
