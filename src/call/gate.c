/* SPDX-License-Identifier: MIT */
/* The gates through which children go to their functions. */
#include "call/gate.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "call/memory.h"
#include "jail/sys.h"

/* The word: the turn in its upper half; below it the pid, which is never negative, and above that
 * one bit for a child that is confined. */
#define TURN_SHIFT 32
#define PASSED (UINT64_C(1) << 31)
#define PID_MASK (PASSED - 1)

static uint64_t make_word(uint32_t turn)
{
    return (uint64_t)turn << TURN_SHIFT;
}

int gates_init(struct gates *gates, struct brig_error *err)
{
    *gates = GATES_INIT;
    autoclose int fd = memory_file("brig-gates", GATES_BYTES, err);
    if (fd < 0)
        return fd;
    void *slots = mmap(NULL, GATES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (slots == MAP_FAILED)
        return brig_fail(err, BRIG_E_NOMEM, errno, "cannot map %zu bytes", GATES_BYTES);
    if (madvise(slots, GATES_BYTES, MADV_DONTFORK) < 0) {
        int sys_errno = errno;
        (void)munmap(slots, GATES_BYTES);
        return brig_fail(err, BRIG_E_SYSTEM, sys_errno, "cannot keep memory from being inherited");
    }
    *gates = (struct gates){.slots = slots, .fd = take_fd(&fd)};
    return 0;
}

void gates_done(struct gates *gates)
{
    if (gates->slots)
        (void)munmap(gates->slots, GATES_BYTES);
    if (gates->fd >= 0)
        (void)close(gates->fd);
    *gates = GATES_INIT;
}

/* ---- the caller's side ---- */

struct gate *gate_take(const struct gates *gates, uint32_t *ret_turn)
{
    for (size_t i = 0; i < GATES; i++) {
        struct gate *gate = &gates->slots[i];
        if (__atomic_exchange_n(&gate->taken, 1, __ATOMIC_ACQUIRE) != 0)
            continue;
        gate->step = gate->sys_errno = 0;
        *ret_turn = (uint32_t)(__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) >> TURN_SHIFT);
        return gate;
    }
    return NULL;
}

struct told gate_read(const struct gate *gate)
{
    bool passed = __atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) & PASSED;
    return (struct told){.passed = passed, .step = gate->step, .sys_errno = gate->sys_errno};
}

pid_t gate_close(struct gate *gate)
{
    uint64_t word = __atomic_load_n(&gate->word, __ATOMIC_ACQUIRE);
    uint64_t next;
    do
        next = make_word((uint32_t)(word >> TURN_SHIFT) + 1);
    while (!__atomic_compare_exchange_n(&gate->word, &word, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    return (pid_t)(word & PID_MASK);
}

void gate_return(struct gate *gate)
{
    __atomic_store_n(&gate->taken, 0, __ATOMIC_RELEASE);
}

/* ---- the child's side ---- */

struct gate *gates_map(const struct gates *gates)
{
    void *slots = NULL;
    return memory_map(gates->fd, GATES_BYTES, &slots) < 0 ? NULL : slots;
}

bool gate_enter(struct gate *gate, uint32_t turn, pid_t pid)
{
    uint64_t expected = make_word(turn);
    return __atomic_compare_exchange_n(&gate->word, &expected, expected | (uint64_t)pid, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool gate_pass(struct gate *gate, uint32_t turn)
{
    uint64_t word = __atomic_load_n(&gate->word, __ATOMIC_ACQUIRE);
    if (word >> TURN_SHIFT != turn)
        return false;
    return __atomic_compare_exchange_n(&gate->word, &word, word | PASSED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
