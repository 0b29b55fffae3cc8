/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP; outside, the credential is added. */
#include "egress/broker_inject.h"

#include <unistd.h>

#include "base/error.h"

int inject_init(struct broker *broker, struct brig_error *err)
{
    if (broker->config.inject_count > 0)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "this broker cannot inject credentials");
    return 0;
}

void inject_done(struct broker *broker)
{
    (void)broker;
}

void inject_accepted(struct listener *listener, int fd)
{
    (void)listener;
    (void)close(fd);
}

void inject_resume(struct broker *broker)
{
    (void)broker;
}

void inject_clients_end(struct broker *broker, enum door_because because)
{
    (void)broker;
    (void)because;
}
