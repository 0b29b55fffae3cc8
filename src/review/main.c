/* SPDX-License-Identifier: MIT */
/* brig-review: looks through the changes of a jail on a full screen, or line by line.
 *
 * Theory of operation: `brig review` executes it, with the caller's ids. It has no part of the
 * engine: it runs `brig status --json`, `diff`, `apply`, `discard` and `undo` of the brig that
 * started it, each in a session of its own without a terminal, and shows what they print. It trusts
 * that brig. It does not trust names and contents of files, which the jail has chosen: they reach
 * the terminal only through shown.c. */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "review/plain.h"
#include "review/verbs.h"
#ifdef BRIG_REVIEW_SCREEN
#include "review/view.h"
#endif

#define EXIT_FAILED 125

/* Returns false if a full screen cannot be shown here. */
static bool run_screen(const struct verbs *verbs, int *ret_status)
{
#ifdef BRIG_REVIEW_SCREEN
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && view_run(verbs, ret_status))
        return true;
    (void)fputs("brig: this terminal has no full screen, so changes are listed line by line "
                "(--plain)\n",
                stderr);
#else
    (void)verbs;
    (void)ret_status;
    (void)fputs("brig: built without ncurses, so changes are listed line by line (--plain)\n",
                stderr);
#endif
    return false;
}

/* brig-review BRIG [--plain] JAIL [PATH…]: an empty JAIL is the one of the working directory. */
int main(int argc, char **argv)
{
    /* The locale may not be installed here, or be of another version than a static libc. */
    if (!setlocale(LC_ALL, ""))
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    bool plain = argc > 2 && strcmp(argv[2], "--plain") == 0;
    int words = plain ? 3 : 2, status;
    if (argc <= words || argv[1][0] != '/') {
        (void)fputs("brig-review is started by brig review, and is of no use by itself.\n", stderr);
        return EXIT_FAILED;
    }
    autostr struct str paths = {0};
    for (int i = words + 1; i < argc; i++)
        str_list_add(&paths, argv[i]);
    if (paths.failed) {
        (void)fputs("brig: out of memory\n", stderr);
        return EXIT_FAILED;
    }
    struct verbs verbs = {
        .brig = argv[1], .jail = *argv[words] ? argv[words] : NULL, .paths = &paths};
    if (!plain && run_screen(&verbs, &status))
        return status;
    return plain_run(&verbs);
}
