/* SPDX-License-Identifier: MIT */
/* Writes output of programs, which may be hostile, to terminals and to returned files. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "client/client.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* C0 except line ends and tabs, DEL, and C1 encoded in UTF-8 (C2 80 to C2 9F). */
static bool is_control(const unsigned char *c, size_t left)
{
    if (*c < ' ')
        return *c != '\n' && *c != '\t' && *c != '\r';
    return *c == 0x7f || (*c == 0xc2 && left > 1 && c[1] >= 0x80 && c[1] < 0xa0);
}

static void append_safe(struct str *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char *c = (const unsigned char *)bytes + i;
        if (!is_control(c, length - i)) {
            str_append_char(out, (char)*c);
        } else if (*c == 0xc2) {
            str_append(out, "?");
            i++;
        } else {
            str_append_char(out, '^');
            str_append_char(out, (char)(*c ^ 0x40));
        }
    }
}

void client_write(const struct client *client, int fd, const void *bytes, size_t length)
{
    autostr struct str safe = {0};
    if (client->raw || !isatty(fd)) {
        (void)write_all(fd, bytes, length);
        return;
    }
    append_safe(&safe, bytes, length);
    if (!safe.failed && safe.length > 0)
        (void)write_all(fd, safe.data, safe.length);
}

void client_write_answer(const struct client *client, const struct str *answer)
{
    size_t length = answer->length;
    if (length > 0)
        client_write(client, STDOUT_FILENO, answer->data, length);
    if (length == 0 || answer->data[length - 1] != '\n')
        client_write(client, STDOUT_FILENO, "\n", 1);
}

const char *client_colour(const struct client *client, const char *status)
{
    if (!client->colour)
        return "";
    if (strcmp(status, "ok") == 0)
        return GREEN;
    return strcmp(status, "running") == 0 ? YELLOW : RED;
}

const char *client_plain(const struct client *client)
{
    return client->colour ? PLAIN : "";
}

static bool is_plain(const char *part)
{
    return part[0] != '\0' && strcmp(part, ".") != 0 && strcmp(part, "..") != 0;
}

/* Opens the next directory, creating it if it does not exist. */
static int descend(int *fd, const char *part, struct brig_error *err)
{
    int next = -1;
    if (mkdirat(*fd, part, 0777) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(part).text);
    int result = path_open_beneath(*fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &next, err);
    if (result < 0)
        return result;
    (void)close(*fd);
    *fd = next;
    return 0;
}

static int write_below(int directory, char *name, const void *bytes, size_t length,
                       struct brig_error *err)
{
    autoclose int at = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    int result = at < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "open a directory") : 0;
    char *part = name;
    for (char *slash; result == 0 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = '\0';
        result = is_plain(part) ? descend(&at, part, err)
                                : brig_fail(err, BRIG_E_INVALID, 0, "it leads elsewhere");
    }
    if (result == 0 && !is_plain(part))
        result = brig_fail(err, BRIG_E_INVALID, 0, "it leads elsewhere");
    if (result == 0)
        result = path_open_beneath(at, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK,
                                   0666, &fd, err);
    if (result < 0)
        return result;
    int failed = write_all(fd, bytes, length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "write") : 0;
}

int returned_write(const char *directory, const char *name, const void *bytes, size_t length,
                   struct brig_error *err)
{
    autofree char *copy = NULL;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(directory).text);
    autoclose int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(directory).text);
    int result = str_copy(name, &copy, err);
    if (result == 0)
        result = write_below(fd, copy, bytes, length, err);
    return result < 0 ? brig_wrap(err, result, "the returned file '%s'", str_shown(name).text) : 0;
}
