/* SPDX-License-Identifier: MIT */
/* The broker of a network door: its configuration, and starting its processes. */
#include "jail/net/door_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/process.h"
#include "base/str.h"
#include "jail/cgroup/cgroup.h"
#include "jail/sys.h"
#include "net/broker_wire.h"
#include "net/sockets.h"
#include "policy/policy.h"

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* ---- configuration ---- */

static const struct {
    enum brig_limit limit;
    const char *word;
} limit_words[] = {
    {BRIG_LIMIT_NET_CONNECTIONS, "connections"},
    {BRIG_LIMIT_NET_BYTES, "bytes"},
    {BRIG_LIMIT_NET_IDLE_MS, "idle-ms"},
};

struct writer {
    struct str *text, *secrets;
    unsigned secret_count;
};

/* Appends a secret; returns its number in the configuration. */
static unsigned add_secret(struct writer *writer, const char *secret)
{
    str_append_bytes(writer->secrets, secret, strlen(secret) + 1);
    return writer->secret_count++;
}

static void write_proxy(struct writer *writer, const struct policy_net *net)
{
    if (!net->proxy)
        return;
    str_appendf(writer->text, "proxy %s\n", net->proxy);
    if (net->proxy_secret)
        str_appendf(writer->text, "proxy-secret %u\n", add_secret(writer, net->proxy_secret));
    for (size_t i = 0; net->no_proxy && net->no_proxy[i]; i++)
        str_appendf(writer->text, "no-proxy %s\n", net->no_proxy[i]);
}

static void write_words(struct str *text, size_t index, const char *what, char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        str_appendf(text, "inject %zu %s %s\n", index, what, words[i]);
}

static void write_inject(struct writer *writer, size_t index, const struct policy_inject *inject)
{
    str_appendf(writer->text, "inject %zu name %s\n", index, inject->name);
    if (inject->upstream)
        str_appendf(writer->text, "inject %zu upstream %s\n", index, inject->upstream);
    str_appendf(writer->text, "inject %zu header %s %u\n", index, inject->header,
                add_secret(writer, inject->secret));
    if (inject->is_live)
        str_appendf(writer->text, "inject %zu live %u\n", index, inject->live);
    write_words(writer->text, index, "strip", inject->strip);
    write_words(writer->text, index, "method", inject->methods);
    write_words(writer->text, index, "path", inject->paths);
}

void door_write_config(const struct brig_policy *policy, uid_t uid, gid_t gid, struct str *text,
                       struct str *secrets)
{
    const struct policy_net *net = &policy->net;
    struct writer writer = {.text = text, .secrets = secrets};
    bool open = policy->network == BRIG_NET_OPEN;
    str_concat(text, DOOR_CONFIG_HEAD "\npolicy ",
               open       ? "open"
               : net->ask ? "ask"
                          : "allow",
               "\n");
    if (uid != (uid_t)-1)
        str_appendf(text, "user %u %u\n", uid, gid);
    for (size_t i = 0; i < ARRAY_LENGTH(limit_words); i++)
        if (policy->limits[limit_words[i].limit] > 0)
            str_appendf(text, "limit %s %" PRIu64 "\n", limit_words[i].word,
                        policy->limits[limit_words[i].limit]);
    net_rules_write(&net->rules, text);
    write_proxy(&writer, net);
    if (net->ca)
        str_appendf(text, "ca %s\n", net->ca);
    for (size_t i = 0; i < net->inject_count; i++)
        write_inject(&writer, i, &net->inject[i]);
    for (size_t i = 0; i < net->publish_count; i++)
        str_appendf(text, "publish %zu %u\n", i, net->publish[i].port);
}

static int make_file(const char *name, const struct str *text, struct brig_error *err)
{
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (made < 0 && errno == EINVAL) /* before 6.3 */
        made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    autoclose int fd = made;
    if (fd < 0 || write(fd, text->data, text->length) != (ssize_t)text->length ||
        lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the broker's configuration");
    return take_fd(&fd);
}

int door_make_rules(const struct net_rules *rules, struct brig_error *err)
{
    autostr struct str text = {0};
    net_rules_write(rules, &text);
    return text.failed ? brig_fail_nomem(err) : make_file("brig-door-rules", &text, err);
}

/* Reserves room for all secrets at once: growing would leave copies of them in freed memory. */
static int reserve_secrets(const struct policy_net *net, struct str *secrets,
                           struct brig_error *err)
{
    size_t room = 1 + (net->proxy_secret ? strlen(net->proxy_secret) + 1 : 0);
    for (size_t i = 0; i < net->inject_count; i++)
        room += strlen(net->inject[i].secret) + 1;
    secrets->data = calloc(1, room);
    secrets->capacity = room;
    return secrets->data ? 0 : brig_fail_nomem(err);
}

int door_make_files(const struct brig_policy *policy, uid_t uid, gid_t gid, int *ret_config,
                    int *ret_secrets, struct brig_error *err)
{
    autostr struct str text = {0};
    autostr struct str secrets = {0};
    autoclose int config = -1;
    int hidden = -1, result = reserve_secrets(&policy->net, &secrets, err);
    if (result < 0)
        return result;
    door_write_config(policy, uid, gid, &text, &secrets);
    if (text.failed || secrets.failed)
        result = brig_fail_nomem(err);
    if (result == 0)
        result = config = make_file("brig-door", &text, err);
    if (result >= 0 && secrets.length > 0)
        result = hidden = make_file("brig-door-secrets", &secrets, err);
    explicit_bzero(secrets.data, secrets.capacity);
    if (result < 0)
        return result;
    *ret_config = take_fd(&config);
    *ret_secrets = hidden;
    return 0;
}

/* ---- control sockets ---- */

/* Moves an fd to DOOR_FD_FLOOR or above. */
static int move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    (void)close(fd);
    return moved;
}

int door_make_control(int *ret_near, int *ret_far, struct brig_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int near = pair[0];
    int far = move_up(pair[1]);
    if (far < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    *ret_near = take_fd(&near);
    *ret_far = far;
    return 0;
}

int door_send(int control, unsigned type, int kind, int index, const int *fds, size_t count,
              struct brig_error *err)
{
    struct door_message message = {.version = DOOR_WIRE_VERSION,
                                   .type = type,
                                   .kind = (uint32_t)kind,
                                   .index = (uint32_t)index};
    if (!socket_send(control, &message, sizeof message, fds, count))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot speak with the broker");
    return 0;
}

/* ---- processes ---- */

/* The parameters of a new process: `user` and `net` are namespaces, or -1. */
struct attach {
    int program, far, user, net;
    uid_t uid;
    gid_t gid;
    int group;                     /* v2, or -1 */
    int join_fds[CGROUP_JOIN_MAX]; /* v1 */
    size_t join_count;
    char path[32];
    const char *argv[3];
};

static bool enter_groups(const struct attach *entry)
{
    if (entry->group >= 0) {
        long procs = SYS(openat, entry->group, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
        if (procs < 0 || SYS(write, procs, "0", 1) < 0)
            return false;
    }
    for (size_t i = 0; i < entry->join_count; i++)
        if (SYS(write, entry->join_fds[i], "0", 1) < 0)
            return false;
    return true;
}

static bool enter_namespaces(const struct attach *entry)
{
    if (entry->net < 0)
        return true;
    if (SYS(geteuid) == 0 &&
        (SYS(setgroups, 0, 0) < 0 || SYS(setresgid, entry->gid, entry->gid, entry->gid) < 0 ||
         SYS(setresuid, entry->uid, entry->uid, entry->uid) < 0))
        return false;
    return SYS(setns, entry->user, CLONE_NEWUSER) >= 0 && SYS(setns, entry->net, CLONE_NEWNET) >= 0;
}

/* Runs in a copy of memory that threads of the caller may have left in any state, so it makes
 * system calls only. Until its exec it holds the caller's memory, so it is made non-dumpable. */
static void enter_and_execute(const struct attach *entry)
{
    const uint64_t no_signals = 0;
    (void)SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!enter_groups(entry) || !enter_namespaces(entry))
        return;
    long low = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    long null = low < 0 ? low : SYS(fcntl, low, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    /* A new session, so that input at the caller's terminal does not signal it. */
    if (null < 0 || SYS(setsid) < 0 || SYS(dup3, entry->far, DOOR_CONTROL_FD, 0) < 0)
        return;
    for (int fd = 0; fd < DOOR_CONTROL_FD; fd++)
        if (SYS(dup3, null, fd, 0) < 0)
            return;
    (void)SYS(close_range, DOOR_CONTROL_FD + 1, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
    (void)SYS(rt_sigprocmask, SIG_SETMASK, &no_signals, 0, sizeof no_signals);
    (void)SYS(execve, entry->path, entry->argv, entry->argv + 2); /* an empty environment */
}

/* Signals are blocked meanwhile: a handler of the caller must not run in the child. */
static int spawn(struct attach *entry, const char *role, const struct cgroup *group, pid_t *ret_pid)
{
    sigset_t all, before;
    entry->argv[0] = "brig-broker";
    entry->argv[1] = role;
    (void)snprintf(entry->path, sizeof entry->path, "/proc/self/fd/%d", entry->program);
    entry->group = group ? cgroup_clone_fd(group) : -1;
    entry->join_count = group ? cgroup_join_fds(group, entry->join_fds) : 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    long pid = SYS(clone, SIGCHLD, 0, 0, 0, 0); /* like fork(), without libc's fork handlers */
    if (pid == 0) {
        enter_and_execute(entry);
        (void)SYS(exit_group, 127); /* this closes its socket, which is noticed */
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid > 0)
        *ret_pid = (pid_t)pid;
    return pid < 0 ? (int)pid : 0;
}

int door_spawn_broker(int program, int far, const struct cgroup *group, pid_t *ret_pid,
                      struct brig_error *err)
{
    struct attach entry = {.program = program, .far = far, .user = -1, .net = -1};
    int result = spawn(&entry, DOOR_ROLE_BROKER, group, ret_pid);
    return result == 0 ? 0 : brig_fail(err, BRIG_E_SETUP, -result, "cannot start the broker");
}

/* ---- the connector ---- */

/* A socket refers to its namespaces, even if every process in them is non-dumpable. */
static int open_namespaces(int inside, int *ret_user, int *ret_net, struct brig_error *err)
{
    autoclose int net = ioctl(inside, SIOCGSKNS);
    if (net < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot find the jail's network");
    int user = ioctl(net, NS_GET_USERNS);
    if (user < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot find the jail's user namespace");
    *ret_user = move_up(user);
    *ret_net = move_up(take_fd(&net));
    return 0;
}

int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, const struct cgroup *group,
                         pid_t *ret_pid, int *ret_near, struct brig_error *err)
{
    autoclose int near = -1;
    autoclose int far = -1;
    autoclose int user = -1;
    autoclose int net = -1;
    int result = open_namespaces(inside, &user, &net, err);
    if (result == 0)
        result = door_make_control(&near, &far, err);
    if (result < 0)
        return result;
    struct attach entry = {
        .program = program, .far = far, .user = user, .net = net, .uid = uid, .gid = gid};
    result = spawn(&entry, DOOR_ROLE_CONNECTOR, group, ret_pid);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot start the connector");
    *ret_near = take_fd(&near);
    return 0;
}

void door_end_process(pid_t pid)
{
    if (pid <= 0)
        return;
    /* The caller may have reaped the process, and its pid may have been reused. */
    if (waitpid(pid, NULL, WNOHANG) != 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)process_wait(pid);
}
