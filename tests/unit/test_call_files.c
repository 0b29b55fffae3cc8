/* SPDX-License-Identifier: MIT */
/* What a call without namespaces can do to files that it was not granted, what tracing tells of it,
 * networks that calls cannot have, and calls inside calls. */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <utime.h>

#include "call_support.h"

#define SETFLAGS 0x40086602UL /* FS_IOC_SETFLAGS */
#define NODUMP 0x40           /* FS_NODUMP_FL: harmless */

static char place[] = "/var/tmp/test_call_files.XXXXXX";
static char file[64], fresh[64];

/* ---- Changing what is not contents -------------------------------------------------------- */

/* The ways, each of which changes the file at `path`, or its copy open as `fd` for reading. */
enum way {
    BY_CHMOD,
    BY_FCHMOD,
    BY_FCHMODAT2,
    BY_CHOWN,
    BY_FCHOWN,
    BY_UTIME,
    BY_FUTIMENS,
    BY_XATTR,
    BY_FXATTR,
    BY_REMOVEXATTR,
    BY_TRUNCATE,
    BY_OPEN_TRUNC,
    BY_OPEN_TRUNC_3,
    BY_SETFLAGS,
    WAYS
};
static const char *const way_names[WAYS] = {
    "chmod",    "fchmod",       "fchmodat2",      "chown",          "fchown",
    "utime",    "futimens",     "setxattr",       "fsetxattr",      "removexattr",
    "truncate", "open O_TRUNC", "open 3|O_TRUNC", "FS_IOC_SETFLAGS"};

#define NR_FCHMODAT2 452

static bool change(enum way way)
{
    const struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    const struct utimbuf old = {1000, 1000};
    int flags = NODUMP, fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    switch (way) {
    case BY_CHMOD:
        return chmod(file, 0777) == 0;
    case BY_FCHMOD:
        return fchmod(fd, 0777) == 0;
    case BY_FCHMODAT2:
        return syscall(NR_FCHMODAT2, AT_FDCWD, file, 0777, 0) == 0;
    case BY_CHOWN:
        return chown(file, getuid(), getgid()) == 0;
    case BY_FCHOWN:
        return fchown(fd, getuid(), getgid()) == 0;
    case BY_UTIME:
        return utime(file, &old) == 0;
    case BY_FUTIMENS:
        return futimens(fd, past) == 0;
    case BY_XATTR:
        return setxattr(file, "user.brig", "x", 1, 0) == 0;
    case BY_FXATTR:
        return fsetxattr(fd, "user.brig", "x", 1, 0) == 0;
    case BY_REMOVEXATTR:
        return removexattr(file, "user.there") == 0;
    case BY_TRUNCATE:
        return truncate(file, 0) == 0;
    case BY_OPEN_TRUNC:
        return open(file, O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0;
    case BY_OPEN_TRUNC_3:
        return open(file, 3 | O_TRUNC | O_CLOEXEC) >= 0;
    case BY_SETFLAGS:
        return ioctl(fd, SETFLAGS, &flags) == 0;
    case WAYS:
        break;
    }
    return false;
}

static int try_way(struct brig_call_child *child, void *argument)
{
    errno = 0;
    bool changed = change(*(enum way *)argument);
    int answer[2] = {changed, errno};
    return brig_call_return(child, answer, sizeof answer);
}

static void write_file(void)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsetxattr(fd, "user.there", "y", 1, 0) < 0)
        tap_bail("cannot make '%s': %s", file, strerror(errno));
    (void)close(fd);
}

static void test_ways(struct brig_call_options *options, const struct brig_policy *policy,
                      const char *where)
{
    for (enum way way = 0; way < WAYS; way++) {
        struct brig_call_result result;
        struct stat before, after;
        write_file();
        (void)stat(file, &before);
        (void)call_run(policy, options, try_way, &way, &result, NULL);
        const int *answer = result.value;
        if (!has_outcome(&result, BRIG_CALL_RETURNED, "%s, %s: it returns", where, way_names[way]))
            continue;
        tap_ok(result.length == 2 * sizeof(int) && !answer[0], "%s cannot change the file",
               way_names[way]);
        call_result_done(&result);
        (void)stat(file, &after);
        tap_ok(before.st_mode == after.st_mode && before.st_size == after.st_size &&
                   before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
                   before.st_ctim.tv_nsec == after.st_ctim.tv_nsec,
               "… and nothing of it has changed");
    }
}

/* The twin: in the full jail a granted file can be changed, and outside all of them work. */
static void test_twins(void)
{
    const char *paths[] = {place};
    struct brig_call_options options = new_options(true);
    options.fs_allow = paths;
    options.fs_allow_count = 1;
    for (enum way way = 0; way < BY_OPEN_TRUNC_3; way++) {
        struct brig_call_result result;
        write_file();
        (void)call(&options, try_way, &way, &result);
        const int *answer = result.value;
        if (has_outcome(&result, BRIG_CALL_RETURNED, "the full jail, %s: it returns",
                        way_names[way]) &&
            way != BY_FCHMODAT2) /* from Linux 6.6 on */
            tap_ok(result.length == 2 * sizeof(int) && answer[0], "%s works on what is granted: %s",
                   way_names[way], strerror(answer ? answer[1] : 0));
        call_result_done(&result);
        write_file();
        if (way != BY_FCHMODAT2)
            tap_ok(change(way), "… and without a jail");
    }
}

static void test_metadata(void)
{
    const char *paths[] = {place};
    struct brig_call_options options = new_options(false);
    struct brig_policy *dev = brig_policy_new(BRIG_MODE_SEALED);
    options.fs_read_allow = paths;
    options.fs_read_allow_count = 1;
    test_ways(&options, NULL, "a default call");
    if (!dev || brig_policy_seccomp(dev, BRIG_SECCOMP_DEV, NULL) < 0 ||
        brig_policy_disable(dev, BRIG_LAYER_NAMESPACES, NULL) < 0)
        tap_bail("brig_policy_new");
    test_ways(&options, dev, "the profile dev");
    brig_policy_free(dev);
    test_twins();
}

static void test_reports(void)
{
    struct brig_call_options options = new_options(false);
    struct brig_caller *caller = NULL;
    if (brig_caller_new(NULL, &options, &caller, NULL) < 0)
        tap_bail("brig_caller_new");
    for (size_t i = 0; i < brig_caller_unenforced_count(caller); i++)
        tap_ok(!strstr(brig_caller_unenforced(caller, i), "mode, times"),
               "it is not among what is not enforced");
    brig_caller_free(caller);
}

/* ---- Tracing ------------------------------------------------------------------------------ */

/* Tries what is not granted, and says nothing of it. */
static int try_paths(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)!open(file, O_RDONLY | O_CLOEXEC);
    (void)!open(file, O_WRONLY | O_CLOEXEC);
    (void)!open(fresh, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)!unlink(file);
    (void)!rename("/usr/bin/env", fresh);
    (void)!open("/usr/bin/env", O_RDONLY | O_CLOEXEC); /* these are granted, or not there */
    (void)!open("/nowhere/at/all", O_RDONLY | O_CLOEXEC);
    (void)!open(file, O_PATH | O_CLOEXEC);
    (void)!chdir("/usr");
    (void)!open("bin/env", O_RDONLY | O_CLOEXEC);
    return brig_call_return(child, "done", 4);
}

static bool has_denial(const struct brig_call_result *result, const char *path,
                       enum brig_call_access access)
{
    for (size_t i = 0; i < result->denial_count; i++) {
        const struct brig_call_denial *denial = &result->denials[i];
        if (denial->kind == BRIG_CALL_FILESYSTEM && denial->access == access && denial->traced &&
            denial->sys_errno == EACCES && strcmp(denial->subject, path) == 0)
            return true;
    }
    return false;
}

static void test_trace(void)
{
    const char *paths[] = {place};
    struct brig_call_options options = new_options(false);
    struct brig_call_result result;
    write_file();
    options.trace = 1;
    (void)call(&options, try_paths, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "a traced call that is refused files returns");
    tap_ok(has_denial(&result, file, BRIG_CALL_ACCESS_READ), "reading a file is told");
    tap_ok(has_denial(&result, file, BRIG_CALL_ACCESS_WRITE), "and writing it");
    tap_ok(has_denial(&result, fresh, BRIG_CALL_ACCESS_WRITE), "and making one");
    tap_ok(has_denial(&result, "/usr/bin/env", BRIG_CALL_ACCESS_WRITE), "and moving one away");
    tap_is_int((long)result.denial_count, 4, "and nothing else");
    for (size_t i = 0; i < result.denial_count && result.denial_count != 4; i++)
        tap_diag("%s %d", result.denials[i].subject, result.denials[i].access);
    call_result_done(&result);
    options.fs_allow = paths;
    options.fs_allow_count = 1;
    (void)call(&options, try_paths, NULL, &result);
    tap_is_int((long)result.denial_count, 1, "of what is granted nothing is told");
    call_result_done(&result);
    (void)unlink(fresh);
}

/* ---- Networks that calls cannot have ------------------------------------------------------ */

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)argument;
    return brig_call_return(child, "", 0);
}

static void test_networks(void)
{
    static const struct {
        enum brig_network network;
        int namespaces, code;
        const char *remedy;
    } rows[] = {
        {BRIG_NET_ALLOW, 0, BRIG_E_UNSUPPORTED, "brig_run()"},
        {BRIG_NET_OPEN, 0, BRIG_E_UNSUPPORTED, "brig_run()"},
        {BRIG_NET_OPEN, 1, BRIG_E_UNSUPPORTED, "brig_run()"},
        {BRIG_NET_LOOPBACK, 0, BRIG_E_UNSUPPORTED, "set namespaces"},
        {BRIG_NET_LOOPBACK, 1, 0, NULL},
        {BRIG_NET_NONE, 0, 0, NULL},
        {BRIG_NET_HOST, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct brig_call_options options = new_options(rows[i].namespaces);
        struct brig_call_result result;
        struct brig_error err = {0};
        options.network = rows[i].network;
        tap_is_int(call_run(NULL, &options, do_nothing, NULL, &result, &err), rows[i].code,
                   "network %d, namespaces %d", (int)rows[i].network, rows[i].namespaces);
        if (rows[i].remedy) {
            tap_is_int(result.outcome, BRIG_CALL_UNSUPPORTED, "… nothing ran");
            tap_has_str(err.message, rows[i].remedy, "… and the message says what to do");
        }
        call_result_done(&result);
        options.on_unsupported = BRIG_UNSUPPORTED_WARN;
        tap_is_int(call_run(NULL, &options, do_nothing, NULL, &result, &err), 0,
                   "… with warn it runs");
        bool listed = false;
        for (size_t k = 0; k < result.unenforced.count; k++)
            listed |= strstr(result.unenforced.text[k], "the call has no network") != NULL;
        tap_is_int(listed, rows[i].code != 0,
                   "… and the result tells of a network that is missing");
        call_result_done(&result);
    }
}

/* ---- Calls inside calls ------------------------------------------------------------------- */

static int call_again(struct brig_call_child *child, void *argument)
{
    struct brig_caller *const *caller = argument;
    struct brig_call_result *result = NULL;
    struct brig_error err = {0};
    int code = *caller ? brig_caller_call(*caller, do_nothing, NULL, &result, &err)
                       : brig_call_run(NULL, NULL, do_nothing, NULL, &result, &err);
    char text[BRIG_MESSAGE_MAX + 16];
    int length = snprintf(text, sizeof text, "%d %s", code, err.message);
    return brig_call_return(child, text, (size_t)length + 1);
}

static int run_inside(struct brig_call_child *child, void *argument)
{
    const char *const argv[] = {"true", NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_error err = {0};
    (void)argument;
    command.argv = argv;
    int code = brig_run(NULL, &command, NULL, &err);
    char text[BRIG_MESSAGE_MAX + 16];
    int length = snprintf(text, sizeof text, "%d %s", code, err.message);
    return brig_call_return(child, text, (size_t)length + 1);
}

static void expect_inside(struct brig_call_options *options, const struct brig_policy *policy,
                          brig_call_fn fn, struct brig_caller **same, const char *wanted,
                          const char *sentence)
{
    struct brig_call_result result;
    (void)call_run(policy, options, fn, same, &result, NULL);
    if (has_outcome(&result, BRIG_CALL_RETURNED, "%s", sentence))
        tap_has_str(result.value, wanted, "… which says so");
    call_result_done(&result);
}

static void test_nested(void)
{
    struct brig_caller *same = NULL, *none = NULL;
    struct brig_policy *dev = brig_policy_new(BRIG_MODE_SEALED);
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        struct brig_call_options options = new_options(namespaces);
        if (brig_caller_new(NULL, &options, &same, NULL) < 0)
            tap_bail("brig_caller_new");
        expect_inside(&options, NULL, call_again, &none, "-4 a call cannot be made inside",
                      "a call inside a call is refused");
        expect_inside(&options, NULL, call_again, &same, "-4 a call cannot be made inside",
                      "also of the same caller");
        expect_inside(&options, NULL, run_inside, NULL, "-4 ",
                      "and so is a command with a full jail");
        brig_caller_free(same);
    }
    struct brig_call_options options = new_options(false);
    if (!dev || brig_policy_seccomp(dev, BRIG_SECCOMP_DEV, NULL) < 0)
        tap_bail("brig_policy_new");
    expect_inside(&options, dev, call_again, &none, "0 ",
                  "a call inside a full jail with the profile dev works");
    (void)brig_policy_disable(dev, BRIG_LAYER_NAMESPACES, NULL);
    expect_inside(&options, dev, call_again, &none, "-4 a call cannot be made inside",
                  "without namespaces it is refused");
    brig_policy_free(dev);
}

int main(void)
{
    if (!mkdtemp(place))
        tap_bail("mkdtemp: %s", strerror(errno));
    (void)snprintf(file, sizeof file, "%s/file", place);
    (void)snprintf(fresh, sizeof fresh, "%s/fresh", place);
    write_file();
    test_metadata();
    test_reports();
    test_trace();
    test_networks();
    test_nested();
    (void)unlink(file);
    (void)rmdir(place);
    return tap_done();
}
