/* SPDX-License-Identifier: MIT */
/* Says once what a user should know of configuration: what a project's file contains, and that files
 * of jai are not read. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/config_files.h"
#include "cli/identity.h"
#include "cli/message.h"

#define PROJECTS_DIR ".projects" /* in the storage: what was said already */
#define JAI_DIR ".jai"           /* in the home directory */
#define JAI_NOTE "jai"           /* in PROJECTS_DIR, where other names have 16 digits */
#define SHOWN_LINES_MAX 50
#define SHOWN_LINE_MAX 200 /* bytes of each */

/* A name for what a project said: two with the same one are only shown again in turn. */
static void project_name(const char *cwd, char name[static 32])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = cwd; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    (void)snprintf(name, 32, "%016" PRIx64, hash);
}

/* Whether this very text was remembered under the name. */
static bool is_noted(const char *storage, const char *name, const struct str *note)
{
    autostr struct str path = {0};
    str_appendf(&path, "%s/" PROJECTS_DIR "/%s", storage, name);
    autofree char *seen = malloc(note->length + 1);
    autoclose int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (!seen || fd < 0)
        return false;
    size_t length = 0;
    ssize_t count = 1;
    while (count > 0 && length <= note->length) {
        count = read(fd, seen + length, note->length + 1 - length);
        length += count > 0 ? (size_t)count : 0;
    }
    return length == note->length && memcmp(seen, note->data, length) == 0;
}

static int remember_note(const char *storage, const char *name, const struct str *note)
{
    autostr struct str path = {0};
    autoclose int fd = -1;
    str_appendf(&path, "%s/" PROJECTS_DIR, storage);
    if (path.failed || config_make_directory(path.data, &fd, NULL) < 0)
        return BRIG_E_SYSTEM;
    (void)unlinkat(fd, name, 0);
    return config_write_new(fd, name, note->data, NULL);
}

static void show_lines(const char *text, size_t length)
{
    const char *end = text + length;
    size_t shown = 0;
    for (const char *line = text; line < end && shown <= SHOWN_LINES_MAX;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        const char *word = line + strspn(line, " \t\r");
        if (word < stop && *word != '#') {
            if (shown++ < SHOWN_LINES_MAX)
                message_note("    %.*s",
                             (int)(stop - word < SHOWN_LINE_MAX ? stop - word : SHOWN_LINE_MAX),
                             word);
            else
                message_note("    and more");
        }
        line = stop + 1;
    }
}

void config_show_project(const struct config *config, const char *cwd,
                         const struct identity *identity, bool remember)
{
    if (!config->project_text)
        return;
    char name[32];
    autostr struct str note = {0};
    project_name(cwd, name);
    str_appendf(&note, "%s\n", cwd);
    str_append_bytes(&note, config->project_text, config->project_length);
    if (note.failed)
        return;
    identity_enter(identity);
    bool noted = is_noted(config->storage, name, &note);
    if (!noted && remember)
        (void)remember_note(config->storage, name, &note);
    identity_leave(identity);
    if (noted)
        return;
    message_note("'%s/%s' narrows what is allowed; it is shown when it is new or has changed:",
                 str_shown(cwd).text, CONFIG_PROJECT_FILE);
    show_lines(config->project_text, config->project_length);
}

void config_show_jai(const struct config_files *files, const struct identity *identity,
                     bool remember)
{
    static char text[] = "brig has said that it does not read ~/" JAI_DIR ".\n";
    const struct str note = {.data = text, .length = sizeof text - 1};
    autostr struct str path = {0};
    struct stat info;
    str_concat(&path, files->home, "/" JAI_DIR);
    if (files->named || files->source_count > 0 || path.failed)
        return;
    identity_enter(identity);
    bool said = stat(path.data, &info) < 0 || !S_ISDIR(info.st_mode) ||
                is_noted(files->storage, JAI_NOTE, &note);
    if (!said && remember)
        (void)remember_note(files->storage, JAI_NOTE, &note);
    identity_leave(identity);
    if (said)
        return;
    message_note(
        "'%s' is not read: it is jai's configuration. To use it, copy its .conf, .defaults "
        "and .jairc files to '%s', or set JAI_CONFIG_DIR='%s'",
        str_shown(path.data).text, str_shown(files->dir).text, str_shown(path.data).text);
}
