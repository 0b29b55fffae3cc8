/* SPDX-License-Identifier: MIT */
/* The command line: the input is argv, its words separated by NUL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';

    char name[] = "brig";
    char *argv[WORDS_MAX + 2] = {name};
    int argc = 1;
    for (char *word = text; word <= text + size && argc <= WORDS_MAX; word += strlen(word) + 1)
        argv[argc++] = word;

    struct settings_scan scan;
    struct settings settings;
    struct brig_error err = {0};
    if (settings_scan(argc, argv, &scan, &err) < 0 || scan.given[OPTION_HELP] ||
        scan.given[OPTION_VERSION])
        return 0;
    if (scan.command < 1 || scan.command > argc)
        abort();
    if (settings_init(&settings, scan.mode, "/home/u/project", &err) < 0)
        return 0;
    if (settings_apply_all(&settings, argc, argv, &err) < 0 && err.message[0] == '\0')
        abort();
    settings_done(&settings);
    return 0;
}
