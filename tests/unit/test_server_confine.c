/* SPDX-License-Identifier: MIT */
/* The http process's own jail: what it cannot do any more, each with proof that it could before. */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "tap.h"

static int listener, pair[2];
static struct sockaddr_in where = {.sin_family = AF_INET};

/* Each is true if it can be done. */

static bool opens_a_file(void)
{
    return open("/etc/hostname", O_RDONLY | O_CLOEXEC) >= 0 ||
           open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0;
}

static bool makes_a_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool makes_a_local_socket(void)
{
    int both[2];
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0;
}

static bool forks(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static bool starts_a_program(void)
{
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};
    (void)execv("/bin/true", argv);
    return false; /* where it works, the process ends with 0 */
}

static bool signals_its_parent(void)
{
    return kill(getppid(), 0) == 0;
}

static bool maps_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

static bool makes_memory_code(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0;
}

static bool changes_its_name(void)
{
    return prctl(PR_SET_NAME, "x") == 0;
}

static bool makes_a_memfd(void)
{
    return memfd_create("x", MFD_CLOEXEC) >= 0;
}

static bool lists_a_folder(void)
{
    return access("/usr", F_OK) == 0;
}

/* And these it needs. */

static bool accepts_and_answers(void)
{
    char byte = 0;
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return client >= 0 && send(client, "x", 1, MSG_NOSIGNAL) == 1 &&
           recv(client, &byte, 1, MSG_DONTWAIT) <= 1 && shutdown(client, SHUT_RDWR) == 0 &&
           close(client) == 0;
}

static bool allocates(void)
{
    char *memory = malloc((size_t)32 << 20);
    if (!memory)
        return false;
    memset(memory, 1, (size_t)32 << 20);
    free(memory);
    return true;
}

static bool talks_to_others(void)
{
    return send(pair[0], "x", 1, MSG_NOSIGNAL) == 1;
}

static const struct attempt {
    const char *name;
    bool (*try)(void);
    bool stays; /* possible in the jail too */
} attempts[] = {
    {"open a file", opens_a_file, false},
    {"look at a name", lists_a_folder, false},
    {"make a socket", makes_a_socket, false},
    {"make a pair of sockets", makes_a_local_socket, false},
    {"fork", forks, false},
    {"start a program", starts_a_program, false},
    {"signal its parent", signals_its_parent, false},
    {"map memory as code", maps_code, false},
    {"make memory code", makes_memory_code, false},
    {"use prctl", changes_its_name, false},
    {"make a file in memory", makes_a_memfd, false},
    {"accept a client and answer it", accepts_and_answers, true},
    {"allocate memory", allocates, true},
    {"talk to the other processes", talks_to_others, true},
};

enum { WORKED = 0, FAILED = 1, BROKEN = 2 };

static int outcome(const struct attempt *attempt, bool confined)
{
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (attempt->try == accepts_and_answers)
        (void)connect(client, (struct sockaddr *)&where, sizeof where);
    pid_t pid = fork();
    if (pid == 0) {
        struct brig_error err = {0};
        if (confined && confine_http(64, &err) < 0) {
            tap_diag("%s", err.message);
            _exit(BROKEN);
        }
        _exit(attempt->try() ? WORKED : FAILED);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    (void)close(client);
    return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}

int main(void)
{
    socklen_t length = sizeof where;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)bind(listener, (struct sockaddr *)&where, sizeof where);
    (void)listen(listener, 64);
    (void)getsockname(listener, (struct sockaddr *)&where, &length);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        tap_is_int(outcome(&attempts[i], false), WORKED, "outside it can %s", attempts[i].name);
        tap_is_int(outcome(&attempts[i], true), attempts[i].stays ? WORKED : FAILED,
                   "inside it can%s %s", attempts[i].stays ? "" : "not", attempts[i].name);
    }
    return tap_done();
}
