/* SPDX-License-Identifier: MIT */
/* The broker's own jail: each thing is tried before, where it works, and after. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "net/broker_confine.h"
#include "tap.h"

#define GRANTED "/etc/hosts"

static int opened(int fd)
{
    if (fd < 0)
        return -errno;
    (void)close(fd);
    return 0;
}

static int result(long status)
{
    return status < 0 ? -errno : 0;
}

static int read_granted(void)
{
    return opened(open(GRANTED, O_RDONLY | O_CLOEXEC));
}

static int read_other(void)
{
    return opened(open("/usr/lib/os-release", O_RDONLY | O_CLOEXEC));
}

static int read_program(void)
{
    return opened(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
}

static int list_root(void)
{
    return opened(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int write_null(void)
{
    return opened(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int make_tcp(void)
{
    return opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int make_udp(void)
{
    return opened(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static int make_unix(void)
{
    return opened(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int make_netlink(void)
{
    return opened(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static int make_pair(void)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    (void)close(fds[0]);
    (void)close(fds[1]);
    return 0;
}

static int bind_tcp(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int status = bind(fd, (const struct sockaddr *)&any, sizeof any) < 0 ? -errno : 0;
    (void)close(fd);
    return status;
}

static int make_process(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    (void)waitpid(pid, NULL, 0);
    return 0;
}

static int run_nothing(void)
{
    char *const none[] = {NULL};
    (void)execve("/nonexistent", none, none);
    return errno == ENOENT ? 0 : -errno; /* it was tried */
}

static int make_code(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? -errno : 0;
}

static int make_memory(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? -errno : 0;
}

static int signal_parent(void)
{
    return result(kill(getppid(), 0));
}

static int raise_limit(void)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    return result(setrlimit(RLIMIT_CORE, &limit));
}

static int make_namespace(void)
{
    return result(unshare(CLONE_FS)); /* harmless, and the same call */
}

static int be_traced(void)
{
    return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int make_memory_file(void)
{
    return opened(memfd_create("test", MFD_CLOEXEC));
}

#define BROKER (1 << CONFINE_BROKER)
#define CONNECTOR (1 << CONFINE_CONNECTOR)

static const struct {
    const char *what;
    int (*attempt)(void);
    unsigned allowed; /* in these roles */
    bool landlock;    /* denied by Landlock, where there is one */
} rows[] = {
    {"reading a file that is needed", read_granted, BROKER, false},
    {"reading another", read_other, 0, true},
    {"reading its own program", read_program, 0, true},
    {"listing a directory", list_root, 0, true},
    {"opening for writing", write_null, 0, false},
    {"a TCP socket", make_tcp, BROKER | CONNECTOR, false},
    {"a UDP socket", make_udp, BROKER, false},
    {"a UNIX socket", make_unix, 0, false},
    {"a netlink socket", make_netlink, 0, false},
    {"a socket pair", make_pair, 0, false},
    {"binding a port", bind_tcp, 0, false},
    {"another process", make_process, 0, false},
    {"another program", run_nothing, 0, false},
    {"memory with code", make_code, 0, false},
    {"memory without", make_memory, BROKER | CONNECTOR, false},
    {"signalling", signal_parent, 0, false},
    {"changing a limit", raise_limit, 0, false},
    {"a namespace", make_namespace, 0, false},
    {"being traced", be_traced, 0, false},
    {"a file in memory", make_memory_file, 0, false},
};
#define ROWS (sizeof rows / sizeof *rows)

struct seen {
    int status; /* of confine() */
    int results[ROWS];
};

/* In a process of its own; with `confined` false nothing is given up before. */
static struct seen *try_all(enum confine_role role, bool confined)
{
    static const char *const files[] = {GRANTED, "/nonexistent", NULL};
    struct seen *seen =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        seen->status = confined ? confine(role, files, NULL) : 0;
        for (size_t i = 0; i < ROWS && seen->status == 0; i++)
            seen->results[i] = rows[i].attempt();
        syscall(SYS_exit_group, 0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        tap_bail("no process could be made");
    return seen;
}

static void test_before(void)
{
    const struct seen *seen = try_all(CONFINE_BROKER, false);
    for (size_t i = 0; i < ROWS; i++)
        tap_is_int(seen->results[i], 0, "%s works before", rows[i].what);
}

static void test_role(enum confine_role role, const char *name, bool landlock)
{
    const struct seen *seen = try_all(role, true);
    tap_is_int(seen->status, 0, "the %s can be confined", name);
    for (size_t i = 0; i < ROWS; i++) {
        bool allowed = rows[i].allowed & (1u << role);
        if (allowed)
            tap_is_int(seen->results[i], 0, "%s: %s still works", name, rows[i].what);
        else if (rows[i].landlock && !landlock && role == CONFINE_BROKER)
            tap_skip("this kernel has no Landlock", "%s: %s", name, rows[i].what);
        else
            tap_ok(seen->results[i] < 0, "%s: %s does not work", name, rows[i].what);
    }
}

int main(void)
{
    bool landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
    test_before();
    test_role(CONFINE_BROKER, "broker", landlock);
    test_role(CONFINE_CONNECTOR, "connector", landlock);
    return tap_done();
}
