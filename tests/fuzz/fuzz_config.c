/* SPDX-License-Identifier: MIT */
/* The chain of configuration from any bytes: the input is, separated by NUL, the .conf, the .jail, the
 * project's file, an included one, and words of the command line. A project must not widen. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/settings/config.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

#define CWD "/home/u/project"
#define WORDS_MAX 16

enum { PART_CONF, PART_JAIL, PART_PROJECT, PART_INCLUDED, PART_COUNT_ };

struct input {
    const char *parts[PART_COUNT_];
    bool project; /* whether there is one this time */
};

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static int give(const char *text, int number, struct conf_source *ret_source)
{
    *ret_source = (struct conf_source){
        .name = strdup("file"),
        .text = strdup(text),
        .length = strlen(text),
        .ino = (ino_t)number + 1,
    };
    expect(ret_source->name && ret_source->text);
    return 1;
}

static int on_fuzz_load(void *context, const char *dir, const char *name, bool exact, bool optional,
                        struct conf_source *ret_source, struct brig_error *err)
{
    const struct input *in = context;
    (void)optional;
    (void)err;
    int part = !exact                              ? PART_INCLUDED
               : dir && strcmp(dir, "/s") == 0     ? PART_JAIL
               : strcmp(name, "default.conf") == 0 ? PART_CONF
                                                   : -1;
    return part < 0 ? 0 : give(in->parts[part], part, ret_source);
}

static int on_fuzz_project(void *context, struct conf_source *ret_source, struct brig_error *err)
{
    const struct input *in = context;
    (void)err;
    return in->project ? give(in->parts[PART_PROJECT], PART_PROJECT, ret_source) : 0;
}

static bool on_fuzz_of_project(void *context, const char *storage, const char *jail,
                               char project[static PATH_LENGTH_MAX + 1])
{
    (void)context;
    (void)storage;
    return jail[0] == 'p' && str_fill(project, PATH_LENGTH_MAX + 1, CWD);
}

static const char *on_fuzz_variable(void *context, const char *name)
{
    (void)context;
    return name[0] == 'A' ? "/home/u/a:b" : NULL;
}

/* All of a run but the system; false if it was refused. */
static bool run_chain(struct input *in, bool project, int argc, char **argv, struct config *config,
                      struct settings *settings)
{
    const struct config_world world = {
        .context = in,
        .cwd = CWD,
        .home = "/home/u",
        .user = "u",
        .dir = "/c",
        .storage = "/s",
        .variable = on_fuzz_variable,
        .load = on_fuzz_load,
        .project = CWD,
        .of_project = on_fuzz_of_project,
        .load_project = on_fuzz_project,
    };
    struct brig_error err = {0};
    struct settings_scan scan;
    in->project = project;
    if (settings_scan(argc, argv, &scan, &err) < 0 || scan.given[OPTION_HELP] ||
        scan.given[OPTION_VERSION])
        return false;
    int status = config_read(&world, &scan, argc, argv, config, &err);
    if (status == 0)
        status = settings_init(settings, config->mode, CWD, &err);
    if (status == 0 && !config->nocwd)
        status = brig_policy_grant(settings->policy, BRIG_READ_WRITE, CWD, NULL, 0, &err);
    if (status == 0)
        status = config_apply(config, &world, settings, &err);
    if (status == 0)
        status = settings_apply_all(settings, argc, argv, &err);
    if (status == 0)
        status = config_apply_project(config, settings, &err);
    expect(status == 0 || err.message[0] != '\0');
    return status == 0;
}

/* Nothing of a project's file is more than there was without it. */
static void compare(const struct settings *with, const struct settings *without)
{
    const struct brig_policy *a = with->policy;
    const struct brig_policy *b = without->policy;
    for (size_t i = 0; i < a->grant_count; i++) {
        if (!str_starts_with(a->grants[i].origin, "file:") || a->grants[i].access == BRIG_MASK)
            continue;
        const struct policy_grant *before = policy_rule_of(b, a->grants[i].dest);
        expect(before && (a->grants[i].access == BRIG_READ_ONLY || before->access != BRIG_MASK));
    }
    expect(config_mode_narrows(b->mode, a->mode));
    /* Of another mode the presets differ. */
    if (a->mode != b->mode)
        return;
    expect(a->network == b->network || a->network == BRIG_NET_NONE);
    expect(a->view == b->view && a->seccomp == b->seccomp);
    expect(a->disabled_layers == b->disabled_layers && a->allow_nested == b->allow_nested &&
           a->trace == b->trace);
    expect(with->mask_count == without->mask_count);
    for (size_t i = 0; i < BRIG_LIMIT_COUNT_; i++)
        expect(a->limits[i] == b->limits[i] || a->limits[i] < b->limits[i] || b->limits[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char name[] = "brig";
    char empty[] = "";
    char *argv[WORDS_MAX + 2] = {name};
    int argc = 1;
    struct input in = {.parts = {empty, empty, empty, empty}};
    int part = 0;
    for (char *word = text; word <= text + size && argc <= WORDS_MAX; word += strlen(word) + 1) {
        if (part < PART_COUNT_)
            in.parts[part++] = word;
        else
            argv[argc++] = word;
    }
    struct config configs[2] = {{0}, {0}};
    struct settings settings[2] = {{0}, {0}};
    bool without = run_chain(&in, false, argc, argv, &configs[0], &settings[0]);
    bool with = run_chain(&in, true, argc, argv, &configs[1], &settings[1]);
    if (with && without && configs[1].project_text)
        compare(&settings[1], &settings[0]);
    for (int i = 0; i < 2; i++) {
        settings_done(&settings[i]);
        config_done(&configs[i]);
    }
    return 0;
}
