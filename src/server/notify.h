/* SPDX-License-Identifier: MIT */
/* What brigd tells systemd, in datagrams to two sockets: its state, and lines for the journal. */
#pragma once

#include <stdbool.h>

struct str;

/* Sends a state, such as "READY=1", to the socket that NOTIFY_SOCKET names: see sd_notify(3). Does
 * nothing if the variable is not set. */
void notify_systemd(const char *state);

/* Returns whether standard error goes to the journal: JOURNAL_STREAM names it, see
 * systemd.exec(5). */
bool notify_has_journal(void);
/* Appends a journal entry in the native protocol: the message, its priority as in syslog(3), and
 * the process of brigd that says it. Pure. */
void notify_append_entry(struct str *out, int priority, const char *process, const char *message);
/* Sends such an entry to the journal. Returns whether it was accepted. */
bool notify_journal(int priority, const char *process, const char *message);
