/* SPDX-License-Identifier: MIT */
/* What the executions of each API key used, by day, in SQLite. */
#pragma once

struct brig_error;
struct query;
struct row;
struct store;
struct str;

#define USAGE_DAY_MAX 16 /* "2026-11-18" */
#define USAGE_DAYS_KEPT 400

/* Adds an execution that ended. */
int usage_add(struct store *store, const struct row *row, struct brig_error *err);
/* Writes the answer of GET /usage: days from since_ns to until_ns, of one domain or of all. */
int usage_write(struct store *store, const struct query *query, struct str *out,
                struct brig_error *err);
/* The day of a time since 1970, in UTC. */
void usage_day(long long ns, char ret_day[USAGE_DAY_MAX]);
