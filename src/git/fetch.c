/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"
#include "git/seen.h"
#include "git/transfer.h"

#define PACKS_MAX 64        /* in one transfer */
#define STASHES_WORD "1000" /* SIDE_STASHES_MAX */

/* ---- calling git ---- */

int fetch_run(const struct transfer *t, const struct git_call *how, struct str *out,
              const char *const *words, struct brig_error *err)
{
    struct git_call call = how ? *how : (struct git_call){0};
    call.words = words;
    call.out = out;
    if (call.git_dir == 0)
        call.git_dir = t->p->repo.git_dir;
    return git_run(t->git, &call, err);
}

int fetch_line(const struct transfer *t, const struct git_call *how, char *ret_line, size_t size,
               const char *const *words, struct brig_error *err)
{
    autostr struct str out = {0};
    int status = fetch_run(t, how, &out, words, err);
    ret_line[0] = '\0';
    if (status == 0 && out.length > 0)
        (void)snprintf(ret_line, size, "%.*s", (int)strcspn(out.data, "\n"), out.data);
    return status < 0 ? status : 0;
}

int fetch_must_run(const struct transfer *t, const struct git_call *how, struct str *out,
                   const char *const *words, struct brig_error *err)
{
    int status = fetch_run(t, how, out, words, err);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_SYSTEM, 0, "git %s failed in '%s'", words[0],
                                   str_shown(t->p->top_path).text);
}

/* ---- the state of each side ---- */

/* Runs in the sealed jail and prints HEAD, the tree of the index as a commit that can be fetched,
 * unfinished operations, and the refs. Its output is untrusted and checked. git write-tree locks
 * the index, which a program in the jail may need now, so it is given a second name of it. */
#define DAMAGED_REFS "damaged" /* the last line, if git complained about a ref */
static const char look_script[] =
    "i=" GIT_SEALED_DIR "/index l=" GIT_SEALED_DIR "/index.brig\n"
    "rm -rf $l\n"
    "ln $i $l 2>/dev/null || l=$i\n"
    "[ -f $l ] || l=\n"
    "h=$(git symbolic-ref -q HEAD) || h=$(git rev-parse -q --verify HEAD)\n"
    "echo \"$h\"\n"
    "t=\n"
    "if [ -z \"$l\" ]; then echo\n"
    "elif t=$(GIT_INDEX_FILE=$l git write-tree 2>/dev/null); then\n"
    "    echo \"$t $(GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000' "
    "git commit-tree -m 'The index of the jail' \"$t\")\"\n"
    "elif [ -n \"$(git ls-files -u | head -c 1)\" ]; then echo unmerged; else echo; fi\n"
    /* Bit 29 of an entry's flags is intent-to-add. A comparison with a tree would take as long as a
     * jail likes. */
    "if [ -n \"$t\" ]; then GIT_INDEX_FILE=$l git -c core.quotePath=false ls-files --debug | sed "
    "-n "
    "-e '/^  /!{h;d;}' -e '/flags: [2367abef].\\{7\\}$/{x;s/^/intent /;p;}' | head -n 1000; fi\n"
    "[ -z \"$l\" ] || GIT_INDEX_FILE=$l git ls-files -v -z | grep -z '^[a-zS]' | sha256sum | "
    "sed 's/ .*//; s/^/flags /'\n"
    "[ \"$l\" = $i ] || rm -f $l\n"
    "for f in rebase-merge:rebase rebase-apply:rebase CHERRY_PICK_HEAD:cherry-pick "
    "REVERT_HEAD:revert sequencer:cherry-pick MERGE_HEAD:merge BISECT_LOG:bisect; do\n"
    "    [ ! -e " GIT_SEALED_DIR "/${f%:*} ] || { echo pending ${f#*:}; break; }\n"
    "done\n"
    "git reflog show -n " STASHES_WORD " --format='stash %H %gs' refs/stash 2>/dev/null\n"
    "echo refs\n"
    "{ e=$( { git for-each-ref --format='%(objecttype) " SIDE_REFS "' refs/heads refs/tags "
    "refs/notes || echo failed >&2; } 2>&1 1>&3 | tail -n 1 )\n"
    "[ -z \"$e\" ] || echo 'commit " DAMAGED_REFS "' >&3; } 3>&1"
    " | sed -n -e '/ refs.tags./s/^[a-z]* //p' -e '/ refs.tags./!s/^commit //p'\n";

/* Whether a name of the jail's index is that of a file below a directory, as git allows it. */
static bool fetch_is_path(const char *path)
{
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || *path == '"' || (length <= 2 && strncmp(part, "..", length) == 0) ||
            (length == 4 && strncasecmp(part, ".git", 4) == 0))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

/* Whether what the last look has printed is still right. */
static bool look_at_seen(struct transfer *t)
{
    __attribute__((cleanup(seen_done))) struct seen seen;
    seen_read(t->p->folder, &seen);
    bool valid = t->uses_seen && seen.signature == t->signature && seen.look.length > 0;
    if (valid)
        str_append(&t->look, seen.look.data);
    return valid;
}

static int look_inside(struct transfer *t, struct brig_error *err)
{
    struct side *side = &t->inside;
    t->signature = private_sign(t->p);
    int status =
        look_at_seen(t) ? 0 : git_run_sealed(t->git, &t->p->sealed, look_script, &t->look, err);
    if (status != 0)
        return status < 0 ? status
                          : brig_fail(err, BRIG_E_SYSTEM, 0,
                                      "git cannot read the jail's private git directory");
    str_append(&side->text, t->look.data ? t->look.data : "");
    if (side->text.failed)
        return brig_fail_nomem(err);
    char *rest = side->text.data;
    const char *head = strsep(&rest, "\n");
    char *staged = strsep(&rest, "\n");
    const char *tree = strsep(&staged, " ");
    char *word = strsep(&rest, "\n");
    for (; word && str_starts_with(word, "intent "); word = strsep(&rest, "\n"))
        if (fetch_is_path(word + strlen("intent ")))
            str_list_add(&t->inside_intents, word + strlen("intent "));
    if (word && str_starts_with(word, "flags ")) {
        (void)snprintf(side->flags, sizeof side->flags, "%s", word + strlen("flags "));
        word = strsep(&rest, "\n");
    }
    if (word && str_starts_with(word, "pending ")) {
        (void)snprintf(t->pending, sizeof t->pending, "%.*s",
                       (int)strspn(word + 8, "abcdefghijklmnopqrstuvwxyz-"), word + 8);
        word = strsep(&rest, "\n");
    }
    while (side_read_stash(side, word))
        word = strsep(&rest, "\n");
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
    char *last = str_ends_with(rest, DAMAGED_REFS "\n")
                     ? rest + strlen(rest) - strlen(DAMAGED_REFS "\n")
                     : NULL;
    t->damaged = last && (last == rest || last[-1] == '\n');
    if (t->damaged)
        *last = '\0';
    return refs_read(rest, &side->refs, err);
}

static bool add_name(void *names, const char *name, size_t length)
{
    (void)length;
    str_list_add(names, name);
    return true;
}

int fetch_list_intents(const struct transfer *t, const struct git_call *index,
                       struct str *ret_names, struct brig_error *err)
{
    char tree[REFS_ID_MAX + 1];
    struct git_call how = *index;
    how.each = add_name;
    how.data = ret_names;
    int status = LINE(t, index, tree, err, "write-tree"); /* it has not what is only to be added */
    if (status == 0 && tree[0])
        status = RUN(t, &how, NULL, err, "diff-index", "--cached", "--ita-visible-in-index",
                     "--diff-filter=A", "--name-only", "-z", tree, "--");
    return status < 0 ? status : ret_names->failed ? brig_fail_nomem(err) : 0;
}

static bool add_flagged(void *hash, const char *entry, size_t length)
{
    if (islower((unsigned char)entry[0]) || entry[0] == 'S')
        sha256_add(hash, entry, length + 1);
    return true;
}

/* The hash of the entries that are marked assume-unchanged or skip-worktree. */
static int hash_flags(const struct transfer *t, const struct git_call *index,
                      char ret_hash[SHA256_HEX_LENGTH + 1], struct brig_error *err)
{
    struct sha256 hash;
    struct git_call how = *index;
    sha256_begin(&hash);
    how.each = add_flagged;
    how.data = &hash;
    int status = RUN(t, &how, NULL, err, "ls-files", "-v", "-z");
    sha256_end(&hash, ret_hash);
    return status < 0 ? status : 0;
}

/* The base was written by brig and no jail can change it, so git outside may read it. */
static int look_at_base(struct transfer *t, struct brig_error *err)
{
    autofree char *path = NULL;
    int status = repo_path_of(t->p->base, &path, err);
    if (status < 0)
        return status;
    status = str_make(&t->base_index, err, path, "/index");
    if (status == 0)
        status = str_make(&t->objects, err, t->p->repo.common_path, "/objects");
    if (status < 0)
        return status;
    t->base_git = (struct git_call){.git_dir = t->p->base, .objects = t->objects};
    status = side_read(t->git, &t->base_git, &t->base, err);
    if (status < 0)
        return status;
    /* Without an index this is the empty tree. */
    const struct git_call index = {.index = t->base_index};
    status = LINE(t, &index, t->base.tree, err, "write-tree");
    if (status == 0)
        status = fetch_list_intents(t, &index, &t->base_intents, err);
    return status < 0 ? status : hash_flags(t, &index, t->base.flags, err);
}

/* The pins are read as branches that have the names of their objects. */
#define PIN_PREFIX "refs/heads/"

static int look_at_pins(struct transfer *t, struct brig_error *err)
{
    side_done(&t->pins);
    t->pins = (struct side){0};
    int status = MUST(t, NULL, &t->pins.text, err, "for-each-ref",
                      "--format=%(objectname) " PIN_PREFIX "%(refname:lstrip=4)", t->space);
    return status < 0 ? status : refs_read(t->pins.text.data, &t->pins.refs, err);
}

/* ---- fetching ---- */

bool fetch_is_new(const struct transfer *t, const struct ref *ref)
{
    const char *before = refs_find(&t->base.refs, ref->name);
    return !before || strcmp(before, ref->id) != 0;
}

static bool has_new_head(const struct transfer *t)
{
    return refs_is_id(t->inside.head) && strcmp(t->inside.head, t->base.head) != 0;
}

bool fetch_has_staged(const struct transfer *t)
{
    return t->inside.tree[0] && strcmp(t->inside.tree, t->base.tree) != 0;
}

bool fetch_has_intents(const struct transfer *t)
{
    const struct str *inside = &t->inside_intents, *base = &t->base_intents;
    return t->inside.tree[0] &&
           (inside->length != base->length ||
            (inside->length > 0 && memcmp(inside->data, base->data, inside->length) != 0));
}

bool fetch_has_arrived(const struct transfer *t, const char *id)
{
    char name[sizeof PIN_PREFIX + REFS_ID_MAX];
    (void)snprintf(name, sizeof name, PIN_PREFIX "%s", id);
    return refs_find(&t->pins.refs, name) != NULL;
}

/* Packs the objects of these refs in the sealed jail, without the objects of the initial state.
 * Returns 1, or 0 if git refuses. */
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

/* Stores the pack outside, where git checks each object and that none is missing. Returns 1, or 0
 * if git refuses. */
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
                             : RUN(t, &(struct git_call){.input_fd = file}, NULL, err, "index-pack",
                                   "--stdin", strict);
    for (size_t i = 0; i < count; i++)
        str_concat(&tips, wanted[i].id, "\n");
    if (tips.failed)
        return brig_fail_nomem(err);
    if (status == 0)
        status = RUN(t, &(struct git_call){.input = &tips}, NULL, err, "rev-list", "--objects",
                     "--quiet", "--stdin", "--not", "--all");
    return status < 0 ? status : status == 0;
}

/* Fetches these refs into the namespace. If git refuses, each half is tried separately, so that one
 * bad ref does not block the others. Refs that could not be fetched are reported and not moved.
 * `tries` limits the number of packs. */
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
        if (t->notes)
            str_appendf(t->notes, "git: '%s'%s could not be fetched from the jail\n",
                        str_shown(wanted[0].name).text, count > 1 ? " and others" : "");
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        str_concat(&updates, "update ", t->space, "/", wanted[i].id, " ", wanted[i].id, "\n");
    return updates.failed
               ? brig_fail_nomem(err)
               : MUST(t, &(struct git_call){.input = &updates}, NULL, err, "update-ref", "--stdin");
}

static int compare_ids(const void *left, const void *right)
{
    return strcmp(((const struct ref *)left)->id, ((const struct ref *)right)->id);
}

/* Leaves one of those with the same object, and none that has arrived. */
static size_t drop_doubles(const struct transfer *t, struct ref *wanted, size_t count)
{
    size_t left = 0;
    qsort(wanted, count, sizeof *wanted, compare_ids);
    for (size_t i = 0; i < count; i++)
        if (!fetch_has_arrived(t, wanted[i].id) &&
            (left == 0 || strcmp(wanted[left - 1].id, wanted[i].id) != 0))
            wanted[left++] = wanted[i];
    return left;
}

static int fetch_wanted(struct transfer *t, struct brig_error *err)
{
    size_t count = 0, stash_count = t->inside.stash_count;
    int tries = PACKS_MAX;
    autofree struct ref *wanted = calloc(t->inside.refs.count + stash_count + 2, sizeof *wanted);
    if (!wanted)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < t->inside.refs.count; i++)
        if (!t->inside.refs.items[i].symbolic && fetch_is_new(t, &t->inside.refs.items[i]))
            wanted[count++] = t->inside.refs.items[i];
    for (size_t i = 0; i < stash_count; i++)
        if (side_find_stash(&t->base, t->inside.stashes[i].id) < 0)
            wanted[count++] = (struct ref){.id = t->inside.stashes[i].id, .name = "refs/stash"};
    if (has_new_head(t))
        wanted[count++] = (struct ref){.id = t->inside.head, .name = "HEAD"};
    if (fetch_has_staged(t) || fetch_has_intents(t))
        wanted[count++] = (struct ref){.id = t->inside.staged, .name = "index"};
    count = drop_doubles(t, wanted, count);
    return fetch(t, wanted, count, &tries, err);
}

/* Keeps the initial tips from garbage collection outside while the jail builds on them. */
static int pin_base(struct transfer *t, struct brig_error *err)
{
    autostr struct str updates = {0};
    const char *tip = refs_find(&t->base.refs, t->base.head);
    if (!tip && refs_is_id(t->base.head))
        tip = t->base.head;
    if (!tip)
        return 0;
    str_concat(&updates, "update ", t->space, "/base ", tip, "\n");
    return updates.failed
               ? brig_fail_nomem(err)
               : MUST(t, &(struct git_call){.input = &updates}, NULL, err, "update-ref", "--stdin");
}

void fetch_list_new(const struct transfer *t, struct str *ret_objects)
{
    for (size_t i = 0; i < t->inside.refs.count; i++)
        if (fetch_is_new(t, &t->inside.refs.items[i]))
            str_list_add(ret_objects, t->inside.refs.items[i].id);
    for (size_t i = 0; i < t->inside.stash_count; i++)
        str_list_add(ret_objects, t->inside.stashes[i].id);
    if (has_new_head(t))
        str_list_add(ret_objects, t->inside.head);
    if (fetch_has_staged(t) || fetch_has_intents(t))
        str_list_add(ret_objects, t->inside.staged);
}

int fetch_unpin(const struct transfer *t, const struct str *keep, bool keeps_base,
                struct brig_error *err)
{
    autostr struct str updates = {0}, list = {0};
    int status = MUST(t, NULL, &list, err, "for-each-ref",
                      "--format=%(refname:lstrip=4) %(objectname)", t->space);
    char *rest = list.data;
    for (char *line; status == 0 && (line = strsep(&rest, "\n"));) {
        const char *name = strsep(&line, " ");
        bool base = strcmp(name, "base") == 0;
        if (line && (base ? !keeps_base : refs_is_id(name) && !str_list_has(keep, name)))
            str_concat(&updates, "delete ", t->space, "/", name, " ", line, "\n");
    }
    if (updates.failed)
        return brig_fail_nomem(err);
    return status < 0 || updates.length == 0
               ? status
               : MUST(t, &(struct git_call){.input = &updates}, NULL, err, "update-ref", "--stdin");
}

int fetch_all(struct transfer *t, struct brig_error *err)
{
    int status = look_at_base(t, err);
    if (status == 0)
        status = look_inside(t, err);
    if (status == 0)
        status = pin_base(t, err);
    if (status == 0)
        status = look_at_pins(t, err);
    if (status == 0)
        status = fetch_wanted(t, err);
    return status < 0 ? status : look_at_pins(t, err);
}

void fetch_done(struct transfer *t)
{
    side_done(&t->inside);
    side_done(&t->base);
    side_done(&t->pins);
    str_done(&t->look);
    str_done(&t->inside_intents);
    str_done(&t->base_intents);
    free(t->base_index);
    free(t->objects);
}
