/* SPDX-License-Identifier: MIT */
/* Which server, API key and CA certificate to use: from options, then the environment, then a
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"

#define SERVER_DEFAULT "http://127.0.0.1:8080"
#define FILE_MAX 65536

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

void client_settings_done(struct client_settings *settings)
{
    free(settings->server);
    free(settings->key);
    free(settings->cacert);
    *settings = (struct client_settings){0};
}

static char **find_place(struct client_settings *settings, const char *name)
{
    if (strcmp(name, "server") == 0)
        return &settings->server;
    if (strcmp(name, "key") == 0)
        return &settings->key;
    return strcmp(name, "cacert") == 0 ? &settings->cacert : NULL;
}

static int take_line(const char *name, size_t number, char *line, struct client_settings *settings,
                     struct brig_error *err)
{
    char *text = trim(line), *equals = strchr(text, '=');
    if (*text == '\0' || *text == '#')
        return 0;
    char **place = NULL;
    if (equals) {
        *equals = '\0';
        place = find_place(settings, trim(text));
    }
    if (!place)
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "%s:%zu: '%s' is not understood. A line is server = URL, key = KEY or cacert = FILE",
            str_shown(name).text, number, str_shown(text).text);
    free(*place);
    *place = NULL;
    return str_copy(trim(equals + 1), place, err);
}

int client_settings_read(const char *name, const char *text, struct client_settings *settings,
                         struct brig_error *err)
{
    autofree char *copy = NULL;
    int result = str_copy(text, &copy, err);
    size_t number = 1;
    for (char *line = copy, *next; result == 0 && line; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        result = take_line(name, number, line, settings, err);
    }
    return result;
}

/* A file with a key must not be readable by other users. */
static int check_mode(int fd, const char *path, const char *key, struct brig_error *err)
{
    struct stat info;
    if (!key || fstat(fd, &info) < 0 || (info.st_mode & 077) == 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' contains a key, and other users can read it. Run: chmod 600 '%s'",
                     str_shown(path).text, str_shown(path).text);
}

static int read_file(const char *path, struct client_settings *settings, struct brig_error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(path).text);
    autofree char *text = calloc(1, FILE_MAX + 1);
    ssize_t count = text ? read(fd, text, FILE_MAX) : -1;
    if (count < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "read '%s'", str_shown(path).text);
    int result = client_settings_read(path, text, settings, err);
    return result < 0 ? result : check_mode(fd, path, settings->key, err);
}

static int find_file(struct client_settings *settings, struct brig_error *err)
{
    autostr struct str path = {0};
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base && base[0] == '/')
        str_appendf(&path, "%s/brig/brigctl.conf", base);
    else if (home && home[0] == '/')
        str_appendf(&path, "%s/.config/brig/brigctl.conf", home);
    if (path.failed)
        return brig_fail_nomem(err);
    return path.data ? read_file(path.data, settings, err) : 0;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* "host:port" is short for http://host:port. */
static int add_scheme(const char *server, char **ret_text, struct brig_error *err)
{
    bool whole = strstr(server, "://") || str_starts_with(server, "unix:");
    char *text = NULL;
    int result = str_make(&text, err, whole ? "" : "http://", server);
    if (result < 0)
        return result;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '/')
        text[--length] = '\0';
    *ret_text = text;
    return 0;
}

static int check(const struct client *client, struct brig_error *err)
{
    if (!str_starts_with(client->server, "http://") &&
        !str_starts_with(client->server, "https://") && !str_starts_with(client->server, "unix:/"))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not a server: http://HOST:PORT, https://HOST or unix:/PATH",
                         str_shown(client->server).text);
    for (const char *c = client->key ? client->key : ""; *c; c++)
        if (*c <= ' ' || *c > '~')
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the key has a blank or a character that is not ASCII in it");
    return 0;
}

static int check_cacert(const char *cacert, struct brig_error *err)
{
    if (!cacert || access(cacert, R_OK) == 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, errno, "the file of certificates '%s'",
                     str_shown(cacert).text);
}

int client_settle(struct client *client, struct client_settings *storage, struct brig_error *err)
{
    if (!client->server)
        client->server = variable("BRIG_SERVER");
    if (!client->key)
        client->key = variable("BRIG_API_KEY");
    if (!client->cacert)
        client->cacert = variable("BRIG_CACERT");
    bool complete = client->server && client->key &&
                    (client->cacert || !str_starts_with(client->server, "https://"));
    int result = complete ? 0 : find_file(storage, err);
    if (result < 0)
        return result;
    if (!client->key)
        client->key = storage->key;
    if (!client->cacert)
        client->cacert = storage->cacert;
    const char *chosen = client->server    ? client->server
                         : storage->server ? storage->server
                                           : SERVER_DEFAULT;
    autofree char *server = NULL;
    result = add_scheme(chosen, &server, err);
    if (result < 0)
        return result;
    free(storage->server);
    client->server = storage->server = take_ptr(&server);
    result = check(client, err);
    return result < 0 ? result : check_cacert(client->cacert, err);
}
