/* SPDX-License-Identifier: MIT */
/* The job's messages: the configuration, once and first, and sockets. */
#pragma once

#include "net/broker.h"

/* Waits for the configuration and starts the broker with it. */
int control_wait_config(struct broker *broker, int socket, struct brig_error *err);
/* Says that the broker is ready, and hears the job in its loop. The socket is borrowed. */
int control_start(struct broker *broker, int socket, struct brig_error *err);
/* Tells the job why there is no broker. */
void control_fail(int socket, const struct brig_error *err);
