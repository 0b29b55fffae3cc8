/* SPDX-License-Identifier: MIT */
/* Words between a caller and its child: what is said is what is read, and nothing said is nothing. */
#include "call/told.h"

#include "call_support.h"
#include "jail/plan/plan.h"

static void test_words(void)
{
    static const struct told words[] = {
        {.step = PLAN_STEP_SECCOMP, .sys_errno = EINVAL},
        {.step = PLAN_STEP_IDS, .sys_errno = 0},
        {.step = 17, .sys_errno = ENOSYS},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        int fd = told_open(false, NULL);
        told_failed(fd, words[i].step, words[i].sys_errno);
        struct told told = told_read(fd);
        tap_ok(!told.passed && told.step == words[i].step && told.sys_errno == words[i].sys_errno,
               "step %d with errno %d is told", words[i].step, words[i].sys_errno);
        (void)close(fd);
    }
    int fd = told_open(false, NULL);
    struct told told = told_read(fd);
    tap_ok(!told.passed && told.step == 0 && told.sys_errno == 0,
           "who says nothing has not passed");
    told_passed(fd);
    tap_ok(told_read(fd).passed, "who says so has");
    (void)close(fd);
    tap_ok(!told_read(-1).passed, "without an fd nobody has");
}

static void test_rules(void)
{
    int fd = told_open(true, NULL);
    told_rules(fd, true);
    tap_ok(told_await_rules(fd), "rules are there");
    told_rules(fd, false);
    tap_ok(!told_await_rules(fd), "or never will be");
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(told_await_rules(fd) ? 7 : 8);
    told_rules(fd, true);
    (void)waitpid(pid, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "another process waits for them");
    (void)close(fd);
    tap_ok(!told_await_rules(-1), "without an fd there are none");
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
    int told = told_open(false, NULL);
    bool high = told >= 3;
    (void)close(told);
    (void)brig_call(NULL, &options, look, NULL, &result, NULL);
    return high && result.outcome == BRIG_CALL_RETURNED && result.length == 4;
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
    test_rules();
    test_without_streams(false);
    test_without_streams(true);
    return tap_done();
}
