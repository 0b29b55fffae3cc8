/* SPDX-License-Identifier: MIT */
#include "git/pushed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "git/side.h"

#define LOOKUPS_MAX 16 /* refs that are looked up in one remote */

const char *pushed_path(const char *url)
{
    static const char file[] = "file://";
    if (str_starts_with(url, file))
        return url + strlen(file);
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/');
    bool remote = colon && (!slash || colon < slash);
    return *url && !remote ? url : NULL;
}

/* Whether a line of a config may be the URL of such a remote. Other values only cost a look. */
static bool may_name_path(const char *config)
{
    for (const char *line = config; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\n");
        const char *equals = strchr(line, '=');
        if (strncasecmp(line, "url", 3) != 0 || !equals)
            continue;
        const char *value = equals + 1 + strspn(equals + 1, " \t\"");
        if (strchr("/.", *value) || str_starts_with(value, "file:"))
            return true;
    }
    return false;
}

/* The repositories, and the remote-tracking refs that the run has changed: a push moves them. */
struct pushed {
    const struct git *git;
    const struct private_git *p;
    struct str *notes;
    struct str before, inside; /* "OBJECT NAME" lines, each terminated by a NUL */
};

static void to_list(struct str *lines)
{
    for (size_t i = 0; i < lines->length; i++)
        if (lines->data[i] == '\n')
            lines->data[i] = '\0';
}

static int pushed_look(struct pushed *pushed, struct brig_error *err)
{
    static const char *const words[] = {"for-each-ref", "--format=%(objectname) %(refname)",
                                        "refs/remotes", NULL};
    static const char script[] =
        "git for-each-ref --format='%(objectname) %(refname)' refs/remotes";
    const struct private_git *p = pushed->p;
    autofree char *objects = NULL;
    int status = str_make(&objects, err, p->repo.common_path, "/objects");
    if (status == 0)
        status = git_run(
            pushed->git,
            &(struct git_call){
                .words = words, .git_dir = p->base, .objects = objects, .out = &pushed->before},
            err);
    if (status == 0)
        status = git_run_sealed(pushed->git, &p->sealed, script, &pushed->inside, err);
    to_list(&pushed->before);
    to_list(&pushed->inside);
    return status;
}

/* Opens the git directory of a remote, if it is the user's. */
static int open_remote(const struct pushed *pushed, const char *path)
{
    struct stat info;
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &info) < 0 || info.st_uid != git_owner(pushed->git))
        return -1;
    int inner = files_open_dir(dir, ".git");
    return inner >= 0 ? inner : take_fd(&dir);
}

/* Whether the branch of the remote outside has an object, or with NULL, whether there is such a branch. */
static bool has_branch(const struct pushed *pushed, int remote, const char *branch, const char *id)
{
    autofree char *ref = NULL;
    if (str_make(&ref, NULL, "refs/heads/", branch) < 0)
        return true;
    const char *const contains[] = {"merge-base", "--is-ancestor", id, ref, NULL};
    const char *const exists[] = {"show-ref", "--verify", "-q", ref, NULL};
    return git_run(pushed->git,
                   &(struct git_call){.words = id ? contains : exists, .git_dir = remote},
                   NULL) == 0;
}

/* The branch of a line "OBJECT refs/remotes/NAME/BRANCH", if it is of this remote; NULL otherwise. */
static const char *branch_of(const char *line, const char *name, size_t length, char ret_id[])
{
    static const char tracking[] = "refs/remotes/";
    const char *ref = strchr(line, ' ');
    if (!ref || ref - line > REFS_ID_MAX || !str_starts_with(ref + 1, tracking))
        return NULL;
    memcpy(ret_id, line, (size_t)(ref - line));
    ret_id[ref - line] = '\0';
    const char *rest = ref + 1 + strlen(tracking);
    bool is_there = strncmp(rest, name, length) == 0 && rest[length] == '/';
    if (!is_there || !refs_is_id(ret_id) || strcmp(rest + length, "/HEAD") == 0)
        return NULL;
    return rest + length + 1;
}

/* Whether a list has a remote-tracking ref with any object. */
static bool has_ref(const struct str *list, const char *line)
{
    const char *ref = strchr(line, ' ');
    for (const char *at = NULL; (at = str_list_next(list, at));)
        if (str_equal(strchr(at, ' '), ref))
            return true;
    return false;
}

/* Appends the short names of the branches that the run has pushed to, or deleted, and that the remote outside lacks or still
 * has. Tags leave no trace in the jail's repository. */
static void find_lost(const struct pushed *pushed, const char *name, size_t length, int remote,
                      struct str *ret_names)
{
    size_t lookups = 0;
    for (const char *at = NULL; (at = str_list_next(&pushed->inside, at));) {
        char id[REFS_ID_MAX + 1];
        const char *branch = branch_of(at, name, length, id);
        if (branch && !str_list_has(&pushed->before, at) && ++lookups <= LOOKUPS_MAX &&
            !has_branch(pushed, remote, branch, id))
            str_concat(ret_names, ret_names->length > 0 ? ", " : "", str_shown(branch).text);
    }
    for (const char *at = NULL; (at = str_list_next(&pushed->before, at));) {
        char id[REFS_ID_MAX + 1];
        const char *branch = branch_of(at, name, length, id);
        if (branch && !has_ref(&pushed->inside, at) && ++lookups <= LOOKUPS_MAX &&
            has_branch(pushed, remote, branch, NULL))
            str_concat(ret_names, ret_names->length > 0 ? ", " : "", str_shown(branch).text,
                       " (deleted)");
    }
}

/* Handles one "remote.NAME.url\nVALUE". */
static int note_one(struct pushed *pushed, const char *pair, struct brig_error *err)
{
    const char *name = strchr(pair, '.') + 1, *end = strchr(pair, '\n');
    const char *url = end ? pushed_path(end + 1) : NULL;
    autofree char *path = NULL;
    autostr struct str lost = {0};
    if (!url || path_make_absolute(pushed->p->top_path, url, &path, NULL) < 0)
        return 0;
    size_t length = (size_t)(end - name) - strlen(".url");
    autoclose int remote = open_remote(pushed, path);
    int status = remote < 0 || pushed->inside.data ? 0 : pushed_look(pushed, err);
    if (remote < 0 || status != 0)
        return status;
    find_lost(pushed, name, length, remote, &lost);
    if (lost.length == 0)
        return lost.failed ? brig_fail_nomem(err) : 0;
    str_append(pushed->notes, "git: ");
    str_append_shown(pushed->notes, name, length, "");
    str_concat(pushed->notes, " is ", str_shown(path).text,
               ", of which the jail has a copy: what it pushed to ", lost.data,
               " stays there. Push outside, or add -d ");
    str_append_word(pushed->notes, path);
    str_append(pushed->notes, "\n");
    return 0;
}

int pushed_note(const struct git *git, const struct private_git *private_git, struct str *notes,
                struct brig_error *err)
{
    static const char *const words[] = {
        "config", "--file", "config", "--no-includes", "-z", "--get-regexp", "^remote\\..*\\.url$",
        NULL};
    struct pushed pushed = {.git = git, .p = private_git, .notes = notes};
    autostr struct str config = {0}, remotes = {0};
    if (!files_read(private_git->base, "config", &config) || !config.data ||
        !may_name_path(config.data))
        return 0;
    int status = git_run(
        git, &(struct git_call){.words = words, .dir = private_git->base, .out = &remotes}, err);
    for (const char *at = NULL; status == 0 && (at = str_list_next(&remotes, at));)
        status = note_one(&pushed, at, err);
    str_done(&pushed.before);
    str_done(&pushed.inside);
    return status < 0 ? status : 0; /* if git in the jail's directory fails, others say so */
}
