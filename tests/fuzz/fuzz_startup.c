/* SPDX-License-Identifier: MIT */
/* Start-up files of any bytes, with a secret somewhere in them: the first byte says where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/startup.h"

#define SECRET "q7fZ"

static bool contains(const struct str *text, const char *part)
{
    return text->length > 0 && memmem(text->data, text->length, part, strlen(part));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const rules[] = {"-*_TOKEN", "-*://*:*@*", "+OPEN_TOKEN"};
    const struct startup_filter filter = {rules, ARRAY_LENGTH(rules)};
    autostr struct str user = {0}, back = {0};
    struct startup_text seen = {0};
    if (size == 0)
        return 0;
    size_t at = 1 + (size - 1) * data[0] / 256;
    str_append_bytes(&user, data + 1, at - 1);
    bool known = contains(&user, SECRET) || memmem(data + at, size - at, SECRET, strlen(SECRET));
    bool marked = memmem(data, size, "# brig:", 7);
    str_append(&user, "\nexport MY_TOKEN='a\n" SECRET "'\n");
    str_append_bytes(&user, data + at, size - at);
    if (user.failed || startup_hide(&filter, 1, user.data, user.length, &seen, NULL) < 0)
        return 0;
    if (!known && contains(&seen.text, SECRET))
        abort();
    int result = startup_restore(&filter, 1, &user, &seen.text, &back, NULL);
    if (!marked && (result != 1 || back.length != user.length ||
                    memcmp(back.data, user.data, user.length) != 0))
        abort();
    startup_text_done(&seen);
    return 0;
}
