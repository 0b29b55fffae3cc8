/* SPDX-License-Identifier: MIT */
/* Telling systemd how it stands, where it wants to know. */
#pragma once

void notify_systemd(const char *state);
