/* SPDX-License-Identifier: MIT */
/* The store of a token: credential.json in a directory that no jail can see. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "token/token.h"

#define FILE_NAME "credential.json"
#define NEW_NAME "credential.json.new"
#define LOCK_NAME "lock"
#define FILE_MAX 65536
#define MEMBER_MAX 64

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void token_done(struct token *token)
{
    wipe(token->access);
    wipe(token->refresh);
    wipe(token->account);
    *token = (struct token){0};
}

int store_open(const char *path, int *ret_directory, int *ret_lock, struct brig_error *err)
{
    autoclose int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return brig_fail(err, BRIG_E_STATE, errno, "cannot open '%s'", str_shown(path).text);
    autoclose int lock =
        openat(directory, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s'", str_shown(path).text);
    if (lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s'", str_shown(path).text);
    *ret_directory = take_fd(&directory);
    *ret_lock = take_fd(&lock);
    return 0;
}

/* ---- JSON ---- */

/* Reads at most FILE_MAX bytes of JSON. Errors have no text of the file, which is secret. */
static int read_json(int fd, json_t **ret_root, struct brig_error *err)
{
    char *text = calloc(1, FILE_MAX + 1);
    size_t length = 0;
    ssize_t got = 1;
    if (!text)
        return brig_fail_nomem(err);
    while (length <= FILE_MAX && got > 0) {
        got = read(fd, text + length, FILE_MAX + 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    json_t *root = got == 0 && length <= FILE_MAX
                       ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    explicit_bzero(text, FILE_MAX + 1);
    free(text);
    if (!json_is_object(root)) {
        json_decref(root);
        return brig_fail(err, BRIG_E_INVALID, 0, "the credential is not a JSON object");
    }
    *ret_root = root;
    return 0;
}

/* The member "a.b" of an object, or NULL. */
static const json_t *find(const json_t *root, const char *path)
{
    while (root && path && *path) {
        char name[MEMBER_MAX];
        size_t length = strcspn(path, ".");
        if (length >= sizeof name)
            return NULL;
        memcpy(name, path, length);
        name[length] = '\0';
        root = json_object_get(root, name);
        path += length + (path[length] == '.');
    }
    return path ? root : NULL;
}

/* Copies a text that can be part of a header; NULL if there is none. */
static int copy_text(const json_t *root, const char *path, char **ret_text, struct brig_error *err)
{
    const char *text = json_string_value(find(root, path));
    if (!text || !*text)
        return 0;
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~' || at - text >= TOKEN_TEXT_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' in the credential is not a token", path);
    return str_copy(text, ret_text, err);
}

int64_t token_jwt_expires(const char *text)
{
    const char *start = text ? strchr(text, '.') : NULL;
    size_t length = start ? strcspn(start + 1, ".") : 0;
    autofree char *json = calloc(1, length + 4);
    uint32_t bits = 0;
    size_t size = 0;
    for (size_t i = 0, count = 0; json && i < length; i++) {
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        const char *digit = strchr(digits, start[1 + i]);
        if (!digit)
            return 0;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8)
            json[size++] = (char)(bits >> (count -= 8));
    }
    json_t *root = json ? json_loadb(json, size, 0, NULL) : NULL;
    int64_t expires = json_integer_value(json_object_get(root, "exp"));
    json_decref(root);
    return expires > 0 ? expires : 0;
}

/* Seconds since 1970; agents also write milliseconds. */
static int64_t read_time(const json_t *value)
{
    int64_t time = json_is_number(value) ? (int64_t)json_number_value(value) : 0;
    return time > INT64_C(100000000000) ? time / 1000 : (time > 0 ? time : 0);
}

static int read_token(const json_t *root, const struct token_facts *facts, struct token *token,
                      struct brig_error *err)
{
    int status = copy_text(root, facts->access, &token->access, err);
    if (status == 0)
        status = copy_text(root, facts->refresh, &token->refresh, err);
    if (status == 0)
        status = copy_text(root, facts->account, &token->account, err);
    token->expires = read_time(find(root, facts->expires));
    if (status == 0 && !token->access)
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no '%s' in the credential",
                         facts->access ? facts->access : "access token");
    if (token->expires == 0)
        token->expires = token_jwt_expires(token->access);
    return status;
}

int store_import(int fd, const struct token_facts *facts, struct token *ret_token,
                 struct brig_error *err)
{
    json_t *root = NULL;
    int status = read_json(fd, &root, err);
    if (status == 0)
        status = read_token(root, facts, ret_token, err);
    json_decref(root);
    return status;
}

int store_read(int directory, struct token *ret_token, struct brig_error *err)
{
    static const struct token_facts own = {
        .access = "access", .refresh = "refresh", .expires = "expires", .account = "account"};
    struct stat info;
    autoclose int fd = openat(directory, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return brig_fail(err, BRIG_E_STATE, errno, "cannot read the stored credential");
    json_t *root = NULL;
    int status = read_json(fd, &root, err);
    if (status == 0)
        status = read_token(root, &own, ret_token, err);
    if (status == 0)
        ret_token->serial = (uint64_t)json_integer_value(json_object_get(root, "serial"));
    json_decref(root);
    return status;
}

/* ---- Writing ---- */

static bool write_all(int fd, const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t done = write(fd, text, length);
        if (done < 0 && errno != EINTR)
            return false;
        text += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

int store_write(int directory, const struct token *token, struct brig_error *err)
{
    json_t *root = json_pack("{ss, ss*, ss*, sI, sI}", "access", token->access, "refresh",
                             token->refresh, "account", token->account, "expires",
                             (json_int_t)token->expires, "serial", (json_int_t)token->serial);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return brig_fail_nomem(err);
    (void)unlinkat(directory, NEW_NAME, 0); /* left by a crash */
    autoclose int fd =
        openat(directory, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write_all(fd, text) && fsync(fd) == 0 &&
                renameat(directory, NEW_NAME, directory, FILE_NAME) == 0 && fsync(directory) == 0;
    int failed = errno;
    wipe(text);
    return done ? 0 : brig_fail(err, BRIG_E_SYSTEM, failed, "cannot write the credential");
}
