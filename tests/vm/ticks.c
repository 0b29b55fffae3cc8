/* SPDX-License-Identifier: MIT */
/* Prints how many thousand times a second the CPU's time stamp counter ticks, for a machine that is
 * emulated here and has the same. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TRIES 200
#define BETWEEN_NS 50000000

struct sample {
    uint64_t ns, ticks;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The closest of several, as somebody else may have the CPU in between. */
static struct sample take_sample(void)
{
    struct sample best = {0};
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = now_ns(), ticks = __builtin_ia32_rdtsc(), after = now_ns();
        if (after - before >= least_ns)
            continue;
        least_ns = after - before;
        best = (struct sample){.ns = before + least_ns / 2, .ticks = ticks};
    }
    return best;
}

int main(void)
{
    struct sample first = take_sample();
    (void)nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
    struct sample second = take_sample();
    printf("%llu\n",
           (unsigned long long)((second.ticks - first.ticks) * 1000000 / (second.ns - first.ns)));
    return 0;
}
