/* SPDX-License-Identifier: MIT */
/* The connector: makes connections to the jail's loopback for the broker. */
#pragma once

struct brig_error;

/* Serves requests from the socket until its other end is closed. */
int connector_run(int socket, struct brig_error *err);
