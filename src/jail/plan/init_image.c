/* SPDX-License-Identifier: MIT */
/* The jail's init as a memory file: nothing to install, nothing to find at run time. */
#include "jail/plan/init_image.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "init_blob.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

const unsigned char *const init_image = init_blob;
const size_t init_image_size = sizeof init_blob;

int init_image_open(struct brig_error *err)
{
    int created = memfd_create("brig-init", MFD_CLOEXEC | MFD_EXEC);
    if (created < 0 && errno == EINVAL) /* before 6.3 every memfd is executable */
        created = memfd_create("brig-init", MFD_CLOEXEC);
    autoclose int fd = created;
    if (fd < 0) {
        (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot make a memory file for the jail's init");
        return errno == EACCES ? brig_advise(err, BRIG_E_SETUP, "vm.memfd_noexec forbids it")
                               : BRIG_E_SETUP;
    }
    if (write(fd, init_blob, sizeof init_blob) != (ssize_t)sizeof init_blob)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot write the jail's init");
    /* What its user cannot read, the kernel makes undumpable from its first instruction on. */
    if (fchmod(fd, 0111) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot protect the jail's init");
    return take_fd(&fd);
}
