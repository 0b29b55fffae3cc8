/* SPDX-License-Identifier: MIT */
/* The table of names: files that something outside a jail executes, obeys or loads. Everything that
 * judges a path asks names_judge(). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

/* The strongest first. */
enum names_class {
    NAMES_PLAIN,      /* no mark */
    NAMES_UNASKED,    /* executed by opening, listing or pushing the project, or by a log-in */
    NAMES_WHEN_RUN,   /* executed when the project is built, tested or run, or a program used */
    NAMES_UNUSUAL,    /* executes nothing by itself */
    NAMES_NOT_JUDGED, /* it could not be read */
};
#define NAMES_CLASSES (NAMES_NOT_JUDGED + 1)
/* "unasked", "when_run", "unusual" or "not_judged"; and what follows a reason: " (unasked)". */
const char *names_class_name(enum names_class class);
const char *names_class_words(enum names_class class);

/* Whether a new file of this name at the top of a granted directory is held back after a run. */
enum names_held {
    NAMES_NOT_HELD,
    NAMES_HELD,      /* and an existing one is read-only */
    NAMES_HELD_NEW,  /* an existing one is private, or its parts have rows; not judged */
    NAMES_HELD_BARE, /* if such names together are a bare repository; not judged */
};

enum names_where {
    NAMES_ANYWHERE, /* at any depth below any directory */
    NAMES_HOME,     /* relative to the home directory of the user */
};

/* A pattern is one or more components, in which `*` stands for any characters. It matches a path and
 * everything below it. Letters of ASCII match in both cases, unless the row is `exact`. */
struct names_row {
    const char *reason;  /* a clause: "PATH: REASON" */
    const char *program; /* of held names, what executes it: "which PROGRAM would execute" */
    enum names_class class;
    enum names_held held;
    enum names_where where;
    bool gone;                   /* deleting it is a risk as well */
    bool exact;                  /* other letters would be ordinary names */
    const char *why_not;         /* of NAMES_UNASKED, if it is not held */
    const char *const *patterns; /* terminated by NULL; of held names without `*` */
};
extern const struct names_row names_rows[]; /* in the order of the classes */
extern const size_t names_row_count;

/* Why something needs a look. */
struct names_mark {
    enum names_class class;
    const char *reason; /* constant */
};

/* Judges a file by its name and its modes before and after, of which 0 means that there is none.
 * `path` is relative to any directory; `home` is the same relative to the home directory, or NULL if
 * it is not there. A symbolic link may also take the place of a directory that a pattern names. The
 * first row that matches decides. Returns false if there is no mark. */
bool names_judge(const char *path, const char *home, mode_t before, mode_t after,
                 struct names_mark *ret_mark);

/* The same for the search of a directory: whether a row of NAMES_UNASKED ends with the end of the path,
 * apart from files of git. What is below such a path is marked as well. */
bool names_judge_end(const char *path, struct names_mark *ret_mark);

/* Whether the last component but one is a directory of installed packages: what these contain is not
 * the project's. */
bool names_is_package(const char *path);

/* Whether a path is in a directory that begins with a dot, at the top, of which the table knows
 * nothing: the settings of some program, if no such directory existed before. */
bool names_is_unknown(const char *path);

/* Whether `pattern` matches at the beginning of a path. */
bool names_match(const char *pattern, const char *path, bool exact);

/* ---- held names ---- */

struct names_held_name {
    const struct names_row *row; /* NULL before the first */
    size_t number;               /* of the pattern in the row */
    const char *path;            /* relative to the top of a granted directory */
};
/* Moves to the next held name; false at the end. `at` is initially zero. */
bool names_next_held(struct names_held_name *at);

/* Fails if --unprotect was given a name that is not protected: because of a typing error, a file
 * would stay read-only that the user believes to be writable. */
int names_check(const char *name, struct brig_error *err);

/* Whether `path`, relative to the directory with the absolute path `top`, is excepted by one of
 * these names, which are relative to the top or absolute. */
bool names_is_excepted(const char *const *excepted, size_t count, const char *top,
                       const char *path);
