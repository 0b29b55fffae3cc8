/* SPDX-License-Identifier: MIT */
/* The file NAME.jail of a jail. */
#include "cli/jail_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/config_files.h"
#include "cli/jail_text.h"
#include "policy/conf.h"

/* It may be a link to where its user keeps such files: that is what is replaced, then. */
static int find_file(const char *storage, const char *name, char **ret_path, struct brig_error *err)
{
    autostr struct str path = {0};
    str_appendf(&path, "%s/%s.jail", storage, name);
    if (path.failed)
        return brig_fail_nomem(err);
    *ret_path = realpath(path.data, NULL);
    return *ret_path ? 0
                     : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find '%s'",
                                 str_shown(path.data).text);
}

static int write_beside(const char *path, const char *text, mode_t mode, struct brig_error *err)
{
    autostr struct str temporary = {0};
    str_appendf(&temporary, "%s.new.%d", path, (int)getpid());
    if (temporary.failed)
        return brig_fail_nomem(err);
    (void)unlink(temporary.data); /* of one that died, with our number */
    autoclose int fd =
        open(temporary.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    int failed = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (failed == 0 && rename(temporary.data, path) < 0)
        failed = -errno;
    if (failed == 0)
        return 0;
    (void)unlink(temporary.data);
    return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s'", str_shown(path).text);
}

static int change(const char *path, const char *const *paths, size_t count, bool unmask,
                  struct brig_error *err)
{
    struct stat info;
    struct conf_source source = {0};
    int status = conf_load(AT_FDCWD, NULL, path, false, &source, err);
    if (status < 0)
        return status;
    struct str text = {0};
    str_append_bytes(&text, source.text, source.length);
    for (size_t i = 0; i < count; i++) {
        struct str changed = {.failed = text.failed};
        jail_text_set_mask(&changed, text.data ? text.data : "", text.length, paths[i], unmask);
        str_done(&text);
        text = changed;
    }
    conf_source_done(&source);
    bool known = stat(path, &info) == 0;
    status = text.failed ? brig_fail_nomem(err)
                         : write_beside(path, text.data, known ? info.st_mode & 0777 : 0600, err);
    str_done(&text);
    return status;
}

int jail_file_set_masks(const char *storage, const char *name, const char *const *paths,
                        size_t count, bool unmask, struct brig_error *err)
{
    autoclose int dir = -1;
    autofree char *path = NULL;
    int status = config_make_directory(storage, &dir, err);
    if (status < 0)
        return status;
    if (flock(dir, LOCK_EX) < 0) /* until it is closed: two may want to change it */
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s'", str_shown(storage).text);
    status = config_write_jail(dir, name, BRIG_MODE_CASUAL, err);
    if (status == 0)
        status = find_file(storage, name, &path, err);
    return status < 0 || !path ? status : change(path, paths, count, unmask, err);
}
