/* SPDX-License-Identifier: MIT */
/* Jobs with something in them that cannot be ended. A file of our own filesystem (FUSE) is the jail's
 * standard input, and nobody answers who reads it: since the request has been taken, the kernel lets
 * its process wait for the answer whatever signals come. */
#include <linux/fuse.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup.h"
#include "jail/sys.h"
#include "job_support.h"

#define FILE_NODE 2
#define FILE_NAME "file"
#define REQUEST_MAX (256 * 1024)

/* Served by a process of its own: a process that serves itself waits for itself when it ends. */
struct filesystem {
    int device, mount;
    int taken[2];  /* a pipe: who reads, as a pid */
    int answer[2]; /* a pipe: a byte lets the last one go on, and fail */
};

/* ---- The filesystem: a directory with one file ---- */

static void answer(int device, const struct fuse_in_header *request, int error, const void *data,
                   size_t length)
{
    char reply[sizeof(struct fuse_out_header) + 512];
    struct fuse_out_header head = {
        .len = (uint32_t)(sizeof head + length), .error = error, .unique = request->unique};
    memcpy(reply, &head, sizeof head);
    if (length > 0)
        memcpy(reply + sizeof head, data, length);
    (void)!write(device, reply, sizeof head + length);
}

static struct fuse_attr attributes_of(uint64_t node)
{
    return (struct fuse_attr){
        .ino = node,
        .mode = node == FILE_NODE ? S_IFREG | 0444 : S_IFDIR | 0755,
        .nlink = 1,
        .size = 4096,
        .uid = geteuid(),
        .gid = getegid(),
    };
}

static void serve(const struct filesystem *files, const struct fuse_in_header *request,
                  const char *body, struct fuse_in_header *ret_left)
{
    const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31};
    const struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_DIRECT_IO};
    struct fuse_attr_out attributes = {.attr = attributes_of(request->nodeid)};
    struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes_of(FILE_NODE)};
    switch (request->opcode) {
    case FUSE_INIT:
        answer(files->device, request, 0, &init, sizeof init);
        return;
    case FUSE_LOOKUP:
        if (strcmp(body, FILE_NAME) == 0)
            answer(files->device, request, 0, &entry, sizeof entry);
        else
            answer(files->device, request, -ENOENT, NULL, 0);
        return;
    case FUSE_GETATTR:
        answer(files->device, request, 0, &attributes, sizeof attributes);
        return;
    case FUSE_OPEN:
        answer(files->device, request, 0, &opened, sizeof opened);
        return;
    case FUSE_READ:
        (void)!write(files->taken[1], &request->pid, sizeof request->pid);
        *ret_left = *request;
        return;
    case FUSE_INTERRUPT: /* no */
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        return;
    case FUSE_RELEASE:
    case FUSE_FLUSH:
        answer(files->device, request, 0, NULL, 0);
        return;
    default:
        answer(files->device, request, -ENOSYS, NULL, 0);
    }
}

static void take_request(const struct filesystem *files, struct fuse_in_header *left)
{
    static char request[REQUEST_MAX];
    ssize_t length = read(files->device, request, sizeof request - 1);
    if (length < 0 && errno == ENODEV)
        _exit(0);
    if (length < (ssize_t)sizeof(struct fuse_in_header))
        return;
    request[length] = 0;
    struct fuse_in_header head;
    memcpy(&head, request, sizeof head);
    serve(files, &head, request + sizeof head, left);
}

static __attribute__((noreturn)) void serve_all(const struct filesystem *files)
{
    struct fuse_in_header left = {0};
    struct pollfd fds[] = {{.fd = files->device, .events = POLLIN},
                           {.fd = files->answer[0], .events = POLLIN}};
    (void)close(files->answer[1]);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (poll(fds, ARRAY_LENGTH(fds), -1) >= 0 || errno == EINTR) {
        char byte;
        if (fds[0].revents)
            take_request(files, &left);
        if (fds[1].revents && read(files->answer[0], &byte, 1) != 1)
            _exit(0);
        if (fds[1].revents)
            answer(files->device, &left, -EIO, NULL, 0);
    }
    _exit(1);
}

/* Mounts can be made by who has the mount namespace, which everybody has in a user namespace. */
static void gain_rights(void)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare((uid == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNS) < 0)
        tap_bail("unshare: %s", strerror(errno));
    if (uid == 0)
        return;
    const struct {
        const char *path;
        unsigned id;
    } maps[] = {{"/proc/self/uid_map", uid}, {"/proc/self/gid_map", gid}};
    autoclose int groups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    (void)!write(groups, "deny", 4);
    for (size_t i = 0; i < ARRAY_LENGTH(maps); i++) {
        autoclose int fd = open(maps[i].path, O_WRONLY | O_CLOEXEC);
        int length = snprintf(map, sizeof map, "%u %u 1\n", maps[i].id, maps[i].id);
        if (write(fd, map, (size_t)length) != length)
            tap_bail("%s: %s", maps[i].path, strerror(errno));
    }
}

static void set_option(int context, const char *key, unsigned value, bool octal)
{
    char text[32];
    (void)snprintf(text, sizeof text, octal ? "%o" : "%u", value);
    long result = SYS(fsconfig, context, FSCONFIG_SET_STRING, key, text, 0);
    if (result < 0)
        tap_bail("fuse option %s=%s: %s", key, text, strerror((int)-result));
}

/* It is attached nowhere. */
static bool filesystem_init(struct filesystem *files)
{
    *files = (struct filesystem){.device = open("/dev/fuse", O_RDWR | O_CLOEXEC), .mount = -1};
    if (files->device < 0)
        return false;
    if (pipe2(files->taken, O_CLOEXEC) < 0 || pipe2(files->answer, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    autoclose int context = (int)SYS(fsopen, "fuse", FSOPEN_CLOEXEC);
    if (context < 0)
        return false;
    set_option(context, "fd", (unsigned)files->device, false);
    set_option(context, "rootmode", S_IFDIR, true);
    set_option(context, "user_id", geteuid(), false);
    set_option(context, "group_id", getegid(), false);
    long result = SYS(fsconfig, context, FSCONFIG_SET_FLAG, "allow_other", 0, 0);
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (result >= 0)
        result = SYS(fsmount, context, FSMOUNT_CLOEXEC, 0);
    if (result < 0)
        tap_bail("fuse: %s", strerror((int)-result));
    files->mount = (int)result;
    pid_t server = fork();
    if (server == 0) {
        (void)close(files->mount);
        serve_all(files);
    }
    (void)close(take_fd(&files->device));
    return server > 0;
}

static int filesystem_open(const struct filesystem *files)
{
    int fd = openat(files->mount, FILE_NAME, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        tap_bail("open: %s", strerror(errno));
    return fd;
}

/* Waits until somebody reads; returns who. */
static pid_t await_reader(const struct filesystem *files)
{
    uint32_t pid;
    if (!await_readable(files->taken[0]) ||
        read(files->taken[0], &pid, sizeof pid) != (ssize_t)sizeof pid)
        tap_bail("nobody reads the file");
    return (pid_t)pid;
}

/* Lets it go on, and die. */
static void release_reader(const struct filesystem *files)
{
    (void)!write(files->answer[1], "x", 1);
}

/* ---- Tests ---- */

static char state_of(pid_t pid)
{
    char path[32], text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    const char *end = length > 0 ? strrchr(text, ')') : NULL;
    return end ? end[2] : 0;
}

static bool is_dead(pid_t pid)
{
    char state = state_of(pid);
    return state == 0 || state == 'Z';
}

static bool vanishes(pid_t pid)
{
    return await(is_dead(pid));
}

/* The kernel kills all of it, and the one that reads does not die. */
static bool is_stuck(pid_t pid)
{
    return await(state_of(pid) == 'D');
}

static struct brig_job *start_reader(const struct filesystem *files,
                                     const struct brig_policy *policy, pid_t *ret_reader)
{
    struct shell shell;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    int file = filesystem_open(files);
    /* Two that can be ended, and one that cannot. */
    shell_init(&shell, "sleep 1000 & (sleep 1000; true) & exec cat");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = file};
    if (brig_start(policy, &shell.command, &job, &err) < 0)
        tap_bail("brig_start: %s", err.message);
    *ret_reader = await_reader(files);
    (void)close(file);
    return job;
}

/* The group of a process, in the first hierarchy in which it is one of brig's; as a path. */
static bool find_group(pid_t pid, char *path, size_t size)
{
    char name[64];
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    (void)snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
    FILE *file = fopen(name, "re");
    while (file && !found && getline(&line, &room, file) > 0) {
        char *group = strstr(line, ":/") ? strrchr(line, ':') + 1 : NULL;
        char *brig = group ? strstr(group, "/brig-") : NULL;
        if (!brig)
            continue;
        brig[1 + strcspn(brig + 1, "/\n")] = 0;
        line[strcspn(line, "\n")] = 0;
        const char *tree = strchr(line, ':') + 1;
        (void)snprintf(path, size, "/sys/fs/cgroup/%.*s%s", (int)strcspn(tree, ":"), tree, group);
        found = true;
    }
    free(line);
    if (file)
        (void)fclose(file);
    return found && access(path, F_OK) == 0;
}

static void test_free(const struct filesystem *files, bool grouped)
{
    const char *how = grouped ? "in a group" : "without a group";
    struct brig_policy *policy = new_policy();
    char group[512] = "";
    pid_t reader;
    if (grouped) {
        set_limit(policy, BRIG_LIMIT_MEMORY_BYTES, 64 << 20);
        (void)brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_IGNORE, NULL);
    }
    struct brig_job *job = start_reader(files, policy, &reader);
    pid_t init = brig_job_pid(job);
    struct cgroup_support support;
    cgroup_probe(false, &support);
    bool has_group = grouped && support.kind != CGROUP_NONE;
    if (has_group)
        tap_ok(find_group(reader, group, sizeof group), "%s: there is one", how);
    brig_job_free(job);
    tap_ok(is_stuck(reader), "%s: a job is freed while a process of it is stuck", how);
    if (has_group) {
        tap_ok(access(group, F_OK) == 0, "%s: and its group", how);
        (void)cgroup_sweep();
        tap_ok(access(group, F_OK) == 0, "%s: which a sweep meanwhile leaves", how);
    }
    release_reader(files);
    tap_ok(vanishes(reader), "%s: when it goes on, it dies", how);
    tap_ok(vanishes(init), "%s: and all of the jail", how);
    (void)waitpid(init, NULL, __WALL);
    brig_policy_free(policy);
    if (!has_group)
        return;
    tap_ok(await((cgroup_sweep(), access(group, F_OK) < 0)), "%s: and its group is swept up", how);
}

static void test_wait(const struct filesystem *files)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct brig_error err = {0};
    pid_t reader;
    set_limit(policy, BRIG_LIMIT_WALL_MS, 500);
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
    struct brig_job *job = start_reader(files, policy, &reader);
    pid_t init = brig_job_pid(job);
    tap_is_int(brig_job_wait(job, &err), 0, "a job with something stuck ends");
    tap_is_int(job_take_result(job, &result, &err), 0, "and has a result,");
    is_outcome(&result, BRIG_TIMEOUT, "the outcome");
    tap_is_int(result.usage.stuck_pid, reader, "which names what is stuck");
    result_done(&result);
    brig_job_free(job);
    tap_ok(is_stuck(reader), "and it is freed while that is still there");
    release_reader(files);
    tap_ok(vanishes(reader) && vanishes(init), "until it can die");
    (void)waitpid(init, NULL, __WALL);
    brig_policy_free(policy);
}

int main(void)
{
    static struct filesystem files;
    gain_rights();
    if (!filesystem_init(&files)) {
        tap_skip("there is no FUSE here", "a job with something stuck is freed");
        return tap_done();
    }
    test_free(&files, false);
    test_free(&files, true);
    test_wait(&files);
    return tap_done();
}
