/* SPDX-License-Identifier: MIT */
#include "git/private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/tree.h"
#include "git/config.h"
#include "git/transfer.h"

#define LOG_MAX ((off_t)1 << 20) /* longer reflogs are not copied */

/* ---- copying ---- */

/* Directories of git that hold state, with the suffixes that are skipped. Those per worktree are in
 * the git directory of a linked worktree; the others are in the common directory. */
static const struct {
    const char *name;
    const char *except;
    bool per_worktree;
} directories[] = {
    {"refs", ".lock", false},     {"reftable", ".lock", false},    {"info", ".lock", false},
    {"hooks", ".sample", false},  {"rebase-merge", ".lock", true}, {"rebase-apply", ".lock", true},
    {"sequencer", ".lock", true},
};

enum copied {
    FOR_JAIL,
    FOR_BASE,   /* only refs and index */
    FOR_RESUME, /* unfinished operations; refs come from the repository */
};

/* Whether a file at the top of a git directory is copied. config is handled separately; other files
 * point elsewhere or do not matter to git. */
static bool is_copied(const char *name, enum copied copied)
{
    static const char *const pointers[] = {"config",      "config.worktree", "commondir",
                                           "gitdir",      "gc.pid",          "locked",
                                           "description", "COMMIT_EDITMSG"};
    static const char *const refs[] = {"packed-refs", "shallow"};
    for (size_t i = 0; i < ARRAY_LENGTH(pointers); i++)
        if (strcmp(name, pointers[i]) == 0)
            return false;
    for (size_t i = 0; i < ARRAY_LENGTH(refs); i++)
        if (strcmp(name, refs[i]) == 0)
            return copied != FOR_RESUME;
    if (copied == FOR_BASE)
        return strcmp(name, "HEAD") == 0 || strcmp(name, "index") == 0 ||
               str_starts_with(name, "sharedindex.");
    return !str_ends_with(name, ".lock");
}

static int copy_top_files(int from, int to, enum copied copied, struct brig_error *err)
{
    autodir DIR *dir = files_list(from, ".");
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the git directory");
    int status = 0;
    for (const struct dirent *item; status >= 0 && (item = files_next(dir));)
        if ((item->d_type == DT_REG || item->d_type == DT_UNKNOWN) &&
            is_copied(item->d_name, copied))
            status = copying_file(from, item->d_name, to, item->d_name, err);
    return status < 0 ? status : 0;
}

/* Copies the reflogs of HEAD, except for the base, and of the stash. The others would have to be
 * searched ref by ref. */
static int copy_logs(int git_dir, int common, int to, bool base, struct brig_error *err)
{
    const struct {
        int from;
        const char *path, *name;
    } logs[] = {{git_dir, "logs", "HEAD"}, {common, "logs/refs", "stash"}};
    int status = 0;
    for (size_t i = base ? 1 : 0; i < ARRAY_LENGTH(logs) && status >= 0; i++) {
        struct stat info;
        autoclose int from = files_open_dir(logs[i].from, logs[i].path);
        autoclose int made = -1;
        if (from < 0 || fstatat(from, logs[i].name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            info.st_size > LOG_MAX)
            continue;
        (void)mkdirat(to, "logs", 0755);
        status = files_make_dir(to, logs[i].path, &made, err);
        if (status == 0)
            status = copying_file(from, logs[i].name, made, logs[i].name, err);
    }
    return status < 0 ? status : 0;
}

/* Copies the state of a repository, except objects and config. The base does not get the parts that
 * only the jail needs. */
static int copy_state(const struct repo *repo, int to, bool base, struct brig_error *err)
{
    bool linked = repo->kind == REPO_FILE && strcmp(repo->git_path, repo->common_path) != 0;
    int status = linked ? copy_top_files(repo->common, to, base ? FOR_BASE : FOR_JAIL, err) : 0;
    if (status == 0)
        status = copy_top_files(repo->git_dir, to, base ? FOR_BASE : FOR_JAIL, err);
    for (size_t i = 0; i < ARRAY_LENGTH(directories) && status >= 0; i++) {
        if (base && strcmp(directories[i].name, "refs") != 0 &&
            strcmp(directories[i].name, "reftable") != 0)
            continue;
        int from = directories[i].per_worktree ? repo->git_dir : repo->common;
        status = copying_tree(from, directories[i].name, to, directories[i].name,
                              directories[i].except, err);
    }
    if (status >= 0 && linked) /* refs/bisect and similar */
        status = copying_tree(repo->git_dir, "refs", to, "refs", ".lock", err);
    if (status >= 0)
        status = copy_logs(repo->git_dir, repo->common, to, base, err);
    return status < 0 ? status : 0;
}

/* ---- objects ---- */

/* Creates an empty object directory whose alternates are the real ones, at their fixed paths in the
 * jail. */
static int make_objects(const struct git_sealed *sealed, struct brig_error *err)
{
    autoclose int objects = -1;
    autoclose int info = -1;
    autoclose int pack = -1;
    autostr struct str text = {0};
    for (size_t i = 0; i < sealed->object_count; i++)
        str_concat(&text, sealed->object_dests[i], "\n");
    int status = files_make_dir(sealed->dir, "objects", &objects, err);
    if (status == 0)
        status = files_make_dir(objects, "info", &info, err);
    if (status == 0)
        status = files_make_dir(objects, "pack", &pack, err);
    if (status < 0 || text.failed)
        return status < 0 ? status : brig_fail_nomem(err);
    return text.length > 0 ? files_write(info, "alternates", text.data, text.length, err) : 0;
}

int private_refresh(const struct private_git *p, struct brig_error *err)
{
    autoclose int objects = files_open_dir(p->sealed.dir, "objects");
    autoclose int info = objects < 0 ? -1 : files_open_dir(objects, "info");
    autostr struct str text = {0};
    if (p->sealed.object_count == 0)
        return 0;
    if (info < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "its directory of objects was removed");
    for (size_t i = 0; i < p->sealed.object_count; i++)
        str_concat(&text, p->sealed.object_dests[i], "\n");
    return text.failed ? brig_fail_nomem(err)
                       : files_write(info, "alternates", text.data, text.length, err);
}

/* The path in the jail is the one outside with a prefix: a clone that a jail has made names it in
 * its alternates, and without the prefix it is right outside. */
static int name_objects(const struct private_git *p, size_t index, char **ret_dest,
                        struct brig_error *err)
{
    autofree char *path = NULL;
    int status = repo_path_of(p->sealed.objects[index], &path, err);
    if (status < 0)
        return status;
    bool fits = strlen(path) + sizeof REPO_BORROWED <= PATH_LENGTH_MAX && !strchr(path, '\n') &&
                str_ends_with(path, "/objects");
    return fits ? str_make(ret_dest, err, REPO_BORROWED, path)
                : str_make(ret_dest, err, PRIVATE_MOUNTS "/", str_number(p->number).text, ".",
                           str_number(index).text, "/objects");
}

/* Finds the object directories and their paths in the jail, with the LFS objects beside them. */
static int find_objects(struct private_git *p, struct brig_error *err)
{
    struct git_sealed *sealed = &p->sealed;
    int status = repo_objects(&p->repo, sealed->objects, &sealed->object_count, err);
    for (size_t i = 0; i < sealed->object_count; i++)
        p->lfs[i] = lfs_open_beside(sealed->objects[i]);
    for (size_t i = 0; i < sealed->object_count && status == 0; i++)
        status = name_objects(p, i, &sealed->object_dests[i], err);
    return status;
}

/* ---- cached answers of git about a file ---- */

int private_list_links(const struct git *git, int cache, const struct repo *repo,
                       struct str *ret_links, struct brig_error *err)
{
    static const char *const words[] = {"ls-files", "-s", "-z", NULL};
    autostr struct str says = {0}, states = {0}, path = {0};
    char name[FILES_ID_MAX + 16] = "links-";
    if (!files_identify(repo->git_dir, "", name + strlen(name)))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the git directory");
    /* Without an index no file is tracked, and git may refuse an incomplete repository. */
    if (!files_exists(repo->git_dir, "index"))
        return 0;
    if (files_read_answer(cache, name, ret_links))
        return ret_links->failed ? brig_fail_nomem(err) : 0;
    str_concat(&path, repo->git_path, "/index");
    if (path.failed)
        return brig_fail_nomem(err);
    files_add_state(&states, path.data);
    int status = git_run(git,
                         &(struct git_call){.words = words,
                                            .git_dir = repo->git_dir,
                                            .each = git_keep_link,
                                            .data = ret_links,
                                            .says = &says},
                         err);
    for (size_t i = 0; i < says.length; i++)
        if (isspace((unsigned char)says.data[i]))
            says.data[i] = ' ';
    if (status != 0)
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SETUP, 0, "git cannot read the index of '%s': %s",
                                      repo->git_path, str_shown(says.data ? says.data : "").text);
    files_write_answer(cache, name, &states, ret_links);
    return 0;
}

/* Creates the config for the jail, without credentials: "REMOVED…\0" and the text of the file. */
static int find_config(const struct git *git, int cache, int folder, int dir, const char *dir_path,
                       const char *file, struct str *ret_text, struct str *notes,
                       struct brig_error *err)
{
    autostr struct str answer = {0}, states = {0}, path = {0};
    char id[FILES_ID_MAX], name[FILES_ID_MAX + 32];
    if (!files_exists(dir, file) || !files_identify(dir, "", id))
        return 0;
    (void)snprintf(name, sizeof name, "%s-2-%s", file, id); /* 2: the rules of config_sanitise() */
    if (!files_read_answer(cache, name, &answer)) {
        str_concat(&path, dir_path, "/", file);
        if (path.failed)
            return brig_fail_nomem(err);
        files_add_state(&states, path.data);
        int status = config_sanitise(git, dir, file, folder, &answer, err);
        if (status < 0)
            return status;
        files_write_answer(cache, name, &states, &answer);
    }
    size_t said = strnlen(answer.data ? answer.data : "", answer.length);
    str_append_bytes(notes, answer.data, said);
    if (said < answer.length)
        str_append_bytes(ret_text, answer.data + said + 1, answer.length - said - 1);
    return ret_text->failed ? brig_fail_nomem(err) : 0;
}

/* ---- about ---- */

/* The list contains the path and the identity of the working tree, the identity of the git
 * directory, and the signature. */
static int write_about(const struct private_git *p, struct brig_error *err)
{
    autostr struct str text = {0};
    char top[FILES_ID_MAX], git[FILES_ID_MAX] = "", signature[32];
    if (!files_identify(p->top, "", top) ||
        (p->repo.git_dir >= 0 && !files_identify(p->repo.git_dir, "", git)))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at the working tree");
    (void)snprintf(signature, sizeof signature, "%" PRIx64, p->signature);
    const char *const texts[] = {p->top_path, top, git, signature};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        str_list_add(&text, texts[i]);
    return text.failed ? brig_fail_nomem(err)
                       : files_write(p->folder, "about", text.data, text.length, err);
}

static int check_identity(int fd, const char *id, const char *path, struct brig_error *err)
{
    return files_has_id(fd, id)
               ? 0
               : brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' is not the directory it was",
                           str_shown(path).text);
}

/* ---- changes ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Git gives the index a new inode; its time of change is also that of brig's second name of it (fetch.c). */
static uint64_t mix_file(uint64_t hash, int dir, const char *name)
{
    struct stat info = {0};
    (void)fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW);
    if (strcmp(name, "index") == 0)
        info.st_ctim = info.st_mtim;
    hash = mix(hash, &info.st_ino, sizeof info.st_ino);
    hash = mix(hash, &info.st_size, sizeof info.st_size);
    return mix(hash, &info.st_ctim, sizeof info.st_ctim);
}

/* Hashes names, inodes and times of all directories below one: git replaces a ref by renaming a new
 * file, so a changed ref has a new inode, even if the clock has not advanced. The depth is
 * limited. */
static uint64_t mix_tree(uint64_t hash, int dir, const char *name, int depth)
{
    enum { DEPTH_MAX = 64 };
    autodir DIR *list = depth > DEPTH_MAX ? NULL : files_list(dir, name);
    if (!list)
        return mix(hash, "none", 4);
    for (const struct dirent *item; (item = files_next(list));) {
        hash = mix(hash, item->d_name, strlen(item->d_name) + 1);
        hash = mix_file(hash, dirfd(list), item->d_name);
        if (item->d_type == DT_DIR)
            hash = mix_tree(hash, dirfd(list), item->d_name, depth + 1);
    }
    return hash;
}

static uint64_t sign(int dir)
{
    static const char *const files[] = {"HEAD",         "index",        "packed-refs",
                                        "config",       "shallow",      "logs/refs/stash",
                                        "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD",
                                        "REVERT_HEAD",  "sequencer",    "MERGE_HEAD",
                                        "BISECT_LOG"};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        hash = mix_file(hash, dir, files[i]);
    return mix_tree(mix_tree(hash, dir, "refs", 0), dir, "reftable", 0);
}

uint64_t private_sign(const struct private_git *private_git)
{
    return sign(private_git->sealed.dir);
}

uint64_t private_sign_folder(int folder)
{
    autoclose int dir = files_open_dir(folder, "private");
    return dir < 0 ? 0 : sign(dir);
}

bool private_has_changed(const struct private_git *private_git)
{
    return sign(private_git->sealed.dir) != private_git->signature;
}

bool private_is_to_fetch(struct private_git *private_git)
{
    uint64_t now = sign(private_git->sealed.dir);
    if (now == private_git->signature || now == private_git->fetched)
        return false;
    private_git->fetched = now;
    return true;
}

/* ---- unfinished operations ---- */

#define KEPT_NAME_MAX (FILES_ID_MAX + 16)

static void kept_name(int top, char ret_name[KEPT_NAME_MAX])
{
    char id[FILES_ID_MAX] = "";
    (void)files_identify(top, "", id);
    (void)snprintf(ret_name, KEPT_NAME_MAX, PRIVATE_PENDING "%s", id);
}

int private_open_kept(int storage, int top)
{
    char name[KEPT_NAME_MAX];
    kept_name(top, name);
    return files_open_dir(storage, name);
}

int private_keep(const struct private_git *p, int storage, struct brig_error *err)
{
    char name[KEPT_NAME_MAX];
    kept_name(p->top, name);
    int status = tree_remove(storage, name, err);
    if (status == 0 && renameat(p->folder, "private", storage, name) < 0)
        status =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot keep the jail's private git directory");
    return status;
}

/* Copies HEAD, index, objects and the state of a rebase or merge; refs come from the repository.
 * Only regular files are copied, because the jail may have left anything there. Returns 1 if there
 * was something. */
static int resume(const struct private_git *p, int storage, struct brig_error *err)
{
    static const char *const trees[] = {"objects", "rebase-merge", "rebase-apply", "sequencer"};
    char name[KEPT_NAME_MAX];
    kept_name(p->top, name);
    files_rename_id(storage, PRIVATE_PENDING, p->top);
    autoclose int kept = storage < 0 ? -1 : files_open_dir(storage, name);
    if (kept < 0)
        return 0;
    int status = copy_top_files(kept, p->sealed.dir, FOR_RESUME, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(trees) && status >= 0; i++)
        status = copying_tree(kept, trees[i], p->sealed.dir, trees[i], "alternates", NULL);
    if (status < 0) { /* the jail may have caused this, and the next run would fail, too */
        char aside[KEPT_NAME_MAX + 8];
        (void)snprintf(aside, sizeof aside, "bad-%s", name);
        status = tree_remove(storage, aside, err);
        if (status == 0 && renameat(storage, name, storage, aside) < 0)
            status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", name);
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SETUP, 0,
                                      "the rebase or merge that an earlier run has left cannot be "
                                      "continued. It is put aside as '%s': start the command again",
                                      aside);
    }
    return 1;
}

/* ---- the whole ---- */

static int fill(const struct git *git, int cache, struct private_git *p, struct str *notes,
                struct brig_error *err)
{
    const struct repo *repo = &p->repo;
    static const char *const configs[] = {"config", "config.worktree"};
    int status = find_objects(p, err);
    if (status == 0)
        status = copy_state(repo, p->sealed.dir, false, err);
    if (status == 0)
        status = copy_state(repo, p->base, true, err);
    if (status == 0)
        status = make_objects(&p->sealed, err);
    for (size_t i = 0; i < ARRAY_LENGTH(configs) && status == 0; i++) {
        autostr struct str config = {0};
        int from = i == 0 ? repo->common : repo->git_dir;
        const char *path = i == 0 ? repo->common_path : repo->git_path;
        status = find_config(git, cache, p->folder, from, path, configs[i], &config, notes, err);
        if (status == 0 && (i == 0 || config.length > 0))
            status = files_write(p->sealed.dir, configs[i], config.data, config.length, err);
        if (status == 0 && i == 0)
            status = files_write(p->base, configs[i], config.data, config.length, err);
    }
    return status;
}

/* Takes ownership of the repository that the private directory belongs to. */
static int identify(struct private_git *p, struct repo *repo, struct brig_error *err)
{
    repo_done(&p->repo);
    p->repo = *repo;
    *repo = REPO_INIT;
    free(take_ptr(&p->top_path));
    return repo_path_of(p->top, &p->top_path, err);
}

/* Initialises it, with duplicates of the fds. */
static int begin(struct private_git *p, int folder, unsigned number, int top,
                 struct brig_error *err)
{
    *p = (struct private_git){.number = number,
                              .folder = fcntl(folder, F_DUPFD_CLOEXEC, 3),
                              .base = -1,
                              .repo = REPO_INIT,
                              .top = fcntl(top, F_DUPFD_CLOEXEC, 3),
                              .sealed = {.dir = -1}};
    for (size_t i = 0; i < ARRAY_LENGTH(p->lfs); i++)
        p->lfs[i] = -1;
    return p->folder < 0 || p->top < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor")
               : 0;
}

static int build(const struct git *git, int storage, int cache, struct repo *repo,
                 struct private_git *p, struct str *notes, struct brig_error *err)
{
    int status = identify(p, repo, err);
    if (status == 0)
        status = files_make_dir(p->folder, "private", &p->sealed.dir, err);
    if (status == 0)
        status = files_make_dir(p->folder, "base", &p->base, err);
    if (status == 0 && p->repo.kind != REPO_NONE)
        status = fill(git, cache, p, notes, err);
    if (status == 0 && p->repo.kind == REPO_FILE) {
        char link[128];
        int length = snprintf(link, sizeof link, "gitdir: " PRIVATE_MOUNTS "/%u\n", p->number);
        status = files_write(p->folder, "link", link, (size_t)length, err);
    }
    int resumed = status == 0 && p->repo.kind != REPO_NONE ? resume(p, storage, err) : 0;
    if (status < 0 || resumed < 0)
        return status < 0 ? status : resumed;
    /* A continued operation has to be kept again, even if this run does nothing. */
    p->resumed = resumed > 0;
    p->signature = p->resumed ? 0 : sign(p->sealed.dir);
    status = write_about(p, err); /* from here on another run can complete it */
    char name[KEPT_NAME_MAX];
    kept_name(p->top, name);
    return status == 0 && p->resumed ? tree_remove(storage, name, err) : status;
}

int private_build(const struct git *git, int folder, int storage, int cache, unsigned number,
                  int top, struct repo *repo, struct private_git *ret_private, struct str *notes,
                  struct brig_error *err)
{
    struct private_git p;
    int status = begin(&p, folder, number, top, err);
    if (status == 0)
        status = build(git, storage, cache, repo, &p, notes, err);
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

/* Reads the object format and the branch of a repository that a jail has created, and checks
 * both. */
static int ask_format(const struct git *git, const struct private_git *p, char ret_format[16],
                      char ret_branch[256], struct brig_error *err)
{
    /* A submodule's config names its working tree, which is not visible here. */
    static const char script[] =
        "git config --file " GIT_SEALED_DIR "/config --unset-all core.worktree\n"
        "git rev-parse --show-object-format && git symbolic-ref -q HEAD";
    autostr struct str text = {0};
    int status = git_run_sealed(git, &p->sealed, script, &text, err);
    if (status != 0)
        return status < 0 ? status : 0;
    char *rest = text.data;
    const char *format = strsep(&rest, "\n"), *head = rest ? strsep(&rest, "\n") : NULL;
    bool known = strcmp(format, "sha1") == 0 || strcmp(format, "sha256") == 0;
    (void)snprintf(ret_format, 16, "%s", known ? format : "sha1");
    bool safe = head && refs_is_safe(head) && !refs_is_misleading(head) &&
                str_starts_with(head, "refs/heads/");
    (void)snprintf(ret_branch, 256, "%s", safe ? head + strlen("refs/heads/") : "main");
    return 1;
}

/* Creates a fresh repository in the storage, where no jail can write. */
static int init(const struct git *git, const struct private_git *p, const char *format,
                const char *branch, int *ret_dir, struct brig_error *err)
{
    char format_word[64], branch_word[300];
    (void)snprintf(format_word, sizeof format_word, "--object-format=%s", format);
    (void)snprintf(branch_word, sizeof branch_word, "--initial-branch=%s", branch);
    const char *const words[] = {"init", "-q", format_word, branch_word, NULL};
    int status = files_make_dir(p->folder, PRIVATE_NEW, ret_dir, err);
    if (status == 0)
        status = git_run(git, &(struct git_call){.words = words, .dir = *ret_dir}, err);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_SETUP, 0, "git init failed for '%s'",
                                   str_shown(p->top_path).text);
}

int private_recreate(const struct git *git, struct private_git *p, struct brig_error *err)
{
    char format[16], branch[256];
    autoclose int dir = -1;
    struct repo repo = REPO_INIT;
    if (!files_exists(p->sealed.dir, "HEAD"))
        return 0;
    int status = ask_format(git, p, format, branch, err);
    if (status <= 0)
        return status;
    status = init(git, p, format, branch, &dir, err);
    if (status == 0)
        status = repo_find(dir, geteuid(), &repo, err);
    if (status == 0 && repo.kind != REPO_DIRECTORY)
        status = brig_fail(err, BRIG_E_SETUP, 0, "git init made no repository for '%s'",
                           str_shown(p->top_path).text);
    if (status == 0)
        status = copy_state(&repo, p->base, true, err);
    if (status == 0)
        status = copying_file(repo.common, "config", p->base, "config", err);
    if (status >= 0)
        status = identify(p, &repo, err);
    if (status == 0)
        status = files_write(p->folder, PRIVATE_MADE, "", 0, err);
    if (status == 0)
        status = write_about(p, err); /* a later run can continue from here */
    repo_done(&repo);
    return status < 0 ? status : 1;
}

static int move_entry(int from, int to, const char *name, struct brig_error *err)
{
    if (renameat(from, name, to, name) == 0)
        return 0;
    if (errno != EXDEV && errno != ENOTEMPTY && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot move '%s' of a new repository", name);
    int status = tree_remove(to, name, err); /* of a copy that was not completed */
    if (status == 0)
        status = copying_file(from, name, to, name, err);
    if (status == 0)
        status = copying_tree(from, name, to, name, NULL, err);
    return status < 0 ? status : tree_remove(from, name, err);
}

int private_move(int from, int to, bool head_last, struct brig_error *err)
{
    autodir DIR *dir = files_list(from, ".");
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the new repository");
    bool head = files_exists(from, "HEAD");
    int status = head && !head_last ? move_entry(from, to, "HEAD", err) : 0;
    for (const struct dirent *item; status == 0 && (item = files_next(dir));)
        if (strcmp(item->d_name, "HEAD") != 0)
            status = move_entry(from, to, item->d_name, err);
    return status == 0 && head && head_last ? move_entry(from, to, "HEAD", err) : status;
}

int private_place(struct private_git *p, struct brig_error *err)
{
    autoclose int dir = openat(p->folder, PRIVATE_NEW "/.git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return 0;
    (void)mkdirat(p->top, ".git", 0777);
    autoclose int to = openat(p->top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0 || !files_is_empty_dir(to))
        return brig_fail(err, BRIG_E_SETUP, to < 0 ? errno : 0,
                         "a repository that the run made cannot be put into '%s', where '.git' is "
                         "not an empty directory",
                         str_shown(p->top_path).text);
    int status = private_move(dir, to, true, err);
    return status < 0 ? status : private_find_placed(p, err);
}

int private_find_placed(struct private_git *p, struct brig_error *err)
{
    struct repo repo = REPO_INIT;
    int status = repo_find(p->top, geteuid(), &repo, err);
    if (status == 0 && repo.kind != REPO_DIRECTORY)
        status = brig_fail(err, BRIG_E_STATE, 0, "the new repository was not put into '%s'",
                           str_shown(p->top_path).text);
    if (status == 0)
        status = tree_remove(p->folder, PRIVATE_NEW, err);
    if (status == 0)
        status = identify(p, &repo, err);
    repo_done(&repo);
    return status;
}

bool private_is_made(const struct private_git *p)
{
    return files_exists(p->folder, PRIVATE_NEW) || files_exists(p->folder, PRIVATE_MADE);
}

int private_wrap(int folder, int dir, int top, struct private_git *ret_private,
                 struct brig_error *err)
{
    struct private_git p;
    int status = begin(&p, folder, 0, top, err);
    if (status == 0 && (p.sealed.dir = fcntl(dir, F_DUPFD_CLOEXEC, 3)) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    if (status == 0)
        status = identify(&p, &(struct repo){.git_dir = -1, .common = -1}, err);
    if (status == 0)
        status = files_make_dir(folder, "base", &p.base, err);
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

/* Adds an object directory, unless there are too many; git then finds an object missing. */
static int add_objects(struct git_sealed *sealed, int fd, const char *dest, struct brig_error *err)
{
    if (fd < 0 || sealed->object_count == GIT_OBJECT_DIRS_MAX)
        return 0;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    sealed->objects[sealed->object_count] = copy;
    sealed->object_dests[sealed->object_count] = NULL;
    int status = str_copy(dest, &sealed->object_dests[sealed->object_count], err);
    sealed->object_count++;
    return status;
}

/* Whether one of the alternates in a text is this directory. */
static bool has_alternate(const struct str *text, const char *dest)
{
    autofree char *copy = text->data ? strdup(text->data) : NULL;
    char *rest = copy;
    for (const char *line; copy && (line = strsep(&rest, "\n"));) {
        autofree char *path = NULL;
        if (path_normalise(line, PATH_KEEP_DOTDOT, &path, NULL) == 0 && strcmp(path, dest) == 0)
            return true;
    }
    return false;
}

int private_borrow(struct private_git *p, const struct private_git *from, const char *dest,
                   struct brig_error *err)
{
    const struct git_sealed *lender = &from->sealed;
    autostr struct str text = {0};
    autofree char *own = NULL;
    autoclose int fd = -1, objects = -1;
    char bytes[REPO_ALTERNATES_MAX];
    struct stat info;
    if (path_open_beneath(p->sealed.dir, "objects/info/alternates",
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd, NULL) < 0 ||
        fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    ssize_t length = read(fd, bytes, sizeof bytes);
    str_append_bytes(&text, bytes, length > 0 ? (size_t)length : 0);
    int status = from->repo.kind == REPO_FILE ? str_make(&own, err, PRIVATE_MOUNTS "/",
                                                         str_number(from->number).text, "/objects")
                                              : str_make(&own, err, dest, "/.git/objects");
    if (status < 0 || text.failed)
        return status < 0 ? status : brig_fail_nomem(err);
    bool whole = has_alternate(&text, own); /* git clone --shared: it has alternates itself */
    if (whole)
        objects = files_open_dir(lender->dir, "objects");
    status = whole ? add_objects(&p->sealed, objects, own, err) : 0;
    for (size_t i = 0; i < lender->object_count && status == 0; i++)
        if (whole || has_alternate(&text, lender->object_dests[i]))
            status = add_objects(&p->sealed, lender->objects[i], lender->object_dests[i], err);
    return status;
}

/* Finds the repository again. A repository that private_recreate() has created is in the folder. */
static int find_again(const struct git *git, struct private_git *p, const char *id,
                      struct brig_error *err)
{
    struct repo repo = REPO_INIT;
    autoclose int new = files_open_dir(p->folder, PRIVATE_NEW);
    bool placed = new < 0 && files_exists(p->folder, PRIVATE_MADE);
    int status = *id ? repo_find(new >= 0 ? new : p->top, git_owner(git), &repo, err) : 0;
    if (status == 0 && *id && !placed)
        status = check_identity(repo.git_dir, id, p->top_path, err);
    if (status == 0)
        status = identify(p, &repo, err);
    if (status == 0 && *id)
        status = find_objects(p, err);
    repo_done(&repo);
    return status;
}

int private_open(const struct git *git, int folder, unsigned number,
                 struct private_git *ret_private, struct brig_error *err)
{
    struct private_git p;
    autostr struct str text = {0};
    const char *words[4] = {NULL};
    bool read = files_read(folder, "about", &text);
    for (size_t i = 0; i < ARRAY_LENGTH(words) && (i == 0 || words[i - 1]); i++)
        words[i] = str_list_next(&text, i == 0 ? NULL : words[i - 1]);
    if (!read || !words[3])
        return brig_fail(err, BRIG_E_SETUP, 0, "an interrupted transfer has no 'about' file");
    autoclose int top = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = check_identity(top, words[1], words[0], err);
    if (status < 0)
        return status;
    status = begin(&p, folder, number, top, err);
    if (status == 0)
        status = find_again(git, &p, words[2], err);
    p.signature = strtoumax(words[3], NULL, 16);
    p.sealed.dir = files_open_dir(folder, "private");
    p.base = files_open_dir(folder, "base");
    if (status == 0 && (p.sealed.dir < 0 || p.base < 0))
        status =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open a directory in the jail's storage");
    if (status < 0)
        private_done(&p);
    else
        *ret_private = p;
    return status;
}

void private_close(const struct private_git *p)
{
    (void)unlinkat(p->folder, "about", 0);
}

bool private_is_open(int folder)
{
    return files_exists(folder, "about");
}

void private_done(struct private_git *p)
{
    const int fds[] = {p->folder, p->top, p->sealed.dir, p->base};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    for (size_t i = 0; i < p->sealed.object_count; i++) {
        (void)close(p->sealed.objects[i]);
        if (p->lfs[i] >= 0)
            (void)close(p->lfs[i]);
        free(p->sealed.object_dests[i]);
    }
    free(p->top_path);
    repo_done(&p->repo);
    *p = (struct private_git){
        .folder = -1, .base = -1, .top = -1, .repo = REPO_INIT, .sealed = {.dir = -1}};
}
