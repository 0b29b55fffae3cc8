/* SPDX-License-Identifier: MIT */
/* The reader of .conf files: it knows the language and includes, and no directive but `conf`.
 *
 * One directive a line: `name`, `name value` or `name=value`, with blanks around the '=' if
 * wanted. `#` begins a comment only where a directive could begin. In a value `\t`, `\r` and
 * `\n` are these characters, a backslash at the end of a line continues it with the next one's
 * first non-blank, and any other character behind a backslash is that character. Blanks at the
 * end of a value are dropped unless escaped; carriage returns are dropped everywhere.
 *
 * In values of directives that want it, `${NAME}` is the variable's value, or nothing if it is
 * unset. `\$` is a plain dollar sign. For files written for jai, which takes off backslashes
 * once as a file's and once more before it expands, such values are read so that quoting twice
 * gives the same as quoting once: `\\$` is a plain dollar sign as well, and both `\\` and `\\\\`
 * are one backslash. A variable behind a backslash is therefore `\\\\${NAME}`, in both programs.
 *
 * `conf FILE` reads another file in its place, `conf? FILE` does if there is one. FILE is
 * expanded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

struct brig_error;

#define CONF_TEXT_MAX ((size_t)16 << 20)  /* bytes of one file */
#define CONF_LINE_MAX ((size_t)256 << 10) /* of a directive as written, and of a value expanded */
#define CONF_DEPTH_MAX 32                 /* files open at once: one and what it includes */
#define CONF_FILES_MAX 1024               /* included in all */

/* A directive as it is handed on; its texts live until the call returns. */
struct conf_directive {
    const char *file;  /* the name of its source */
    unsigned line;     /* where it begins, from 1 */
    const char *name;  /* never empty */
    const char *value; /* NULL: none; "" is written `name=` */
};

/* The text of a file. Zero-initialise. */
struct conf_source {
    char *name; /* for messages; owned, as is the text */
    char *text;
    size_t length;
    dev_t dev; /* with ino: which file it is, as its names may be many */
    ino_t ino; /* 0: none, and part of no loop */
};

static inline void conf_source_done(struct conf_source *source)
{
    free(source->name);
    free(source->text);
    *source = (struct conf_source){0};
}
#define autosource __attribute__((cleanup(conf_source_done)))

/* What a reader asks of its caller. Without the last three nothing is expanded or included. A
 * negative result ends the reading. */
struct conf_hooks {
    void *context;
    /* Takes a directive. They come one by one in their order, each after the one before was
     * taken. */
    int (*directive)(void *context, const struct conf_directive *directive, struct brig_error *err);
    /* Whether variables are expanded in the values of directives of this name. */
    bool (*expands)(void *context, const char *name);
    /* A variable's value, borrowed until the next call; NULL: unset. */
    const char *(*variable)(void *context, const char *name);
    /* Fetches an included file, as conf_load() does. */
    int (*include)(void *context, const char *name, bool optional, struct conf_source *ret_source,
                   struct brig_error *err);
};

/* Reads a source, borrowed, and what it includes. A message of its own or of a hook is prefixed by
 * "file:line: ", once; mistakes in files are BRIG_E_INVALID. Nothing but the hooks touches the
 * system, and they may read other sources meanwhile. */
int conf_read(const struct conf_source *source, const struct conf_hooks *hooks,
              struct brig_error *err);

/* Reads a file: 1, or 0 if it is optional and there is none. A relative name begins at dir_fd,
 * which messages call dir (NULL: they show the name as it is). For a name without a slash that
 * does not exist, the name with ".conf" is taken. Refuses what is no regular file, without
 * waiting for it; all but ENOENT is an error for an optional one, too. Release with
 * conf_source_done. */
int conf_load(int dir_fd, const char *dir, const char *name, bool optional,
              struct conf_source *ret_source, struct brig_error *err);
