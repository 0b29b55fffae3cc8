/* SPDX-License-Identifier: MIT */
/* The access log for the http process, which cannot open files. */
#include "server/supervisor_log.h"

#include "server/config.h"
#include "server/http/access_log.h"
#include "server/message.h"

int supervisor_log_send(const struct server_config *config, struct channel *http,
                        struct brig_error *err)
{
    struct access_log log;
    if (!access_log_is_file(config->server.access_log))
        return 0;
    int result = access_log_open(&log, config->server.access_log, err);
    if (result < 0)
        return result;
    result = channel_send_fd(http, MESSAGE_LOG, 0, log.fd, err);
    access_log_close(&log);
    return result;
}
