/* SPDX-License-Identifier: MIT */
/* Arguments, answers and small helpers of the escape probe. */
#include "attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BUFFERS 8
#define PATH_ROOM 4096
#define READ_SHOWN 2048

extern char **attempt_arguments;

static const char *find_arg(const char *key)
{
    size_t length = strlen(key);
    for (char **at = attempt_arguments; *at; at++)
        if (strncmp(*at, key, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return NULL;
}

bool has_arg(const char *key)
{
    return find_arg(key) != NULL;
}

const char *arg(const char *key)
{
    const char *value = find_arg(key);
    if (!value) {
        say("the argument %s= is missing", key);
        _exit(MISUSED);
    }
    return value;
}

long arg_number(const char *key)
{
    return strtol(arg(key), NULL, 0);
}

const char *arg_path(const char *key, const char *name)
{
    static char buffers[PATH_BUFFERS][PATH_ROOM];
    static unsigned turn;
    char *buffer = buffers[turn++ % PATH_BUFFERS];
    (void)snprintf(buffer, PATH_ROOM, "%s/%s", arg(key), name);
    return buffer;
}

void say(const char *format, ...)
{
    char line[READ_SHOWN + 512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t size = (size_t)length < sizeof(line) - 1 ? (size_t)length : sizeof(line) - 2;
    line[size++] = '\n';
    (void)!write(STDOUT_FILENO, line, size);
}

int judge(const char *what, long result)
{
    if (result >= 0) {
        say("%s: worked", what);
        return THROUGH;
    }
    say("%s: %s", what, strerrorname_np(errno));
    return REFUSED;
}

int judge_reached(const char *what, long result)
{
    static const int denials[] = {EPERM,           EACCES,       ENOSYS, EROFS,
                                  EPROTONOSUPPORT, EAFNOSUPPORT, EUSERS, ENOSPC};
    if (result >= 0)
        return judge(what, result);
    say("%s: %s", what, strerrorname_np(errno));
    for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++)
        if (errno == denials[i])
            return REFUSED;
    return THROUGH;
}

int judge_read_fd(const char *what, int fd)
{
    char text[READ_SHOWN];
    /* Some files of /proc insist on multiples of eight bytes. */
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 8);
    if (length < 0)
        return judge(what, -1);
    if (length == 0) {
        say("%s: empty", what);
        return REFUSED;
    }
    for (ssize_t i = 0; i < length; i++)
        if (text[i] == '\0')
            text[i] = '\n';
    text[length] = '\0';
    say("%s: read: %s", what, text);
    return THROUGH;
}

int judge_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int answer = judge_read_fd(path, fd);
    if (fd >= 0)
        (void)close(fd);
    return answer;
}

static int judge_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int answer = judge(path, fd);
    if (fd >= 0)
        (void)close(fd);
    return answer;
}

int judge_readable(const char *path)
{
    return judge_open(path, O_RDONLY);
}

int judge_writable(const char *path)
{
    return judge_open(path, O_WRONLY);
}

static bool in_other_ns(const char *name, const char *key)
{
    char path[64];
    struct stat info;
    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    return stat(path, &info) == 0 && (long)info.st_ino != arg_number(key);
}

bool in_own_pidns(void)
{
    return in_other_ns("pid", "host_pidns");
}

bool in_own_userns(void)
{
    return in_other_ns("user", "host_userns");
}

void wait_for_harness(void)
{
    char byte;
    say("ready");
    (void)!read(STDIN_FILENO, &byte, 1);
}

long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

int open_any(const char *const paths[], int (*test)(const char *))
{
    bool exists = false;
    int answer = REFUSED;
    for (size_t i = 0; paths[i]; i++) {
        exists = exists || access(paths[i], F_OK) == 0;
        if (test(paths[i]) == THROUGH)
            answer = THROUGH;
    }
    return !exists && has_arg("twin") ? NOT_HERE : answer;
}
