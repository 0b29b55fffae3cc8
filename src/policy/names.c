/* SPDX-License-Identifier: MIT */
/* The words of the policy: one table per vocabulary. */
#include <string.h>

#include "base/cleanup.h"
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
    {BRIG_VIEW_SYSTEM, "system"},
    {BRIG_VIEW_HOST, "host"},
    {BRIG_VIEW_ROOT, "root"},
    {BRIG_VIEW_EMPTY, "empty"},
};

static const struct word access_words[] = {
    {BRIG_READ_WRITE, "read-write"}, {BRIG_READ_ONLY, "read-only"}, {BRIG_MASK, "mask"},
    {BRIG_DEVICE, "device"},         {BRIG_PROTECT, "protect"},
};

static const struct word network_words[] = {{BRIG_NET_NONE, "none"},
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

static const char *name_in(const struct word *words, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (words[i].value == value)
            return words[i].name;
    return "?";
}

static int value_in(const struct word *words, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].value;
    return -1;
}

#define NAME_OF(words, value) name_in(words, ARRAY_LENGTH(words), (int)(value))
#define VALUE_OF(words, name) value_in(words, ARRAY_LENGTH(words), name)

const char *policy_mode_name(enum brig_mode mode)
{
    return NAME_OF(mode_words, mode);
}

const char *policy_view_name(enum brig_view view)
{
    return NAME_OF(view_words, view);
}

const char *policy_access_name(enum brig_access access)
{
    return NAME_OF(access_words, access);
}

const char *policy_network_name(enum brig_network network)
{
    return NAME_OF(network_words, network);
}

const char *policy_seccomp_name(enum brig_seccomp profile)
{
    return NAME_OF(seccomp_words, profile);
}

const char *policy_limit_name(enum brig_limit limit)
{
    return NAME_OF(limit_words, limit);
}

const char *policy_layer_name(enum brig_layer layer)
{
    return NAME_OF(layer_words, layer);
}

const char *policy_on_unsupported_name(enum brig_on_unsupported what)
{
    return NAME_OF(on_unsupported_words, what);
}

int policy_mode_parse(const char *name)
{
    return VALUE_OF(mode_words, name);
}

int policy_view_parse(const char *name)
{
    return VALUE_OF(view_words, name);
}

int policy_network_parse(const char *name)
{
    return VALUE_OF(network_words, name);
}

int policy_seccomp_parse(const char *name)
{
    return VALUE_OF(seccomp_words, name);
}

int policy_layer_parse(const char *name)
{
    return VALUE_OF(layer_words, name);
}

int policy_on_unsupported_parse(const char *name)
{
    return VALUE_OF(on_unsupported_words, name);
}

/* Written out, as a library without state has nowhere to build them; the unit test holds them
 * against the tables. */
const char *policy_mode_choices(void)
{
    return "casual, bare, strict or sealed";
}

const char *policy_view_choices(void)
{
    return "system, host, root or empty";
}

const char *policy_network_choices(void)
{
    return "none, allow, open or host";
}

const char *policy_seccomp_choices(void)
{
    return "dev or code";
}

const char *policy_layer_choices(void)
{
    return "landlock, seccomp, caps, namespaces or nested";
}

const char *policy_on_unsupported_choices(void)
{
    return "fail, warn or ignore";
}
