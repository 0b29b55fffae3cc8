/* SPDX-License-Identifier: MIT */
/* The reader of .conf files. It knows the syntax and includes, but no directive except `conf`.
 *
 * One directive per line: `name`, `name value` or `name=value`, with optional blanks around the
 * '='. `#` begins a comment only where a directive could begin. In a value `\t`, `\r` and `\n`
 * stand for these characters, a backslash at the end of a line continues the value with the first
 * non-blank of the next line, and a backslash before any other character stands for that character.
 * Blanks at the end of a value are dropped unless escaped; carriage returns are always dropped.
 *
 * In values of directives that expand variables, `${NAME}` is the value of the variable, or nothing
 * if it is unset. `\$` is a plain dollar sign. jai removes backslashes once when it reads a file
 * and once more before it expands variables. For files written for jai, such values are read so
 * that quoting twice gives the same result as quoting once: `\\$` is a plain dollar sign as well,
 * and both `\\` and `\\\\` are one backslash. A variable after a backslash is therefore
 * `\\\\${NAME}`, in both programs.
 *
 * `conf FILE` includes another file at this point; `conf? FILE` does so if the file exists.
 * Variables in FILE are expanded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

struct brig_error;

#define CONF_TEXT_MAX ((size_t)16 << 20)  /* bytes of one file */
#define CONF_LINE_MAX ((size_t)256 << 10) /* bytes of a directive, and of an expanded value */
#define CONF_DEPTH_MAX 32                 /* nesting of includes */
#define CONF_FILES_MAX 1024               /* included files in total */

/* A directive, for the hook; its texts live until the hook returns. */
struct conf_directive {
    const char *file;  /* the name of its source */
    unsigned line;     /* the first line of the directive, from 1 */
    const char *name;  /* never empty */
    const char *value; /* NULL: none; `name=` has "" */
};

/* The contents of a file. Zero-initialise. */
struct conf_source {
    char *name; /* for messages; owned, as is the text */
    char *text;
    size_t length;
    dev_t dev; /* with ino: the identity of the file, which may have many names */
    ino_t ino; /* 0: unknown; not checked for include loops */
};

static inline void conf_source_done(struct conf_source *source)
{
    free(source->name);
    free(source->text);
    *source = (struct conf_source){0};
}
#define autosource __attribute__((cleanup(conf_source_done)))

/* The caller's callbacks. Without the last three nothing is expanded or included. A negative result
 * ends the reading. */
struct conf_hooks {
    void *context;
    /* Handles a directive. Called in order, once per directive. */
    int (*directive)(void *context, const struct conf_directive *directive, struct brig_error *err);
    /* Whether variables are expanded in the values of directives with this name. */
    bool (*expands)(void *context, const char *name);
    /* The value of a variable, borrowed until the next call; NULL: unset. */
    const char *(*variable)(void *context, const char *name);
    /* Reads an included file, as conf_load() does. */
    int (*include)(void *context, const char *name, bool optional, struct conf_source *ret_source,
                   struct brig_error *err);
};

/* Reads a source, which is borrowed, and its includes. Error messages of the reader or of a hook
 * are prefixed with "file:line: ", once; mistakes in files are BRIG_E_INVALID. Only the hooks
 * access the system, and they may read other sources meanwhile. */
int conf_read(const struct conf_source *source, const struct conf_hooks *hooks,
              struct brig_error *err);

/* Reads a file: 1, or 0 if it is optional and does not exist. A relative name is relative to
 * dir_fd, which messages call dir (NULL: messages show the name as given). If a name without a
 * slash does not exist, ".conf" is appended. Refuses everything but regular files, without
 * blocking; errors other than ENOENT are errors for an optional file, too. Release with
 * conf_source_done. */
int conf_load(int dir_fd, const char *dir, const char *name, bool optional,
              struct conf_source *ret_source, struct brig_error *err);
