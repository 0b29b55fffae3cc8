/* SPDX-License-Identifier: MIT */
/* Landlock as tables: the rights of each ABI, and the rights of each kind of grant. */
#include "jail/confine/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/job/result.h"

/* The numbers are the kernel's (include/uapi/linux/landlock.h), repeated under other names because
 * the headers of the oldest supported distribution end at ABI 2. */
#define LL_CREATE_RULESET_VERSION 1u

#define LL_EXECUTE (1ull << 0)
#define LL_WRITE_FILE (1ull << 1)
#define LL_READ_FILE (1ull << 2)
#define LL_READ_DIR (1ull << 3)
#define LL_REMOVE_DIR (1ull << 4)
#define LL_REMOVE_FILE (1ull << 5)
#define LL_MAKE_CHAR (1ull << 6)
#define LL_MAKE_DIR (1ull << 7)
#define LL_MAKE_REG (1ull << 8)
#define LL_MAKE_SOCK (1ull << 9)
#define LL_MAKE_FIFO (1ull << 10)
#define LL_MAKE_BLOCK (1ull << 11)
#define LL_MAKE_SYM (1ull << 12)
#define LL_REFER (1ull << 13)
#define LL_TRUNCATE (1ull << 14)
#define LL_IOCTL_DEV (1ull << 15)
#define LL_RESOLVE_UNIX (1ull << 16)

#define LL_BIND_TCP (1ull << 0)
#define LL_CONNECT_TCP (1ull << 1)
#define LL_BIND_UDP (1ull << 2)
#define LL_CONNECT_SEND_UDP (1ull << 3)

#define LL_SCOPE_ABSTRACT_UNIX (1ull << 0)
#define LL_SCOPE_SIGNAL (1ull << 1)

#define ABI_TRUNCATE 3
#define ABI_NET 4
#define ABI_SCOPE 6

#define LL_V1                                                                                      \
    (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_READ_DIR | LL_REMOVE_DIR | LL_REMOVE_FILE |    \
     LL_MAKE_CHAR | LL_MAKE_DIR | LL_MAKE_REG | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_BLOCK |      \
     LL_MAKE_SYM)

/* The rights that a rule on a file other than a directory may have; any other is EINVAL. */
#define LL_OF_A_FILE                                                                               \
    (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV | LL_RESOLVE_UNIX)

/* What an ABI added. Only rights of released kernels are listed, and an ABI newer than the table is
 * used as the newest known: a right that is not handled is not restricted. ABI 7 added flags for
 * the audit log, ABI 8 one for threads; neither is a right. */
struct abi_row {
    int abi;
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
    const char *alone; /* what a lower ABI leaves open without namespaces */
};

static const struct abi_row abi_rows[] = {
    {.abi = 1, .fs = LL_V1}, /* 5.13 */
    /* 5.19. With ABI 1 the kernel refuses every move and link from one directory to another. */
    {.abi = 2, .fs = LL_REFER},
    {.abi = 3,           /* 6.2 */
     .fs = LL_TRUNCATE}, /* see landlock_stand_alone() */
    {.abi = 4,           /* 6.7 */
     .net = LL_BIND_TCP | LL_CONNECT_TCP},
    {.abi = 5, /* 6.10 */
     .fs = LL_IOCTL_DEV,
     .alone = "ioctls on devices that can be opened are not restricted (needs Landlock ABI 5)"},
    {.abi = 6, /* 6.12 */
     .scoped = LL_SCOPE_ABSTRACT_UNIX | LL_SCOPE_SIGNAL,
     .alone = "processes outside the jail can be signalled (needs Landlock ABI 6)"},
    {.abi = 9, /* 7.1 */
     .fs = LL_RESOLVE_UNIX,
     .alone = "UNIX sockets outside the grants can be connected to (needs Landlock ABI 9)"},
    {.abi = 10, /* 7.2 */
     .net = LL_BIND_UDP | LL_CONNECT_SEND_UDP},
};

/* The rights of a grant. Creating character and block devices is not included: without privilege
 * only overlay whiteouts can be created, which a nested sandbox needs, and it is not restricted
 * here. Opening a device with O_TRUNC (`> /dev/null`) does not need TRUNCATE: only regular files
 * are truncated. */
static const uint64_t grant_rights[] = {
    [LANDLOCK_GRANT_READ] = LL_READ_FILE | LL_READ_DIR | LL_EXECUTE,
    [LANDLOCK_GRANT_WRITE] = LL_READ_FILE | LL_READ_DIR | LL_EXECUTE | LL_WRITE_FILE | LL_TRUNCATE |
                             LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_DIR | LL_MAKE_REG |
                             LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_SYM | LL_REFER | LL_RESOLVE_UNIX,
    /* The root of an image: the mounts on it decide what is writable below it. Sockets of the host
     * in a read-only grant must not become reachable. */
    [LANDLOCK_GRANT_ROOT] = LL_READ_FILE | LL_READ_DIR | LL_EXECUTE | LL_WRITE_FILE | LL_TRUNCATE |
                            LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_DIR | LL_MAKE_REG |
                            LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_SYM | LL_REFER,
    [LANDLOCK_GRANT_DEVICE] = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_IOCTL_DEV,
};

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_RULESET_VERSION);
    return abi > 0 ? (int)abi : 0;
}

size_t landlock_attr_size(int abi)
{
    if (abi < ABI_NET)
        return offsetof(struct landlock_attr, handled_access_net);
    if (abi < ABI_SCOPE)
        return offsetof(struct landlock_attr, scoped);
    return sizeof(struct landlock_attr);
}

bool landlock_attr_is_empty(const struct landlock_attr *attr)
{
    return (attr->handled_access_fs | attr->handled_access_net | attr->scoped) == 0;
}

/* Returns everything that an ABI can restrict. */
static struct landlock_attr known_at(int abi)
{
    struct landlock_attr attr = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(abi_rows); i++) {
        if (abi_rows[i].abi > abi)
            break;
        attr.handled_access_fs |= abi_rows[i].fs;
        attr.handled_access_net |= abi_rows[i].net;
        attr.scoped |= abi_rows[i].scoped;
    }
    return attr;
}

void landlock_fill_attr(int abi, enum brig_network network, bool nested, struct landlock_attr *ret,
                        struct brig_unenforced *unenforced)
{
    *ret = known_at(abi);
    ret->handled_access_net = 0;
    if (nested)
        ret->handled_access_fs = 0;
    if (abi < 1)
        unenforced_add(unenforced, "Landlock: this kernel has none, or it is switched off");
    if (abi < ABI_SCOPE && network == BRIG_NET_HOST)
        unenforced_add(unenforced, "abstract UNIX sockets of the host can be connected to (needs "
                                   "Landlock ABI 6)");
}

void landlock_stand_alone(int abi, enum brig_network network, bool unix_sockets, bool filtered,
                          struct landlock_attr *attr, struct brig_unenforced *unenforced)
{
    if (!filtered)
        unenforced_add(unenforced,
                       "mode, times and attributes of the user's own files outside can be changed");
    if (!filtered && abi < ABI_TRUNCATE)
        unenforced_add(unenforced,
                       "files outside the grants can be truncated (needs Landlock ABI 3)");
    if (network != BRIG_NET_HOST) { /* a door and a private loopback need a namespace */
        attr->handled_access_net = known_at(abi).handled_access_net;
        if (abi < ABI_NET)
            unenforced_add(unenforced, "the network can be used (needs a network namespace)");
        else if ((attr->handled_access_net & LL_BIND_UDP) == 0)
            unenforced_add(unenforced, "the network can be used but for TCP (needs a network "
                                       "namespace)");
        else
            unenforced_add(unenforced, "the network can be used but for TCP and UDP (needs a "
                                       "network namespace)");
        if (abi < ABI_SCOPE && unix_sockets)
            unenforced_add(unenforced, "abstract UNIX sockets of the host can be connected to "
                                       "(needs Landlock ABI 6)");
    }
    for (size_t i = 0; i < ARRAY_LENGTH(abi_rows); i++)
        if (abi_rows[i].abi > abi && abi_rows[i].alone &&
            (unix_sockets || abi_rows[i].fs != LL_RESOLVE_UNIX))
            unenforced_add(unenforced, "%s", abi_rows[i].alone);
}

uint64_t landlock_rights(int abi, enum landlock_grant grant, bool directory)
{
    uint64_t rights = grant_rights[grant] & known_at(abi).handled_access_fs;
    return directory ? rights : rights & LL_OF_A_FILE;
}

const char *landlock_fs_name(unsigned bit)
{
    static const char *const names[] = {
        "execute",   "write-file", "read-file", "read-dir",  "remove-dir",  "remove-file",
        "make-char", "make-dir",   "make-reg",  "make-sock", "make-fifo",   "make-block",
        "make-sym",  "refer",      "truncate",  "ioctl-dev", "resolve-unix"};
    return bit < ARRAY_LENGTH(names) ? names[bit] : NULL;
}

const char *landlock_net_name(unsigned bit)
{
    static const char *const names[] = {"bind-tcp", "connect-tcp", "bind-udp", "connect-send-udp"};
    return bit < ARRAY_LENGTH(names) ? names[bit] : NULL;
}

const char *landlock_scope_name(unsigned bit)
{
    static const char *const names[] = {"abstract-unix-socket", "signal"};
    return bit < ARRAY_LENGTH(names) ? names[bit] : NULL;
}
