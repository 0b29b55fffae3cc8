/* SPDX-License-Identifier: MIT */
/* brigd's configuration from any bytes. What is taken can be printed, and what is printed is taken
 * again and prints as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/config/config.h"

static const char *const env[] = {"HOME=/home/fuzz", NULL};

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* Without the comments: the origins differ. */
static void strip(struct str *text)
{
    size_t to = 0;
    bool quoted = false, comment = false;
    for (size_t i = 0; i < text->length; i++) {
        char c = text->data[i];
        if (c == '"' && !comment && (i == 0 || text->data[i - 1] != '\\'))
            quoted = !quoted;
        comment = c != '\n' && (comment || (c == '#' && !quoted));
        if (!comment && c != ' ')
            text->data[to++] = c;
    }
    text->data[to] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_config config;
    struct brig_error err = {0};
    autostr struct str first = {0}, second = {0};
    expect(config_defaults(env, &config, NULL) == 0);
    int result = config_parse("f", data, size, &config, &err);
    expect(result == 0 || err.message[0] != '\0');
    if (result == 0)
        config_print(&config, &first);
    config_done(&config);
    if (result < 0)
        return 0;
    expect(config_defaults(env, &config, NULL) == 0);
    result = config_parse("f", first.data, first.length, &config, &err);
    /* A connection string may be nothing without its password, and is left out then. */
    if (result < 0 && strstr(err.message, "database.dsn")) {
        config_done(&config);
        return 0;
    }
    expect(result == 0);
    config_print(&config, &second);
    config_done(&config);
    strip(&first);
    strip(&second);
    expect(strcmp(first.data, second.data) == 0);
    return 0;
}
