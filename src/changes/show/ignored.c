/* SPDX-License-Identifier: MIT */
#include "changes/show/ignored.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/show/spool.h"
#include "git/git.h"

/* Git ends at a path in a submodule, and at one below a symbolic link outside. It is started again
 * after the directory with the path. */
#define RESTARTS_MAX 32
/* A question begins with "./", so that it is not taken for a pattern of git's own. */
#define PREFIX "./"
#define QUESTION_MAX (sizeof PREFIX + PATH_LENGTH_MAX + 1)
#define ANSWER_FIELDS 4 /* of `check-ignore -v -n -z`: file, line, pattern, path */

int ignored_begin(struct ignored *ignored, const struct layer *layer, struct brig_error *err)
{
    *ignored = (struct ignored){0};
    int status = spool_file(layer->record, &ignored->questions, err);
    return status < 0 ? status : spool_file(layer->record, &ignored->answers, err);
}

void ignored_done(struct ignored *ignored)
{
    own_fclose(&ignored->questions);
    own_fclose(&ignored->answers);
    ignored->questions = ignored->answers = NULL;
    free(take_ptr(&ignored->tracked));
    str_done(&ignored->submodules);
}

/* ---- the questions of a file ---- */

/* The length of the directory that two paths have in common, with its slash. */
static size_t common_length(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/')
            common = i + 1;
    return common;
}

/* The end of the next question of a file that comes after `last`: a directory with its slash, or the
 * whole path. 0 if there are no more. */
static size_t next_question(const char *path, bool directory, size_t from)
{
    const char *slash = strchr(path + from, '/');
    if (slash)
        return (size_t)(slash - path) + 1;
    /* A directory ends in a slash here, and was a question above. */
    return directory || !path[from] ? 0 : strlen(path);
}

/* Copies a path, with a slash after a directory. */
static void spell(char to[PATH_LENGTH_MAX + 2], const char *path, bool directory)
{
    (void)str_fill(to, PATH_LENGTH_MAX + 2, path, directory ? "/" : "");
}

static void remember(struct ignored *ignored, const char *path)
{
    (void)str_fill(ignored->last, sizeof ignored->last, path);
}

bool ignored_can_ask(struct ignored *ignored, const struct change *change)
{
    if (change->kind == CHANGE_TYPE && S_ISDIR(change->after.st_mode))
        (void)str_fill(ignored->replaced, sizeof ignored->replaced, change->path);
    return change->kind == CHANGE_ADDED &&
           !(ignored->replaced[0] && path_is_beneath(ignored->replaced, change->path));
}

int ignored_add(struct ignored *ignored, const char *path, bool directory, struct brig_error *err)
{
    char spelt[PATH_LENGTH_MAX + 2];
    spell(spelt, path, directory);
    size_t at = common_length(ignored->last, spelt);
    for (size_t end; (end = next_question(spelt, directory, at)) > at; at = end) {
        if (fputs(PREFIX, ignored->questions) < 0 ||
            fwrite(spelt, end, 1, ignored->questions) != 1 || putc('\0', ignored->questions) != 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write a temporary file");
        ignored->count++;
    }
    remember(ignored, spelt);
    return 0;
}

/* FNV-1a of a path, of a directory with its slash. Where two have the same hash, an ignored file is listed like others. */
static uint64_t hash_path(const char *path, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)path[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int compare_hashes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Whether the user's index has a path, something in that directory, or a submodule around it. */
static bool is_tracked(const struct ignored *ignored, const char *path, size_t length)
{
    uint64_t hash = hash_path(path, length);
    if (ignored->tracked_count == 0)
        return false;
    if (bsearch(&hash, ignored->tracked, ignored->tracked_count, sizeof hash, compare_hashes))
        return true;
    for (const char *at = NULL; (at = str_list_next(&ignored->submodules, at));)
        if (path_is_beneath(at, path))
            return true;
    return false;
}

int ignored_find(struct ignored *ignored, struct inventory_item *item, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 2];
    bool directory = S_ISDIR(item->mode_after), itself = false;
    spell(path, item->path, directory);
    if (ignored->whole > 0 && strncmp(ignored->last, path, ignored->whole) != 0)
        ignored->whole = 0;
    size_t at = common_length(ignored->last, path);
    for (size_t end; (end = next_question(path, directory, at)) > at; at = end) {
        int answer = getc(ignored->answers);
        if (answer == EOF)
            return brig_fail(err, BRIG_E_SYSTEM, EIO, "cannot read a temporary file");
        if (answer == '1' && is_tracked(ignored, path, end))
            continue;
        if (answer == '1' && ignored->whole == 0 && path[end - 1] == '/')
            ignored->whole = end;
        else if (answer == '1')
            itself = true;
    }
    remember(ignored, path);
    item->group = ignored->whole > 0 ? (uint32_t)ignored->whole - 1 : 0;
    item->ignored = itself || ignored->whole > 0;
    return 0;
}

/* ---- asking ---- */

struct asking {
    struct ignored *ignored;
    uint64_t answered;
    unsigned field; /* of the answer that is being read */
    bool matched;   /* it names a pattern */
    bool any;       /* an answer does */
};

static bool take_field(void *data, const char *text, size_t length)
{
    struct asking *asking = data;
    if (asking->field == ANSWER_FIELDS - 2)
        asking->matched = length > 0 && text[0] != '!';
    asking->field = (asking->field + 1) % ANSWER_FIELDS;
    if (asking->field != 0)
        return true;
    asking->answered++;
    asking->any = asking->any || asking->matched;
    return putc(asking->matched ? '1' : '0', asking->ignored->answers) != EOF;
}

/* Writes the directory of a question; "" for a file at the top. */
static void directory_of(const char *question, char *to, size_t size)
{
    (void)str_fill(to, size, question);
    char *slash = strrchr(to, '/');
    slash[1] = '\0';
    if (strcmp(to, PREFIX) == 0)
        to[0] = '\0';
}

/* Skips the answered questions, and those in the directory of the next one, which git could not
 * answer: nothing in it is ignored. Returns the position of the question after them. */
static off_t skip_failed(struct asking *asking)
{
    FILE *file = asking->ignored->questions;
    char directory[QUESTION_MAX] = "", question[QUESTION_MAX];
    uint64_t failed = asking->answered, number = 0;
    size_t length = 0;
    off_t at = 0;
    rewind(file);
    for (int c; (c = getc(file)) != EOF;) {
        question[length++] = (char)c;
        if (c != '\0' && length < sizeof question)
            continue;
        if (number == failed)
            directory_of(question, directory, sizeof directory);
        bool inside = directory[0] && str_starts_with(question, directory);
        if (number > failed && !inside)
            break;
        if (number >= failed) {
            (void)putc('0', asking->ignored->answers);
            asking->answered++;
        }
        number++;
        at += (off_t)length;
        length = 0;
    }
    return at;
}

static bool is_in_repository(const struct layer *layer, const struct git *git)
{
    static const char *const words[] = {"rev-parse", "--is-inside-work-tree", NULL};
    autostr struct str out = {0}, says = {0};
    return git_run(
               git,
               &(struct git_call){.words = words, .dir = layer->lower, .out = &out, .says = &says},
               NULL) == 0 &&
           out.length > 0 && str_starts_with(out.data, "true");
}

static int ask_once(struct asking *asking, const struct layer *layer, const struct git *git,
                    off_t at)
{
    static const char *const words[] = {"check-ignore", "--no-index", "-v", "-n",
                                        "-z",           "--stdin",    NULL};
    autostr struct str says = {0};
    int input = fileno(asking->ignored->questions);
    if (lseek(input, at, SEEK_SET) < 0)
        return -1;
    asking->field = 0;
    return git_run(git,
                   &(struct git_call){.words = words,
                                      .dir = layer->lower,
                                      .input_fd = input,
                                      .each = take_field,
                                      .data = asking,
                                      .says = &says,
                                      .bulk = true},
                   NULL);
}

struct tracking {
    struct ignored *ignored;
    char last[PATH_LENGTH_MAX + 1];
    bool failed;
};

static void track(struct tracking *tracking, const char *path, size_t length)
{
    struct ignored *ignored = tracking->ignored;
    if (!array_grow(&ignored->tracked, ignored->tracked_count))
        tracking->failed = true;
    else
        ignored->tracked[ignored->tracked_count++] = hash_path(path, length);
}

/* "MODE OBJECT STAGE\tPATH" of git ls-files. */
static bool take_tracked(void *data, const char *text, size_t length)
{
    static const char submodule[] = "160000 ";
    struct tracking *tracking = data;
    const char *path = memchr(text, '\t', length);
    if (!path++)
        return true;
    size_t common = common_length(tracking->last, path);
    for (const char *slash = path + common; (slash = strchr(slash, '/')); slash++)
        track(tracking, path, (size_t)(slash - path) + 1);
    track(tracking, path, strlen(path));
    if (str_starts_with(text, submodule)) {
        autostr struct str directory = {0};
        str_concat(&directory, path, "/");
        track(tracking, directory.failed ? "" : directory.data, directory.length);
        str_list_add(&tracking->ignored->submodules, path);
    }
    (void)str_fill(tracking->last, sizeof tracking->last, path);
    return !tracking->failed;
}

/* Reads the user's index. */
static void read_tracked(struct ignored *ignored, const struct layer *layer, const struct git *git)
{
    static const char *const words[] = {"ls-files", "-s", "-z", NULL};
    struct tracking tracking = {.ignored = ignored};
    autostr struct str says = {0};
    const struct git_call call = {.words = words,
                                  .dir = layer->lower,
                                  .each = take_tracked,
                                  .data = &tracking,
                                  .says = &says};
    (void)git_run(git, &call, NULL);
    if (ignored->tracked_count > 0)
        qsort(ignored->tracked, ignored->tracked_count, sizeof *ignored->tracked, compare_hashes);
}

int ignored_ask(struct ignored *ignored, const struct layer *layer, const struct git *git,
                struct brig_error *err)
{
    struct asking asking = {.ignored = ignored};
    int status = spool_rewind(ignored->questions, err);
    bool able = git && git->program && layer->lower >= 0 && ignored->count > 0 &&
                is_in_repository(layer, git);
    off_t at = 0;
    for (int i = 0; i < RESTARTS_MAX && able && status == 0 && asking.answered < ignored->count;
         i++) {
        able = ask_once(&asking, layer, git, at) >= 0;
        if (able && asking.answered < ignored->count)
            at = skip_failed(&asking);
    }
    if (asking.any)
        read_tracked(ignored, layer, git);
    while (asking.answered++ < ignored->count)
        (void)putc('0', ignored->answers);
    ignored->last[0] = '\0';
    return status < 0 ? status : spool_rewind(ignored->answers, err);
}
