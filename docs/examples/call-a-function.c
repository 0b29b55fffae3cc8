/* SPDX-License-Identifier: MIT */
/* Calls a function of this program in a jail and says what became of it.
 *
 *     call-a-function [--namespaces] [--warn] square 12
 *     call-a-function read /etc/passwd
 *     call-a-function loop */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/call.h>

/* What is called has the program's memory as it was, so there is nothing to pass but a pointer. */
static int work(struct brig_call_child *child, void *argument)
{
    char **words = argument;
    char text[64];

    if (strcmp(words[0], "loop") == 0)
        for (;;)
            (void)getppid();

    if (strcmp(words[0], "square") == 0 && words[1]) {
        long number = strtol(words[1], NULL, 10);
        int length = snprintf(text, sizeof text, "%ld", number * number);
        return brig_call_return(child, text, (size_t)length); /* these bytes are the value */
    }

    if (strcmp(words[0], "read") == 0 && words[1]) {
        int fd = open(words[1], O_RDONLY);
        if (fd < 0) /* the caller's side finds out whether the jail was the reason */
            return brig_call_fail_errno(child, errno, words[1], BRIG_CALL_ACCESS_READ);
        return brig_call_return(child, "it can be read", 14);
    }

    struct brig_call_failure failure = BRIG_CALL_FAILURE_INIT;
    failure.class_name = "Usage";
    failure.message = "square, read or loop";
    return brig_call_fail(child, &failure);
}

int main(int argc, char **argv)
{
    struct brig_call_options options;
    brig_call_options_init(&options, sizeof options);
    options.cpu_timeout_ms = 500;

    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--namespaces") == 0)
            options.namespaces = 1; /* the full jail, not only Landlock and its kind */
        if (strcmp(argv[first], "--warn") == 0)
            options.on_unsupported = BRIG_UNSUPPORTED_WARN;
    }
    if (first == argc) {
        fprintf(stderr, "usage: call-a-function [--namespaces] [--warn] square N|read PATH|loop\n");
        return 2;
    }

    /* There is a result whatever happened, unless memory is short. */
    struct brig_call_result *result = NULL;
    (void)brig_call_run(NULL, &options, work, argv + first, &result, NULL);
    if (!result)
        return 1;

    char text[1024];
    enum brig_call_outcome outcome = brig_call_result_outcome(result);
    (void)brig_call_result_text(result, text, sizeof text);
    printf("%s: %s\n", brig_call_outcome_name(outcome), text);

    size_t length = 0;
    const char *value = brig_call_result_value(result, &length);
    if (value)
        printf("value: %.*s\n", (int)length, value);
    for (size_t i = 0; i < brig_call_result_unenforced_count(result) && options.on_unsupported; i++)
        printf("not enforced: %s\n", brig_call_result_unenforced(result, i));

    brig_call_result_free(result);
    return outcome == BRIG_CALL_RETURNED ? 0 : 1;
}
