/* SPDX-License-Identifier: MIT */
/* Git's settings: the input is a file of them, and whatever they name to be protected must be a clean
 * path in the granted directory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"

#define TOP "/home/u/top"

void message_warning(const char *format, ...)
{
    (void)format;
}

/* In its place: looks at what it is given. */
int protect_add_path(struct protect_scan *scan, const char *dir_path, const char *rest,
                     const char *name, enum protect_hold hold, struct brig_error *err)
{
    (void)scan, (void)hold, (void)err;
    if (strcmp(dir_path, TOP) != 0 || name != rest || !rest[0] || rest[0] == '/' ||
        rest[strlen(rest) - 1] == '/' || strstr(rest, "//") || strlen(rest) > PATH_LENGTH_MAX)
        abort();
    for (const char *at = rest; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t length = strcspn(at, "/");
        if ((length == 1 && at[0] == '.') || (length == 2 && memcmp(at, "..", 2) == 0))
            abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char top[] = TOP;
    struct protect_root root = {.fd = -1, .path = top, .source = top, .dest = top};
    struct settings settings = {.home = "/home/u"};
    struct protect_scan scan = {.settings = &settings, .roots = &root, .root_count = 1};
    struct protect_todo todo = {0};
    char *text = malloc(size ? size : 1); /* of exactly this size: a byte too far is noticed */
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    if (protect_config_text(&scan, TOP, TOP "/.git", text, size, &todo, NULL) < 0)
        abort();
    for (size_t i = 0; i < todo.count; i++) {
        if (todo.paths[i][0] != '/' && todo.paths[i][0])
            abort();
        free(todo.paths[i]);
    }
    free(text);
    return 0;
}
