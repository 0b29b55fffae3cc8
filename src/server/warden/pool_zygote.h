/* SPDX-License-Identifier: MIT */
/* The interpreter from which the jails of one pool are forked: one API key's, and replaced in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/warden/source.h"

struct brig_error;
struct runtime;
struct warden;
struct zygote;

struct pool_zygote {
    struct pool_zygote *next; /* of those to be freed */
    struct warden *warden;
    const struct runtime *runtime;
    struct zygote *zygote;
    struct warden_source source;
    uint64_t born_ms, runs;
    bool gone;
};

/* NULL when memory is short. Then the builder makes it with warden_zygote_build(). */
struct pool_zygote *warden_zygote_new(struct warden *warden, const struct runtime *runtime);
int warden_zygote_build(void *what, struct brig_error *err);
/* Listens to what was made. */
int warden_zygote_adopt(struct pool_zygote *own, struct brig_error *err);
/* Whether it can be forked; accepts NULL. */
bool warden_zygote_is_ready(const struct pool_zygote *own);
/* Whether there should be another; accepts NULL. */
bool warden_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms);
/* It is asked for nothing any more. */
void warden_zygote_give_up(struct pool_zygote *own);
/* After this round of the loop it is gone; what was forked from it is not. Accepts NULL. */
void warden_zygote_bury(struct pool_zygote *own);
/* Those that were buried. */
void warden_zygotes_clear(struct warden *warden);
