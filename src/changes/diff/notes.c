/* SPDX-License-Identifier: MIT */
/* Describes the parts of changes that git does not show. */
#include "changes/diff/notes.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "changes/layer/change.h"

#define PART_BYTES 65536

void notes_add(struct notes *notes, const char *path, const char *text)
{
    autostr struct str line = {0};
    str_append(&line, "# ");
    if (notes->jail)
        str_concat(&line, notes->jail, ": ");
    str_append_shown(&line, notes->root, strlen(notes->root), "");
    str_append_char(&line, '/');
    str_append_shown(&line, path, strlen(path), "");
    str_concat(&line, ": ", text, "\n");
    if (!line.failed)
        (void)fwrite(line.data, 1, line.length, notes->file);
}

/* Notes an added or deleted directory, unless something in it is a change. */
void notes_end_directory(struct notes *notes, const char *next)
{
    if (notes->directory.length == 0)
        return;
    if (!next || !path_is_beneath(notes->directory.data, next))
        notes_add(notes, notes->directory.data, notes->directory_note);
    notes->directory.length = 0;
}

static void begin_directory(struct notes *notes, const struct change *change)
{
    if (S_ISDIR(change->before.st_mode) ? change->after.st_mode : !S_ISDIR(change->after.st_mode))
        return;
    str_append(&notes->directory, change->path);
    notes->directory_note =
        S_ISDIR(change->after.st_mode) ? "directory added" : "directory deleted";
}

static const char *special_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFIFO:
        return "FIFO";
    case S_IFCHR:
    case S_IFBLK:
        return "device";
    case S_IFSOCK:
        return "socket";
    default:
        return NULL;
    }
}

mode_t notes_git_mode(mode_t mode)
{
    return S_ISREG(mode) ? S_IFREG | (mode & S_IXUSR ? 0755U : 0644U) : mode & S_IFMT;
}

/* Bits that git does not show. */
static bool has_hidden_mode(const struct change *change)
{
    mode_t before = change->before.st_mode, after = change->after.st_mode;
    if (!S_ISREG(after) && !S_ISDIR(after))
        return false;
    if (!before || (before & S_IFMT) != (after & S_IFMT))
        return after & (S_ISUID | S_ISGID | S_ISVTX);
    return before != after && (notes_git_mode(before) == notes_git_mode(after) ||
                               ((before | after) & (S_ISUID | S_ISGID | S_ISVTX)));
}

static void note_metadata(struct notes *notes, const struct change *change)
{
    char text[64];
    unsigned before = change->before.st_mode & 07777, after = change->after.st_mode & 07777;
    if (has_hidden_mode(change) && change->before.st_mode) {
        (void)snprintf(text, sizeof text, "mode %04o, was %04o", after, before);
        notes_add(notes, change->path, text);
    } else if (has_hidden_mode(change)) {
        (void)snprintf(text, sizeof text, "mode %04o", after);
        notes_add(notes, change->path, text);
    }
    if (change->meta & CHANGE_OWNER)
        notes_add(notes, change->path, "owner changed");
    if (change->meta & CHANGE_XATTRS)
        notes_add(notes, change->path, "extended attributes changed");
    if (change->meta & CHANGE_ACL)
        notes_add(notes, change->path, "ACL changed");
}

static void note_specials(struct notes *notes, const struct change *change)
{
    const char *before = special_name(change->before.st_mode);
    const char *after = special_name(change->after.st_mode);
    char text[64];
    if (!before && !after)
        return;
    if (after)
        (void)snprintf(text, sizeof text, "%s %s", after, before ? "changed" : "added");
    else
        (void)snprintf(text, sizeof text, "%s deleted", before);
    notes_add(notes, change->path, text);
}

void notes_add_change(struct notes *notes, const struct change *change)
{
    notes_end_directory(notes, change->path);
    if (change->unreadable)
        notes_add(notes, change->path, change->unreadable);
    else
        begin_directory(notes, change);
    note_specials(notes, change);
    note_metadata(notes, change);
}

int notes_print(struct notes *notes, int to, struct brig_error *err)
{
    char part[PART_BYTES];
    rewind(notes->file);
    for (size_t got; (got = fread(part, 1, sizeof part, notes->file)) > 0;) {
        int failed = write_all(to, part, got);
        if (failed < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write");
    }
    return 0;
}

void notes_done(struct notes *notes)
{
    own_fclose(&notes->file);
    notes->file = NULL;
    str_done(&notes->directory);
}
