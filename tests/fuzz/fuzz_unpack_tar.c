/* SPDX-License-Identifier: MIT */
/* A layer of an image: any bytes, decompressed if they look so, as a tar archive. Names that are accepted stay below
 * the root. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "unpack/blob.h"
#include "unpack/layer.h"
#include "unpack/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_name(const char *name)
{
    char clean[TAR_NAME_MAX + 1], again[TAR_NAME_MAX + 1];
    if (!layer_clean_name(name, clean))
        return;
    expect(clean[0] != '/' && !strstr(clean, "//") && !strstr(clean, "/../"));
    expect(strcmp(clean, "..") != 0 && strncmp(clean, "../", 3) != 0);
    expect(layer_clean_name(clean, again) && strcmp(clean, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tar_entry entry;
    char buffer[4096];
    struct blob_stream *stream = NULL;
    autoclose int fd = memfd_create("layer", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, data, size) < 0)
        return 0;
    const struct blob blob = {.fd = fd, .size = size};
    if (blob_stream_new(&blob, 16 << 20, &stream, NULL) < 0)
        return 0;
    struct tar tar = {.input = {blob_stream_read, stream}};
    while (tar_next(&tar, &entry, NULL) > 0) {
        uint64_t length = 0;
        int got;
        expect(entry.name[0] && strlen(entry.name) <= TAR_NAME_MAX);
        check_name(entry.name);
        check_name(entry.link);
        while ((got = tar_read(&tar, buffer, sizeof buffer, NULL)) > 0)
            length += (uint64_t)got;
        expect(got < 0 || entry.type != TAR_FILE || length == entry.size);
    }
    blob_stream_free(stream);
    return 0;
}
