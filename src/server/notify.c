/* SPDX-License-Identifier: MIT */
/* What brigd tells systemd. Both protocols are one datagram without an answer, so no library is
 * needed. */
#include "server/notify.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static bool send_to(const char *path, const char *bytes, size_t length, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if ((path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = 0;
    autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && sendto(fd, bytes, length, MSG_NOSIGNAL | flags, (struct sockaddr *)&address,
                             size) == (ssize_t)length;
}

void notify_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path)
        (void)send_to(path, state, strlen(state), 0);
}

bool notify_has_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat info;
    if (!stream || fstat(STDERR_FILENO, &info) < 0)
        return false;
    (void)snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)info.st_dev,
                   (unsigned long long)info.st_ino);
    return str_equal(stream, own);
}

void notify_append_entry(struct str *out, int priority, const char *process, const char *message)
{
    uint64_t length = htole64(strlen(message));
    str_appendf(out, "PRIORITY=%d\nSYSLOG_IDENTIFIER=brigd\nBRIGD_PROCESS=%s\n", priority, process);
    /* A field with its length may contain newlines. */
    str_append(out, "MESSAGE\n");
    str_append_bytes(out, (const char *)&length, sizeof length);
    str_append(out, message);
    str_append_char(out, '\n');
}

bool notify_journal(int priority, const char *process, const char *message)
{
    autostr struct str entry = {0};
    notify_append_entry(&entry, priority, process, message);
    /* Standard error is tried next; neither must stop brigd. */
    return !entry.failed && send_to(JOURNAL_SOCKET, entry.data, entry.length, MSG_DONTWAIT);
}
