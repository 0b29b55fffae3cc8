/* SPDX-License-Identifier: MIT */
#include "unpack/blob.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/cleanup.h"
#include "base/error.h"

#define INPUT_BYTES 65536
#define GZIP_WINDOW (15 + 16) /* the largest window, and only gzip */
#define ZSTD_WINDOW_LOG 27    /* 128 MiB, what zstd itself accepts */
/* A bomb is small and unpacks to much. Layers of programs have ratios of 2 to 10; a first part may
 * be anything. */
#define RATIO_MAX 100
#define RATIO_FREE_BYTES (UINT64_C(256) << 20)

enum kind { KIND_PLAIN, KIND_GZIP, KIND_ZSTD };

struct blob_stream {
    struct blob blob;
    uint64_t taken, out, limit;
    struct sha256 digest, content;
    enum kind kind;
    bool ended; /* of the compressed stream, or of the blob */
    bool open;  /* a compressed stream has begun and not ended */
    unsigned char input[INPUT_BYTES];
    size_t at, length;
    z_stream gzip;
#ifdef HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
};

/* ---- input ---- */

/* Reads more input, after all of it was used; 0 at the end of the blob. */
static int refill(struct blob_stream *stream, struct brig_error *err)
{
    uint64_t left = stream->blob.size - stream->taken;
    size_t wanted = left < INPUT_BYTES ? (size_t)left : INPUT_BYTES;
    if (wanted == 0)
        return 0;
    ssize_t got =
        pread(stream->blob.fd, stream->input, wanted, (off_t)(stream->blob.offset + stream->taken));
    if (got < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the image");
    if (got == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image ends early");
    sha256_add(&stream->digest, stream->input, (size_t)got);
    stream->taken += (uint64_t)got;
    stream->at = 0;
    stream->length = (size_t)got;
    return 1;
}

static enum kind find_kind(const struct blob_stream *stream)
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (stream->length >= sizeof gzip && memcmp(stream->input, gzip, sizeof gzip) == 0)
        return KIND_GZIP;
    if (stream->length >= sizeof zstd && memcmp(stream->input, zstd, sizeof zstd) == 0)
        return KIND_ZSTD;
    return KIND_PLAIN;
}

/* ---- decompression ---- */

static int begin_zstd(struct blob_stream *stream, struct brig_error *err)
{
#ifdef HAVE_ZSTD
    stream->zstd = ZSTD_createDStream();
    if (!stream->zstd ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
        return brig_fail_nomem(err);
    return 0;
#else
    (void)stream;
    return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                     "a layer is compressed with zstd, and this brig was built without libzstd");
#endif
}

static int begin(struct blob_stream *stream, struct brig_error *err)
{
    int got = refill(stream, err);
    if (got < 0)
        return got;
    stream->kind = find_kind(stream);
    if (stream->kind == KIND_GZIP && inflateInit2(&stream->gzip, GZIP_WINDOW) != Z_OK)
        return brig_fail_nomem(err);
    return stream->kind == KIND_ZSTD ? begin_zstd(stream, err) : 0;
}

static int corrupt(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "a layer is damaged: it cannot be decompressed");
}

static int step_gzip(struct blob_stream *stream, unsigned char *buffer, size_t length,
                     struct brig_error *err)
{
    z_stream *gzip = &stream->gzip;
    gzip->next_in = stream->input + stream->at;
    gzip->avail_in = (unsigned)(stream->length - stream->at);
    gzip->next_out = buffer;
    gzip->avail_out = (unsigned)length;
    int result = inflate(gzip, Z_NO_FLUSH);
    stream->at = stream->length - gzip->avail_in;
    if (result == Z_MEM_ERROR)
        return brig_fail_nomem(err);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return corrupt(err);
    stream->open = result != Z_STREAM_END;
    if (result == Z_STREAM_END && inflateReset(gzip) != Z_OK) /* another member may follow */
        return corrupt(err);
    return (int)(length - gzip->avail_out);
}

static int step_zstd(struct blob_stream *stream, unsigned char *buffer, size_t length,
                     struct brig_error *err)
{
#ifdef HAVE_ZSTD
    ZSTD_inBuffer in = {stream->input, stream->length, stream->at};
    ZSTD_outBuffer out = {buffer, length, 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
    if (ZSTD_isError(result))
        return corrupt(err);
    stream->at = in.pos;
    stream->open = result != 0;
    return (int)out.pos;
#else
    (void)stream;
    (void)buffer;
    (void)length;
    return corrupt(err);
#endif
}

static int step_plain(struct blob_stream *stream, unsigned char *buffer, size_t length)
{
    size_t ready = stream->length - stream->at;
    if (length > ready)
        length = ready;
    memcpy(buffer, stream->input + stream->at, length);
    stream->at += length;
    return (int)length;
}

/* Some bytes; 0 at the end. */
static int step(struct blob_stream *stream, unsigned char *buffer, size_t length,
                struct brig_error *err)
{
    for (;;) {
        if (stream->at == stream->length && !stream->ended) {
            int got = refill(stream, err);
            if (got < 0)
                return got;
            stream->ended = got == 0;
        }
        size_t before = stream->at;
        if (stream->ended && (stream->kind == KIND_PLAIN || !stream->open))
            return 0;
        int got = stream->kind == KIND_GZIP   ? step_gzip(stream, buffer, length, err)
                  : stream->kind == KIND_ZSTD ? step_zstd(stream, buffer, length, err)
                                              : step_plain(stream, buffer, length);
        if (got != 0)
            return got;
        if (stream->ended && stream->at == before)
            return stream->open ? corrupt(err) : 0;
    }
}

static int check_limits(const struct blob_stream *stream, struct brig_error *err)
{
    if (stream->out > stream->limit)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the image is too large: its layers have more than %llu MiB",
                         (unsigned long long)(stream->limit >> 20));
    if (stream->out > RATIO_FREE_BYTES && stream->out / RATIO_MAX > stream->taken)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a layer unpacks to more than %d times its size, like a bomb", RATIO_MAX);
    return 0;
}

int blob_stream_read(void *context, void *buffer, size_t length, struct brig_error *err)
{
    struct blob_stream *stream = context;
    size_t used = 0;
    while (used < length) {
        int got = step(stream, (unsigned char *)buffer + used, length - used, err);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        sha256_add(&stream->content, (unsigned char *)buffer + used, (size_t)got);
        stream->out += (uint64_t)got;
        used += (size_t)got;
        int result = check_limits(stream, err);
        if (result < 0)
            return result;
    }
    return (int)used;
}

/* ---- the whole stream ---- */

int blob_stream_new(const struct blob *blob, uint64_t limit, struct blob_stream **ret_stream,
                    struct brig_error *err)
{
    struct blob_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return brig_fail_nomem(err);
    stream->blob = *blob;
    stream->limit = limit;
    sha256_begin(&stream->digest);
    sha256_begin(&stream->content);
    int result = begin(stream, err);
    if (result < 0) {
        blob_stream_free(stream);
        return result;
    }
    *ret_stream = stream;
    return 0;
}

void blob_stream_free(struct blob_stream *stream)
{
    if (!stream)
        return;
    if (stream->kind == KIND_GZIP)
        (void)inflateEnd(&stream->gzip);
#ifdef HAVE_ZSTD
    (void)ZSTD_freeDStream(stream->zstd);
#endif
    free(stream);
}

int blob_stream_finish(struct blob_stream *stream, char ret_digest[SHA256_HEX_LENGTH + 1],
                       char ret_content[SHA256_HEX_LENGTH + 1], struct brig_error *err)
{
    char rest[INPUT_BYTES];
    int got;
    while ((got = blob_stream_read(stream, rest, sizeof rest, err)) > 0)
        ;
    if (got < 0)
        return got;
    sha256_end(&stream->digest, ret_digest);
    sha256_end(&stream->content, ret_content);
    return 0;
}

uint64_t blob_stream_bytes(const struct blob_stream *stream)
{
    return stream->out;
}

int blob_read_all(const struct blob *blob, size_t max, char **ret_text, struct brig_error *err)
{
    if (blob->size > max)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a description has %llu bytes, at most %zu are read",
                         (unsigned long long)blob->size, max);
    autofree char *text = calloc(1, (size_t)blob->size + 1);
    if (!text)
        return brig_fail_nomem(err);
    for (size_t used = 0; used < blob->size;) {
        ssize_t got =
            pread(blob->fd, text + used, (size_t)blob->size - used, (off_t)(blob->offset + used));
        if (got < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the image");
        if (got == 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "the image ends early");
        used += (size_t)got;
    }
    *ret_text = take_ptr(&text);
    return 0;
}
