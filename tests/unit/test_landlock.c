/* SPDX-License-Identifier: MIT */
/* The tables of Landlock rights, and that the kernel takes and obeys what they say. */
#include "jail/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/job/result.h"
#include "tap.h"

#define ABI_NEWEST 10
#define RIGHT_REFER (1ull << 13)
#define RIGHT_TRUNCATE (1ull << 14)
#define RIGHT_IOCTL_DEV (1ull << 15)
#define RIGHT_RESOLVE_UNIX (1ull << 16)

/* ---- The tables ---- */

static void test_handled(void)
{
    static const uint64_t handled[] = {
        0,      0x1fff, 0x3fff, 0x7fff,  0x7fff,  0xffff,
        0xffff, 0xffff, 0xffff, 0x1ffff, 0x1ffff, 0x1ffff /* a later one */,
    };
    for (int abi = 0; abi < (int)ARRAY_LENGTH(handled); abi++) {
        struct landlock_attr attr;
        struct brig_unenforced list = {0};
        landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &list);
        tap_is_int(attr.handled_access_fs, handled[abi], "ABI %d handles all its file rights", abi);
        tap_is_int(attr.scoped, abi >= 6 ? 3 : 0, "ABI %d scopes what it can", abi);
        tap_is_int(attr.handled_access_net, 0, "ABI %d leaves the network to its namespace", abi);
        tap_is_int(list.count, abi == 0, "ABI %d lists Landlock itself only if missing", abi);
        tap_is_int(landlock_attr_size(abi),
                   abi < 4   ? 8
                   : abi < 6 ? 16
                             : 24,
                   "ABI %d gets the size it knows", abi);
    }
}

static void test_host_network(void)
{
    for (int abi = 1; abi <= ABI_NEWEST; abi++) {
        struct landlock_attr attr;
        struct brig_unenforced list = {0};
        landlock_fill_attr(abi, BRIG_NET_HOST, false, &attr, &list);
        tap_is_int(list.count, abi < 6, "abstract sockets of a shared network are listed at ABI %d",
                   abi);
    }
}

static void test_nested(void)
{
    for (int abi = 0; abi <= ABI_NEWEST; abi++) {
        struct landlock_attr attr;
        struct brig_unenforced list = {0};
        landlock_fill_attr(abi, BRIG_NET_NONE, true, &attr, &list);
        tap_is_int(attr.handled_access_fs, 0, "a nested sandbox may mount at ABI %d", abi);
        tap_is_int(landlock_attr_is_empty(&attr), abi < 6, "ABI %d then has something to scope",
                   abi);
    }
}

static void test_alone(void)
{
    static const size_t listed[] = {8, 7, 7, 6, 6, 5, 3, 3, 3, 2, 2};
    static const uint64_t net[] = {0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 15};
    for (int abi = 0; abi <= ABI_NEWEST; abi++) {
        struct landlock_attr attr;
        struct brig_unenforced list = {0};
        landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &list);
        landlock_stand_alone(abi, abi % 2 ? BRIG_NET_NONE : BRIG_NET_LOOPBACK, true, false, &attr,
                             &list);
        tap_is_int(attr.handled_access_net, net[abi], "alone, ABI %d shuts the ports it can", abi);
        tap_is_int(list.count, listed[abi], "alone, ABI %d lists what it leaves open", abi);
        landlock_fill_attr(abi, BRIG_NET_HOST, false, &attr, &list);
        landlock_stand_alone(abi, BRIG_NET_HOST, true, false, &attr, &list);
        tap_is_int(attr.handled_access_net, 0, "the host's network stays open at ABI %d", abi);
    }
}

static void test_rights(void)
{
    static const enum landlock_grant grants[] = {LANDLOCK_GRANT_READ, LANDLOCK_GRANT_WRITE,
                                                 LANDLOCK_GRANT_DEVICE};
    for (int abi = 0; abi <= ABI_NEWEST; abi++) {
        struct landlock_attr attr;
        struct brig_unenforced list = {0};
        bool within = true;
        landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &list);
        for (size_t i = 0; i < ARRAY_LENGTH(grants); i++) {
            uint64_t directory = landlock_rights(abi, grants[i], true);
            uint64_t file = landlock_rights(abi, grants[i], false);
            within =
                within && (directory & ~attr.handled_access_fs) == 0 && (file & ~directory) == 0;
        }
        tap_ok(within, "at ABI %d no grant has a right that is not handled", abi);
    }
    tap_is_int(landlock_rights(10, LANDLOCK_GRANT_READ, true), 0xd, "reading is no writing");
    tap_is_int(landlock_rights(10, LANDLOCK_GRANT_READ, false), 0x5, "a file has no entries");
    uint64_t write = landlock_rights(10, LANDLOCK_GRANT_WRITE, true);
    tap_ok((write & RIGHT_REFER) && (write & RIGHT_TRUNCATE) && (write & RIGHT_RESOLVE_UNIX),
           "a workspace can be worked in");
    tap_ok(!(write & (1ull << 6)) && !(write & (1ull << 11)), "no device node can be made in it");
    tap_ok(!(write & RIGHT_IOCTL_DEV), "a workspace grants no ioctl on devices");
    tap_ok(landlock_rights(5, LANDLOCK_GRANT_DEVICE, false) & RIGHT_IOCTL_DEV,
           "a granted device takes its ioctls");
    tap_ok(!(landlock_rights(10, LANDLOCK_GRANT_READ, true) & RIGHT_RESOLVE_UNIX),
           "a socket in something granted for reading is not reachable");
}

/* ---- The kernel ---- */

static void grant(int ruleset, int abi, const char *path, enum landlock_grant kind)
{
    struct stat status;
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        tap_bail("open %s: %s", path, strerror(errno));
    struct landlock_path_beneath_attr rule = {
        .allowed_access = landlock_rights(abi, kind, S_ISDIR(status.st_mode)), .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        tap_bail("rule for %s: %s", path, strerror(errno));
}

/* Restricts this process as a jail does: the working directory writable, /dev/null and /dev/ptmx
 * devices, the system readable. */
static void restrict_self(int abi)
{
    struct landlock_attr attr;
    struct brig_unenforced list = {0};
    landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &list);
    autoclose int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attr, landlock_attr_size(abi), 0);
    if (ruleset < 0)
        tap_bail("ruleset of ABI %d: %s", abi, strerror(errno));
    grant(ruleset, abi, ".", LANDLOCK_GRANT_WRITE);
    grant(ruleset, abi, "/usr", LANDLOCK_GRANT_READ);
    grant(ruleset, abi, "/dev/null", LANDLOCK_GRANT_DEVICE);
    grant(ruleset, abi, "/dev/ptmx", LANDLOCK_GRANT_DEVICE);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        tap_bail("restrict: %s", strerror(errno));
}

static bool can_open(const char *path, int flags)
{
    autoclose int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);
    return fd >= 0;
}

static bool can_bind(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

static bool can_ioctl(const char *path)
{
    int locked = 0;
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    return fd >= 0 && ioctl(fd, TIOCSPTLCK, &locked) == 0;
}

static void try_allowed(int abi)
{
    tap_ok(can_open("/dev/null", O_WRONLY | O_TRUNC), "ABI %d: /dev/null takes `>`", abi);
    tap_ok(can_ioctl("/dev/ptmx"), "ABI %d: a granted terminal takes ioctls", abi);
    tap_ok(can_open("a", O_WRONLY | O_CREAT), "ABI %d: a file is made in the workspace", abi);
    tap_ok(can_open("a", O_WRONLY | O_TRUNC) && truncate("a", 5) == 0, "ABI %d: and truncated",
           abi);
    tap_ok(mkdir("d", 0700) == 0 && mkfifo("d/p", 0600) == 0 && symlink("a", "s") == 0,
           "ABI %d: a directory, a fifo and a link are made", abi);
    tap_ok(can_bind("sock"), "ABI %d: a socket is bound", abi);
    int moved = rename("a", "d/a");
    if (abi >= 2)
        tap_ok(moved == 0 && link("d/a", "b") == 0, "ABI %d: moved and linked across directories",
               abi);
    else
        tap_ok(moved < 0 && errno == EXDEV, "ABI %d knows no moves across directories", abi);
    tap_ok(access("/usr/bin/env", X_OK) == 0 && can_open("/usr/bin/env", O_RDONLY),
           "ABI %d: the system is readable", abi);
}

static void try_denied(int abi, const char *outside)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/f", outside);
    tap_ok(!can_open(path, O_RDONLY), "ABI %d: a file outside is not read", abi);
    tap_ok(!can_open(path, O_WRONLY), "ABI %d: nor written", abi);
    if (abi >= 3)
        tap_ok(truncate(path, 0) < 0 && errno == EACCES, "ABI %d: nor truncated", abi);
    (void)snprintf(path, sizeof path, "%s/new", outside);
    tap_ok(!can_open(path, O_WRONLY | O_CREAT), "ABI %d: nor made", abi);
    tap_ok(mkfifo(path, 0600) < 0 && symlink("x", path) < 0 && mkdir(path, 0700) < 0 &&
               !can_bind(path),
           "ABI %d: nor a fifo, a link, a directory or a socket", abi);
    tap_ok(!can_open(outside, O_RDONLY | O_DIRECTORY), "ABI %d: nor the directory listed", abi);
    tap_ok(!can_open("/dev/zero", O_RDONLY), "ABI %d: nor a device not granted", abi);
    tap_ok(!can_open("/usr/brig-test", O_WRONLY | O_CREAT), "ABI %d: the system is not writable",
           abi);
}

static void in_child(int abi, const char *base)
{
    char inside[128], outside[128], path[256];
    int status = 0;
    (void)snprintf(inside, sizeof inside, "%s/in%d", base, abi);
    (void)snprintf(outside, sizeof outside, "%s/out%d", base, abi);
    (void)snprintf(path, sizeof path, "%s/f", outside);
    if (mkdir(inside, 0700) < 0 || mkdir(outside, 0700) < 0 || !can_open(path, O_WRONLY | O_CREAT))
        tap_bail("%s: %s", inside, strerror(errno));
    (void)fflush(stdout);
    /* The test itself goes on in the child, for only it is restricted; the count comes back. */
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(inside) < 0)
            tap_bail("chdir: %s", strerror(errno));
        restrict_self(abi);
        try_allowed(abi);
        try_denied(abi, outside);
        _exit(write(ends[1], &tap_state, sizeof tap_state) == (ssize_t)sizeof tap_state ? 0 : 1);
    }
    (void)close(ends[1]);
    if (pid < 0 || read(ends[0], &tap_state, sizeof tap_state) != (ssize_t)sizeof tap_state)
        tap_bail("the restricted process died");
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
}

static void test_kernel(void)
{
    char base[] = "/tmp/brig-landlock.XXXXXX", command[64];
    int newest = landlock_abi();
    if (newest == 0) {
        tap_skip("this kernel has no Landlock", "the rules are obeyed");
        return;
    }
    if (!mkdtemp(base))
        tap_bail("mkdtemp: %s", strerror(errno));
    /* A newer kernel takes the rulesets of older ones. */
    for (int abi = 1; abi <= newest && abi <= ABI_NEWEST; abi++)
        in_child(abi, base);
    (void)snprintf(command, sizeof command, "%s", base);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", "--", command, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

int main(void)
{
    test_handled();
    test_host_network();
    test_nested();
    test_alone();
    test_rights();
    test_kernel();
    return tap_done();
}
