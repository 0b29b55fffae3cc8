/* SPDX-License-Identifier: MIT */
#include "changes/layer/names_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"

static int compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static int sort(struct str *text, size_t count, struct names_list *ret_list, struct brig_error *err)
{
    char **items = count > 0 ? malloc(count * sizeof *items) : NULL;
    if (text->failed || (count > 0 && !items)) {
        free(items);
        return brig_fail_nomem(err);
    }
    char *at = text->data;
    for (size_t i = 0; i < count; i++) {
        items[i] = at;
        at += strlen(at) + 1;
    }
    if (count > 0)
        qsort(items, count, sizeof *items, compare);
    *ret_list = (struct names_list){.text = take_ptr(&text->data), .items = items, .count = count};
    return 0;
}

int names_list_read(int directory, struct names_list *ret_list, struct brig_error *err)
{
    autodir DIR *dir = files_list(directory, ".");
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot list a directory");
    autostr struct str text = {0};
    size_t count = 0;
    errno = 0;
    for (const struct dirent *item; (item = files_next(dir)); errno = 0) {
        str_append_bytes(&text, item->d_name, strlen(item->d_name) + 1);
        count++;
    }
    if (errno != 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot list a directory");
    return sort(&text, count, ret_list, err);
}

void names_list_done(struct names_list *list)
{
    free(list->text);
    free(list->items);
    *list = (struct names_list){0};
}

void names_list_strip(struct names_list *list, const char *prefix)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_starts_with(list->items[i], prefix))
            list->items[i] += strlen(prefix);
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, compare);
}
