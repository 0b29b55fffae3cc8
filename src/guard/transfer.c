/* SPDX-License-Identifier: MIT */
#include "guard/transfer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/sha256.h"
#include "guard/config.h"
#include "guard/copying.h"
#include "guard/lfs.h"
#include "guard/refs.h"

#define COUNTED_BRANCHES_MAX 8 /* of which the summary says how many commits are new */
#define ENTRIES_MAX 2000000    /* files and directories of a tree */
#define PACKS_MAX 64           /* of one transfer */
#define INDEX_LOCK "index.lock"

/* What one side looks like. */
struct side {
    struct str text; /* the list of refs is in it */
    struct refs refs;
    char head[1100];              /* "refs/heads/NAME", the object of a detached HEAD, or "" */
    char tree[REFS_ID_MAX + 1];   /* of the index, or "" if it has none, as while a merge goes on */
    char staged[REFS_ID_MAX + 1]; /* a commit with this tree; only inside */
};

struct transfer {
    const struct git *git;
    const struct private_git *p;
    char space[TRANSFER_SPACE_MAX];
    char *base_path, *base_index; /* of p->base, and of the index in it */
    struct side inside, base, outside;
    struct side kept;   /* what is below `space`, under the names that it has in the jail */
    bool unmerged;      /* inside */
    bool pending;       /* a rebase or merge goes on inside */
    bool running;       /* the run goes on */
    bool same_index;    /* the entries of the index outside are as at the beginning */
    struct str updates; /* for git update-ref --stdin */
    const struct ref *moved[COUNTED_BRANCHES_MAX]; /* the first of them */
    size_t moved_count;
    struct str deletions; /* the same, for a second transaction */
    struct transfer_report *report;
    bool lost; /* something could not be fetched */
};

static void side_done(struct side *side)
{
    refs_done(&side->refs);
    str_done(&side->text);
}

static void transfer_done(struct transfer *t)
{
    side_done(&t->inside);
    side_done(&t->base);
    side_done(&t->outside);
    side_done(&t->kept);
    str_done(&t->updates);
    str_done(&t->deletions);
    free(t->base_path);
    free(t->base_index);
}

void transfer_space(const char *jail, char ret_space[TRANSFER_SPACE_MAX])
{
    size_t used = (size_t)snprintf(ret_space, TRANSFER_SPACE_MAX, "refs/brig/");
    for (; *jail && used < TRANSFER_SPACE_MAX - 1; jail++)
        ret_space[used++] = isalnum((unsigned char)*jail) || *jail == '-' ? *jail : '_';
    ret_space[used] = '\0';
}

/* ---- calling git ---- */

struct how {
    const char *index; /* GIT_INDEX_FILE, or NULL */
    const struct str *input;
    int input_fd; /* instead of `input`, or 0 */
    const char *git_dir;
    bool (*each)(void *data, const char *text, size_t length); /* see struct git_call */
    void *data;
};

/* Runs git on the user's repository; its exit status or a negative code. */
static int run(const struct transfer *t, const struct how *how, struct str *out,
               const char *const *words, struct brig_error *err)
{
    const struct git_call call = {.words = words,
                                  .dir = t->p->top,
                                  .git_dir = how && how->git_dir ? how->git_dir : t->p->git_path,
                                  .index = how ? how->index : NULL,
                                  .input = how && how->input ? how->input->data : NULL,
                                  .input_length = how && how->input ? how->input->length : 0,
                                  .input_fd = how ? how->input_fd : 0,
                                  .each = how ? how->each : NULL,
                                  .data = how ? how->data : NULL,
                                  .out = out};
    return git_run(t->git, &call, err);
}
#define RUN(t, how, out, err, ...)                                                                 \
    run((t), (how), (out), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* The first line of what git prints, in an array; "" if it fails. */
#define LINE(t, how, ret, err, ...)                                                                \
    line_of((t), (how), (ret), sizeof(ret), (const char *const[]){__VA_ARGS__, NULL}, (err))
static int line_of(const struct transfer *t, const struct how *how, char *ret_line, size_t size,
                   const char *const *words, struct brig_error *err)
{
    autostr struct str out = {0};
    int status = run(t, how, &out, words, err);
    ret_line[0] = '\0';
    if (status == 0 && out.length > 0)
        (void)snprintf(ret_line, size, "%.*s", (int)strcspn(out.data, "\n"), out.data);
    return status < 0 ? status : 0;
}

static int refuse(const struct transfer *t, const char *what, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, 0, "git %s failed in '%s'", what,
                     str_shown(t->p->top_path).text);
}

/* ---- looking at the sides ---- */

static const char refs_format[] = "--format=%(objectname) %(refname)";

static int look_outside(struct transfer *t, struct side *side, const struct how *how,
                        struct brig_error *err)
{
    int status = RUN(t, how, &side->text, err, "for-each-ref", refs_format, "refs/heads",
                     "refs/tags", "refs/stash");
    if (status > 0)
        return refuse(t, "for-each-ref", err);
    if (status == 0 && side->text.data)
        status = refs_read(side->text.data, &side->refs, err);
    if (status == 0)
        status = LINE(t, how, side->head, err, "symbolic-ref", "-q", "HEAD");
    if (status == 0 && !side->head[0])
        status = LINE(t, how, side->head, err, "rev-parse", "-q", "--verify", "HEAD");
    return status;
}

/* In the sealed jail: HEAD, the tree of the index as a commit that can be fetched, work in progress, and
 * the refs. Nothing it prints is believed without a check. */
static const char look_script[] =
    "[ -f " GIT_SEALED_DIR "/index ] && i=1\n"
    /* Opening a FIFO would block git, and links lead out of the directory. Hooks are not read. */
    "find " GIT_SEALED_DIR " -path " GIT_SEALED_DIR "/hooks -prune -o "
    "'(' -type p -o -type l ')' -exec rm -f {} + 2>/dev/null\n"
    "h=$(git symbolic-ref -q HEAD) || h=$(git rev-parse -q --verify HEAD)\n"
    "echo \"$h\"\n"
    "if [ -z \"$i\" ]; then echo\n"
    "elif t=$(git write-tree 2>/dev/null); then\n"
    "    echo \"$t $(git commit-tree -m 'The index of the jail' \"$t\")\"\n"
    "elif [ -n \"$(git ls-files -u | head -c 1)\" ]; then echo unmerged; else echo; fi\n"
    "for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG rebase-merge rebase-apply "
    "sequencer; do\n"
    "    [ ! -e " GIT_SEALED_DIR "/$f ] || { echo pending; break; }\n"
    "done\n"
    "echo refs\n"
    "git for-each-ref --format='%(objecttype) %(objectname) %(refname)' refs/heads refs/tags "
    "refs/stash"
    " | sed -n -e '/ refs.tags./s/^[a-z]* //p' -e '/ refs.tags./!s/^commit //p'\n";

static int look_inside(struct transfer *t, struct brig_error *err)
{
    struct side *side = &t->inside;
    int status = git_run_sealed(t->git, &t->p->sealed, look_script, &side->text, err);
    if (status != 0)
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SYSTEM, 0,
                                      "git cannot read the jail's private git directory");
    char *rest = side->text.data ? side->text.data : NULL;
    const char *head = strsep(&rest, "\n");
    char *staged = strsep(&rest, "\n");
    const char *tree = strsep(&staged, " ");
    const char *word = strsep(&rest, "\n");
    if (word && strcmp(word, "pending") == 0) {
        t->pending = true;
        word = strsep(&rest, "\n");
    }
    if (!word || strcmp(word, "refs") != 0 || !rest)
        return brig_fail(err, BRIG_E_SYSTEM, 0,
                         "git printed something unexpected about the jail's "
                         "private git directory");
    if (refs_is_id(head) || (refs_is_safe(head) && str_starts_with(head, "refs/heads/")))
        (void)snprintf(side->head, sizeof side->head, "%s", head);
    if (refs_is_id(tree) && staged && refs_is_id(staged)) {
        (void)snprintf(side->tree, sizeof side->tree, "%s", tree);
        (void)snprintf(side->staged, sizeof side->staged, "%s", staged);
    }
    t->unmerged = strcmp(tree, "unmerged") == 0;
    return refs_read(rest, &side->refs, err);
}

/* The base is a copy of ours, so git outside may read it. */
static int look_at_base(struct transfer *t, struct brig_error *err)
{
    int status = repo_path_of(t->p->base, &t->base_path, err);
    if (status < 0)
        return status;
    if (asprintf(&t->base_index, "%s/index", t->base_path) < 0) {
        t->base_index = NULL;
        return brig_fail_nomem(err);
    }
    status = look_outside(t, &t->base, &(struct how){.git_dir = t->base_path}, err);
    if (status < 0)
        return status;
    /* Without an index this is the empty tree. */
    return LINE(t, &(struct how){.index = t->base_index}, t->base.tree, err, "write-tree");
}

static int look_at_kept(struct transfer *t, struct brig_error *err)
{
    side_done(&t->kept);
    t->kept = (struct side){0};
    int status = RUN(t, NULL, &t->kept.text, err, "for-each-ref",
                     "--format=%(objectname) refs/%(refname:lstrip=3)", t->space);
    if (status > 0)
        return refuse(t, "for-each-ref", err);
    return status < 0 || !t->kept.text.data ? status
                                            : refs_read(t->kept.text.data, &t->kept.refs, err);
}

/* ---- changing refs ---- */

static int update_once(const struct transfer *t, const struct str *updates, struct brig_error *err)
{
    return RUN(t, &(struct how){.input = updates}, NULL, err, "update-ref", "-m",
               "brig: from the jail", "--stdin");
}

/* All at once; if git refuses, one by one, so that one bad ref does not keep the others. */
static int update_refs(const struct transfer *t, const struct str *updates, struct brig_error *err)
{
    int status = updates->length == 0 ? 0 : update_once(t, updates, err);
    if (status <= 0)
        return status;
    autofree char *text = strdup(updates->data);
    if (!text)
        return brig_fail_nomem(err);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        autostr struct str one = {0};
        if (!*line)
            continue;
        str_concat(&one, line, "\n");
        status = one.failed ? brig_fail_nomem(err) : update_once(t, &one, err);
        if (status < 0)
            return status;
        if (status > 0 && t->report)
            str_appendf(&t->report->notes, "git: refused by git update-ref: %s\n",
                        str_shown(line).text);
    }
    return 0;
}

/* ---- fetching ---- */

static bool is_new(const struct transfer *t, const struct ref *ref)
{
    const char *before = refs_find(&t->base.refs, ref->name);
    return !before || strcmp(before, ref->id) != 0;
}

/* Where a ref of the jail is kept outside: refs/heads/x as refs/brig/JAIL/heads/x. */
static void append_kept(const struct transfer *t, struct str *text, const char *name)
{
    str_concat(text, t->space, "/", name + strlen("refs/"));
}

static bool has_new_head(const struct transfer *t)
{
    return refs_is_id(t->inside.head) && strcmp(t->inside.head, t->base.head) != 0;
}

static bool has_staged(const struct transfer *t)
{
    return t->inside.tree[0] && strcmp(t->inside.tree, t->base.tree) != 0;
}

static bool has_arrived(const struct transfer *t, const struct ref *ref)
{
    return str_equal(refs_find(&t->kept.refs, ref->name), ref->id);
}

/* Has the objects of these refs packed in the sealed jail, without what it began with. 1, or 0 if git refuses. */
static int pack(const struct transfer *t, const struct ref *wanted, size_t count, int file,
                struct brig_error *err)
{
    autostr struct str revisions = {0};
    for (size_t i = 0; i < count; i++)
        str_concat(&revisions, wanted[i].id, "\n");
    str_append(&revisions, "--not\n");
    for (size_t i = 0; i < t->base.refs.count; i++)
        str_concat(&revisions, t->base.refs.items[i].id, "\n");
    if (refs_is_id(t->base.head))
        str_concat(&revisions, t->base.head, "\n");
    if (revisions.failed)
        return brig_fail_nomem(err);
    int status = git_pack_sealed(t->git, &t->p->sealed, &revisions, file, err);
    return status < 0 ? status : status == 0;
}

/* Stores the pack outside, where git checks each object and that none is missing. 1, or 0 if git refuses. */
static int store(const struct transfer *t, const struct ref *wanted, size_t count, int file,
                 struct brig_error *err)
{
    static const char strict[] =
        "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,"
        "missingTaggerEntry=ignore";
    autostr struct str tips = {0};
    off_t length = lseek(file, 0, SEEK_END);
    if (length < 0 || lseek(file, 0, SEEK_SET) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the pack of the jail");
    int status = length == 0 ? 0
                             : RUN(t, &(struct how){.input_fd = file}, NULL, err, "index-pack",
                                   "--stdin", strict);
    for (size_t i = 0; i < count; i++)
        str_concat(&tips, wanted[i].id, "\n");
    if (tips.failed)
        return brig_fail_nomem(err);
    if (status == 0)
        status = RUN(t, &(struct how){.input = &tips}, NULL, err, "rev-list", "--objects",
                     "--quiet", "--stdin", "--not", "--all");
    return status < 0 ? status : status == 0;
}

/* Brings these refs below refs/brig/JAIL/. If git refuses, each half by itself, so that one bad ref does not keep
 * the others. What did not arrive is reported and not moved. `tries` bounds the number of packs. */
static int fetch(struct transfer *t, const struct ref *wanted, size_t count, int *tries,
                 struct brig_error *err)
{
    if (count == 0)
        return 0;
    autostr struct str updates = {0};
    autoclose int file =
        openat(t->p->folder, "pack", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's storage");
    (void)unlinkat(t->p->folder, "pack", 0);
    int status = --*tries < 0 ? 0 : pack(t, wanted, count, file, err);
    if (status > 0)
        status = store(t, wanted, count, file, err);
    if (status < 0)
        return status;
    if (status == 0 && count > 1 && *tries > 0) {
        status = fetch(t, wanted, count / 2, tries, err);
        return status < 0 ? status : fetch(t, wanted + count / 2, count - count / 2, tries, err);
    }
    if (status == 0) {
        t->lost = true;
        if (t->report)
            str_appendf(&t->report->notes, "git: '%s'%s could not be fetched from the jail\n",
                        str_shown(wanted[0].name).text, count > 1 ? " and others" : "");
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        str_append(&updates, "update ");
        append_kept(t, &updates, wanted[i].name);
        str_concat(&updates, " ", wanted[i].id, "\n");
    }
    return updates.failed ? brig_fail_nomem(err) : update_refs(t, &updates, err);
}

static int fetch_all(struct transfer *t, struct brig_error *err)
{
    size_t count = 0;
    int tries = PACKS_MAX;
    autofree struct ref *wanted = calloc(t->inside.refs.count + 2, sizeof *wanted);
    if (!wanted)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < t->inside.refs.count; i++)
        if (is_new(t, &t->inside.refs.items[i]) && !has_arrived(t, &t->inside.refs.items[i]))
            wanted[count++] = t->inside.refs.items[i];
    if (has_new_head(t))
        wanted[count++] = (struct ref){.id = t->inside.head, .name = "refs/HEAD"};
    if (has_staged(t))
        wanted[count++] = (struct ref){.id = t->inside.staged, .name = "refs/staged"};
    return fetch(t, wanted, count, &tries, err);
}

/* ---- deciding ---- */

static bool count_file(void *count, const char *name, size_t length)
{
    (void)name;
    return length <= PATH_LENGTH_MAX && ++*(size_t *)count <= ENTRIES_MAX;
}

/* Whether git outside would work for very long on a tree: a few objects can describe any number of files. */
static bool is_too_large(const struct transfer *t, const char *commit)
{
    size_t count = 0;
    const struct how how = {.each = count_file, .data = &count};
    return RUN(t, &how, NULL, NULL, "ls-tree", "-r", "-t", "-z", "--name-only", commit) != 0;
}

/* Whether a tree has a submodule that the index outside does not have. Git would look into its directory, where a
 * run that goes on can put any repository. */
static bool has_new_link(const struct transfer *t, const char *tree)
{
    autostr struct str old = {0}, new = {0};
    const struct how tree_links = {.each = git_keep_link, .data = &new};
    const struct how index_links = {.each = git_keep_link, .data = &old};
    if (RUN(t, &tree_links, NULL, NULL, "ls-tree", "-r", "-z", tree) != 0 ||
        RUN(t, &index_links, NULL, NULL, "ls-files", "-s", "-z") != 0)
        return true;
    for (const char *at = new.data; at &&at < new.data + new.length; at += strlen(at) + 1)
        if (!str_list_has(&old, at))
            return true;
    return false;
}

static const char *short_name(const char *name)
{
    const char *slash = strchr(name + strlen("refs/"), '/');
    return slash ? slash + 1 : name;
}

static void note_kept(struct transfer *t, const char *name, const char *why)
{
    struct str *notes = &t->report->notes;
    str_appendf(notes, "git: %s was not moved: %s. To merge it: git merge ", short_name(name), why);
    append_kept(t, notes, name);
    str_append(notes, "\n");
}

/* The branches that other worktrees have checked out, or that are being rebased there. */
static bool is_busy(const struct str *worktrees, const char *name)
{
    autostr struct str line = {0};
    str_concat(&line, "branch ", name, "\n");
    return !line.failed && worktrees->data && strstr(worktrees->data, line.data);
}

static bool moves_index(const struct transfer *t, const char *name)
{
    return strcmp(t->outside.head, name) == 0;
}

static void decide_ref(struct transfer *t, const struct ref *ref, const struct str *worktrees)
{
    bool tag = str_starts_with(ref->name, "refs/tags/");
    const char *base = refs_find(&t->base.refs, ref->name);
    const char *now = refs_find(&t->outside.refs, ref->name);
    if (now && strcmp(now, ref->id) == 0)
        return;
    if (strcmp(ref->name, "refs/stash") == 0) {
        str_concat(&t->report->notes, "git: a stash of the jail is at ", t->space,
                   "/stash: git stash apply ", t->space, "/stash\n");
        return;
    }
    if (!str_equal(base, now))
        note_kept(t, ref->name,
                  tag ? "the tag exists with another object" : "it changed outside meanwhile");
    else if (tag && now)
        note_kept(t, ref->name, "tags that exist are not changed");
    else if (moves_index(t, ref->name) && !t->same_index)
        note_kept(t, ref->name, "the index changed outside meanwhile");
    else if (!tag && !moves_index(t, ref->name) && is_busy(worktrees, ref->name))
        note_kept(t, ref->name, "it is checked out in another worktree");
    else if ((moves_index(t, ref->name) || strcmp(ref->name, t->inside.head) == 0) &&
             is_too_large(t, ref->id))
        note_kept(t, ref->name, "its tree has too many entries or levels");
    else if (t->running && moves_index(t, ref->name) && has_new_link(t, ref->id))
        note_kept(t, ref->name, "it has a new submodule and the run goes on");
    else {
        str_concat(&t->updates, now ? "update " : "create ", ref->name, " ", ref->id,
                   now ? " " : "", now ? now : "", "\n");
        if (t->moved_count < COUNTED_BRANCHES_MAX)
            t->moved[t->moved_count++] = ref;
    }
}

static int decide(struct transfer *t, struct brig_error *err)
{
    autostr struct str worktrees = {0};
    int status = RUN(t, NULL, &worktrees, err, "worktree", "list", "--porcelain");
    if (status >= 0)
        status = look_at_kept(t, err);
    if (status < 0)
        return status;
    /* Only what has really arrived. */
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (is_new(t, ref) && has_arrived(t, ref))
            decide_ref(t, ref, &worktrees);
    }
    for (size_t i = 0; i < t->base.refs.count; i++) {
        const struct ref *ref = &t->base.refs.items[i];
        const char *now = refs_find(&t->outside.refs, ref->name);
        if (refs_find(&t->inside.refs, ref->name) || !now || strcmp(now, ref->id) != 0 ||
            strcmp(ref->name, "refs/stash") == 0)
            continue;
        if (strcmp(t->outside.head, ref->name) == 0 || is_busy(&worktrees, ref->name))
            continue;
        str_concat(&t->deletions, "update ", t->space, "/before/", ref->name + strlen("refs/"), " ",
                   ref->id, "\n");
        str_appendf(&t->deletions, "delete %s %s\n", ref->name, ref->id);
    }
    return t->updates.failed || t->deletions.failed ? brig_fail_nomem(err) : 0;
}

/* ---- moving ---- */

/* Whether a rebase, a merge or the like goes on in the user's repository: then nothing is moved. */
static bool is_outside_busy(int git_dir)
{
    static const char *const names[] = {"rebase-merge", "rebase-apply",     "sequencer",
                                        "MERGE_HEAD",   "CHERRY_PICK_HEAD", "REVERT_HEAD",
                                        "BISECT_LOG"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (faccessat(git_dir, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static bool hash_entry(void *hash, const char *entry, size_t length)
{
    sha256_add(hash, entry, length + 1);
    return true;
}

/* Compares entries, not bytes: `git status` outside rewrites the index. */
static int compare_index(struct transfer *t, struct brig_error *err)
{
    const char *const indexes[] = {t->base_index, NULL};
    char texts[2][SHA256_HEX_LENGTH + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(indexes); i++) {
        struct sha256 hash;
        sha256_begin(&hash);
        const struct how how = {.index = indexes[i], .each = hash_entry, .data = &hash};
        int status = RUN(t, &how, NULL, err, "ls-files", "-s", "-z");
        if (status != 0)
            return status < 0 ? status : refuse(t, "ls-files", err);
        sha256_end(&hash, texts[i]);
    }
    t->same_index = strcmp(texts[0], texts[1]) == 0;
    return 0;
}

/* Says which lock is ours, for a run that finds it after we were killed. */
static int note_lock(const struct transfer *t, int git_dir, struct brig_error *err)
{
    struct stat info;
    char text[64];
    if (fstatat(git_dir, INDEX_LOCK, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the index");
    int length = snprintf(text, sizeof text, "%jx", (uintmax_t)info.st_ino);
    autoclose int fd =
        openat(t->p->folder, "locked", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's storage");
    return 0;
}

static void drop_own_lock(const struct transfer *t, int git_dir)
{
    char text[64] = "";
    struct stat info;
    autoclose int fd = openat(t->p->folder, "locked", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return;
    if (fstatat(git_dir, INDEX_LOCK, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        (uintmax_t)info.st_ino == strtoumax(text, NULL, 16))
        (void)unlinkat(git_dir, INDEX_LOCK, 0);
    (void)unlinkat(t->p->folder, "locked", 0);
}

/* Takes the lock of the index as git does, with a copy of the index in it. */
static int lock_index(const struct transfer *t, int git_dir, struct brig_error *err)
{
    drop_own_lock(t, git_dir);
    autoclose int fd =
        openat(git_dir, INDEX_LOCK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "the index of '%s' is locked by another git process. Try again with brig "
                         "sync",
                         str_shown(t->p->top_path).text);
    int status = note_lock(t, git_dir, err);
    if (status == 0 && faccessat(git_dir, "index", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        status = copying_file(git_dir, "index", git_dir, INDEX_LOCK, err);
    if (status < 0)
        drop_own_lock(t, git_dir);
    return status < 0 ? status : 0;
}

/* Puts the staged tree of the jail into the locked copy. Stat data, sparse and skip-worktree bits stay. */
static int fill_lock(const struct transfer *t, int git_dir, struct brig_error *err)
{
    autofree char *path = NULL;
    autostr struct str tree = {0};
    struct stat info;
    if (asprintf(&path, "%s/" INDEX_LOCK, t->p->git_path) < 0) {
        path = NULL;
        return brig_fail_nomem(err);
    }
    str_concat(&tree, t->space, "/staged^{tree}");
    const struct how how = {.index = path};
    bool empty = fstatat(git_dir, INDEX_LOCK, &info, AT_SYMLINK_NOFOLLOW) < 0 || info.st_size == 0;
    if (empty)
        (void)unlinkat(git_dir, INDEX_LOCK, 0);
    int status = empty ? RUN(t, &how, NULL, err, "read-tree", tree.data)
                       : RUN(t, &how, NULL, err, "read-tree", "-i", "-m", tree.data);
    if (status != 0)
        return status < 0 ? status : refuse(t, "read-tree", err);
    return note_lock(t, git_dir, err);
}

static int switch_head(struct transfer *t, struct brig_error *err)
{
    const char *head = t->inside.head;
    if (!head[0] || strcmp(head, t->outside.head) == 0)
        return 0;
    int status = refs_is_id(head) ? RUN(t, NULL, NULL, err, "update-ref", "--no-deref", "-m",
                                        "brig: checkout", "HEAD", head)
                                  : RUN(t, NULL, NULL, err, "symbolic-ref", "-m", "brig: checkout",
                                        "HEAD", head);
    if (status != 0)
        return status < 0 ? status : refuse(t, "symbolic-ref", err);
    str_concat(&t->report->summary, t->report->summary.length ? ", " : "", "HEAD is now ",
               refs_is_id(head) ? head : short_name(head));
    return 0;
}

/* "2 commits on NAME": how many the branch has that none of the old tips had. */
static void summarise(struct transfer *t, struct brig_error *err)
{
    for (size_t i = 0; i < t->moved_count; i++) {
        const struct ref *ref = t->moved[i];
        char count[32];
        const char *old = refs_find(&t->base.refs, ref->name);
        const char *since = old ? old : refs_find(&t->base.refs, t->base.head);
        autostr struct str range = {0};
        str_concat(&range, since ? since : "", since ? ".." : "", ref->id);
        if (LINE(t, NULL, count, err, "rev-list", "--count", range.data) < 0)
            return;
        str_concat(&t->report->summary, t->report->summary.length ? ", " : "",
                   strcmp(count, "0") == 0 ? "" : count,
                   strcmp(count, "0") == 0   ? "new "
                   : strcmp(count, "1") == 0 ? " commit on "
                                             : " commits on ",
                   short_name(ref->name));
    }
}

static void summarise_staged(struct transfer *t, struct brig_error *err)
{
    autostr struct str names = {0};
    size_t count = 0;
    if (RUN(t, NULL, &names, err, "diff-index", "--cached", "--name-only", "-z", "HEAD") != 0)
        return;
    for (size_t i = 0; i < names.length; i++)
        count += names.data[i] == '\0';
    if (count > 0)
        str_appendf(&t->report->summary, "%s%zu file%s staged",
                    t->report->summary.length ? ", " : "", count, count == 1 ? "" : "s");
}

/* The index that the jail began with is now the one that has arrived. */
static int note_staged(const struct transfer *t, struct brig_error *err)
{
    int status =
        RUN(t, &(struct how){.index = t->base_index}, NULL, err, "read-tree", t->inside.tree);
    return status > 0 ? refuse(t, "read-tree", err) : status;
}

/* And so are the refs that are the same inside and outside. */
static int note_refs(const struct transfer *t, const struct side *now, struct brig_error *err)
{
    autostr struct str updates = {0};
    int status = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (is_new(t, ref) && str_equal(refs_find(&now->refs, ref->name), ref->id))
            str_concat(&updates, "update ", ref->name, " ", ref->id, "\n");
    }
    for (size_t i = 0; i < t->base.refs.count; i++) {
        const char *name = t->base.refs.items[i].name;
        if (!refs_find(&t->inside.refs, name) && !refs_find(&now->refs, name))
            str_concat(&updates, "delete ", name, "\n");
    }
    const char *head = t->inside.head;
    if (strcmp(head, now->head) == 0 && strcmp(head, t->base.head) != 0 && refs_is_id(head))
        str_concat(&updates, "option no-deref\nupdate HEAD ", head, "\n");
    if (updates.failed)
        return brig_fail_nomem(err);
    const struct how how = {.input = &updates, .git_dir = t->base_path};
    if (updates.length > 0)
        status = RUN(t, &how, NULL, err, "update-ref", "--stdin");
    if (status == 0 && strcmp(head, now->head) == 0 && str_starts_with(head, "refs/"))
        status =
            RUN(t, &(struct how){.git_dir = t->base_path}, NULL, err, "symbolic-ref", "HEAD", head);
    return status > 0 ? refuse(t, "update-ref", err) : status;
}

/* With the lock of the index: no git outside switches branches or stages meanwhile. */
static int move_locked(struct transfer *t, int git_dir, struct brig_error *err)
{
    bool may_switch = !t->pending && t->same_index && strcmp(t->outside.head, t->base.head) == 0;
    autostr struct str staged = {0};
    str_concat(&staged, t->space, "/staged");
    bool large = has_staged(t) && may_switch && (staged.failed || is_too_large(t, staged.data));
    bool linked = t->running && has_staged(t) && may_switch && has_new_link(t, t->inside.tree);
    bool stages = has_staged(t) && may_switch && !large && !linked;
    may_switch = may_switch && !linked;
    if (large)
        str_concat(&t->report->notes,
                   "git: the tree of the index has too many entries or levels; it is "
                   "kept as ",
                   t->space, "/staged\n");
    int status = stages ? fill_lock(t, git_dir, err) : 0;
    if (status == 0)
        status = update_refs(t, &t->updates, err);
    if (status == 0)
        summarise(t, err);
    if (status == 0 && may_switch)
        status = switch_head(t, err);
    if (status == 0 && stages && renameat(git_dir, INDEX_LOCK, git_dir, "index") < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot replace the index");
    drop_own_lock(t, git_dir);
    if (status == 0 && stages)
        summarise_staged(t, err);
    if (status == 0 && stages && t->running)
        status = note_staged(t, err);
    if (status == 0 && linked)
        str_append(&t->report->notes, "git: a new submodule arrives when the run ends\n");
    else if (status == 0 && !may_switch && has_staged(t) && !t->pending)
        str_concat(&t->report->notes,
                   "git: HEAD or the index changed outside meanwhile: the index of "
                   "the jail is kept as ",
                   t->space, "/staged\n");
    return status < 0 ? status : update_refs(t, &t->deletions, err);
}

static int move(struct transfer *t, struct brig_error *err)
{
    autoclose int git_dir = open(t->p->git_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    if (git_dir < 0 || fstat(git_dir, &info) < 0 || info.st_dev != t->p->git_dev ||
        info.st_ino != t->p->git_ino)
        return brig_fail(err, BRIG_E_SETUP, git_dir < 0 ? errno : ESTALE,
                         "'%s' is not the directory it was", str_shown(t->p->git_path).text);
    if (is_outside_busy(git_dir)) {
        str_concat(&t->report->notes,
                   "git: a rebase or merge goes on outside; what the jail did is kept below ",
                   t->space, "/\n");
        return 0;
    }
    int status = lock_index(t, git_dir, err);
    if (status < 0)
        return status;
    status = compare_index(t, err);
    if (status == 0)
        status = look_outside(t, &t->outside, NULL, err);
    if (status == 0)
        status = decide(t, err);
    if (status < 0) {
        drop_own_lock(t, git_dir);
        return status;
    }
    return move_locked(t, git_dir, err);
}

/* ---- the whole ---- */

/* Keeps the old tips from garbage collection outside while the jail builds on them. */
static int pin_base(const struct transfer *t, struct brig_error *err)
{
    autostr struct str updates = {0};
    const char *tip = refs_find(&t->base.refs, t->base.head);
    if (!tip && refs_is_id(t->base.head))
        tip = t->base.head;
    if (!tip)
        return 0;
    str_concat(&updates, "update ", t->space, "/base ", tip, "\n");
    return updates.failed ? brig_fail_nomem(err) : update_refs(t, &updates, err);
}

/* Refs that are where they belong are not kept a second time. */
static int drop_moved(struct transfer *t, struct brig_error *err)
{
    autostr struct str deletions = {0};
    struct side now = {0};
    int status = look_outside(t, &now, NULL, err);
    if (status == 0)
        status = look_at_kept(t, err);
    for (size_t i = 0; status == 0 && i < t->kept.refs.count; i++) {
        const struct ref *ref = &t->kept.refs.items[i];
        if (!str_equal(refs_find(&now.refs, ref->name), ref->id))
            continue;
        str_append(&deletions, "delete ");
        append_kept(t, &deletions, ref->name);
        str_concat(&deletions, " ", ref->id, "\n");
    }
    char base[TRANSFER_SPACE_MAX + 8], head[TRANSFER_SPACE_MAX + 8], staged[TRANSFER_SPACE_MAX + 8];
    (void)snprintf(base, sizeof base, "%s/base", t->space);
    (void)snprintf(head, sizeof head, "%s/HEAD", t->space);
    (void)snprintf(staged, sizeof staged, "%s/staged", t->space);
    bool mentioned = t->report->notes.data && strstr(t->report->notes.data, staged);
    if (status == 0)
        status =
            RUN(t, NULL, &deletions, err, "for-each-ref",
                "--format=delete %(refname) %(objectname)", base, head, mentioned ? NULL : staged);
    if (status >= 0 && t->running)
        status = note_refs(t, &now, err);
    side_done(&now);
    return status < 0 ? status : update_refs(t, &deletions, err);
}

static int begin(struct transfer *t, const struct git *git, const struct private_git *private_git,
                 const char *jail, struct brig_error *err)
{
    t->git = git;
    t->p = private_git;
    transfer_space(jail, t->space);
    int status = look_at_base(t, err);
    if (status == 0)
        status = look_inside(t, err);
    if (status == 0)
        status = pin_base(t, err);
    if (status == 0)
        status = look_at_kept(t, err);
    return status < 0 ? status : fetch_all(t, err);
}

int transfer_fetch(const struct git *git, const struct private_git *private_git, const char *jail,
                   struct brig_error *err)
{
    __attribute__((cleanup(transfer_done))) struct transfer t = {0};
    return private_has_changed(private_git) ? begin(&t, git, private_git, jail, err) : 0;
}

int transfer_finish(const struct git *git, const struct private_git *private_git, const char *jail,
                    bool running, struct transfer_report *report, struct brig_error *err)
{
    __attribute__((cleanup(transfer_done))) struct transfer t = {.report = report,
                                                                 .running = running};
    if (!private_has_changed(private_git))
        return 0;
    if (faccessat(private_git->sealed.dir, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        str_appendf(&report->notes,
                    "git: the jail deleted its copy of '%s/.git'; yours is unchanged\n",
                    str_shown(private_git->top_path).text);
        return 0;
    }
    int status = begin(&t, git, private_git, jail, err);
    if (status == 0)
        status = lfs_transfer(private_git->sealed.dir, private_git->common_path, err);
    if (status == 0)
        status = move(&t, err);
    const struct git_call call = {.dir = private_git->top, .git_dir = private_git->git_path};
    if (status == 0 && !t.running) /* the settings that arrived would be found again */
        status =
            config_cross(git, &private_git->sealed, private_git->base, &call, &report->notes, err);
    report->pending = t.pending || t.unmerged;
    if (t.inside.refs.skipped > t.base.refs.skipped)
        str_append(&report->notes,
                   "git: refs with names that are not safe were left in the jail\n");
    if (status == 0)
        status = drop_moved(&t, err);
    if (status == 0 && t.lost)
        status =
            brig_fail(err, BRIG_E_SYSTEM, 0, "not everything the jail did in '%s' could be fetched",
                      str_shown(private_git->top_path).text);
    return status;
}
