/* SPDX-License-Identifier: MIT */
/* Certificate and key for the http process, which cannot read files. */
#include "server/supervisor_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/message.h"

#define PEM_MAX ((size_t)1 << 20)

static int append_file(struct str *out, const char *key, const char *path, struct brig_error *err)
{
    char piece[4096];
    size_t before = out->length;
    if (!path || !path[0])
        return brig_fail(err, BRIG_E_INVALID, 0, "tls.enabled needs tls.%s", key);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && out->length - before < PEM_MAX) {
        got = read(fd, piece, sizeof piece);
        if (got > 0)
            str_append_bytes(out, piece, (size_t)got);
    }
    explicit_bzero(piece, sizeof piece);
    if (got < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read tls.%s '%s'", key, path);
    if (out->failed)
        return brig_fail_nomem(err);
    if (out->length - before >= PEM_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "tls.%s '%s' is larger than %zu bytes", key, path,
                         PEM_MAX);
    if (out->length == before || !strstr(out->data + before, "-----BEGIN") ||
        strlen(out->data) != out->length)
        return brig_fail(err, BRIG_E_INVALID, 0, "tls.%s '%s' is not a PEM file", key, path);
    return 0;
}

int supervisor_tls_send(const struct server_config *config, struct channel *http,
                        struct brig_error *err)
{
    autostr struct str certificate = {0}, key = {0};
    if (!config->tls.enabled)
        return 0;
    int result = append_file(&certificate, "cert_file", config->tls.cert_file, err);
    if (result == 0)
        result = append_file(&key, "key_file", config->tls.key_file, err);
    if (result < 0)
        return result;
    str_append_bytes(&certificate, "", 1);
    str_append_bytes(&certificate, key.data, key.length);
    if (certificate.failed)
        result = brig_fail_nomem(err);
    else
        result = channel_send(http, MESSAGE_TLS, 0, certificate.data, certificate.length, err);
    if (key.data)
        explicit_bzero(key.data, key.length);
    if (certificate.data)
        explicit_bzero(certificate.data, certificate.length);
    return result;
}
