/* SPDX-License-Identifier: MIT */
/* brig-unpack, which reads a container image.
 *
 * Theory of operation: `brig image load` and brigd's administrator start it in sealed jails of its
 * own. It reads a stranger's files and writes to its working directory, the only place it can write to.
 *
 *     brig-unpack image SOURCE FORMAT [WANTED]
 *
 * describes an image, which is a directory or, with "-", the archive that is standard input. It
 * writes `record` (image/record.h), whose layers are named by their unpacked archives, and `places`:
 * where the description is that has the image's digest, and each layer.
 *
 *     brig-unpack layer OFFSET SIZE DIGEST CONTENT
 *
 * unpacks one layer, a part of standard input, and verifies both digests. It writes `files/`, and
 * `hidden`, what the layer hides (layer.h).
 *
 * The process outside believes nothing of it: it checks the record, computes the digests that the
 * image and its layers are stored by, and resolves each path again. As each layer has a jail of its
 * own, one that takes over this program can only spoil what is stored by its own digest. */
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
#include "base/parse.h"
#include "base/str.h"
#include "unpack/blob.h"
#include "unpack/layer.h"
#include "unpack/manifest.h"
#include "unpack/source.h"

#define LAYER_BYTES_MAX (UINT64_C(20) << 30) /* unpacked */
#define ARCHIVE "-"
#define SIZE_ANY UINT64_MAX

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

/* ---- a layer ---- */

/* Compares what was read with what the image says about it. */
static int verify(struct blob_stream *stream, const char *digest, const char *content,
                  struct brig_error *err)
{
    char of_file[SHA256_HEX_LENGTH + 1], of_content[SHA256_HEX_LENGTH + 1];
    int result = blob_stream_finish(stream, of_file, of_content, err);
    if (result < 0)
        return result;
    if (strcmp(of_file, digest) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "a layer does not have its digest sha256:%s",
                         digest);
    if (strcmp(of_content, content) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "an unpacked layer does not have its digest sha256:%s", content);
    return 0;
}

static int unpack_stream(struct blob_stream *stream, struct brig_error *err)
{
    autoclose int root = -1;
    if (mkdir("files", 0755) == 0)
        root = open("files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int hidden = open("hidden", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (root < 0 || hidden < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make the directory of a layer");
    struct tar tar = {.input = {blob_stream_read, stream}};
    struct layer layer;
    layer_init(&layer, root, hidden);
    int result = layer_unpack(&layer, &tar, err);
    if (result == 0 && layer.special > 0)
        (void)fprintf(stderr, "%zu devices and FIFOs of a layer were left out\n", layer.special);
    layer_done(&layer);
    return result;
}

static int unpack_layer(char **words, struct brig_error *err)
{
    struct blob blob = {.fd = STDIN_FILENO};
    struct blob_stream *stream = NULL;
    int result = parse_uint(words[0], INT64_MAX, PARSE_ZERO_OK, &blob.offset, err);
    if (result == 0)
        result = parse_uint(words[1], INT64_MAX, PARSE_ZERO_OK, &blob.size, err);
    if (result == 0)
        result = blob_stream_new(&blob, LAYER_BYTES_MAX, &stream, err);
    if (result < 0)
        return result;
    result = unpack_stream(stream, err);
    if (result == 0)
        result = verify(stream, words[2], words[3], err);
    blob_stream_free(stream);
    return result;
}

/* ---- an image ---- */

/* Appends "OFFSET SIZE PATH" and a newline. */
static int add_place(struct source *source, const char *path, uint64_t size, struct str *places,
                     struct brig_error *err)
{
    struct blob blob;
    int result = source_find(source, path, &blob, err);
    if (result == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image lacks the layer '%s'",
                         str_shown(path).text);
    if (result < 0)
        return result;
    if (size != SIZE_ANY && blob.size != size)
        return brig_fail(err, BRIG_E_INVALID, 0, "a layer has %llu bytes, and should have %llu",
                         (unsigned long long)blob.size, (unsigned long long)size);
    if (strchr(path, '\n'))
        return brig_fail(err, BRIG_E_INVALID, 0, "a layer has the unsafe name '%s'",
                         str_shown(path).text);
    str_appendf(places, "%llu %llu ", (unsigned long long)blob.offset,
                (unsigned long long)blob.size);
    str_concat(places, path, "\n");
    return 0;
}

static int write_file(const char *name, const struct str *text, struct brig_error *err)
{
    autoclose int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int result = text->failed ? -ENOMEM : fd < 0 ? -errno : write_all(fd, text->data, text->length);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot write '%s'", name) : 0;
}

static int describe(struct source *source, const struct manifest *manifest, struct brig_error *err)
{
    autostr struct str record = {0};
    autostr struct str places = {0};
    int result = add_place(source, manifest->description, SIZE_ANY, &places, err);
    for (size_t i = 0; i < manifest->record.layer_count && result == 0; i++) {
        const struct manifest_layer *layer = &manifest->layers[i];
        result =
            add_place(source, layer->path, layer->digest[0] ? layer->size : SIZE_ANY, &places, err);
    }
    image_record_write(&manifest->record, &record);
    if (result == 0)
        result = write_file("record", &record, err);
    return result < 0 ? result : write_file("places", &places, err);
}

static int read_image(struct source *source, enum manifest_format format, const char *wanted,
                      struct brig_error *err)
{
    struct utsname system;
    autofree struct manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return brig_fail_nomem(err);
    int result = manifest_read(source, format, wanted, find_architecture(&system), manifest, err);
    if (result < 0)
        return result;
    result = describe(source, manifest, err);
    image_record_done(&manifest->record);
    return result;
}

static int describe_image(char **words, struct brig_error *err)
{
    static const char *const formats[] = {"any", "oci", "docker"};
    struct source *source = NULL;
    autoclose int directory = -1;
    size_t format = 0;
    while (format < ARRAY_LENGTH(formats) && strcmp(words[1], formats[format]) != 0)
        format++;
    if (format == ARRAY_LENGTH(formats))
        return brig_fail(err, BRIG_E_INVALID, 0, "unknown format '%s'", str_shown(words[1]).text);
    int result;
    if (strcmp(words[0], ARCHIVE) == 0) {
        result = source_of_archive(STDIN_FILENO, &source, err);
    } else {
        directory = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        result = directory < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the image")
                               : source_of_directory(directory, &source, err);
    }
    if (result == 0)
        result = read_image(source, (enum manifest_format)format, words[2], err);
    source_free(source);
    return result;
}

int main(int argc, char **argv)
{
    struct brig_error err = {0};
    int result;
    if ((argc == 4 || argc == 5) && strcmp(argv[1], "image") == 0) {
        result = describe_image(argv + 2, &err);
    } else if (argc == 6 && strcmp(argv[1], "layer") == 0) {
        result = unpack_layer(argv + 2, &err);
    } else {
        (void)fprintf(stderr, "brig-unpack is started by brig image load\n");
        return 2;
    }
    if (result < 0)
        (void)fprintf(stderr, "%s\n", err.message);
    return result < 0 ? 1 : 0;
}
