/* SPDX-License-Identifier: MIT */
/* Writes the stream for `git fast-import`. */
#include "changes/diff/import.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "changes/diff/plain.h"
#include "git/git.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define PART_BYTES ((size_t)64 << 10)

/* ---- the stream ---- */

static int flush(struct import *import, struct brig_error *err)
{
    struct str *buffer = &import->buffer;
    if (buffer->failed)
        return brig_fail_nomem(err);
    int failed = git_talk_send(&import->git, buffer->data, buffer->length);
    buffer->length = 0;
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to git fast-import")
                      : 0;
}

static int flush_if_full(struct import *import, struct brig_error *err)
{
    return import->buffer.length >= BUFFER_BYTES || import->buffer.failed ? flush(import, err) : 0;
}

/* Adds the first line of what git said to the error. */
static int add_said(struct str *says, int status, struct brig_error *err)
{
    if (says->length > 0) {
        says->data[strcspn(says->data, "\n")] = '\0';
        (void)brig_advise(err, status, "git said: %s", str_shown(says->data).text);
    }
    return status;
}

static int fail(struct import *import, int status, struct brig_error *err)
{
    autostr struct str says = {0};
    (void)git_talk_end(&import->git, true, &says);
    return add_said(&says, status, err);
}

void import_abort(struct import *import)
{
    (void)git_talk_end(&import->git, true, NULL);
    str_done(&import->buffer);
}

int import_begin(const struct git *git, int repository, const char *ref, struct import *ret_import,
                 struct brig_error *err)
{
    /* Contents are read once, soon: do not compress them. */
    static const char *const words[] = {"-c",          "core.compression=0",
                                        "-c",          "pack.compression=0",
                                        "-c",          "fastimport.unpackLimit=0",
                                        "-c",          "core.protectNTFS=false",
                                        "-c",          "core.protectHFS=false",
                                        "fast-import", "--quiet",
                                        "--done",      "--depth=0",
                                        NULL};
    const struct git_call call = {.words = words, .git_dir = repository, .bulk = true};
    *ret_import = (struct import){0};
    int status = git_talk_begin(git, &call, &ret_import->git, err);
    if (status < 0)
        return status;
    str_concat(&ret_import->buffer, "commit ", ref, "\ncommitter brig <> 0 +0000\ndata 0\n");
    return 0;
}

int import_end(struct import *import, struct brig_error *err)
{
    autostr struct str says = {0};
    str_append(&import->buffer, "\ndone\n");
    int status = flush(import, err);
    if (status < 0)
        return fail(import, status, err);
    if (git_talk_end(&import->git, false, &says) == 0)
        return 0;
    status = brig_fail(err, BRIG_E_SYSTEM, 0, "git fast-import failed");
    return add_said(&says, status, err);
}

/* ---- names ---- */

/* Whether a component is `name` in any case, with any number of '%' after it. */
static bool is_named(const char *component, size_t length, const char *name, size_t percents_min)
{
    size_t name_length = strlen(name);
    if (length < name_length + percents_min || strncasecmp(component, name, name_length) != 0)
        return false;
    return strspn(component + name_length, "%") >= length - name_length;
}

static bool is_refused(const char *component, size_t length, mode_t type)
{
    bool link = component[length] == '\0' && type == S_IFLNK;
    return is_named(component, length, ".git", 0) ||
           is_named(component, length, ".gitmodules", link ? 0 : 1);
}

bool import_maps(const char *path, mode_t type)
{
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        if (is_refused(path, length, type))
            return true;
    }
    return false;
}

void import_append_mapped(struct str *out, const char *path, mode_t type)
{
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        str_append_bytes(out, path, length);
        if (is_refused(path, length, type))
            str_append_char(out, '%');
        if (path[length] == '/')
            str_append_char(out, '/');
    }
}

/* Appends a path in quotes, each unusual byte in octal. */
static void append_quoted(struct str *out, const char *top, const struct str *path)
{
    const char *const texts[] = {top, *top && path->length > 0 ? "/" : "", path->data};
    str_append_char(out, '"');
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        for (const char *at = texts[i]; at && *at; at++) {
            unsigned char c = (unsigned char)*at;
            if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
                str_appendf(out, "\\%03o", c);
            else
                str_append_char(out, *at);
        }
    }
    str_append_char(out, '"');
}

static const char *command_of(mode_t mode)
{
    return S_ISLNK(mode)    ? "M 120000 inline "
           : mode & S_IXUSR ? "M 100755 inline "
                            : "M 100644 inline ";
}

/* "M 100644 inline "PATH"\n". */
static int begin_entry(struct import *import, const char *command, const char *top,
                       const char *path, mode_t type, struct brig_error *err)
{
    autostr struct str mapped = {0};
    import_append_mapped(&mapped, path, type);
    str_append(&import->buffer, command);
    append_quoted(&import->buffer, top, &mapped);
    str_append_char(&import->buffer, '\n');
    return mapped.failed || import->buffer.failed ? brig_fail_nomem(err) : 0;
}

/* ---- contents ---- */

/* One pass over a file: the first only counts. */
struct pass {
    struct import *import;
    bool escape, sending;
    uint64_t count;    /* of bytes after escaping */
    uint64_t promised; /* the number that git was told */
};

static int emit(struct pass *pass, const char *bytes, size_t length, struct brig_error *err)
{
    if (pass->sending) {
        uint64_t left = pass->promised > pass->count ? pass->promised - pass->count : 0;
        str_append_bytes(&pass->import->buffer, bytes, length < left ? length : (size_t)left);
    }
    pass->count += length;
    return pass->sending ? flush_if_full(pass->import, err) : 0;
}

static int emit_part(struct pass *pass, const char *bytes, size_t length, bool last,
                     size_t *ret_used, struct brig_error *err)
{
    autostr struct str text = {0};
    *ret_used = length;
    if (!pass->escape)
        return emit(pass, bytes, length, err);
    *ret_used = plain_append(&text, bytes, length, last);
    return text.failed ? brig_fail_nomem(err) : emit(pass, text.data, text.length, err);
}

static int read_pass(struct pass *pass, int fd, struct brig_error *err)
{
    autofree char *part = malloc(PART_BYTES);
    off_t offset = 0;
    size_t have = 0;
    if (!part)
        return brig_fail_nomem(err);
    for (bool last = false; !last;) {
        size_t used;
        ssize_t got = pread(fd, part + have, PART_BYTES - have, offset);
        if (got < 0 && errno == EINTR)
            continue;
        last = got <= 0; /* an error ends the file, as a read of a file that is being written may */
        offset += last ? 0 : got;
        have += last ? 0 : (size_t)got;
        int status = emit_part(pass, part, have, last, &used, err);
        if (status < 0)
            return status;
        memmove(part, part + used, have - used);
        have -= used;
        if (pass->sending && pass->count >= pass->promised)
            return 0;
    }
    return 0;
}

/* Fills a file that has shrunk since it was measured. */
static int fill_up(struct pass *pass, struct brig_error *err)
{
    char blank[PART_BYTES];
    memset(blank, '\n', sizeof blank);
    int status = 0;
    while (pass->count < pass->promised && status == 0)
        status = emit(pass, blank, sizeof blank, err);
    return status;
}

static bool is_binary(int fd)
{
    char first[PLAIN_BINARY_BYTES];
    ssize_t length = pread(fd, first, sizeof first, 0);
    return length > 0 && plain_is_binary(first, (size_t)length);
}

int import_file(struct import *import, const char *top, const char *path, mode_t mode, int fd,
                struct brig_error *err)
{
    struct stat info;
    struct pass pass = {.import = import, .escape = import->escaped && !is_binary(fd)};
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(path).text);
    int status = pass.escape ? read_pass(&pass, fd, err) : 0;
    pass.promised = pass.escape ? pass.count : (uint64_t)info.st_size;
    pass.count = 0;
    pass.sending = true;
    if (status == 0)
        status = begin_entry(import, command_of(mode), top, path, S_IFREG, err);
    str_appendf(&import->buffer, "data %ju\n", (uintmax_t)pass.promised);
    if (status == 0)
        status = read_pass(&pass, fd, err);
    if (status == 0)
        status = fill_up(&pass, err);
    str_append_char(&import->buffer, '\n');
    return status < 0 ? fail(import, status, err) : flush_if_full(import, err);
}

int import_text(struct import *import, const char *top, const char *path, mode_t mode,
                const void *bytes, size_t length, struct brig_error *err)
{
    autostr struct str text = {0};
    if (import->escaped && !plain_is_binary(bytes, length))
        (void)plain_append(&text, bytes, length, true);
    else
        str_append_bytes(&text, bytes, length);
    int status = begin_entry(import, command_of(mode), top, path, mode & S_IFMT, err);
    str_appendf(&import->buffer, "data %zu\n", text.length);
    str_append_bytes(&import->buffer, text.data, text.length);
    str_append_char(&import->buffer, '\n');
    if (status == 0)
        status = text.failed ? brig_fail_nomem(err) : flush_if_full(import, err);
    return status < 0 ? fail(import, status, err) : 0;
}

int import_delete(struct import *import, const char *top, const char *path, struct brig_error *err)
{
    /* A link named .gitmodules has another name in git than a file: delete both. */
    static const mode_t types[] = {S_IFREG, S_IFLNK};
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(types) && status == 0; i++)
        if (i == 0 || import_maps(path, types[i]))
            status = begin_entry(import, "D ", top, path, types[i], err);
    if (status == 0)
        status = flush_if_full(import, err);
    return status < 0 ? fail(import, status, err) : 0;
}

int import_copy(struct import *import, const char *from, const char *to, struct brig_error *err)
{
    str_append(&import->buffer, "C ");
    append_quoted(&import->buffer, from, &(struct str){0});
    str_append_char(&import->buffer, ' ');
    append_quoted(&import->buffer, to, &(struct str){0});
    str_append_char(&import->buffer, '\n');
    int status = flush_if_full(import, err);
    return status < 0 ? fail(import, status, err) : 0;
}
