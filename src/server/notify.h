/* SPDX-License-Identifier: MIT */
/* Tells systemd about the state of brigd. */
#pragma once

/* Sends one datagram, such as "READY=1", to the socket that NOTIFY_SOCKET names, as sd_notify(3)
 * describes. Does nothing without the variable. */
void notify_systemd(const char *state);
