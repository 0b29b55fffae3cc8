/* SPDX-License-Identifier: MIT */
#include "review/plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "review/changes.h"
#include "review/shown.h"
#include "review/verbs.h"

#define READ_BYTES 65536

struct plain {
    const struct verbs *verbs;
    struct changes changes;
    bool unicode, colours;
    size_t applied, discarded;
};

/* ---- reading and printing ---- */

static void print_shown(const struct plain *plain, const char *text, size_t length)
{
    autostr struct str shown = {0};
    shown_append(&shown, text, length, plain->unicode);
    if (!shown.failed && shown.length > 0)
        (void)fwrite(shown.data, 1, shown.length, stdout);
}

/* Lines of a text; in colours if it is a diff on a terminal. */
static void print_lines(const struct plain *plain, const char *text, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t size = newline ? (size_t)(newline - text) : length;
        const char *colour = text[0] == '+'   ? "\033[32m"
                             : text[0] == '-' ? "\033[31m"
                             : text[0] == '@' ? "\033[36m"
                                              : "";
        colour = plain->colours && size > 0 ? colour : "";
        (void)fputs(colour, stdout);
        while (size > 0) { /* tabs stay */
            const char *tab = memchr(text, '\t', size);
            size_t part = tab ? (size_t)(tab - text) : size;
            print_shown(plain, text, part);
            (void)fputs(tab ? "\t" : "", stdout);
            part += tab != NULL;
            text += part;
            size -= part;
            length -= part;
        }
        (void)fputs(*colour ? "\033[m\n" : "\n", stdout);
        text += newline != NULL;
        length -= newline != NULL;
    }
}

/* Reads a line without taking more from standard input: `apply -p` reads the lines that follow.
 * Returns its first character, '\n' for an empty line, or 0 at the end. */
static char read_line(void)
{
    char first = '\n', c;
    bool any = false;
    for (;; any = true) {
        ssize_t got;
        do
            got = read(STDIN_FILENO, &c, 1);
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return any ? first : '\0';
        if (c == '\n')
            return first;
        if (first == '\n' && c != ' ' && c != '\t')
            first = c;
    }
}

static char read_answer(void)
{
    (void)fflush(stdout);
    char answer = read_line();
    if (!isatty(STDIN_FILENO)) /* a terminal has echoed the end of the line */
        (void)putchar('\n');
    return answer;
}

/* ---- verbs ---- */

/* Prints the output of a verb, escaped. Returns its exit status. */
static int finish_verb(const struct plain *plain, struct verb_child *child)
{
    autostr struct str output = {0};
    (void)read_all(child->output, STR_LENGTH_MAX / 4, &output);
    close_fd(&child->output); /* of a longer diff, the rest is not printed */
    int status = verb_wait(child, &output);
    print_lines(plain, output.data, output.length);
    return status;
}

/* Applies or discards. Returns the exit status. */
static int run_verb(const struct plain *plain, const char *verb, const char *const *options,
                    const struct entry *entry)
{
    autostr struct str items = {0};
    struct verb_child child;
    struct brig_error err = {0};
    entry_list_item(&plain->changes, entry, &items);
    if (items.failed)
        return -1;
    if (verb_start(plain->verbs, verb, options, NULL, &items, &child, &err) < 0) {
        (void)printf("%s\n", err.message);
        return -1;
    }
    return finish_verb(plain, &child);
}

static int show_diff(const struct plain *plain, const struct entry *entry)
{
    if (entry->commits) {
        print_lines(plain, entry->commits, strlen(entry->commits));
        return 0;
    }
    struct verb_child child;
    struct brig_error err = {0};
    if (verb_start_diff(plain->verbs, &plain->changes, entry, &child, &err) < 0) {
        (void)printf("%s\n", err.message);
        return -1;
    }
    return finish_verb(plain, &child);
}

static int run_here(const struct plain *plain, const struct entry *entry)
{
    static const char *const options[] = {"-p", "--", NULL};
    autostr struct str paths = {0};
    entry_list_path(&plain->changes, entry, &paths);
    if (paths.failed)
        return -1;
    (void)fflush(stdout);
    return verb_run_here(plain->verbs, "apply", options, &paths);
}

static int fail_reading(struct str *errors, int status)
{
    autostr struct str shown = {0};
    if (errors->length == 0)
        str_append(errors,
                   "brig: the list of changes that brig status has printed is incomplete\n");
    str_append_shown(&shown, errors->data, errors->length, "\n");
    (void)fputs(shown.failed ? "brig: out of memory\n" : shown.data, stderr);
    return status > 0 ? status : 125;
}

/* Reads the changes; 0 or the exit status. */
static int read_changes(struct plain *plain)
{
    static const char *const options[] = {"--json", "--grouped", "--", NULL};
    struct changes_reader reader;
    struct verb_child child;
    struct brig_error err = {0};
    autostr struct str errors = {0};
    char part[READ_BYTES];
    ssize_t got;
    if (verb_start(plain->verbs, "status", options, plain->verbs->paths, NULL, &child, &err) < 0) {
        (void)fprintf(stderr, "brig: %s\n", err.message);
        return 125;
    }
    bool good = true;
    changes_reader_init(&reader, &plain->changes);
    while ((got = read(child.output, part, sizeof part)) > 0 || (got < 0 && errno == EINTR))
        good = good && (got < 0 || changes_reader_feed(&reader, part, (size_t)got));
    int status = verb_wait(&child, &errors);
    good = good && status == 0 && changes_finish(&reader);
    changes_reader_done(&reader);
    return good ? 0 : fail_reading(&errors, status);
}

/* ---- asking ---- */

static void print_reason(const struct plain *plain, const char *name, const char *reason)
{
    if (!reason)
        return;
    (void)printf("   %s: ", name);
    print_shown(plain, reason, strlen(reason));
    (void)putchar('\n');
}

static const char *after_line(const char *text)
{
    const char *end = strchrnul(text, '\n');
    return *end ? end + 1 : end;
}

static void print_entry(const struct plain *plain, const struct entry *entry, size_t number)
{
    autostr struct str about = {0}, path = {0};
    (void)printf("\n(%zu/%zu) %c%s%s ", number, plain->changes.count, entry_letter(entry),
                 entry->conflict ? " C" : "", entry->risk ? " !" : "");
    entry_append_path(&plain->changes, entry, &path);
    entry_describe(entry, &about);
    if (!path.failed)
        print_shown(plain, path.data, path.length);
    (void)fputs("\n   ", stdout);
    if (!about.failed)
        print_shown(plain, about.data, about.length);
    (void)putchar('\n');
    print_reason(plain, "Conflict", entry->conflict);
    print_reason(plain, "Flagged", entry->risk);
    print_reason(plain, "Unreadable", entry->unreadable);
    if (entry->commits)
        print_lines(plain, after_line(entry->commits), strlen(after_line(entry->commits)));
}

/* Returns the answer for --conflict; NULL: the change is skipped. */
static const char *ask_conflict(void)
{
    (void)fputs("   Keep [m]ine, take [t]heirs, mer[g]e, [s]kip? ", stdout);
    switch (read_answer()) {
    case 'm':
        return "mine";
    case 't':
        return "theirs";
    case 'g':
        return "merge";
    default:
        return NULL;
    }
}

/* Returns the exit status, 0 if nothing was to be done. */
static int apply_entry(struct plain *plain, const struct entry *entry)
{
    const char *options[5] = {"--shown"};
    size_t count = 1;
    if (entry->conflict) {
        const char *answer = ask_conflict();
        if (!answer)
            return 0;
        options[count++] = "--conflict";
        options[count++] = answer;
    }
    if (entry->risk) {
        (void)fputs("   It is flagged. Apply it all the same? [y/N] ", stdout);
        char answer = read_answer();
        if (answer != 'y' && answer != 'Y')
            return 0;
        options[count++] = "--risky";
    }
    int status = run_verb(plain, "apply", options, entry);
    plain->applied += status == 0;
    return status;
}

static void print_help(void)
{
    (void)fputs("   a  apply the change to your files\n"
                "   d  discard it\n"
                "   s  skip it: decide later\n"
                "   v  view the diff\n"
                "   p  choose the parts (hunks) to apply\n"
                "   q  quit; the rest stays as it is\n",
                stdout);
}

enum outcome { ASK_AGAIN, NEXT, REFUSED, QUIT };

static enum outcome handle_answer(struct plain *plain, const struct entry *entry, char answer)
{
    static const char *const shown[] = {"--shown", NULL};
    int status = 0;
    switch (answer) {
    case '\0':
    case 'q':
        return QUIT;
    case 'a':
        return apply_entry(plain, entry) == 0 ? NEXT : REFUSED;
    case 'd':
        status = run_verb(plain, "discard", shown, entry);
        plain->discarded += status == 0;
        return status == 0 ? NEXT : REFUSED;
    case 's':
        return NEXT;
    case 'v':
        return show_diff(plain, entry) == VERB_CHANGED ? REFUSED : ASK_AGAIN;
    case 'p':
        plain->applied += run_here(plain, entry) == 0;
        return NEXT;
    default:
        print_help();
        return ASK_AGAIN;
    }
}

/* Reads the changes again. If the one at *at is now another than was shown, shows that, to be asked about; otherwise
 * *at is the next one. */
static enum outcome show_again(struct plain *plain, size_t *at)
{
    struct changes old = plain->changes;
    const struct entry *before = &old.entries[*at];
    const char *root = old.layers[before->layer].root;
    plain->changes = (struct changes){0};
    enum outcome outcome = read_changes(plain) == 0 ? NEXT : QUIT;
    const struct entry *now =
        outcome == NEXT ? changes_find(&plain->changes, root, before->path) : NULL;
    if (now && !entry_is_same(before, now)) {
        (void)fputs("   It has changed since it was shown.\n", stdout);
        print_entry(plain, now, (size_t)(now - plain->changes.entries) + 1);
        (void)show_diff(plain, now);
        outcome = ASK_AGAIN;
    }
    *at = now ? (size_t)(now - plain->changes.entries)
              : changes_count_before(&plain->changes, root, before->path) - 1;
    changes_done(&old);
    return outcome;
}

static void ask_all(struct plain *plain)
{
    enum outcome outcome = NEXT;
    for (size_t i = 0; i < plain->changes.count && outcome != QUIT; i++) {
        print_entry(plain, &plain->changes.entries[i], i + 1);
        do {
            (void)fputs("[a]pply, [d]iscard, [s]kip, [v]iew diff, [p]arts, [q]uit, [?] ", stdout);
            outcome = handle_answer(plain, &plain->changes.entries[i], read_answer());
            if (outcome == REFUSED)
                outcome = show_again(plain, &i);
        } while (outcome == ASK_AGAIN);
    }
}

int plain_run(const struct verbs *verbs)
{
    const char *no_color = getenv("NO_COLOR");
    struct plain plain = {
        .verbs = verbs,
        .unicode = shown_has_unicode(),
        .colours = isatty(STDOUT_FILENO) && !(no_color && *no_color),
    };
    int status = read_changes(&plain);
    if (status == 0) {
        (void)printf("%zu change%s in jail ", plain.changes.count,
                     plain.changes.count == 1 ? "" : "s");
        const char *jail = plain.changes.jail ? plain.changes.jail : "";
        print_shown(&plain, jail, strlen(jail));
        (void)putchar('\n');
        if (plain.changes.state > 0)
            (void)printf(CHANGES_STATE "\n", (uintmax_t)plain.changes.state);
        bool any = plain.changes.count > 0;
        ask_all(&plain);
        if (any)
            (void)printf("\n%zu applied, %zu discarded\n", plain.applied, plain.discarded);
    }
    changes_done(&plain.changes);
    (void)fflush(stdout);
    return status;
}
