/* SPDX-License-Identifier: MIT */
/* What the files of the warden share: one loop, its peers, and the runs. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/message.h"
#include "server/warden/credential.h"
#include "server/warden/instance.h"
#include "server/warden/jail.h"
#include "server/warden/ledger.h"

struct brig_error;
struct brig_job;
struct brig_result;
struct runtime;
struct server_config;
struct warden;

/* Something the loop waits for. */
struct warden_source {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int fd;
};

/* The other end of a channel: the keeper, the front or the recorder. */
struct warden_peer {
    struct warden *warden;
    struct channel *channel; /* NULL while there is none */
    struct warden_source source;
    bool writing; /* the loop waits for room, too */
};

/* A run goes through these in order; one that could not be started is over at once. */
enum run_state {
    RUN_RUNNING,
    RUN_ENDING, /* it was told to end, for a reason */
    RUN_OVER,   /* its result is out; to be freed after this round of the loop */
};

/* Why we ended it, if we did. */
enum run_reason { RUN_BY_ITSELF, RUN_CANCELLED, RUN_TOO_MUCH_OUTPUT };

struct run_stream {
    struct run *run;
    struct warden_source source; /* fd -1 once it is at its end */
    int number;                  /* 1 or 2 */
    bool paused, truncated;
    size_t most; /* what is kept */
    struct str kept;
};

struct run {
    struct run *next, *previous;
    struct warden *warden;
    enum run_state state;
    enum run_reason reason;
    struct execution_request request;
    const struct runtime *runtime;
    uint64_t tag;   /* of the front's message */
    uint64_t front; /* which front that was */
    size_t slot;    /* its number among those that run */
    uid_t host_uid; /* (uid_t)-1: the warden's own */
    struct brig_job *job;
    struct warden_source source;
    struct run_stream streams[2];
    uint64_t output_bytes;      /* of both streams, kept or not */
    int64_t started_ns;         /* since 1970 */
    enum execution_fault fault; /* if it cannot be begun, */
    const char *field;          /* and of FAULT_REQUEST: what of it */
};

struct warden {
    const struct server_config *config;
    int epoll;
    struct warden_peer peers[ROLES_]; /* the one of ROLE_WARDEN is the keeper's */
    uint64_t fronts;                  /* how many there have been */
    struct ledger ledger;
    struct credential credential;
    struct instance instance;
    struct jail_ground ground;
    char broker[PATH_MAX];
    struct run *runs; /* all that are not over */
    struct run *over; /* to be freed */
    size_t run_count, run_most, paused_count;
    size_t inherited_count; /* of the runs: begun for an earlier front */
    size_t slot_count;
    bool *slots; /* which numbers are taken; as root, each is a host uid */
    size_t next_slot;
    bool as_root;
    struct str runtimes; /* the JSON that was sent last */
    struct message_gauges gauges, gauges_sent;
    uint64_t gauges_due_ms, sweep_due_ms;
    bool draining, keeper_gone;
    uint64_t drain_ms; /* when patience with runs ends, */
    uint64_t rows_ms;  /* and after the last of them, with the recorder */
};

/* ---- warden.c ---- */

int warden_watch(const struct warden *warden, struct warden_source *source, uint32_t events,
                 struct brig_error *err);
void warden_unwatch(const struct warden *warden, const struct warden_source *source);
/* Sends to the front if it is still the one meant; one that cannot be sent to is gone. */
void warden_tell_front(struct warden *warden, uint64_t front, enum message_type type, uint64_t tag,
                       const void *bytes, size_t length);
/* Whether the front has enough to read for now. */
bool warden_front_is_full(const struct warden *warden);
/* A line for the log. */
void warden_warn(struct warden *warden, const char *text);

/* ---- run.c ---- */

/* Begins what a message asks for and takes the request; whatever comes of it, the front and the
 * recorder are told. */
void warden_run_begin(struct warden *warden, struct execution_request *request, uint64_t tag);
struct run *warden_run_find(const struct warden *warden, const char *id);
void warden_run_cancel(struct run *run, enum run_reason reason);
/* Reads again what was left unread for the front's sake. */
void warden_runs_resume(struct warden *warden);
/* Those that are over. */
void warden_runs_clear(struct warden *warden);
/* All others, at once: the end. */
void warden_runs_abandon(struct warden *warden);

/* ---- outcome.c ---- */

/* What came of a run, for the front and the recorder. Strings are in the result's arena, or the run's. */
void warden_outcome(const struct run *run, const struct brig_result *from,
                    struct execution_result *ret_result);
/* Nothing ran, and this is why. */
void warden_outcome_failed(const struct run *run, const char *why,
                           struct execution_result *ret_result);

/* ---- output.c ---- */

/* Pipes for both streams; *ret_ends are the run's, for the jail. */
int warden_output_open(struct run *run, int ret_ends[2], struct brig_error *err);
/* Nobody writes any more: what is left in the pipes is read. */
void warden_output_drain(struct run *run);
void warden_output_close(struct run *run);
void warden_output_resume(struct run *run);
