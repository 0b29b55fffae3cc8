/* SPDX-License-Identifier: MIT */
/* Using things up. Each stops at a number far above the limit given, so that it
 * ends by itself where there is none; THROUGH means it came that far. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define FORKS 120
#define FILES 600
#define PIPES 300
#define INODES 70000
#define CHUNK (1 << 20)
#define CHUNKS 16

static int reached(const char *what, long count, long wanted)
{
    say("%s: %ld of %ld (%s)", what, count, wanted,
        count < wanted ? strerrorname_np(errno) : "all");
    return count < wanted ? REFUSED : THROUGH;
}

static int fork_bomb(void)
{
    static pid_t children[FORKS];
    long count = 0;
    while (count < FORKS) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            pause_ms(5000);
            _exit(0);
        }
        children[count++] = child;
    }
    int answer = reached("processes", count, FORKS);
    for (long i = 0; i < count; i++) {
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
    }
    return answer;
}

static int open_files(void)
{
    long count = 0;
    while (count < FILES && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        count++;
    return reached("open files", count, FILES);
}

static int pipes(void)
{
    long count = 0;
    int fds[2];
    while (count < PIPES && pipe2(fds, O_CLOEXEC) == 0) {
        (void)fcntl(fds[1], F_SETPIPE_SZ, 65536);
        count++;
    }
    return reached("pipes", count, PIPES);
}

static const char *temporary(void)
{
    return has_arg("twin") ? arg("twin_dir") : "/tmp";
}

static int inodes(void)
{
    char path[4096];
    long count = 0;
    for (; count < INODES; count++) {
        (void)snprintf(path, sizeof(path), "%s/i%ld", temporary(), count);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        (void)close(fd);
    }
    int answer = reached("inodes", count, INODES);
    while (count-- > 0) {
        (void)snprintf(path, sizeof(path), "%s/i%ld", temporary(), count);
        (void)unlink(path);
    }
    return answer;
}

static long fill(const char *directory)
{
    static char chunk[CHUNK];
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/fill", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    long count = 0;
    while (fd >= 0 && count < CHUNKS && write(fd, chunk, CHUNK) == CHUNK)
        count++;
    if (fd >= 0)
        (void)close(fd);
    return count;
}

static int fill_tmp(void)
{
    int answer = reached("MiB in /tmp", fill(temporary()), CHUNKS);
    return answer;
}

/* All private directories together. */
static int fill_private(void)
{
    if (has_arg("twin"))
        return reached("MiB", fill(temporary()), CHUNKS);
    static const char *const places[] = {"/tmp", "/dev/shm", "/var/tmp", "/run/lock",
                                         "/dev", "/run",     "/",        "/etc"};
    long count = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        count += fill(places[i]);
    return reached("MiB in private places", count, CHUNKS);
}

static int file_size(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    long count = fill(arg("work"));
    (void)unlink(arg_path("work", "fill"));
    return reached("MiB in one file", count, CHUNKS);
}

static int raise_limits(void)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    return judge("setrlimit", setrlimit(RLIMIT_CORE, &limit));
}

static int address_space(void)
{
    void *memory = mmap(NULL, (size_t)1 << 31, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return judge("mmap of 2 GiB", memory == MAP_FAILED ? -1 : 0);
}

const struct attempt attempts_limits[] = {
    {"fork-bomb", fork_bomb},
    {"open-files", open_files},
    {"pipes", pipes},
    {"inodes", inodes},
    {"fill-tmp", fill_tmp},
    {"fill-private", fill_private},
    {"file-size", file_size},
    {"raise-limits", raise_limits},
    {"address-space", address_space},
    {NULL, NULL},
};
