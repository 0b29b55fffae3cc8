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

    return brig_call_fail(child, &(struct brig_call_failure){.class_name = "Usage",
                                                             .message = "square, read or loop"});
}

int main(int argc, char **argv)
{
    struct brig_call_options options;
    brig_call_options_init(&options);
    options.timeout_ms = 500;

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

    /* The result is always filled, whatever happened. */
    struct brig_call_result result;
    (void)brig_call(NULL, &options, work, argv + first, &result, NULL);

    char text[1024];
    (void)brig_call_result_text(&result, text, sizeof text);
    printf("%s: %s\n", brig_call_outcome_name(result.outcome), text);
    if (result.value)
        printf("value: %.*s\n", (int)result.length, (const char *)result.value);
    for (size_t i = 0; i < result.unenforced.count && options.on_unsupported; i++)
        printf("not enforced: %s\n", result.unenforced.text[i]);

    int status = result.outcome == BRIG_CALL_RETURNED ? 0 : 1;
    brig_call_result_done(&result);
    return status;
}
