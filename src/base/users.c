/* SPDX-License-Identifier: MIT */
/* Who has a uid or gid: the local files read directly, and getent(1) for the rest. */
#include "users.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

/* What lies beyond this in a file is left to getent. */
#define USERS_FILE_MAX 32768
#define USERS_FIRST_BYTES 3072 /* where most users are, on a machine for people */
/* Directory services may be far away; a run is not kept waiting for a name for longer. */
#define USERS_GETENT_TIMEOUT_MS 10000

/* ---- Text --------------------------------------------------------------------------------- */

/* Cuts the next field off *cursor at a colon; NULL when there is none left. */
static char *next_field(char **cursor)
{
    char *field = *cursor;
    if (!field)
        return NULL;
    char *colon = strchr(field, ':');
    if (colon)
        *colon = '\0';
    *cursor = colon ? colon + 1 : NULL;
    return field;
}

static bool parse_user(char *line, struct users_user *ret_user)
{
    enum { NAME, PASSWORD, UID, GID, COMMENT, HOME, SHELL, FIELDS };
    char *fields[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = next_field(&line);
        if (!fields[i])
            return false;
    }
    uint64_t uid = 0;
    uint64_t gid = 0;
    if (parse_uint(fields[UID], UINT32_MAX - 1, PARSE_ZERO_OK, &uid, NULL) < 0 ||
        parse_uint(fields[GID], UINT32_MAX - 1, PARSE_ZERO_OK, &gid, NULL) < 0)
        return false;
    *ret_user = (struct users_user){
        .uid = (uid_t)uid,
        .gid = (gid_t)gid,
        .name = fields[NAME],
        .home = fields[HOME],
        .shell = fields[SHELL],
    };
    return true;
}

/* Whether the third field of a line is the id, before anything is copied. */
static bool line_is_for(const char *line, size_t length, const char *id, size_t id_length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon)
        return false;
    size_t rest = length - (size_t)(colon + 1 - line);
    colon = memchr(colon + 1, ':', rest);
    if (!colon)
        return false;
    rest = length - (size_t)(colon + 1 - line);
    return rest > id_length && memcmp(colon + 1, id, id_length) == 0 && colon[1 + id_length] == ':';
}

/* The next line for the id, and its length; the text is moved on behind it. NULL: none is left. */
static const char *next_line(const char **text, size_t *length, unsigned id, size_t *ret_size)
{
    char wanted[16];
    int digits = snprintf(wanted, sizeof wanted, "%u", id);
    while (*length > 0) {
        const char *line = *text;
        const char *newline = memchr(line, '\n', *length);
        size_t size = newline ? (size_t)(newline - line) : *length;
        size_t step = newline ? size + 1 : size;
        *text += step;
        *length -= step;
        if (line_is_for(line, size, wanted, (size_t)digits)) {
            *ret_size = size;
            return line;
        }
    }
    return NULL;
}

bool users_find_in_text(const char *text, size_t length, uid_t uid, char *line,
                        struct users_user *ret_user)
{
    size_t size = 0;
    const char *found = NULL;
    while ((found = next_line(&text, &length, uid, &size))) {
        if (size >= USERS_LINE_MAX)
            continue;
        memcpy(line, found, size);
        line[size] = '\0';
        if (parse_user(line, ret_user))
            return true;
    }
    return false;
}

bool users_next_in_text(const char **text, size_t *length, char *line, struct users_user *ret_user)
{
    while (*length > 0) {
        const char *newline = memchr(*text, '\n', *length);
        size_t size = newline ? (size_t)(newline - *text) : *length;
        bool fits = size < USERS_LINE_MAX;
        if (fits) {
            memcpy(line, *text, size);
            line[size] = '\0';
        }
        size_t step = newline ? size + 1 : size;
        *text += step;
        *length -= step;
        if (fits && parse_user(line, ret_user))
            return true;
    }
    return false;
}

bool users_group_in_text(const char *text, size_t length, gid_t gid, char *name)
{
    size_t size = 0;
    const char *found = NULL;
    while ((found = next_line(&text, &length, gid, &size))) {
        /* The members behind it may be many. */
        const char *colon = memchr(found, ':', size);
        size_t name_size = (size_t)(colon - found);
        if (name_size == 0 || name_size >= USERS_LINE_MAX)
            continue;
        memcpy(name, found, name_size);
        name[name_size] = '\0';
        return true;
    }
    return false;
}

/* ---- The system's ------------------------------------------------------------------------- */

/* Reads a file's beginning, whole lines only; 0 if it cannot be read. */
static size_t read_file(const char *path, char *text, size_t max)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : read(fd, text, max);
    if (size < (ssize_t)max)
        return size > 0 ? (size_t)size : 0;
    const char *newline = memrchr(text, '\n', (size_t)size);
    return newline ? (size_t)(newline + 1 - text) : 0;
}

/* Starts `getent DATABASE ID` with its output in out; the pid, or -1. */
static pid_t start_getent(const char *database, unsigned id, int out)
{
    static const char *const programs[] = {"/usr/bin/getent", "/bin/getent"};
    char number[16];
    char *const envp[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"LC_ALL=C"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    (void)snprintf(number, sizeof number, "%u", id);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    int failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    failed |= posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    failed |= posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
    for (size_t i = 0; failed == 0 && pid < 0 && i < ARRAY_LENGTH(programs); i++) {
        autofree char *name = strdup(database);
        char *const argv[] = {(char[]){"getent"}, name, number, NULL};
        if (!name || posix_spawn(&pid, programs[i], &actions, NULL, argv, envp) != 0)
            pid = -1;
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static int64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Reads until the end, the limit or the time is reached. */
static size_t read_answer(int fd, char *text, size_t max)
{
    size_t size = 0;
    int64_t end = now_ms() + USERS_GETENT_TIMEOUT_MS;
    while (size < max) {
        int64_t left = end - now_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (left <= 0 || (poll(&wait, 1, (int)left) < 0 && errno != EINTR))
            break;
        ssize_t count = wait.revents ? read(fd, text + size, max - size) : -1;
        if (count == 0)
            break;
        if (count > 0)
            size += (size_t)count;
    }
    return size;
}

/* What getent says, at most max bytes of it; 0 if it says nothing. */
size_t users_ask_getent(const char *database, unsigned id, char *text, size_t max)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    autoclose int in = ends[0];
    autoclose int out = ends[1];
    pid_t pid = start_getent(database, id, out);
    (void)close(take_fd(&out));
    if (pid < 0)
        return 0;
    size_t size = read_answer(in, text, max);
    (void)kill(pid, SIGKILL); /* it has said all, or too much, or takes too long */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return size;
}

/* Kept apart: what is large is not on the stack of who finds the user without it. */
static __attribute__((noinline)) bool find_further(uid_t uid, char *line,
                                                   struct users_user *ret_user)
{
    char text[USERS_FILE_MAX];
    size_t size = read_file("/etc/passwd", text, sizeof text);
    if (users_find_in_text(text, size, uid, line, ret_user))
        return true;
    size = users_ask_getent("passwd", uid, text, sizeof text);
    return users_find_in_text(text, size, uid, line, ret_user);
}

bool users_find(uid_t uid, char *line, struct users_user *ret_user)
{
    char beginning[USERS_FIRST_BYTES];
    size_t size = read_file("/etc/passwd", beginning, sizeof beginning);
    return users_find_in_text(beginning, size, uid, line, ret_user) ||
           find_further(uid, line, ret_user);
}

bool users_group(gid_t gid, char *name)
{
    char text[USERS_FILE_MAX];
    size_t size = read_file("/etc/group", text, sizeof text);
    if (users_group_in_text(text, size, gid, name))
        return true;
    size = users_ask_getent("group", gid, text, sizeof text);
    return users_group_in_text(text, size, gid, name);
}

bool users_any(bool (*match)(const struct users_user *user, void *arg), void *arg)
{
    char text[USERS_FILE_MAX], line[USERS_LINE_MAX];
    const char *rest = text;
    size_t length = read_file("/etc/passwd", text, sizeof text);
    struct users_user user;
    while (users_next_in_text(&rest, &length, line, &user))
        if (match(&user, arg))
            return true;
    return false;
}
