/* SPDX-License-Identifier: MIT */
/* Telling systemd how it stands, where it wants to know. */
#pragma once

void notify_systemd(const char *state);
/* That it reads again what can be read again, and when it began to. */
void notify_reloading(void);
