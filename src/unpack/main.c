/* SPDX-License-Identifier: MIT */
/* brig-unpack, which reads a container image.
 *
 * Theory of operation: `brig image load` and brigd's administrator start it in a sealed jail of its
 * own. It reads the image, which is a stranger's, from standard input (an archive) or from the
 * directory that its first argument names, and writes to its working directory, the only place it
 * can write to: `record` (image/record.h), and for each new layer `HEX/`, the files, and `HEX.hidden`,
 * what the layer hides (layer.h). `have` there lists the layers that need not be unpacked. The process
 * outside believes nothing of it: it checks the record and resolves each path again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "unpack/blob.h"
#include "unpack/layer.h"
#include "unpack/manifest.h"
#include "unpack/source.h"

#define IMAGE_BYTES_MAX (UINT64_C(20) << 30) /* of all layers, unpacked */
#define HAVE_MAX ((size_t)16 << 20)
#define ARCHIVE "-"

struct progress {
    struct str have; /* digests, a line each */
    uint64_t bytes;
    size_t entries, special;
};

/* The architecture of this machine as OCI writes it. */
static const char *find_architecture(struct utsname *system)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"},    {"aarch64", "arm64"},   {"armv7l", "arm"}, {"i686", "386"},
        {"ppc64le", "ppc64le"}, {"riscv64", "riscv64"}, {"s390x", "s390x"}};
    if (uname(system) < 0)
        return "unknown";
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(system->machine, names[i][0]) == 0)
            return names[i][1];
    return system->machine;
}

static int read_have(struct str *have, struct brig_error *err)
{
    autoclose int fd = open("have", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int result = fd < 0 ? -errno : read_all(fd, HAVE_MAX, have);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot read the list of layers")
                      : 0;
}

static bool has(const struct progress *progress, const char *digits)
{
    return progress->have.data && strstr(progress->have.data, digits);
}

/* Compares what was read with what the image says about it. */
static int verify(struct blob_stream *stream, const struct manifest_layer *layer,
                  struct brig_error *err)
{
    char digest[SHA256_HEX_LENGTH + 1], content[SHA256_HEX_LENGTH + 1];
    int result = blob_stream_finish(stream, digest, content, err);
    if (result < 0)
        return result;
    if (layer->digest[0] && strcmp(digest, layer->digest) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a layer does not have its digest sha256:%s",
                         layer->digest);
    if (strcmp(content, layer->content) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "an unpacked layer does not have its digest sha256:%s", layer->content);
    return 0;
}

static int unpack_stream(struct blob_stream *stream, const char *digits, struct progress *progress,
                         struct brig_error *err)
{
    char list[SHA256_HEX_LENGTH + 16];
    (void)snprintf(list, sizeof list, "%s.hidden", digits);
    autoclose int root = -1;
    if (mkdir(digits, 0755) == 0)
        root = open(digits, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int hidden = open(list, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (root < 0 || hidden < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make the directory of a layer");
    struct tar tar = {.input = {blob_stream_read, stream}};
    struct layer layer;
    layer_init(&layer, root, hidden, progress->entries, progress->special);
    int result = layer_unpack(&layer, &tar, err);
    progress->entries = layer.entries;
    progress->special = layer.special;
    layer_done(&layer);
    return result;
}

static int unpack_layer(struct source *source, const struct manifest_layer *layer,
                        struct progress *progress, struct brig_error *err)
{
    struct blob blob;
    struct blob_stream *stream = NULL;
    if (has(progress, layer->content))
        return 0;
    int result = source_find(source, layer->path, &blob, err);
    if (result == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image lacks the layer '%s'",
                         str_shown(layer->path).text);
    if (result < 0)
        return result;
    if (layer->digest[0] && blob.size != layer->size)
        return brig_fail(err, BRIG_E_INVALID, 0, "a layer has %llu bytes, and should have %llu",
                         (unsigned long long)blob.size, (unsigned long long)layer->size);
    result = blob_stream_new(&blob, IMAGE_BYTES_MAX - progress->bytes, &stream, err);
    if (result < 0)
        return result;
    result = unpack_stream(stream, layer->content, progress, err);
    if (result == 0)
        result = verify(stream, layer, err);
    progress->bytes += blob_stream_bytes(stream);
    blob_stream_free(stream);
    str_concat(&progress->have, layer->content, "\n");
    return result;
}

static int write_record(const struct image_record *record, struct brig_error *err)
{
    autostr struct str text = {0};
    image_record_write(record, &text);
    autoclose int fd = open("record", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result = text.failed ? -ENOMEM : fd < 0 ? -errno : write_all(fd, text.data, text.length);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot write the record") : 0;
}

static int unpack(struct source *source, enum manifest_format format, const char *wanted,
                  struct progress *progress, struct brig_error *err)
{
    struct utsname system;
    autofree struct manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return brig_fail_nomem(err);
    int result = manifest_read(source, format, wanted, find_architecture(&system), manifest, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < manifest->record.layer_count && result == 0; i++)
        result = unpack_layer(source, &manifest->layers[i], progress, err);
    if (result == 0)
        result = write_record(&manifest->record, err);
    image_record_done(&manifest->record);
    return result;
}

static int run(const char *from, enum manifest_format format, const char *wanted,
               struct brig_error *err)
{
    struct source *source = NULL;
    struct progress progress = {0};
    autoclose int directory = -1;
    int result = read_have(&progress.have, err);
    if (result == 0 && strcmp(from, ARCHIVE) != 0) {
        directory = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        result = directory < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the image")
                               : source_of_directory(directory, &source, err);
    } else if (result == 0) {
        result = source_of_archive(STDIN_FILENO, &source, err);
    }
    if (result == 0)
        result = unpack(source, format, wanted, &progress, err);
    source_free(source);
    str_done(&progress.have);
    if (result == 0 && progress.special > 0)
        (void)fprintf(stderr, "%zu devices and FIFOs of the image were left out\n",
                      progress.special);
    return result;
}

int main(int argc, char **argv)
{
    static const char *const formats[] = {"any", "oci", "docker"};
    struct brig_error err = {0};
    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "brig-unpack is started by brig image load\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
        if (strcmp(argv[2], formats[i]) == 0) {
            if (run(argv[1], (enum manifest_format)i, argv[3], &err) == 0)
                return 0;
            (void)fprintf(stderr, "%s\n", err.message);
            return 1;
        }
    return 2;
}
