/* SPDX-License-Identifier: MIT */
/* Finding and reading the files of the .conf language. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/conf.h"

#define CONF_SUFFIX ".conf"
#define READ_BYTES 16384

/* A file is chosen by whoever writes the configuration, who may name any: links and ".." are
 * followed. A FIFO or a terminal must not hold us up or become ours, so none is waited for. */
static int open_file(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The name, below dir if it is relative. */
static int shown_name(const char *dir, const char *name, char **ret_shown, struct brig_error *err)
{
    autostr struct str shown = {0};
    if (dir && name[0] != '/')
        str_concat(&shown, dir, "/");
    str_append(&shown, name);
    return str_take(&shown, ret_shown, err);
}

static int fail_missing(const char *dir, const char *name, struct brig_error *err)
{
    autostr struct str text = {0};
    str_append(&text, str_shown(name).text);
    if (*name && !strchr(name, '/'))
        str_appendf(&text, " (nor %s%s)", str_shown(name).text, CONF_SUFFIX);
    if (dir && name[0] != '/')
        str_appendf(&text, " in %s", str_shown(dir).text);
    if (text.failed)
        return brig_fail_nomem(err);
    return brig_fail(err, BRIG_E_INVALID, 0, "no such configuration file: %s", text.data);
}

/* Reads all of it; of a file that is too large one byte more than may be, so that it shows. */
static int read_file(int fd, struct str *text)
{
    char bytes[READ_BYTES];
    while (!text->failed && text->length <= CONF_TEXT_MAX) {
        size_t room = CONF_TEXT_MAX + 1 - text->length;
        ssize_t count = read(fd, bytes, room < sizeof bytes ? room : sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -errno;
        if (count == 0)
            break;
        str_append_bytes(text, bytes, (size_t)count);
    }
    return 0;
}

static int load_fd(int fd, char **name, struct conf_source *ret_source, struct brig_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(*name).text);
    if (!S_ISREG(st.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not a regular file: only such are read as configuration",
                         str_shown(*name).text);
    autostr struct str text = {0};
    int rc = read_file(fd, &text);
    if (rc < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -rc, "cannot read '%s'", str_shown(*name).text);
    size_t length = text.length;
    autofree char *bytes = NULL;
    rc = str_take(&text, &bytes, err);
    if (rc < 0)
        return rc;
    *ret_source = (struct conf_source){
        .name = take_ptr(name),
        .text = take_ptr(&bytes),
        .length = length,
        .dev = st.st_dev,
        .ino = st.st_ino,
    };
    return 1;
}

int conf_load(int dir_fd, const char *dir, const char *name, bool optional,
              struct conf_source *ret_source, struct brig_error *err)
{
    autostr struct str tried = {0};
    str_append(&tried, name);
    autoclose int fd = open_file(dir_fd, name);
    int error = fd < 0 ? errno : 0;
    if (error == ENOENT && *name && !strchr(name, '/')) {
        str_append(&tried, CONF_SUFFIX);
        fd = tried.failed ? -1 : open_file(dir_fd, tried.data);
        error = fd < 0 ? errno : 0;
    }
    if (tried.failed)
        return brig_fail_nomem(err);
    if (error == ENOENT)
        return optional ? 0 : fail_missing(dir, name, err);
    autofree char *shown = NULL;
    int rc = shown_name(dir, tried.data, &shown, err);
    if (rc < 0)
        return rc;
    if (error != 0)
        return brig_fail(err, BRIG_E_SYSTEM, error, "cannot open '%s'", str_shown(shown).text);
    return load_fd(fd, &shown, ret_source, err);
}
