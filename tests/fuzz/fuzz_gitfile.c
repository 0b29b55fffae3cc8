/* SPDX-License-Identifier: MIT */
/* Files of git that name a repository: the input is one of them, each parser reads it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gitfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* of exactly this size: a byte too far is noticed */
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    char path[GITFILE_PATH_SIZE];
    int (*const parsers[])(const char *, size_t, char *) = {
        gitfile_parse_gitdir, gitfile_parse_path, gitfile_parse_worktree};
    for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++)
        if (parsers[i](text, size, path) && (!path[0] || !memchr(path, '\0', sizeof path)))
            abort();
    free(text);
    return 0;
}
