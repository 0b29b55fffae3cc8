/* SPDX-License-Identifier: MIT */
/* The store: a git repository that git fast-import writes and git cat-file reads. */
#include "changes/checkpoint/store.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/tree.h"

#define NEW_DIRECTORY STORE_DIRECTORY ".new"
#define PACKS "objects/pack"
#define PACKS_MAX 40
#define BUFFER_BYTES 65536
#define ANSWER_MAX 128
#define BLOCK_BYTES 512 /* unit of st_blocks */

/* ---- the repository ---- */

/* "git says": its standard error as one line. */
static int fail_git(struct brig_error *err, int code, const char *what, const struct str *says)
{
    autostr struct str line = {0};
    size_t length = says->data ? strcspn(says->data, "\n") : 0;
    str_append_shown(&line, says->data ? says->data : "", length, "");
    return brig_fail(err, code, 0, "git cannot %s%s%s", what, length > 0 ? ": " : "",
                     line.data ? line.data : "");
}

static int run_git(const struct store *store, const char *const *words, const char *what,
                   struct str *out, struct brig_error *err)
{
    autostr struct str says = {0};
    const struct git_call call = {.words = words,
                                  .git_dir = store->directory,
                                  .out = out,
                                  .says = &says,
                                  .own_settings = true};
    int status = git_run(store->git, &call, err);
    return status > 0 ? fail_git(err, BRIG_E_SYSTEM, what, &says) : status;
}

/* Creates the repository under another name first: a store with the right name is complete. */
static int create(int record, const struct git *git, struct brig_error *err)
{
    static const char *const words[] = {"init", "-q", "--bare", "--template=", ".", NULL};
    autostr struct str says = {0};
    int status = tree_remove(record, NEW_DIRECTORY, err);
    if (status < 0)
        return status;
    autoclose int fd =
        mkdirat(record, NEW_DIRECTORY, 0700) < 0 ? -1 : files_open_dir(record, NEW_DIRECTORY);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create the store for checkpoints");
    const struct git_call call = {.words = words, .dir = fd, .says = &says, .own_settings = true};
    status = git_run(git, &call, err);
    if (status > 0)
        status = fail_git(err, BRIG_E_SYSTEM, "create the store for checkpoints", &says);
    if (status == 0 &&
        (syncfs(fd) < 0 || renameat(record, NEW_DIRECTORY, record, STORE_DIRECTORY) < 0))
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create the store for checkpoints");
    return status;
}

int store_open(int record, const struct git *git, bool make, struct store *ret_store,
               struct brig_error *err)
{
    if (!git->program)
        return brig_fail(err, BRIG_E_NOT_FOUND, 0, "checkpoints need git, which is not installed");
    int fd = files_open_dir(record, STORE_DIRECTORY);
    if (fd < 0 && errno == ENOENT && make) {
        int status = create(record, git, err);
        if (status < 0)
            return status;
        fd = files_open_dir(record, STORE_DIRECTORY);
    }
    if (fd < 0)
        return brig_fail(err, errno == ENOENT ? BRIG_E_NOT_FOUND : BRIG_E_SYSTEM, errno,
                         "cannot open the store of checkpoints");
    *ret_store = (struct store){.git = git, .directory = fd};
    return 0;
}

void store_done(struct store *store)
{
    close_fd(&store->directory);
}

int store_tidy(const struct store *store, struct brig_error *err)
{
    static const char *const words[] = {"repack", "-d", "-q", "--geometric=2", NULL};
    autodir DIR *dir = files_list(store->directory, PACKS);
    size_t packs = 0;
    for (const struct dirent *item; dir && (item = readdir(dir));)
        packs += str_ends_with(item->d_name, ".pack");
    return packs <= PACKS_MAX ? 0
                              : run_git(store, words, "join the packs of checkpoints", NULL, err);
}

/* Removes the packs but the one of this name, and refs to commits of an earlier version. */
static void drop_others(const struct store *store, const char *kept)
{
    autofree char *prefix = NULL;
    autodir DIR *dir = files_list(store->directory, PACKS);
    if (!dir || str_make(&prefix, NULL, "pack-", kept, ".") < 0)
        return;
    (void)tree_remove(store->directory, "refs/checkpoints", NULL);
    (void)unlinkat(store->directory, "packed-refs", 0);
    for (const struct dirent *item; (item = files_next(dir));)
        if (!str_starts_with(item->d_name, prefix))
            (void)unlinkat(dirfd(dir), item->d_name, 0);
}

/* Drops the ids of objects that are lost: what needs them cannot be restored, but everything else can. */
static int drop_lost(const struct store *store, const struct str *ids, struct str *ret_ids,
                     struct brig_error *err)
{
    static const char *const words[] = {"cat-file", "--batch-check=%(objectname)", NULL};
    autostr struct str found = {0};
    const struct git_call call = {.words = words,
                                  .git_dir = store->directory,
                                  .input = ids,
                                  .out = &found,
                                  .own_settings = true};
    int status = git_run(store->git, &call, err);
    if (status != 0)
        return status < 0
                   ? status
                   : brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot read the store of checkpoints");
    char *rest = found.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line && !strchr(line, ' ')) /* "ID missing" */
            str_concat(ret_ids, line, "\n");
    return ret_ids->failed ? brig_fail_nomem(err) : 0;
}

int store_keep(const struct store *store, const struct str *ids, struct brig_error *err)
{
    static const char *const words[] = {
        "-c", "pack.compression=1", "pack-objects", "-q", "--window=0", PACKS "/pack", NULL};
    autostr struct str says = {0}, name = {0}, there = {0};
    const struct git_call call = {.words = words,
                                  .git_dir = store->directory,
                                  .input = &there,
                                  .out = &name,
                                  .says = &says,
                                  .own_settings = true};
    int status = ids->failed ? brig_fail_nomem(err) : drop_lost(store, ids, &there, err);
    if (status == 0)
        status = git_run(store->git, &call, err);
    if (status > 0)
        status = fail_git(err, BRIG_E_SYSTEM, "pack the store of checkpoints", &says);
    if (status < 0)
        return status;
    size_t length = name.data ? strcspn(name.data, "\n") : 0;
    if (name.data)
        name.data[length] = '\0';
    drop_others(store, length > 0 ? name.data : "none");
    return 0;
}

/* Removes the files of a git that was killed. */
static void sweep(const struct store *store)
{
    autodir DIR *dir = files_list(store->directory, PACKS);
    for (const struct dirent *item; dir && (item = readdir(dir));)
        if (str_starts_with(item->d_name, "tmp_"))
            (void)unlinkat(dirfd(dir), item->d_name, 0);
}

static int start_git(const struct store *store, const char *const *words, struct git_talk *ret_talk,
                     struct brig_error *err)
{
    const struct git_call call = {
        .words = words, .git_dir = store->directory, .own_settings = true};
    return git_talk_begin(store->git, &call, ret_talk, err);
}

/* ---- writing ---- */

struct store_writer {
    const struct store *store;
    struct git_talk process;
    size_t used;
    char buffer[BUFFER_BYTES];
};

/* Git has ended: its last words tell why. Ends the process. */
static int writer_failed(struct store_writer *writer, struct brig_error *err)
{
    autostr struct str says = {0};
    (void)git_talk_end(&writer->process, true, &says);
    return fail_git(err, BRIG_E_SYSTEM, "store the files of a checkpoint", &says);
}

static int send_all(struct store_writer *writer, const char *bytes, size_t length,
                    struct brig_error *err)
{
    return git_talk_send(&writer->process, bytes, length) < 0 ? writer_failed(writer, err) : 0;
}

static int flush(struct store_writer *writer, struct brig_error *err)
{
    size_t length = writer->used;
    writer->used = 0;
    return send_all(writer, writer->buffer, length, err);
}

static int put(struct store_writer *writer, const void *bytes, size_t length,
               struct brig_error *err)
{
    if (length > BUFFER_BYTES - writer->used) {
        int status = flush(writer, err);
        if (status < 0 || length > BUFFER_BYTES)
            return status < 0 ? status : send_all(writer, bytes, length, err);
    }
    memcpy(writer->buffer + writer->used, bytes, length);
    writer->used += length;
    return 0;
}

static int put_text(struct store_writer *writer, const struct str *text, struct brig_error *err)
{
    return text->failed ? brig_fail_nomem(err) : put(writer, text->data, text->length, err);
}

int store_write_begin(const struct store *store, struct store_writer **ret_writer,
                      struct brig_error *err)
{
    /* Objects stay in packs, are not compared with one another, and large ones are not read into memory. */
    static const char *const words[] = {"-c",          "fastimport.unpackLimit=0",
                                        "-c",          "pack.compression=1",
                                        "-c",          "core.bigFileThreshold=1m",
                                        "fast-import", "--quiet",
                                        "--done",      "--depth=0",
                                        NULL};
    struct store_writer *writer = malloc(sizeof *writer);
    if (!writer)
        return brig_fail_nomem(err);
    writer->store = store;
    writer->used = 0;
    sweep(store);
    int status = start_git(store, words, &writer->process, err);
    if (status < 0)
        free(writer);
    else
        *ret_writer = writer;
    return status;
}

/* Asks for the id of the object with the mark 1. */
static int read_id(struct store_writer *writer, char ret_id[STORE_ID_MAX], struct brig_error *err)
{
    static const char ask[] = "\nget-mark :1\n";
    char answer[ANSWER_MAX] = "";
    size_t length = 0;
    int status = put(writer, ask, sizeof ask - 1, err);
    if (status == 0)
        status = flush(writer, err);
    while (status == 0 && (length == 0 || answer[length - 1] != '\n')) {
        ssize_t got = read(writer->process.channel, answer + length, sizeof answer - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return writer_failed(writer, err);
        length += (size_t)got;
    }
    if (status == 0 && (length < 2 || length > STORE_ID_MAX))
        return writer_failed(writer, err);
    if (status == 0) {
        memcpy(ret_id, answer, length - 1);
        ret_id[length - 1] = '\0';
    }
    return status;
}

static int put_size(struct store_writer *writer, uint64_t size, struct brig_error *err)
{
    autostr struct str text = {0};
    str_concat(&text, "blob\nmark :1\ndata ", str_number(size).text, "\n");
    return put_text(writer, &text, err);
}

int store_write_bytes(struct store_writer *writer, const void *bytes, size_t length,
                      char ret_id[STORE_ID_MAX], struct brig_error *err)
{
    int status = put_size(writer, length, err);
    if (status == 0)
        status = put(writer, bytes, length, err);
    return status < 0 ? status : read_id(writer, ret_id, err);
}

/* The bytes from here that a file has no data for, at most `max`. */
static size_t find_hole(int fd, size_t max)
{
    off_t at = lseek(fd, 0, SEEK_CUR), data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) /* up to the end */
        data = lseek(fd, 0, SEEK_END);
    size_t length = data > at ? (size_t)(data - at) : 0;
    length = length < max ? length : max;
    (void)lseek(fd, at + (off_t)length, SEEK_SET);
    return length;
}

/* Sends the file. If it is shorter than announced or cannot be read, zeros follow: *ret_short, and the object is not used. */
static int put_file(struct store_writer *writer, int fd, uint64_t size, bool *ret_short,
                    struct brig_error *err)
{
    struct stat info;
    int status = flush(writer, err);
    bool sparse = fstat(fd, &info) == 0 && (off_t)info.st_blocks * BLOCK_BYTES < info.st_size;
    while (status == 0 && size > 0) {
        size_t wanted = size < BUFFER_BYTES ? (size_t)size : BUFFER_BYTES;
        ssize_t got = *ret_short || !sparse ? 0 : (ssize_t)find_hole(fd, wanted);
        bool is_hole = got > 0;
        if (!is_hole && !*ret_short)
            got = read(fd, writer->buffer, wanted);
        if (got < 0 && errno == EINTR)
            continue;
        *ret_short = *ret_short || got <= 0;
        if (*ret_short)
            got = (ssize_t)wanted;
        if (*ret_short || is_hole)
            memset(writer->buffer, 0, (size_t)got);
        status = send_all(writer, writer->buffer, (size_t)got, err);
        size -= (uint64_t)got;
    }
    return status;
}

int store_write_file(struct store_writer *writer, int fd, uint64_t size, char ret_id[STORE_ID_MAX],
                     struct brig_error *err)
{
    bool is_short = false;
    int status = put_size(writer, size, err);
    if (status == 0)
        status = put_file(writer, fd, size, &is_short, err);
    if (status == 0)
        status = read_id(writer, ret_id, err);
    return status < 0 ? status : is_short;
}

int store_write_end(struct store_writer *writer, struct brig_error *err)
{
    static const char done[] = "done\n";
    autostr struct str says = {0};
    int status = put(writer, done, sizeof done - 1, err);
    if (status == 0)
        status = flush(writer, err);
    if (status < 0) {
        store_write_abandon(writer);
        return status;
    }
    /* Git reads up to "done" and ends; the channel must stay open until then. */
    char rest[ANSWER_MAX];
    while (read(writer->process.channel, rest, sizeof rest) > 0)
        ;
    status = git_talk_end(&writer->process, false, &says);
    free(writer);
    return status == 0 ? 0 : fail_git(err, BRIG_E_SYSTEM, "store the files of a checkpoint", &says);
}

void store_write_abandon(struct store_writer *writer)
{
    if (!writer)
        return;
    (void)git_talk_end(&writer->process, true, NULL);
    sweep(writer->store);
    free(writer);
}

/* ---- reading ---- */

struct store_reader {
    struct git_talk process;
    size_t used, next; /* of the buffer */
    char buffer[BUFFER_BYTES];
};

int store_read_begin(const struct store *store, struct store_reader **ret_reader,
                     struct brig_error *err)
{
    static const char *const words[] = {"cat-file", "--batch", NULL};
    struct store_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return brig_fail_nomem(err);
    reader->used = reader->next = 0;
    int status = start_git(store, words, &reader->process, err);
    if (status < 0)
        free(reader);
    else
        *ret_reader = reader;
    return status;
}

static int cannot_read(const char *id, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, 0, "the store of checkpoints has lost the object %s",
                     str_shown(id).text);
}

/* Reads more if the buffer is empty; false at the end. */
static bool fill(struct store_reader *reader)
{
    while (reader->next == reader->used) {
        ssize_t got = read(reader->process.channel, reader->buffer, sizeof reader->buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        reader->next = 0;
        reader->used = (size_t)got;
    }
    return true;
}

/* Asks for an object: its size. */
static int ask(struct store_reader *reader, const char *id, uint64_t *ret_size,
               struct brig_error *err)
{
    char line[ANSWER_MAX];
    size_t length = 0;
    int asked = snprintf(line, sizeof line, "%s\n", id);
    if (git_talk_send(&reader->process, line, (size_t)asked) < 0)
        return cannot_read(id, err);
    do {
        if (length == sizeof line || !fill(reader))
            return cannot_read(id, err);
        line[length] = reader->buffer[reader->next++];
    } while (line[length++] != '\n');
    line[length - 1] = '\0';
    const char *kind = strchr(line, ' ');
    return kind && strncmp(kind, " blob ", 6) == 0 &&
                   parse_uint(kind + 6, UINT64_MAX, PARSE_ZERO_OK, ret_size, NULL) == 0
               ? 0
               : cannot_read(id, err);
}

/* Passes the contents and the newline after them to a file or a text. */
static int take_contents(struct store_reader *reader, const char *id, uint64_t size, int to,
                         struct str *text, struct brig_error *err)
{
    while (size > 0) {
        if (!fill(reader))
            return cannot_read(id, err);
        size_t length = reader->used - reader->next;
        if (length > size)
            length = (size_t)size;
        int written = text ? 0 : write_all(to, reader->buffer + reader->next, length);
        if (text)
            str_append_bytes(text, reader->buffer + reader->next, length);
        if (written < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -written, "cannot write a restored file");
        reader->next += length;
        size -= length;
    }
    if (!fill(reader))
        return cannot_read(id, err);
    reader->next++;
    return text && text->failed ? brig_fail_nomem(err) : 0;
}

int store_read_file(struct store_reader *reader, const char *id, int to, struct brig_error *err)
{
    uint64_t size = 0;
    int status = ask(reader, id, &size, err);
    return status < 0 ? status : take_contents(reader, id, size, to, NULL, err);
}

int store_read_text(struct store_reader *reader, const char *id, size_t max, struct str *text,
                    struct brig_error *err)
{
    uint64_t size = 0;
    int status = ask(reader, id, &size, err);
    if (status == 0 && size > max)
        return cannot_read(id, err);
    return status < 0 ? status : take_contents(reader, id, size, -1, text, err);
}

void store_read_end(struct store_reader *reader)
{
    if (!reader)
        return;
    (void)git_talk_end(&reader->process, false, NULL);
    free(reader);
}
