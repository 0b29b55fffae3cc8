/* SPDX-License-Identifier: MIT */
/* Asks a running `git check-attr` for the diff attribute of one file after another. */
#include "changes/diff/drivers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "git/git.h"

#define ANSWER_TEXTS 3 /* path, attribute and value, each with a NUL */

struct drivers {
    struct git_talk attributes;
    struct str names; /* of drivers that have a program */
};

void drivers_free(struct drivers *drivers)
{
    if (!drivers)
        return;
    (void)git_talk_end(&drivers->attributes, false, NULL);
    str_done(&drivers->names);
    free(drivers);
}

/* Keeps NAME of "diff.NAME.textconv" and "diff.NAME.command". */
static bool keep_name(void *data, const char *text, size_t length)
{
    (void)length;
    autofree char *name = NULL;
    const char *end = strrchr(text, '.');
    if (!str_starts_with(text, "diff.") || !end ||
        str_copy(text + strlen("diff."), &name, NULL) < 0)
        return true;
    *strrchr(name, '.') = '\0';
    str_list_add(data, name);
    return !((const struct str *)data)->failed;
}

static int start(struct drivers *drivers, const struct git *git, int repository,
                 struct brig_error *err)
{
    static const char *const words[] = {"check-attr", "--stdin", "-z", "diff", NULL};
    const struct git_call call = {.words = words, .git_dir = repository, .for_user = true};
    return git_talk_begin(git, &call, &drivers->attributes, err);
}

int drivers_new(const struct git *git, int repository, struct drivers **ret_drivers,
                struct brig_error *err)
{
    static const char *const words[] = {
        "config", "-z", "--name-only", "--get-regexp", "^diff\\..*\\.(textconv|command)$", NULL};
    struct drivers *drivers = calloc(1, sizeof *drivers);
    if (!drivers)
        return brig_fail_nomem(err);
    const struct git_call call = {.words = words,
                                  .git_dir = repository,
                                  .each = keep_name,
                                  .data = &drivers->names,
                                  .for_user = true};
    int status = git_run(git, &call, err); /* 1: there are none */
    if (status >= 0)
        status = drivers->names.length > 0 ? start(drivers, git, repository, err) : 0;
    if (status == 0 && drivers->names.length > 0)
        *ret_drivers = take_ptr(&drivers);
    else if (status == 0)
        *ret_drivers = NULL;
    drivers_free(drivers);
    return status;
}

/* Reads an answer up to the NUL after the value; false if git has ended. */
static bool read_answer(int socket, struct str *answer)
{
    char part[4096];
    for (size_t texts = 0; texts < ANSWER_TEXTS;) {
        ssize_t got = read(socket, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        for (ssize_t i = 0; i < got; i++)
            texts += part[i] == '\0';
        str_append_bytes(answer, part, (size_t)got);
    }
    return !answer->failed;
}

bool drivers_has(struct drivers *drivers, const char *path)
{
    autostr struct str answer = {0};
    if (!drivers || git_talk_send(&drivers->attributes, path, strlen(path) + 1) < 0 ||
        !read_answer(drivers->attributes.channel, &answer))
        return false;
    const char *value = str_list_next(&answer, NULL);
    for (size_t i = 1; i < ANSWER_TEXTS && value; i++)
        value = str_list_next(&answer, value);
    return value && str_list_has(&drivers->names, value);
}
