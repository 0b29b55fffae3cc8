/* SPDX-License-Identifier: MIT */
/* Looks up uids and gids: directly in the local files, then with getent(1). */
#include "users.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/process.h"

/* The part of a file beyond this is left to getent. */
#define USERS_FILE_MAX 32768
/* Directory services may be slow; a run waits for a name no longer than this. */
#define USERS_GETENT_TIMEOUT_MS 10000

/* ---- Text --------------------------------------------------------------------------------- */

/* Splits the next field off *cursor at a colon; NULL after the last field. */
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

/* Copies the next line of the text that is not too long to `line`; false at the end. */
static bool next_line(const char **text, size_t *length, char *line)
{
    while (*length > 0) {
        const char *from = *text, *newline = memchr(from, '\n', *length);
        size_t size = newline ? (size_t)(newline - from) : *length;
        size_t step = newline ? size + 1 : size;
        *text += step;
        *length -= step;
        if (size >= USERS_LINE_MAX)
            continue;
        memcpy(line, from, size);
        line[size] = '\0';
        return true;
    }
    return false;
}

bool users_next_in_text(const char **text, size_t *length, char *line, struct users_user *ret_user)
{
    while (next_line(text, length, line))
        if (parse_user(line, ret_user))
            return true;
    return false;
}

bool users_find_in_text(const char *text, size_t length, uid_t uid, char *line,
                        struct users_user *ret_user)
{
    struct users_user user;
    while (users_next_in_text(&text, &length, line, &user))
        if (user.uid == uid) {
            *ret_user = user;
            return true;
        }
    return false;
}

/* Group lines may have many members after the id, so the line is not copied. */
bool users_group_in_text(const char *text, size_t length, gid_t gid, char *name)
{
    char wanted[16];
    int digits = snprintf(wanted, sizeof wanted, ":%u:", gid);
    for (const char *end = text + length, *line = text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        const char *colon = memchr(line, ':', (size_t)(next - line));
        const char *second = colon ? memchr(colon + 1, ':', (size_t)(next - colon - 1)) : NULL;
        size_t size = colon ? (size_t)(colon - line) : 0;
        if (!second || size == 0 || size >= USERS_LINE_MAX || next - second < digits ||
            memcmp(second, wanted, (size_t)digits) != 0)
            continue;
        memcpy(name, line, size);
        name[size] = '\0';
        return true;
    }
    return false;
}

/* ---- The system's files and getent ---------------------------------------------------------- */

/* Reads the beginning of a file, complete lines only; 0 if it cannot be read. */
static size_t read_file(const char *path, char *text, size_t max)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : read(fd, text, max);
    if (size < (ssize_t)max)
        return size > 0 ? (size_t)size : 0;
    const char *newline = memrchr(text, '\n', (size_t)size);
    return newline ? (size_t)(newline + 1 - text) : 0;
}

/* Starts `getent DATABASE ID` with standard output to `out`; returns the pid, or -1. */
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

/* Reads until the end, the size limit or the time limit. */
static size_t read_answer(int fd, char *text, size_t max)
{
    size_t size = 0;
    int64_t end = (int64_t)clock_now_ms() + USERS_GETENT_TIMEOUT_MS;
    while (size < max) {
        int64_t left = end - (int64_t)clock_now_ms();
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
    (void)kill(pid, SIGKILL); /* the answer is complete, too long or late */
    (void)process_wait(pid);
    return size;
}

bool users_find(uid_t uid, char *line, struct users_user *ret_user)
{
    char text[USERS_FILE_MAX];
    size_t size = read_file("/etc/passwd", text, sizeof text);
    if (users_find_in_text(text, size, uid, line, ret_user))
        return true;
    size = users_ask_getent("passwd", uid, text, sizeof text);
    return users_find_in_text(text, size, uid, line, ret_user);
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
