/* SPDX-License-Identifier: MIT */
/* The status slots of children. */
#include "call/child_status.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "call/memory.h"
#include "jail/sys.h"

/* The word: turn in the upper 32 bits, then one bit that says the child is confined, then the pid
 * in 31 bits. */
#define TURN_SHIFT 32
#define PASSED (UINT64_C(1) << 31)
#define PID_MASK (PASSED - 1)

static uint64_t make_word(uint32_t turn)
{
    return (uint64_t)turn << TURN_SHIFT;
}

/* The mark of statuses. The kernel makes it 0 in a forked process. */
enum { MARK_STALE, MARK_RENEWED_NOW, MARK_READY };
#define MARK_BYTES 4096

static int make_mark(struct child_statuses *statuses, struct brig_error *err)
{
    void *mark = mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED)
        return brig_fail(err, BRIG_E_NOMEM, errno, "cannot map %d bytes", MARK_BYTES);
    statuses->mark = mark;
    return madvise(mark, MARK_BYTES, MADV_WIPEONFORK) < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot have memory cleared by a fork")
               : 0;
}

/* Replaces fd and slots. The old slots are not unmapped: after a fork their addresses may be those of
 * another mapping. */
static int make_slots(struct child_statuses *statuses, struct brig_error *err)
{
    autoclose int fd = memory_file("brig-status", CHILD_STATUS_BYTES, err);
    if (fd < 0)
        return fd;
    void *slots = mmap(NULL, CHILD_STATUS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (slots == MAP_FAILED)
        return brig_fail(err, BRIG_E_NOMEM, errno, "cannot map %zu bytes", CHILD_STATUS_BYTES);
    if (madvise(slots, CHILD_STATUS_BYTES, MADV_DONTFORK) < 0) {
        int sys_errno = errno;
        (void)munmap(slots, CHILD_STATUS_BYTES);
        return brig_fail(err, BRIG_E_SYSTEM, sys_errno, "cannot keep memory from being inherited");
    }
    close_fd(&statuses->fd);
    statuses->fd = take_fd(&fd);
    statuses->slots = slots;
    return 0;
}

int child_statuses_init(struct child_statuses *statuses, struct brig_error *err)
{
    *statuses = CHILD_STATUSES_INIT;
    int result = make_mark(statuses, err);
    if (result == 0)
        result = make_slots(statuses, err);
    if (result == 0)
        *statuses->mark = MARK_READY;
    else
        child_statuses_done(statuses);
    return result;
}

int child_statuses_renew(struct child_statuses *statuses, struct brig_error *err)
{
    for (;;) {
        uint32_t mark = __atomic_load_n(statuses->mark, __ATOMIC_ACQUIRE);
        if (mark == MARK_READY)
            return 0;
        if (mark == MARK_RENEWED_NOW) { /* by another thread, which takes some microseconds */
            (void)sched_yield();
            continue;
        }
        if (!__atomic_compare_exchange_n(statuses->mark, &mark, MARK_RENEWED_NOW, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        int result = make_slots(statuses, err);
        __atomic_store_n(statuses->mark, result < 0 ? MARK_STALE : MARK_READY, __ATOMIC_RELEASE);
        return result;
    }
}

void child_statuses_done(struct child_statuses *statuses)
{
    bool ours = statuses->mark && *statuses->mark == MARK_READY;
    if (ours)
        (void)munmap(statuses->slots, CHILD_STATUS_BYTES);
    if (statuses->mark)
        (void)munmap(statuses->mark, MARK_BYTES);
    close_fd(&statuses->fd);
    *statuses = CHILD_STATUSES_INIT;
}

/* ---- the caller's side ---- */

struct child_status *child_status_take(const struct child_statuses *statuses, uint32_t *ret_turn)
{
    for (size_t i = 0; i < CHILD_STATUSES; i++) {
        struct child_status *status = &statuses->slots[i];
        if (__atomic_exchange_n(&status->taken, 1, __ATOMIC_ACQUIRE) != 0)
            continue;
        status->step = status->sys_errno = 0;
        *ret_turn = (uint32_t)(__atomic_load_n(&status->word, __ATOMIC_ACQUIRE) >> TURN_SHIFT);
        return status;
    }
    return NULL;
}

struct child_told child_status_read(const struct child_status *status)
{
    bool passed = __atomic_load_n(&status->word, __ATOMIC_ACQUIRE) & PASSED;
    return (struct child_told){
        .passed = passed, .step = status->step, .sys_errno = status->sys_errno};
}

pid_t child_status_close(struct child_status *status)
{
    uint64_t word = __atomic_load_n(&status->word, __ATOMIC_ACQUIRE);
    uint64_t next;
    do
        next = make_word((uint32_t)(word >> TURN_SHIFT) + 1);
    while (!__atomic_compare_exchange_n(&status->word, &word, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    return (pid_t)(word & PID_MASK);
}

void child_status_return(struct child_status *status)
{
    __atomic_store_n(&status->taken, 0, __ATOMIC_RELEASE);
}

/* ---- the child's side ---- */

struct child_status *child_status_map(const struct child_statuses *statuses)
{
    void *slots = NULL;
    return memory_map(statuses->fd, CHILD_STATUS_BYTES, &slots) < 0 ? NULL : slots;
}

bool child_status_enter(struct child_status *status, uint32_t turn, pid_t pid)
{
    uint64_t expected = make_word(turn);
    return __atomic_compare_exchange_n(&status->word, &expected, expected | (uint64_t)pid, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool child_status_pass(struct child_status *status, uint32_t turn)
{
    uint64_t word = __atomic_load_n(&status->word, __ATOMIC_ACQUIRE);
    if (word >> TURN_SHIFT != turn)
        return false;
    return __atomic_compare_exchange_n(&status->word, &word, word | PASSED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
