/* SPDX-License-Identifier: MIT */
/* What the in-process benchmarks share: a clock, order, percentiles, and failing loudly. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <brig/brig.h>

static inline uint64_t bench_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noreturn)) static inline void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

/* Ends the program with the library's words unless code is a success. */
static inline void bench_must(int code, const char *what, const struct brig_error *err)
{
    if (code < 0)
        bench_die(what, err->message);
}

static inline unsigned bench_count(const char *text, unsigned max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value == 0 || value > max)
        bench_die("a number is wanted", text);
    return (unsigned)value;
}

/* xorshift: the order of runs only has to be unrelated to the machine. */
static inline void bench_shuffle(size_t *order, size_t count, uint64_t *state)
{
    for (size_t i = count - 1; i > 0; i--) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        size_t j = (size_t)(*state % (i + 1));
        size_t other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

static inline int bench_compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Microseconds below which `percent` of the sorted samples lie (nearest rank). */
static inline double bench_percentile_us(const uint64_t *sorted_ns, size_t count, unsigned percent)
{
    size_t rank = (count * percent + 99) / 100;
    return (double)sorted_ns[rank > 0 ? rank - 1 : 0] / 1000.0;
}
