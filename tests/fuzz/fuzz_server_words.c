/* SPDX-License-Identifier: MIT */
/* Words of a request that the executor judges: "pattern NUL word". Each is judged in time, and what is let
 * through keeps to what is promised of it. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/environment.h"
#include "server/executor/jail.h"
#include "server/executor/jail_check.h"
#include "server/executor/returned.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = calloc(1, size + 2);
    if (!text || size > 4096)
        return 0;
    memcpy(text, data, size);
    const char *word = text + strlen(text) + 1;
    /* No file has a name longer than EXECUTION_NAME_MAX. */
    expect(executor_glob_matches(word, word) || strpbrk(word, "*?[") ||
           strlen(word) > EXECUTION_NAME_MAX);
    expect(executor_glob_matches("**", word));
    (void)executor_glob_matches(text, word);
    if (executor_allow_is_plain(word))
        expect(!strpbrk(word, "/@[] \t\r\n") && strchr(word, '.') &&
               strncmp(word, "host:", 5) != 0);
    if (environment_takes(word))
        expect(*word && !strchr(word, '=') && strncmp(word, "LD_", 3) != 0);
    if (word[0] == '/' && strstr(word, "/.ssh/"))
        expect(executor_workdir_is_refused(word));
    return 0;
}
