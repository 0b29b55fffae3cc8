/* SPDX-License-Identifier: MIT */
/* What a child tells its caller: whether it was confined, and what failed; and whose turn it is. */
#include "call/child_status.h"

#include <sys/mman.h>

#include "call_support.h"
#include "jail/plan/plan.h"

static void test_words(void)
{
    struct child_statuses statuses;
    uint32_t turn = 0, next = 0;
    tap_is_int(child_statuses_init(&statuses, NULL), 0, "there is room for statuses");
    struct child_status *status = child_status_take(&statuses, &turn);
    struct child_status *child = child_status_map(&statuses) + (status - statuses.slots);
    struct child_told told = child_status_read(status);
    tap_ok(!told.passed && told.step == 0 && told.sys_errno == 0,
           "who says nothing has not passed");
    tap_ok(child_status_enter(child, turn, getpid()), "a child comes in");
    child->step = PLAN_STEP_SECCOMP;
    child->sys_errno = EINVAL;
    told = child_status_read(status);
    tap_ok(!told.passed && told.step == PLAN_STEP_SECCOMP && told.sys_errno == EINVAL,
           "a step that failed is told");
    tap_ok(child_status_pass(child, turn), "it is confined");
    tap_ok(child_status_read(status).passed, "which is told");
    tap_is_int(child_status_close(status), getpid(), "who came in is known when the turn ends");
    tap_ok(!child_status_enter(child, turn, getpid()), "who comes later finds it over");
    child_status_return(status);
    tap_ok(child_status_take(&statuses, &next) == status && next != turn,
           "the next turn is another");
    tap_ok(!child_status_pass(child, turn), "and no other can pass in it");
    (void)munmap(child - (status - statuses.slots), CHILD_STATUS_BYTES);
    child_statuses_done(&statuses);
}

static void test_limit(void)
{
    struct child_statuses statuses;
    uint32_t turn;
    size_t taken = 0;
    tap_is_int(child_statuses_init(&statuses, NULL), 0, "there is room for statuses");
    while (taken <= CHILD_STATUSES && child_status_take(&statuses, &turn))
        taken++;
    tap_is_int((long)taken, CHILD_STATUSES, "as many as there are can be taken, and no more");
    child_status_return(&statuses.slots[3]);
    tap_ok(child_status_take(&statuses, &turn) == &statuses.slots[3], "one that was returned can");
    child_statuses_done(&statuses);
}

/* Streams that a caller has closed are opened in the child, over whatever has their numbers. */
static int look(struct brig_call_child *child, void *argument)
{
    (void)argument;
    return brig_call_return(child, "seen", 4);
}

static bool calls_without_streams(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
    (void)call_run(NULL, &options, look, NULL, &result, NULL);
    return result.outcome == BRIG_CALL_RETURNED && result.length == 4;
}

static void test_without_streams(bool namespaces)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(calls_without_streams(namespaces) ? 0 : 1);
    (void)waitpid(pid, &status, 0);
    tap_is_int(status, 0, "a caller without streams is told, %s namespaces",
               namespaces ? "with" : "without");
}

int main(void)
{
    test_words();
    test_limit();
    test_without_streams(false);
    test_without_streams(true);
    return tap_done();
}
