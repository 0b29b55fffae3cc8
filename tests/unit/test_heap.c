/* SPDX-License-Identifier: MIT */
/* Memory cut from one piece: what malloc promises, and what it does with what is not its own. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/heap.h"
#include "tap.h"

#define SLOTS 512
#define ROUNDS 200000
#define SIZE_MAX_TRIED 200000

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t random_size(void)
{
    uint64_t kind = next_random() % 100;
    if (kind < 90)
        return next_random() % 600;
    return next_random() % (kind < 99 ? 20000 : SIZE_MAX_TRIED);
}

struct slot {
    unsigned char *memory;
    size_t size;
    unsigned char fill;
};

static bool holds(const struct slot *slot, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (slot->memory[i] != slot->fill)
            return false;
    return true;
}

static bool take(struct slot *slot, bool *aligned, bool *zeroed)
{
    slot->size = random_size();
    slot->fill = (unsigned char)next_random();
    bool clean = next_random() % 2;
    slot->memory = clean ? heap_alloc_zeroed(1, slot->size) : heap_alloc(slot->size);
    if (!slot->memory)
        return false;
    *aligned = *aligned && (uintptr_t)slot->memory % 16 == 0;
    for (size_t i = 0; clean && i < slot->size; i++)
        *zeroed = *zeroed && slot->memory[i] == 0;
    memset(slot->memory, slot->fill, slot->size);
    return true;
}

static bool resize(struct slot *slot)
{
    size_t size = random_size(), kept = size < slot->size ? size : slot->size;
    unsigned char *memory = heap_resize(slot->memory, size);
    if (!memory)
        return false;
    slot->memory = memory;
    bool whole = holds(slot, kept);
    slot->size = size;
    memset(memory, slot->fill, size);
    return whole;
}

static void test_promises(void)
{
    static struct slot slots[SLOTS];
    bool taken = true, aligned = true, zeroed = true, kept = true, resized = true;
    for (int round = 0; round < ROUNDS; round++) {
        struct slot *slot = &slots[next_random() % SLOTS];
        if (!slot->memory) {
            taken = taken && take(slot, &aligned, &zeroed);
            continue;
        }
        kept = kept && holds(slot, slot->size);
        if (next_random() % 3 == 0) {
            resized = resized && resize(slot);
        } else {
            heap_free(slot->memory);
            slot->memory = NULL;
        }
    }
    tap_ok(taken, "blocks of all sizes are given");
    tap_ok(aligned, "aligned to 16 bytes");
    tap_ok(zeroed, "and zeroed if that was asked for, also when used before");
    tap_ok(kept, "none lies in another");
    tap_ok(resized, "what was in a block is in it after a resize");
}

static void test_reuse(void)
{
    void *first = heap_alloc(100);
    heap_free(first);
    tap_ok(heap_alloc(100) == first, "what was freed is used again");
    struct rusage before, after;
    (void)getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 1000000; i++)
        heap_free(heap_alloc((size_t)(i % 5000)));
    (void)getrusage(RUSAGE_SELF, &after);
    tap_ok(after.ru_maxrss - before.ru_maxrss < 1024, "so that a million blocks take no more room");
}

static void test_impossible(void)
{
    errno = 0;
    tap_ok(!heap_alloc(SIZE_MAX) && errno == ENOMEM, "more than there can be is refused");
    errno = 0;
    tap_ok(!heap_alloc_zeroed(SIZE_MAX / 2, 3) && errno == ENOMEM, "also if it overflows");
    void *memory = heap_alloc(10);
    memcpy(memory, "kept", 5);
    errno = 0;
    tap_ok(!heap_resize(memory, SIZE_MAX - 3) && errno == ENOMEM, "also by a resize");
    tap_is_str(memory, "kept", "which leaves the block as it was");
    heap_free(memory);
    heap_free(NULL);
    tap_ok(heap_resize(NULL, 0) != NULL, "nothing is something too");
}

static void free_twice(void)
{
    void *memory = heap_alloc(64);
    heap_free(memory);
    heap_free(memory);
}

static void free_inside(void)
{
    char *memory = heap_alloc_zeroed(1, 256);
    heap_free(memory + 64);
}

static void resize_freed(void)
{
    void *memory = heap_alloc(64);
    heap_free(memory);
    (void)heap_resize(memory, 4096);
}

static void *alloc_aside(void *arg)
{
    (void)arg;
    return heap_alloc(64);
}

static void alloc_in_thread(void)
{
    pthread_t thread;
    void *memory = heap_alloc(64);
    if (memory && pthread_create(&thread, NULL, alloc_aside, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

static bool is_aborted(void (*function)(void))
{
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        function();
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(void)
{
    test_promises();
    test_reuse();
    test_impossible();
    tap_ok(is_aborted(free_twice), "freeing twice ends the process");
    tap_ok(is_aborted(free_inside), "freeing what is no block does");
    tap_ok(is_aborted(resize_freed), "resizing what was freed does");
    tap_ok(is_aborted(alloc_in_thread), "and so does a second thread");
    return tap_done();
}
