/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP; outside, the credential is added. */
#pragma once

#include "net/broker.h"

int inject_init(struct broker *broker, struct brig_error *err);
void inject_done(struct broker *broker);
void inject_accepted(struct listener *listener, int fd);
/* Goes on with requests that had to wait. */
void inject_resume(struct broker *broker);
void inject_clients_end(struct broker *broker, enum door_because because);
