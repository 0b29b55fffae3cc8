/* SPDX-License-Identifier: MIT */
/* Errors: codes, messages, context, remedies, and what happens at the end of the buffer. */
#include <errno.h>

#include "base/error.h"
#include "tap.h"

static void fills_in(void)
{
    struct brig_error err = {0};
    tap_is_int(brig_fail(&err, BRIG_E_SETUP, ENOENT, "open '%s'", "/x"), BRIG_E_SETUP,
               "failing returns the code");
    tap_is_int(err.code, BRIG_E_SETUP, "the code is kept");
    tap_is_int(err.sys_errno, ENOENT, "the errno is kept");
    tap_is_str(err.message, "open '/x': No such file or directory", "the errno is put in words");
    tap_is_int(brig_wrap(&err, BRIG_E_SETUP, "view"), BRIG_E_SETUP, "wrapping returns the code");
    tap_is_str(err.message, "view: open '/x': No such file or directory", "context stands before");
    tap_is_int(brig_advise(&err, BRIG_E_SETUP, "Make %s", "/x"), BRIG_E_SETUP,
               "advising returns the code");
    tap_is_str(err.message, "view: open '/x': No such file or directory. Make /x",
               "the remedy stands behind");
}

static void takes_null(void)
{
    tap_is_int(brig_fail(NULL, BRIG_E_NOMEM, 0, "x"), BRIG_E_NOMEM, "no detail wanted: fail");
    tap_is_int(brig_wrap(NULL, BRIG_E_STATE, "x"), BRIG_E_STATE, "no detail wanted: wrap");
    tap_is_int(brig_advise(NULL, BRIG_E_STATE, "x"), BRIG_E_STATE, "no detail wanted: advise");
}

static void cuts_at_the_limit(void)
{
    char text[BRIG_MESSAGE_MAX + 1];
    memset(text, 'a', sizeof text);
    struct brig_error err;
    text[BRIG_MESSAGE_MAX - 1] = '\0';
    (void)brig_fail(&err, BRIG_E_INVALID, 0, "%s", text);
    tap_is_int(strlen(err.message), BRIG_MESSAGE_MAX - 1, "a message at the limit is whole");
    text[BRIG_MESSAGE_MAX - 1] = 'a';
    text[BRIG_MESSAGE_MAX] = '\0';
    (void)brig_fail(&err, BRIG_E_INVALID, ENOENT, "%s", text);
    tap_is_int(strlen(err.message), BRIG_MESSAGE_MAX - 1, "one past it is cut");
    (void)brig_wrap(&err, BRIG_E_INVALID, "context");
    tap_is_int(strlen(err.message), BRIG_MESSAGE_MAX - 1, "a full message can be wrapped");
    tap_ok(strncmp(err.message, "context: aaa", 12) == 0, "and begins with the context");
    (void)brig_advise(&err, BRIG_E_INVALID, "advice");
    tap_is_int(strlen(err.message), BRIG_MESSAGE_MAX - 1, "a full message can be advised on");
}

int main(void)
{
    fills_in();
    takes_null();
    cuts_at_the_limit();
    return tap_done();
}
