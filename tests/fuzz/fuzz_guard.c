/* SPDX-License-Identifier: MIT */
/* What comes out of a jail's git directory: lists of refs, settings, pointer files. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "git/config.h"
#include "git/repo.h"
#include "git/transfer.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[REPO_POINTER_MAX];
    autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (repo_parse_gitdir(text, size, path) || repo_parse_path(text, size, path))
        expect(strlen(path) > 0 && !strchr(path, '\n'));
    autostr struct str url = {0};
    if (config_strip_url(text, &url))
        expect(url.failed || strlen(url.data) < strlen(text));
    const char *value = strchr(text, '=');
    if (value) {
        autofree char *key = strndup(text, (size_t)(value - text));
        if (key && config_may_cross(key, value + 1))
            expect(!strchr(key, '\n') && !strstr(value + 1, "::") && value[1] != '-');
    }
    struct refs refs = {0};
    if (refs_read(text, &refs, NULL) == 0)
        for (size_t i = 0; i < refs.count; i++)
            expect(refs_is_id(refs.items[i].id) && refs_find(&refs, refs.items[i].name));
    refs_done(&refs);
    return 0;
}
