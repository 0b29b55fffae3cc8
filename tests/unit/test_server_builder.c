/* SPDX-License-Identifier: MIT */
/* The thread that makes jails ahead, beside a loop that starts its own: what is given comes back, once, and
 * nothing is lost at the end. For the thread sanitizer as well. */
#include "jail/prepare/held.h"
#include "job_support.h"
#include "server/executor/builder.h"

#define ROUNDS 8

/* What the thread is given, as the executor's runs are. */
struct thing {
    const struct brig_policy *policy;
    struct brig_job *job;
    int wanted; /* result */
    int made;
};

static const char *const command[] = {"sh", "-c", "echo made", NULL};

static int make_jail(void *what, struct brig_error *err)
{
    struct thing *thing = what;
    const struct brig_command held = {.argv = command,
                                      .stdio = {{.kind = BRIG_STDIO_NULL},
                                                {.kind = BRIG_STDIO_CAPTURE},
                                                {.kind = BRIG_STDIO_CAPTURE}}};
    thing->made++;
    return job_start_held(thing->policy, &held, &thing->job, err);
}

static int make_nothing(void *what, struct brig_error *err)
{
    struct thing *thing = what;
    thing->made++;
    if (thing->wanted < 0)
        (void)snprintf(err->message, sizeof err->message, "it is not wanted");
    return thing->wanted;
}

static struct thing *take(struct builder *builder, int *ret_result, struct brig_error *ret_err)
{
    if (!await_readable(builder->event))
        tap_bail("the thread says nothing");
    return executor_builder_take(builder, ret_result, ret_err);
}

static void test_jails(struct builder *builder)
{
    struct brig_policy *policy = new_policy();
    bool good = true;
    for (int i = 0; i < ROUNDS; i++) {
        struct thing thing = {.policy = policy};
        struct brig_error err = {0};
        struct brig_result own, other;
        int result;
        executor_builder_give(builder, make_jail, &thing);
        good = good && executor_builder_is_busy(builder);
        good = good && brig_run(policy, &(struct brig_command){.argv = command}, &own, &err) == 0;
        good = good && take(builder, &result, &err) == &thing && result == 0;
        good = good && !executor_builder_is_busy(builder) && job_is_waiting(thing.job);
        good = good && job_release(thing.job, &(struct job_late){0}, &err) == 0;
        good = good && brig_job_wait(thing.job, &err) == 0;
        good = good && brig_job_result(thing.job, &other, &err) == 0;
        good = good && strcmp(other.out.data, "made\n") == 0 && own.exit_code == 0;
        if (!good) {
            tap_diag("%s", err.message);
            break;
        }
        brig_result_done(&own);
        brig_result_done(&other);
        brig_job_free(thing.job);
    }
    tap_ok(good, "%d jails made by the thread, and as many beside them", ROUNDS);
    brig_policy_free(policy);
}

static void test_answers(struct builder *builder)
{
    struct thing thing = {.wanted = BRIG_E_SETUP};
    struct brig_error err = {0};
    int result = 0;
    executor_builder_give(builder, make_nothing, &thing);
    tap_ok(take(builder, &result, &err) == &thing, "what failed comes back");
    tap_is_int(result, BRIG_E_SETUP, "with what became of it");
    tap_is_str(err.message, "it is not wanted", "and why");
    tap_ok(!executor_builder_take(builder, &result, &err), "it comes back once");
    tap_ok(!executor_builder_is_busy(builder), "and there is nothing more to do");
}

static void test_end(void)
{
    struct builder builder, never = {0};
    struct thing thing = {0};
    struct brig_error err = {0};
    tap_ok(!executor_builder_end(&never), "one that never began ends");
    tap_is_int(executor_builder_begin(&builder, &err), 0, "another begins: %s", err.message);
    executor_builder_give(&builder, make_nothing, &thing);
    tap_ok(executor_builder_end(&builder) == &thing, "and gives back what nobody has taken");
    tap_ok(thing.made <= 1, "which was made once at most");
    tap_is_int(executor_builder_begin(&builder, &err), 0, "and one more");
    tap_ok(!executor_builder_end(&builder), "that had nothing to do");
}

int main(void)
{
    struct builder builder;
    struct brig_error err = {0};
    tap_is_int(executor_builder_begin(&builder, &err), 0, "it begins: %s", err.message);
    test_answers(&builder);
    test_jails(&builder);
    tap_ok(!executor_builder_end(&builder), "it ends with nothing in hand");
    test_end();
    return tap_done();
}
