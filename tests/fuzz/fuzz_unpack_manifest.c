/* SPDX-License-Identifier: MIT */
/* The archive of an image and the descriptions in it: any bytes as a tar archive, and as the index.json or manifest.json
 * of one. What is accepted can be written as a record, and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "unpack/manifest.h"
#include "unpack/source.h"
#include "unpack/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_archive(int fd)
{
    static struct manifest manifest;
    struct source *source = NULL;
    if (source_of_archive(fd, &source, NULL) < 0)
        return;
    if (manifest_read(source, MANIFEST_ANY, NULL, "amd64", &manifest, NULL) == 0) {
        struct image_record again = {0};
        struct str text = {0};
        image_record_write(&manifest.record, &text);
        if (image_record_read(text.data, text.length, &again, NULL) < 0 ||
            again.layer_count != manifest.record.layer_count)
            abort();
        image_record_done(&again);
        image_record_done(&manifest.record);
        str_done(&text);
    }
    source_free(source);
}

/* An archive with this file. */
static int make_archive(const char *name, const uint8_t *data, size_t size)
{
    unsigned char block[TAR_BLOCK] = {0}, padding[TAR_BLOCK] = {0};
    unsigned sum = 0;
    (void)snprintf((char *)block, 100, "%s", name);
    (void)snprintf((char *)block + 100, 8, "0000644");
    (void)snprintf((char *)block + 124, 12, "%011zo", size);
    block[156] = '0';
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += block[i];
    (void)snprintf((char *)block + 148, 8, "%06o", sum);
    int fd = memfd_create("image", MFD_CLOEXEC);
    if (fd >= 0 && (write_all(fd, block, sizeof block) < 0 || write_all(fd, data, size) < 0 ||
                    write_all(fd, padding, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK) < 0))
        close_fd(&fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoclose int plain = memfd_create("image", MFD_CLOEXEC);
    if (plain >= 0 && write_all(plain, data, size) == 0)
        check_archive(plain);
    autoclose int index = make_archive("index.json", data, size);
    autoclose int docker = make_archive("manifest.json", data, size);
    check_archive(index);
    check_archive(docker);
    return 0;
}
