/* SPDX-License-Identifier: MIT */
#include "git/take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/place.h"
#include "base/record.h"
#include "base/sha256.h"
#include "git/private.h"
#include "git/seen.h"
#include "git/side.h"

#define INDEX_LOCK "index.lock"
#define INDEX_AHEAD "index.brig" /* becomes index.lock when its identity is written down */
#define LOCK_WAIT_MS 5000
#define LOCK_STEP_MS 20
#define MESSAGE "brig: from the jail"
#define RECORD_OF "of"
#define RECORD_REVERSED "reversed"

enum take_kind { TAKE_REF, TAKE_HEAD, TAKE_INDEX, TAKE_STAGED, TAKE_STASHES, TAKE_CONFIG };

static const char *const kinds[] = {
    [TAKE_REF] = "ref",       [TAKE_HEAD] = "head",       [TAKE_INDEX] = "index",
    [TAKE_STAGED] = "staged", [TAKE_STASHES] = "stashes", [TAKE_CONFIG] = "config"};

struct take_value {
    enum git_direction side;
    const char *text;
};

struct take_entry {
    enum take_kind kind;
    size_t tree;
    const char *name;
    size_t first, count; /* of its values */
};

struct take_tree {
    size_t repo;
    const char *path, *git_path, *folder; /* the last may be NULL */
    struct place place;
    int git_dir;
    bool locked;
    char head[SIDE_HEAD_MAX]; /* when everything was checked */
};

struct take_repo {
    const char *path, *pins;
    struct place place;
    int common;
    struct side now;
    struct str worktrees; /* what is checked out or rebased, as lines "\nbranch NAME\n" */
};

/* A new repository. */
struct take_placed {
    const char *path, *folder, *hash;
    struct place place;
    int top;
};

struct git_taking {
    const struct git *git;
    int record, storage;
    int copies; /* the directory with the copies of indexes */
    enum git_direction towards;
    bool again;  /* it was interrupted before */
    bool partly; /* the values are, or may be, of both sides */
    struct str text, locks;
    struct take_repo *repos;
    struct take_tree *trees;
    struct take_entry *entries;
    struct take_value *values;
    struct take_placed *placed;
    size_t placed_count;
    size_t repo_count, tree_count, entry_count, value_count;
};

/* ---- calling git ---- */

static int take_run(const struct git_taking *t, const struct git_call *how, struct brig_error *err,
                    const char *const *words)
{
    struct git_call call = *how;
    call.words = words;
    return git_run(t->git, &call, err);
}
#define GIT(t, how, err, ...) take_run((t), (how), (err), (const char *const[]){__VA_ARGS__, NULL})

/* ---- the hash of an index ---- */

struct take_hash {
    struct sha256 hash;
    bool has_empty; /* an entry without contents, which may be one that is to be added */
};

static bool take_hash_entry(void *data, const char *entry, size_t length)
{
    static const char *const empty[] = {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"};
    struct take_hash *h = data;
    for (size_t i = 0; i < ARRAY_LENGTH(empty); i++)
        h->has_empty |= strstr(entry, empty[i]) != NULL;
    sha256_add(&h->hash, entry, length + 1);
    return true;
}

int git_hash_index(const struct git *git, int git_dir, const char *index, char ret_hash[65],
                   struct brig_error *err)
{
    struct take_hash h = {0};
    char ids[64] = "";
    autostr struct str empty = {0};
    const char *const list[] = {"ls-files", "-s", "-v", "-z", NULL};
    const char *const tree[] = {"hash-object", "-t", "tree", "--stdin", NULL};
    struct git_call call = {
        .git_dir = git_dir, .index = index, .words = list, .each = take_hash_entry, .data = &h};
    sha256_begin(&h.hash);
    int status = git_run(git, &call, err);
    if (status == 0 && h.has_empty) {
        status =
            git_run(git, &(struct git_call){.git_dir = git_dir, .words = tree, .out = &empty}, err);
        if (status == 0)
            (void)snprintf(ids, sizeof ids, "%.*s", (int)strcspn(empty.data, "\n"), empty.data);
        const char *const known[] = {"diff-index",  "--cached", "--ita-invisible-in-index",
                                     "--name-only", "-z",       empty.data,
                                     "--",          NULL};
        if (empty.length > 0)
            empty.data[strcspn(empty.data, "\n")] = '\0';
        call.words = known;
        if (status == 0)
            status = git_run(git, &call, err);
    }
    if (status > 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot read an index");
    if (status == 0)
        sha256_end(&h.hash, ret_hash);
    return status;
}

/* ---- reading the record ---- */

static int take_refuse(struct brig_error *err)
{
    return brig_fail(
        err, BRIG_E_SETUP, 0,
        "the record of what is to be moved in git is damaged, or was removed (brig gc)");
}

static bool take_add_entry(struct git_taking *t, enum take_kind kind, const char *name)
{
    if (t->tree_count == 0 || !array_grow(&t->entries, t->entry_count))
        return false;
    t->entries[t->entry_count++] = (struct take_entry){
        .kind = kind, .tree = t->tree_count - 1, .name = name, .first = t->value_count};
    return true;
}

static bool take_add_value(struct git_taking *t, enum git_direction side, const char *text)
{
    if (t->entry_count == 0 || !array_grow(&t->values, t->value_count))
        return false;
    t->values[t->value_count++] = (struct take_value){side, text};
    t->entries[t->entry_count - 1].count++;
    return true;
}

static bool take_add_repo(struct git_taking *t, const char *path)
{
    if (!array_grow(&t->repos, t->repo_count))
        return false;
    t->repos[t->repo_count++] = (struct take_repo){.path = path, .common = -1};
    return true;
}

static bool take_add_tree(struct git_taking *t, const char *path)
{
    if (t->repo_count == 0 || !array_grow(&t->trees, t->tree_count))
        return false;
    t->trees[t->tree_count++] =
        (struct take_tree){.repo = t->repo_count - 1, .path = path, .git_dir = -1};
    return true;
}

static enum git_direction take_other(enum git_direction towards)
{
    return towards == GIT_TO_NEW ? GIT_TO_OLD : GIT_TO_NEW;
}

/* The operation with the copies, beside this one; false if it was removed. */
static bool take_open_copies(struct git_taking *t, const char *name)
{
    autofree char *path = NULL;
    if (strchr(name, '/') || str_make(&path, NULL, "../", name) < 0)
        return false;
    own_close(&t->copies);
    t->copies = openat(t->record, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return t->copies >= 0;
}

/* A line about a repository or a working tree; false if it is damaged. */
static bool take_read_place(struct git_taking *t, const char *key, const char *value)
{
    struct take_repo *repo = t->repo_count ? &t->repos[t->repo_count - 1] : NULL;
    struct take_tree *tree = t->tree_count ? &t->trees[t->tree_count - 1] : NULL;
    bool of_tree = tree && tree->repo + 1 == t->repo_count;
    if (strcmp(key, "repo") == 0)
        return take_add_repo(t, value);
    if (strcmp(key, "tree") == 0)
        return take_add_tree(t, value);
    if (strcmp(key, "pins") == 0 && repo)
        repo->pins = value;
    else if (strcmp(key, "gitdir") == 0 && of_tree)
        tree->git_path = value;
    else if (strcmp(key, "private") == 0 && of_tree)
        tree->folder = value;
    else if (strcmp(key, PLACE_KEY) == 0)
        return repo && place_read(value, of_tree ? &tree->place : &repo->place);
    return true;
}

/* A line about a new repository: 1, 0 if it is about something else, -1 if it is damaged. */
static int take_read_placed(struct git_taking *t, const char *key, const char *value)
{
    struct take_placed *placed = t->placed_count ? &t->placed[t->placed_count - 1] : NULL;
    if (strcmp(key, "placed") == 0) {
        if (!array_grow(&t->placed, t->placed_count))
            return -1;
        t->placed[t->placed_count++] = (struct take_placed){.path = value, .top = -1};
        return 1;
    }
    if (!placed || t->repo_count > 0) /* they come first */
        return 0;
    if (strcmp(key, "from") == 0)
        placed->folder = value;
    else if (strcmp(key, "new") == 0)
        placed->hash = value;
    else
        return strcmp(key, PLACE_KEY) != 0 ? 0 : place_read(value, &placed->place) ? 1 : -1;
    return 1;
}

static bool take_read_line(struct git_taking *t, const char *key, const char *value)
{
    int placed = take_read_placed(t, key, value);
    if (placed != 0)
        return placed > 0;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(key, kinds[i]) == 0)
            return take_add_entry(t, (enum take_kind)i, value);
    if (strcmp(key, "old") == 0)
        return take_add_value(t, GIT_TO_OLD, value);
    if (strcmp(key, "new") == 0)
        return take_add_value(t, GIT_TO_NEW, value);
    if (strcmp(key, RECORD_OF) == 0)
        return take_open_copies(t, value);
    if (strcmp(key, RECORD_REVERSED) == 0)
        t->towards = take_other(t->towards);
    return take_read_place(t, key, value);
}

static int take_read(struct git_taking *t, struct brig_error *err)
{
    struct record_place at = {0};
    const char *key, *value;
    int status = record_read(t->record, GIT_RECORD, &t->text, err);
    if (status <= 0)
        return status;
    if (!record_next(&t->text, &at, &key, &value) || strcmp(key, "version") != 0 ||
        record_number(value) != GIT_RECORD_VERSION)
        return take_refuse(err);
    while (record_next(&t->text, &at, &key, &value))
        if (!take_read_line(t, key, value))
            return take_refuse(err);
    for (size_t i = 0; i < t->tree_count; i++)
        if (!t->trees[i].git_path)
            return take_refuse(err);
    return at.damaged ? take_refuse(err) : 0;
}

static int take_open(struct git_taking *t, struct brig_error *err)
{
    for (size_t i = 0; i < t->placed_count; i++) {
        struct take_placed *placed = &t->placed[i];
        placed->top = placed->folder && placed->hash ? place_open(placed->path, &placed->place, err)
                                                     : take_refuse(err);
        if (placed->top < 0)
            return placed->top;
    }
    for (size_t i = 0; i < t->repo_count; i++) {
        struct take_repo *repo = &t->repos[i];
        repo->common = place_open(repo->path, &repo->place, err);
        if (repo->common < 0)
            return repo->common;
    }
    for (size_t i = 0; i < t->tree_count; i++) {
        struct take_tree *tree = &t->trees[i];
        tree->git_dir = place_open(tree->git_path, &tree->place, err);
        if (tree->git_dir < 0)
            return tree->git_dir;
    }
    return 0;
}

/* A value of an entry on one side: the Nth, or NULL. */
static const char *take_value(const struct git_taking *t, const struct take_entry *entry,
                              enum git_direction side, size_t n)
{
    for (size_t i = entry->first; i < entry->first + entry->count; i++)
        if (t->values[i].side == side && n-- == 0)
            return t->values[i].text;
    return NULL;
}

static const char *take_from(const struct git_taking *t, const struct take_entry *entry)
{
    return take_value(t, entry, take_other(t->towards), 0);
}

static const char *take_to(const struct git_taking *t, const struct take_entry *entry)
{
    return take_value(t, entry, t->towards, 0);
}

static const struct take_entry *take_find(const struct git_taking *t, size_t tree,
                                          enum take_kind kind)
{
    for (size_t i = 0; i < t->entry_count; i++)
        if (t->entries[i].tree == tree && t->entries[i].kind == kind)
            return &t->entries[i];
    return NULL;
}

/* ---- the locks ---- */

/* Removes a file of ours, which is one if its identity was written down. */
static void take_drop_lock(const struct git_taking *t, const struct take_tree *tree)
{
    static const char *const names[] = {INDEX_LOCK, INDEX_AHEAD};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char id[FILES_ID_MAX];
        if (files_identify(tree->git_dir, names[i], id) && str_list_has(&t->locks, id))
            (void)unlinkat(tree->git_dir, names[i], 0);
    }
}

static int take_note_lock(struct git_taking *t, const struct take_tree *tree,
                          struct brig_error *err)
{
    char id[FILES_ID_MAX];
    if (!files_identify(tree->git_dir, INDEX_AHEAD, id))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the index of '%s'",
                         str_shown(tree->path).text);
    str_list_add(&t->locks, id);
    return t->locks.failed
               ? brig_fail_nomem(err)
               : files_write(t->record, GIT_RECORD_LOCKS, t->locks.data, t->locks.length, err);
}

static void take_index_name(const struct git_taking *t, size_t tree, char ret_name[32])
{
    (void)snprintf(ret_name, 32, "index-%zu.%s", tree, t->towards == GIT_TO_NEW ? "new" : "old");
}

/* Makes the file that becomes the lock, and then the index. */
static int take_make_lock(struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[number];
    char name[32];
    take_index_name(t, number, name);
    (void)unlinkat(tree->git_dir, INDEX_AHEAD, 0);
    int status = take_find(t, number, TAKE_INDEX)
                     ? copying_file(t->copies, name, tree->git_dir, INDEX_AHEAD, err)
                     : 0;
    if (status < 0)
        return status;
    autoclose int fd =
        openat(tree->git_dir, INDEX_AHEAD, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    struct stat old;
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'",
                         str_shown(tree->git_path).text);
    if (fstatat(tree->git_dir, "index", &old, AT_SYMLINK_NOFOLLOW) == 0)
        (void)fchmod(fd, old.st_mode & 0777);
    return take_note_lock(t, tree, err);
}

/* Gives the file the name of the lock, as git's own lock without replacing one: -1 with errno. */
static int take_place_lock(const struct take_tree *tree)
{
    int dir = tree->git_dir;
    if (linkat(dir, INDEX_AHEAD, dir, INDEX_LOCK, 0) == 0)
        return unlinkat(dir, INDEX_AHEAD, 0);
    return errno == EEXIST ? -1 : renameat2(dir, INDEX_AHEAD, dir, INDEX_LOCK, RENAME_NOREPLACE);
}

static int take_lock(struct git_taking *t, size_t number, struct brig_error *err)
{
    struct take_tree *tree = &t->trees[number];
    int status = take_make_lock(t, number, err);
    if (status < 0)
        return status;
    for (int waited_ms = 0; take_place_lock(tree) < 0; waited_ms += LOCK_STEP_MS) {
        if (errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s/" INDEX_LOCK "'",
                             str_shown(tree->git_path).text);
        if (waited_ms >= LOCK_WAIT_MS)
            return brig_fail(err, BRIG_E_STATE, 0,
                             "another git process works in '%s', or has left '%s/" INDEX_LOCK
                             "' behind",
                             str_shown(tree->path).text, str_shown(tree->git_path).text);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * 1000000L}, NULL);
    }
    tree->locked = true;
    return 0;
}

/* In the order of paths, so that two hand-overs do not wait for each other. */
static int take_lock_all(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    t->again = t->partly = files_read(t->record, GIT_RECORD_LOCKS, &t->locks);
    if (t->placed_count > 0 && !t->again)
        status = files_write(t->record, GIT_RECORD_LOCKS, "", 1, err);
    for (size_t i = 0; i < t->tree_count; i++)
        take_drop_lock(t, &t->trees[i]);
    for (size_t i = 0; i < t->tree_count && status == 0; i++) {
        size_t next = t->tree_count;
        for (size_t k = 0; k < t->tree_count; k++)
            if (!t->trees[k].locked && (next == t->tree_count ||
                                        strcmp(t->trees[k].git_path, t->trees[next].git_path) < 0))
                next = k;
        status = take_lock(t, next, err);
    }
    return status;
}

/* ---- new repositories ---- */

static int hash_file(int dir, const char *name, struct sha256 *hash)
{
    autostr struct str text = {0};
    (void)files_read(dir, name, &text);
    sha256_add(hash, name, strlen(name) + 1);
    sha256_add(hash, text.data ? text.data : "", text.length);
    return text.failed ? BRIG_E_SYSTEM : 0;
}

int git_hash_repository(const struct git *git, int git_dir, char ret_hash[65],
                        struct brig_error *err)
{
    static const char *const words[] = {"for-each-ref", "--format=%(objectname) %(refname)", NULL};
    static const char *const files[] = {"HEAD", "config", "info/exclude", "info/attributes"};
    autostr struct str refs = {0};
    struct sha256 hash;
    char index[65];
    int status =
        git_run(git, &(struct git_call){.git_dir = git_dir, .words = words, .out = &refs}, err);
    if (status > 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot read the refs of a new repository");
    if (status == 0)
        status = git_hash_index(git, git_dir, NULL, index, err);
    if (status < 0)
        return status;
    sha256_begin(&hash);
    sha256_add(&hash, refs.data ? refs.data : "", refs.length);
    sha256_add(&hash, index, strlen(index));
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (hash_file(git_dir, files[i], &hash) < 0)
            return brig_fail_nomem(err);
    sha256_end(&hash, ret_hash);
    return 0;
}

/* The directory in which it is while it is not placed: in its private folder, or if that is gone beside the record. `make` it,
 * if it is to be put there; -1 if it does not exist. */
static int take_open_aside(const struct git_taking *t, const struct take_placed *placed, bool make)
{
    char name[32];
    (void)snprintf(name, sizeof name, "placed-%zu", (size_t)(placed - t->placed));
    autoclose int folder = t->storage < 0 ? -1 : files_open_dir(t->storage, placed->folder);
    autoclose int above = -1;
    int dir = folder < 0 ? t->copies : folder;
    const char *first = folder < 0 ? name : PRIVATE_NEW;
    if (make)
        (void)mkdirat(dir, first, 0700);
    above = files_open_dir(dir, first);
    if (above >= 0 && make)
        (void)mkdirat(above, ".git", 0700);
    return above < 0 ? -1 : files_open_dir(above, ".git");
}

/* It must be missing, or be as it was put there. */
static int take_check_placed(const struct git_taking *t, const struct take_placed *placed,
                             struct brig_error *err)
{
    char hash[65];
    autoclose int aside = take_open_aside(t, placed, false);
    autoclose int git_dir = files_open_dir(placed->top, ".git");
    bool is_aside = aside >= 0 && files_exists(aside, "HEAD");
    if (t->again) /* some of it may be at either place */
        return 0;
    if (is_aside)
        return (git_dir < 0 && !files_exists(placed->top, ".git")) ||
                       (git_dir >= 0 && files_is_empty_dir(git_dir))
                   ? 0
                   : brig_fail(err, BRIG_E_STATE, 0,
                               "a repository that the jail has made cannot be put into '%s', where "
                               "'.git' is not an empty directory",
                               str_shown(placed->path).text);
    int status = git_dir < 0 ? 1 : git_hash_repository(t->git, git_dir, hash, err);
    if (status == 0 && strcmp(hash, placed->hash) == 0)
        return 0;
    return status < 0 ? status
                      : brig_fail(err, BRIG_E_STATE, 0,
                                  "the repository in '%s', which the jail has made, has changed "
                                  "meanwhile",
                                  str_shown(placed->path).text);
}

/* HEAD is last where it comes, and first where it goes: without it git does not take the directory for a repository. */
static int take_move_placed(const struct git_taking *t, const struct take_placed *placed,
                            struct brig_error *err)
{
    bool comes = t->towards == GIT_TO_NEW;
    if (comes)
        (void)mkdirat(placed->top, ".git", 0777);
    autoclose int aside = take_open_aside(t, placed, !comes);
    autoclose int git_dir = files_open_dir(placed->top, ".git");
    int from = comes ? aside : git_dir, to = comes ? git_dir : aside;
    if (from < 0)
        return 0; /* it was moved before */
    int status = to < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s/.git'",
                                    str_shown(placed->path).text)
                        : private_move(from, to, comes, err);
    if (status == 0 && !comes)
        (void)unlinkat(placed->top, ".git", AT_REMOVEDIR);
    return status;
}

/* ---- checking ---- */

static int take_differs(const char *what, const char *value, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_STATE, 0, "%s%s has changed meanwhile", what,
                     str_shown(value).text);
}

/* In how many working trees of the record a branch is: HEAD and index are in it, too. */
static size_t take_count_own(const struct git_taking *t, size_t repo, const char *branch)
{
    size_t count = 0;
    for (size_t i = 0; i < t->tree_count; i++)
        count += t->trees[i].repo == repo && take_find(t, i, TAKE_INDEX) &&
                 strcmp(t->trees[i].head, branch) == 0;
    return count;
}

static int take_check_ref(struct git_taking *t, const struct take_entry *entry,
                          struct brig_error *err)
{
    size_t number = t->trees[entry->tree].repo;
    const struct take_repo *repo = &t->repos[number];
    const struct ref *ref = refs_get(&repo->now.refs, entry->name);
    const char *now = ref ? ref->id : NULL;
    if (str_equal(now, take_to(t, entry)))
        return 0;
    if (!str_equal(now, take_from(t, entry)) || (ref && ref->symbolic))
        return take_differs("", entry->name, err);
    return side_count_worktrees(&repo->worktrees, entry->name) >
                   take_count_own(t, number, entry->name)
               ? brig_fail(err, BRIG_E_STATE, 0,
                           "%s is checked out, rebased or bisected in another working tree",
                           entry->name)
               : 0;
}

static int take_check_head(const struct git_taking *t, const struct take_entry *entry,
                           struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[entry->tree];
    return str_equal(tree->head, take_to(t, entry)) || str_equal(tree->head, take_from(t, entry))
               ? 0
               : take_differs("HEAD of ", tree->path, err);
}

static int take_check_index(const struct git_taking *t, const struct take_entry *entry,
                            struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[entry->tree];
    char hash[65];
    int status = git_hash_index(t->git, tree->git_dir, NULL, hash, err);
    if (status < 0)
        return status;
    return str_equal(hash, take_to(t, entry)) || str_equal(hash, take_from(t, entry))
               ? 0
               : take_differs("the index of ", tree->path, err);
}

static size_t take_id_length(const char *stash)
{
    return strcspn(stash, " ");
}

static bool take_is_stash(const char *text, const char *id)
{
    return take_id_length(text) == strlen(id) && strncmp(text, id, strlen(id)) == 0;
}

static size_t take_count_values(const struct git_taking *t, const struct take_entry *entry,
                                enum git_direction side)
{
    size_t count = 0;
    for (size_t i = entry->first; i < entry->first + entry->count; i++)
        count += t->values[i].side == side;
    return count;
}

/* Whether the stashes that are there are those of one side or, `partly`, some of them. */
static bool take_are_stashes(const struct git_taking *t, const struct take_entry *entry,
                             const struct side *now, enum git_direction side, bool partly)
{
    size_t count = take_count_values(t, entry, side), at = 0;
    for (size_t i = 0; i < count; i++)
        at += at < now->stash_count &&
              take_is_stash(take_value(t, entry, side, i), now->stashes[at].id);
    return at == now->stash_count && (partly || count == at);
}

static int take_check_stashes(const struct git_taking *t, const struct take_entry *entry,
                              struct brig_error *err)
{
    const struct side *now = &t->repos[t->trees[entry->tree].repo].now;
    return take_are_stashes(t, entry, now, GIT_TO_OLD, t->again) ||
                   take_are_stashes(t, entry, now, GIT_TO_NEW, t->again)
               ? 0
               : take_differs("the list of stashes of ", t->trees[entry->tree].path, err);
}

/* The value of a key in `file`; "" if there is none. */
static int take_read_config(const struct git_taking *t, const struct take_entry *entry,
                            const struct git_call *how, struct str *ret_value,
                            struct brig_error *err)
{
    struct git_call call = *how;
    call.out = ret_value;
    int status = GIT(t, &call, err, "config", "--file", "config", "-z", "--get", entry->name);
    return status < 0 ? status : 0;
}

static int take_check_config(const struct git_taking *t, const struct take_entry *entry,
                             struct brig_error *err)
{
    const struct git_call how = {.git_dir = t->repos[t->trees[entry->tree].repo].common};
    const char *from = take_from(t, entry), *to = take_to(t, entry);
    autostr struct str now = {0};
    int status = take_read_config(t, entry, &how, &now, err);
    const char *value = now.length > 0 ? now.data : NULL;
    if (status < 0 || str_equal(value, to) || str_equal(value, from))
        return status;
    return take_differs("the setting ", entry->name, err);
}

static int take_check_entry(struct git_taking *t, const struct take_entry *entry,
                            struct brig_error *err)
{
    switch (entry->kind) {
    case TAKE_REF:
        return take_check_ref(t, entry, err);
    case TAKE_HEAD:
        return take_check_head(t, entry, err);
    case TAKE_INDEX:
        return take_check_index(t, entry, err);
    case TAKE_STASHES:
        return take_check_stashes(t, entry, err);
    case TAKE_CONFIG:
        return take_check_config(t, entry, err);
    case TAKE_STAGED:
        return 0;
    }
    return 0;
}

static int take_check(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < t->repo_count && status == 0; i++) {
        struct take_repo *repo = &t->repos[i];
        status = side_read(t->git, &(struct git_call){.git_dir = repo->common}, &repo->now, err);
        if (status == 0)
            status = side_list_worktrees(t->git, repo->common, &repo->worktrees, err);
    }
    for (size_t i = 0; i < t->tree_count && status == 0; i++) {
        struct take_tree *tree = &t->trees[i];
        status =
            side_read_head(t->git, &(struct git_call){.git_dir = tree->git_dir}, tree->head, err);
        if (status == 0 && take_find(t, i, TAKE_INDEX) && side_is_busy(tree->git_dir))
            status = brig_fail(err, BRIG_E_STATE, 0, "a rebase, merge or bisect goes on in '%s'",
                               str_shown(tree->path).text);
    }
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        status = take_check_entry(t, &t->entries[i], err);
    for (size_t i = 0; i < t->placed_count && status == 0; i++)
        status = take_check_placed(t, &t->placed[i], err);
    return status;
}

/* ---- moving refs and HEAD, of a repository or of the base of a jail ---- */

/* What is moved by one call of take_refs(): the entries of a repository, or those of one tree. */
struct take_scope {
    size_t repo, tree; /* the tree is SIZE_MAX for all of the repository */
    struct git_call how;
    struct refs *now; /* what is there: only what is not at its target moves */
    bool base;        /* of base/, which follows: a value that is neither stays */
};

static bool take_is_in(const struct git_taking *t, const struct take_scope *scope,
                       const struct take_entry *entry)
{
    return t->trees[entry->tree].repo == scope->repo &&
           (scope->tree == SIZE_MAX || scope->tree == entry->tree);
}

/* Deletions and updates, or creations, in one transaction. */
static int take_update(const struct git_taking *t, const struct take_scope *scope, bool creates,
                       struct brig_error *err)
{
    autostr struct str lines = {0}, says = {0};
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (entry->kind != TAKE_REF || !take_is_in(t, scope, entry))
            continue;
        const char *to = take_to(t, entry), *now = refs_find(scope->now, entry->name);
        if (str_equal(now, to) || creates != !now ||
            (scope->base && !str_equal(now, take_from(t, entry))))
            continue;
        if (creates)
            str_concat(&lines, "create ", entry->name, " ", to, "\n");
        else if (to)
            str_concat(&lines, "update ", entry->name, " ", to, " ", now, "\n");
        else
            str_concat(&lines, "delete ", entry->name, " ", now, "\n");
    }
    if (lines.failed)
        return brig_fail_nomem(err);
    struct git_call how = scope->how;
    how.input = &lines;
    how.says = &says;
    int status = lines.length == 0 ? 0 : GIT(t, &how, err, "update-ref", "-m", MESSAGE, "--stdin");
    if (status > 0)
        says.data[strcspn(says.data ? says.data : "", "\n")] = '\0';
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to move refs: %s",
                                   str_shown(says.data ? says.data : "").text);
}

static int take_move_head(const struct git_taking *t, const struct take_entry *entry,
                          const struct git_call *how, bool base, struct brig_error *err)
{
    const char *to = take_to(t, entry);
    char head[SIDE_HEAD_MAX];
    int status = side_read_head(t->git, how, head, err);
    if (status < 0 || !to || strcmp(head, to) == 0 ||
        (base && !str_equal(head, take_from(t, entry))))
        return status < 0 ? status : 0;
    status = refs_is_id(to)
                 ? GIT(t, how, err, "update-ref", "--no-deref", "-m", "brig: checkout", "HEAD", to)
                 : GIT(t, how, err, "symbolic-ref", "-m", "brig: checkout", "HEAD", to);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to move HEAD to '%s'", to);
}

static int take_read_refs(const struct git_taking *t, const struct git_call *how, struct side *side,
                          struct brig_error *err)
{
    side_done(side);
    *side = (struct side){0};
    return side_read(t->git, how, side, err);
}

/* ---- stashes ---- */

/* The list has an old part that stays, at its end: everything else above it is dropped, and what is missing is stored. */
static int take_move_stashes(const struct git_taking *t, const struct take_entry *entry,
                             const struct git_call *how, const struct side *now,
                             struct brig_error *err)
{
    size_t left = take_count_values(t, entry, t->towards);
    int status = 0;
    for (size_t i = now->stash_count; i-- > 0 && status == 0;) {
        char name[32];
        if (left > 0 &&
            take_is_stash(take_value(t, entry, t->towards, left - 1), now->stashes[i].id)) {
            left--;
            continue;
        }
        (void)snprintf(name, sizeof name, "stash@{%zu}", i); /* those above it are still there */
        status = GIT(t, how, err, "stash", "drop", "-q", name);
    }
    while (left-- > 0 && status == 0) {
        const char *text = take_value(t, entry, t->towards, left);
        char id[REFS_ID_MAX + 1];
        (void)snprintf(id, sizeof id, "%.*s", (int)take_id_length(text), text);
        const char *message = text[strlen(id)] ? text + strlen(id) + 1 : "";
        status = GIT(t, how, err, "stash", "store", "-q", "-m", message, id);
    }
    return status <= 0
               ? status
               : brig_fail(err, BRIG_E_STATE, 0, "git refuses to change the list of stashes");
}

/* Whether a stash is in the list of one side. */
static bool take_has_stash(const struct git_taking *t, const struct take_entry *entry,
                           enum git_direction side, const char *id)
{
    const char *text;
    for (size_t n = 0; (text = take_value(t, entry, side, n)); n++)
        if (take_is_stash(text, id))
            return true;
    return false;
}

/* The jail's list has not the stashes that the user has made meanwhile: only what comes or goes is
 * added or dropped in its base. */
static int take_follow_stashes(const struct git_taking *t, const struct take_entry *entry,
                               const struct git_call *how, const struct side *now,
                               struct brig_error *err)
{
    enum git_direction other = take_other(t->towards);
    int status = 0;
    for (size_t i = now->stash_count; i-- > 0 && status >= 0;) {
        char name[32];
        (void)snprintf(name, sizeof name, "stash@{%zu}", i);
        if (take_has_stash(t, entry, other, now->stashes[i].id) &&
            !take_has_stash(t, entry, t->towards, now->stashes[i].id))
            status = GIT(t, how, err, "stash", "drop", "-q", name);
    }
    for (size_t i = take_count_values(t, entry, t->towards); i-- > 0 && status >= 0;) {
        const char *text = take_value(t, entry, t->towards, i);
        char id[REFS_ID_MAX + 1];
        (void)snprintf(id, sizeof id, "%.*s", (int)take_id_length(text), text);
        if (!take_has_stash(t, entry, other, id) && side_find_stash(now, id) < 0)
            status = GIT(t, how, err, "stash", "store", "-q", id);
    }
    return status < 0 ? status : 0;
}

/* ---- settings ---- */

/* Sets or removes a key: in base/ only if it has the value before. */
static int take_move_config(const struct git_taking *t, const struct take_entry *entry,
                            const struct git_call *how, bool base, struct brig_error *err)
{
    const char *from = take_from(t, entry), *to = take_to(t, entry);
    autostr struct str now = {0};
    int status = take_read_config(t, entry, how, &now, err);
    const char *value = now.length > 0 ? now.data : NULL;
    if (status < 0 || str_equal(value, to) || (base && !str_equal(value, from)))
        return status;
    status = to ? GIT(t, how, err, "config", "--file", "config", "--replace-all", entry->name, to)
                : GIT(t, how, err, "config", "--file", "config", "--unset-all", entry->name);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to change '%s'",
                                   str_shown(entry->name).text);
}

/* ---- keeping what would be lost ---- */

/* Appends the objects of one side, and of the staged contents. */
static void take_add_objects(const struct git_taking *t, size_t repo, bool from, const char *before,
                             struct str *lines)
{
    enum git_direction side = from == (t->towards == GIT_TO_NEW) ? GIT_TO_OLD : GIT_TO_NEW;
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (t->trees[entry->tree].repo != repo || entry->kind == TAKE_INDEX ||
            entry->kind == TAKE_CONFIG || (entry->kind == TAKE_STAGED && !from))
            continue;
        const char *text;
        for (size_t n = 0; (text = take_value(t, entry, side, n)); n++)
            if (!str_starts_with(text, "refs/"))
                str_appendf(lines, "%s%.*s\n", before, (int)take_id_length(text), text);
    }
}

/* Whether it is the object of a tag, which no commit contains. */
static bool take_is_lost_tag(const struct git_taking *t, size_t repo, const char *id)
{
    for (size_t i = 0; i < t->entry_count; i++)
        if (t->trees[t->entries[i].tree].repo == repo &&
            str_starts_with(t->entries[i].name, "refs/tags/") &&
            str_equal(take_from(t, &t->entries[i]), id))
            return true;
    return false;
}

/* Objects of the values that are left, as far as those that come do not contain them, get a ref. */
static int take_pin(const struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_repo *repo = &t->repos[number];
    autostr struct str lines = {0}, tips = {0}, updates = {0};
    take_add_objects(t, number, true, "", &tips);
    if (!repo->pins || tips.length == 0)
        return 0;
    str_append(&lines, tips.data);
    take_add_objects(t, number, false, "^", &lines);
    struct git_call how = {.git_dir = repo->common, .input = &lines};
    autostr struct str lost = {0};
    how.out = &lost;
    if (lines.failed || tips.failed)
        return brig_fail_nomem(err);
    int status = GIT(t, &how, err, "rev-list", "--stdin");
    if (status > 0)
        return brig_fail(err, BRIG_E_STATE, 0, "an object that is to be kept is missing in '%s'",
                         str_shown(repo->path).text);
    for (char *at = tips.data, *end; status == 0 && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        bool again = updates.data && strstr(updates.data, at);
        if (!again && ((lost.data && strstr(lost.data, at)) || take_is_lost_tag(t, number, at)))
            str_concat(&updates, "update ", repo->pins, "/", at, " ", at, "\n");
    }
    how = (struct git_call){.git_dir = repo->common, .input = &updates};
    if (status == 0 && updates.length > 0)
        status = GIT(t, &how, err, "update-ref", "--stdin");
    return status <= 0
               ? status
               : brig_fail(err, BRIG_E_STATE, 0, "git cannot keep objects below %s", repo->pins);
}

/* ---- moving ---- */

static int take_move_index(struct git_taking *t, const struct take_entry *entry,
                           struct brig_error *err)
{
    struct take_tree *tree = &t->trees[entry->tree];
    char hash[65], name[32];
    int status = git_hash_index(t->git, tree->git_dir, NULL, hash, err);
    if (status < 0 || str_equal(hash, take_to(t, entry)))
        return status;
    take_index_name(t, entry->tree, name);
    if (!files_exists(t->copies, name)) {
        if (unlinkat(tree->git_dir, "index", 0) < 0 && errno != ENOENT)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove the index of '%s'",
                             str_shown(tree->path).text);
        return 0;
    }
    if (!tree->locked) /* it was moved already, and is moved back */
        status = take_lock(t, entry->tree, err);
    if (status < 0)
        return status;
    if (renameat(tree->git_dir, INDEX_LOCK, tree->git_dir, "index") < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot replace the index of '%s'",
                         str_shown(tree->path).text);
    tree->locked = false;
    return 0;
}

static int take_move_rest(struct git_taking *t, const struct take_entry *entry,
                          struct brig_error *err)
{
    struct take_repo *repo = &t->repos[t->trees[entry->tree].repo];
    const struct git_call how = {.git_dir = repo->common};
    switch (entry->kind) {
    case TAKE_INDEX:
        return take_move_index(t, entry, err);
    case TAKE_STASHES:
        return take_move_stashes(t, entry, &how, &repo->now, err);
    case TAKE_CONFIG:
        return take_move_config(t, entry, &how, false, err);
    case TAKE_REF:
    case TAKE_HEAD:
    case TAKE_STAGED:
        return 0;
    }
    return 0;
}

/* A branch f makes room for f/a while HEAD may name either: so deletions, HEAD, creations. */
static int take_move_repo(struct git_taking *t, size_t number, struct brig_error *err)
{
    struct take_repo *repo = &t->repos[number];
    struct take_scope scope = {
        .repo = number, .tree = SIZE_MAX, .how = {.git_dir = repo->common}, .now = &repo->now.refs};
    int status = take_pin(t, number, err);
    if (status == 0)
        status = take_update(t, &scope, false, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (t->entries[i].kind == TAKE_HEAD && take_is_in(t, &scope, &t->entries[i]))
            status = take_move_head(
                t, &t->entries[i],
                &(struct git_call){.git_dir = t->trees[t->entries[i].tree].git_dir}, false, err);
    if (status == 0)
        status = take_update(t, &scope, true, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (take_is_in(t, &scope, &t->entries[i]))
            status = take_move_rest(t, &t->entries[i], err);
    return status;
}

static int take_move_all(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < t->placed_count && status == 0; i++)
        status = take_move_placed(t, &t->placed[i], err);
    for (size_t i = 0; i < t->repo_count && status == 0; i++) {
        size_t number = t->towards == GIT_TO_NEW ? i : t->repo_count - 1 - i;
        struct git_call how = {.git_dir = t->repos[number].common};
        status = take_read_refs(t, &how, &t->repos[number].now, err);
        if (status == 0)
            status = take_move_repo(t, number, err);
    }
    return status;
}

/* ---- the base of a jail ---- */

/* base/ says on what jail and user agree, so it follows. A value there that is neither of the two is
 * left: the private git directory has gone on, or is another one. */
static int take_follow(const struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[number];
    autoclose int folder =
        tree->folder && t->storage >= 0 ? files_open_dir(t->storage, tree->folder) : -1;
    autoclose int base = folder < 0 ? -1 : files_open_dir(folder, "base");
    autofree char *objects = NULL;
    char name[32];
    struct side now = {0};
    if (base < 0)
        return 0;
    int status = str_make(&objects, err, t->repos[tree->repo].path, "/objects");
    struct take_scope scope = {.repo = tree->repo,
                               .tree = number,
                               .how = {.git_dir = base, .objects = objects},
                               .now = &now.refs,
                               .base = true};
    if (status == 0)
        status = side_read(t->git, &scope.how, &now, err);
    if (status == 0)
        status = take_update(t, &scope, false, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (t->entries[i].tree == number && t->entries[i].kind == TAKE_HEAD)
            status = take_move_head(t, &t->entries[i], &scope.how, true, err);
    if (status == 0)
        status = take_update(t, &scope, true, err);
    take_index_name(t, number, name);
    for (size_t i = 0; i < t->entry_count && status >= 0; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (entry->tree != number)
            continue;
        if (entry->kind == TAKE_STASHES)
            status = take_follow_stashes(t, entry, &scope.how, &now, err);
        if (entry->kind == TAKE_CONFIG)
            status = take_move_config(t, entry, &scope.how, true, err);
        if (entry->kind == TAKE_INDEX && files_exists(t->copies, name))
            status = copying_file(t->copies, name, base, "index", err);
    }
    seen_forget(folder);
    side_done(&now);
    return status < 0 ? status : 0;
}

/* ---- the whole ---- */

int git_taking_begin(const struct git *git, int record, int storage, enum git_direction towards,
                     struct git_taking **ret_taking, struct brig_error *err)
{
    struct git_taking *t = calloc(1, sizeof *t);
    if (!t)
        return brig_fail_nomem(err);
    *t = (struct git_taking){.git = git,
                             .record = record,
                             .storage = storage,
                             .copies = fcntl(record, F_DUPFD_CLOEXEC, 3),
                             .towards = towards};
    int status = take_read(t, err);
    if (status == 0)
        status = take_open(t, err);
    if (status == 0)
        status = take_lock_all(t, err);
    if (status == 0)
        status = take_check(t, err);
    if (status < 0)
        git_taking_end(t);
    else
        *ret_taking = t;
    return status;
}

bool git_taking_again(const struct git_taking *t)
{
    return t->again;
}

int git_taking_move(struct git_taking *t, struct brig_error *err)
{
    t->partly = true;
    int status = take_move_all(t, err);
    if (status < 0) { /* as far as it goes: the first error counts */
        t->towards = take_other(t->towards);
        t->partly = take_move_all(t, NULL) < 0;
        return status;
    }
    for (size_t i = 0; i < t->tree_count && status == 0; i++)
        status = take_follow(t, i, err);
    t->partly = status < 0;
    return status;
}

void git_taking_end(struct git_taking *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->tree_count; i++)
        if (t->trees[i].git_dir >= 0) {
            take_drop_lock(t, &t->trees[i]);
            (void)close(t->trees[i].git_dir);
        }
    if (!t->partly) /* else the next one goes on from there */
        (void)unlinkat(t->record, GIT_RECORD_LOCKS, 0);
    for (size_t i = 0; i < t->repo_count; i++) {
        if (t->repos[i].common >= 0)
            (void)close(t->repos[i].common);
        side_done(&t->repos[i].now);
        str_done(&t->repos[i].worktrees);
    }
    own_close(&t->copies);
    str_done(&t->text);
    str_done(&t->locks);
    free(t->repos);
    free(t->trees);
    free(t->entries);
    for (size_t i = 0; i < t->placed_count; i++)
        own_close(&t->placed[i].top);
    free(t->placed);
    free(t->values);
    free(t);
}

int git_take(const struct git *git, int record, int storage, enum git_direction towards,
             struct brig_error *err)
{
    struct git_taking *taking = NULL;
    int status = git_taking_begin(git, record, storage, towards, &taking, err);
    if (status == 0)
        status = git_taking_move(taking, err);
    git_taking_end(taking);
    return status;
}

bool git_was_interrupted(int record)
{
    return files_exists(record, GIT_RECORD_LOCKS);
}

/* ---- undo ---- */

/* Whether the copies of each index that differs are there: those of runs are kept for a while. */
static bool take_has_copies(const struct git_taking *t)
{
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        char old[32], new[32];
        (void)snprintf(old, sizeof old, "index-%zu.old", entry->tree);
        (void)snprintf(new, sizeof new, "index-%zu.new", entry->tree);
        if (entry->kind == TAKE_INDEX && !files_exists(t->copies, old) &&
            !files_exists(t->copies, new) && !str_equal(take_from(t, entry), take_to(t, entry)))
            return false;
    }
    return true;
}

static int take_check_copies(int record, struct brig_error *err)
{
    struct git_taking *t = calloc(1, sizeof *t);
    if (!t)
        return brig_fail_nomem(err);
    *t = (struct git_taking){.record = record,
                             .storage = -1,
                             .copies = fcntl(record, F_DUPFD_CLOEXEC, 3),
                             .partly = true}; /* nothing of it is touched */
    int status = take_read(t, err);
    if (status == 0 && !take_has_copies(t))
        status =
            brig_fail(err, BRIG_E_STATE, 0, "the copy of the index before is not kept any more");
    git_taking_end(t);
    return status;
}

bool git_record_names_tree(const char *key)
{
    return strcmp(key, "tree") == 0 || strcmp(key, "placed") == 0;
}

int git_record_reverse(int from, const char *name, int to, struct brig_error *err)
{
    autostr struct str text = {0}, record = {0};
    const char *rest = NULL, *of = "";
    int status = record_read(from, GIT_RECORD, &text, err);
    if (status > 0)
        status = take_check_copies(from, err);
    if (status < 0 || !text.data)
        return status;
    size_t length = 0;
    rest = strchr(text.data, '\n');
    if (rest && str_starts_with(++rest, RECORD_OF " ")) {
        of = rest;
        length = strcspn(rest, "\n") + 1;
        rest += length;
    }
    bool reversed = rest && str_starts_with(rest, RECORD_REVERSED " ");
    if (reversed)
        rest = strchr(rest, '\n') + 1;
    record_add_number(&record, "version", GIT_RECORD_VERSION);
    if (length > 0)
        str_append_bytes(&record, of, length);
    else
        record_add(&record, RECORD_OF, name);
    if (!reversed)
        record_add_number(&record, RECORD_REVERSED, 1);
    str_append(&record, rest ? rest : "");
    status = record_write(to, GIT_RECORD, &record, true, err);
    return status < 0 ? status : 1;
}
