/* SPDX-License-Identifier: MIT */
/* Files that the supervisor opens for the http process: certificate, key and access log. */
#include "server/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/message.h"

#define PEM_MAX ((size_t)1 << 20)
#define OPEN_AT_ONCE                                                                               \
    (O_NOCTTY | O_NONBLOCK) /* the supervisor must not wait for the other end of a FIFO */

static int read_pem(struct str *out, const char *key, const char *path, struct brig_error *err)
{
    str_reserve(out, 2 * PEM_MAX); /* so that realloc() leaves no copy of the key */
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | OPEN_AT_ONCE);
    int failed = fd < 0 ? -errno : read_all(fd, PEM_MAX, out);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot read tls.%s '%s'", key, path);
    if (out->length > PEM_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "tls.%s '%s' is larger than %zu bytes", key, path,
                         PEM_MAX);
    if (!strstr(out->data, "-----BEGIN") || strlen(out->data) != out->length)
        return brig_fail(err, BRIG_E_INVALID, 0, "tls.%s '%s' is not a PEM file", key, path);
    return 0;
}

static void wipe(struct str *text)
{
    if (text->data)
        explicit_bzero(text->data, text->length);
    str_done(text);
}

/* Reads the certificate, a NUL and the key. */
static int read_tls(const struct server_config *config, struct str *out, struct brig_error *err)
{
    __attribute__((cleanup(wipe))) struct str key = {0};
    int result = read_pem(out, "cert_file", config->tls.cert_file, err);
    if (result == 0)
        result = read_pem(&key, "key_file", config->tls.key_file, err);
    if (result < 0)
        return result;
    str_append_bytes(out, "", 1);
    str_append_bytes(out, key.data, key.length);
    return out->failed ? brig_fail_nomem(err) : 0;
}

int handover_tls(const struct server_config *config, struct channel *http, struct brig_error *err)
{
    __attribute__((cleanup(wipe))) struct str both = {0};
    if (!config->tls.enabled)
        return 0;
    int result = read_tls(config, &both, err);
    return result < 0 ? result : channel_send(http, MESSAGE_TLS, 0, both.data, both.length, err);
}

int handover_check(const struct server_config *config, struct brig_error *err)
{
    __attribute__((cleanup(wipe))) struct str both = {0};
    return config->tls.enabled ? read_tls(config, &both, err) : 0;
}

int handover_log(const struct server_config *config, struct channel *http, struct brig_error *err)
{
    const char *path = config->server.access_log;
    if (path[0] != '/')
        return 0;
    autoclose int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | OPEN_AT_ONCE, 0640);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the access log '%s'",
                         str_shown(path).text);
    return channel_send_fd(http, MESSAGE_LOG, 0, fd, err);
}
