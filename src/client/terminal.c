/* SPDX-License-Identifier: MIT */
/* What goes to a terminal: nothing that a program wrote may steer it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/write.h"
#include "client/client.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* C0 but for line ends and tabs, DEL, and C1 as it is in UTF-8 (C2 80 to C2 9F). */
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

void client_print_safe(struct str *out, const char *text)
{
    str_append(out, str_shown(text ? text : "").text);
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
