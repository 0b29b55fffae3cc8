/* SPDX-License-Identifier: MIT */
/* The access log for the front, which cannot open files. */
#include "server/keeper_log.h"

#include "server/config.h"
#include "server/front/access_log.h"
#include "server/message.h"

int keeper_log_send(const struct server_config *config, struct channel *front,
                    struct brig_error *err)
{
    struct access_log log;
    if (!access_log_is_file(config->server.access_log))
        return 0;
    int result = access_log_open(&log, config->server.access_log, err);
    if (result < 0)
        return result;
    result = channel_send_fd(front, MESSAGE_LOG, 0, log.fd, err);
    access_log_close(&log);
    return result;
}
