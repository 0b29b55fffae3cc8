/* SPDX-License-Identifier: MIT */
/* Judges commits. Four passes of git: the commits (rev-list), their files (diff-tree), the merges against the tips that they
 * merge, and the two ends against the upstream; then the contents of links and of files. */
#include "git/range.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "git/repo.h"
#include "git/side.h"
#include "held/names.h"
#include "held/risk_text.h"

#define ROOTS_MAX 16                     /* commits without a parent that are looked at */
#define BATCH_BYTES ((uint64_t)16 << 20) /* contents that git prints at once, and one more file */
#define LARGE_BYTES ((uint64_t)16 << 20) /* a larger file is not read */
#define MODE_LINK 0120000
#define MODE_GITLINK 0160000
#define SUBJECT_MAX 500

static const char reason_unread[] = "it was not read: there is too much";

/* What decides whether a flag stays. */
enum flag_kind {
    FLAG_NAME,    /* nothing */
    FLAG_LINK,    /* the target of the link */
    FLAG_CONTENT, /* both versions of the file */
};

struct flag {
    enum flag_kind kind;
    enum names_class class, name_class; /* the latter by the name alone */
    const char *reason;
    char *path;
    char commit[RANGE_ID_MAX + 1];
    char blobs[2][RANGE_ID_MAX + 1]; /* before and after, of what must be read */
    bool merge;                      /* of a merge: tips that it merges can explain it */
    bool ends;                       /* of the ends: the upstream can */
    unsigned tips;                   /* in how many of the tips the path is another one */
    size_t kept, file;               /* where it is listed, or SIZE_MAX */
};

/* A commit of the range. */
struct node {
    const char *id;      /* in `list` */
    const char *parents; /* the same; "" if there are none */
    bool merge;
};

struct judge {
    const struct git_item *item;
    struct range *range;
    struct brig_error *err;
    const char
        *home; /* the working tree relative to the user's home, "" for the home itself; or NULL */
    struct str olds;    /* what the user has, as lines "^OBJECT" */
    struct str list;    /* of rev-list */
    struct node *nodes; /* sorted by id */
    size_t node_count;
    struct str tips; /* what the user has and the range merges: a list */
    unsigned tip_count;
    struct flag *flags;
    size_t flag_count;
    struct flag **sorted; /* those of merges and of the ends, by commit and path */
    size_t sorted_count;
    uint64_t entries, read; /* paths, and bytes of contents */
    struct str links;       /* paths and commits of submodules that are known, a list of pairs */
    size_t link_count;
    const char *failed; /* why nothing is known */
    /* Of the pass that reads diff-tree: */
    enum { PASS_COMMITS, PASS_ENDS, PASS_STAGED, PASS_TIPS } pass;
    char at[RANGE_ID_MAX + 1];   /* the commit of the records that follow */
    struct range_commit *commit; /* where its files are listed, or NULL */
    bool merge;
    unsigned field; /* of the header that follows: 0: none */
    uint32_t modes[2];
    char blobs[2][RANGE_ID_MAX + 1];
    char letter; /* a path follows */
};

/* ---- git ---- */

static int judge_git(struct judge *judge, const struct git_call *how, const char *const *words)
{
    struct git_call call = *how;
    call.words = words;
    return git_run(judge->item->git, &call, NULL);
}
#define GIT(judge, how, ...)                                                                       \
    judge_git((judge), (how), (const char *const[]){"--no-replace-objects", __VA_ARGS__, NULL})

/* The first line that git prints; false if it fails. */
static bool judge_line(struct judge *judge, char ret_line[RANGE_ID_MAX + 1], const char *verb,
                       const char *option, const char *word)
{
    autostr struct str out = {0};
    struct git_call how = judge->item->outside;
    how.out = &out;
    const bool worked = GIT(judge, &how, verb, option, word) == 0 && out.length > 1;
    if (!worked)
        return false;
    (void)snprintf(ret_line, RANGE_ID_MAX + 1, "%.*s", (int)strcspn(out.data, "\n"), out.data);
    return refs_is_id(ret_line);
}

/* ---- what the user has ---- */

/* Whether a ref that the user and the jail agree on is still one of the user's. */
static bool is_old(const struct str *names, const char *name)
{
    return str_starts_with(name, "refs/remotes/") || str_list_has(names, name);
}

static bool judge_names(void *names, const char *text, size_t length)
{
    (void)length;
    str_list_add(names, text + (*text == '\n'));
    return !((struct str *)names)->failed;
}

struct olds {
    struct str *out;
    const struct str *names;
};

static bool judge_old(void *context, const char *text, size_t length)
{
    struct olds *olds = context;
    (void)length;
    text += *text == '\n';
    const char *name = strchr(text, ' ');
    if (name && is_old(olds->names, name + 1))
        str_appendf(olds->out, "^%.*s\n", (int)(name - text), text);
    return !olds->out->failed;
}

/* Refs that the run has fetched or pushed since prove nothing. */
static void judge_find_olds(struct judge *judge)
{
    autostr struct str names = {0}, head = {0};
    struct git_call outside = judge->item->outside, base = judge->item->base;
    struct olds olds = {&judge->olds, &names};
    outside.each = judge_names;
    outside.data = &names;
    base.each = judge_old;
    base.data = &olds;
    if (GIT(judge, &outside, "for-each-ref", "--format=%(refname)%00", "refs/heads", "refs/tags",
            "refs/notes") != 0 ||
        GIT(judge, &base, "for-each-ref", "--format=%(objectname) %(refname)%00", "refs/heads",
            "refs/tags", "refs/notes", "refs/remotes") != 0)
        judge->failed = "git cannot list the refs";
    base.each = NULL;
    base.out = &head;
    if (GIT(judge, &base, "symbolic-ref", "-q", "HEAD") == 1 &&
        GIT(judge, &base, "rev-parse", "-q", "--verify", "HEAD") == 0 && head.length > 0)
        str_concat(&judge->olds, "^", head.data); /* it is detached */
}

/* ---- the commits ---- */

static int node_compare(const void *left, const void *right)
{
    return strcmp(((const struct node *)left)->id, ((const struct node *)right)->id);
}

static const struct node *judge_node(const struct judge *judge, const char *id)
{
    const struct node key = {.id = id};
    return judge->node_count
               ? bsearch(&key, judge->nodes, judge->node_count, sizeof key, node_compare)
               : NULL;
}

/* A commit without parents for git, although it names one: the repository is shallow. */
static bool is_cut(struct judge *judge, const char *id)
{
    autostr struct str text = {0};
    struct git_call how = judge->item->outside;
    how.out = &text;
    return GIT(judge, &how, "cat-file", "commit", id) != 0 || !text.data ||
           strstr(text.data, "\nparent ");
}

/* Reads "COMMIT PARENT…" lines into nodes, and appends the input of diff-tree. A stash is compared with its first parent:
 * the others have no common files with it. */
static void judge_read_list(struct judge *judge, struct str *input)
{
    size_t lines = 0, roots = 0;
    for (const char *c = judge->list.data; c && *c; c++)
        lines += *c == '\n';
    judge->nodes = calloc(lines + 1, sizeof *judge->nodes);
    if (!judge->nodes || lines > RANGE_COMMITS_MAX) {
        judge->failed = judge->nodes ? "there are too many commits" : "memory is lacking";
        return;
    }
    char *rest = judge->list.data;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char *parents = strchr(line, ' ');
        if (parents)
            *parents++ = '\0';
        struct node *node = &judge->nodes[judge->node_count++];
        *node = (struct node){line, parents ? parents : "", parents && strchr(parents, ' ')};
        bool stash = judge->item->kind == GIT_ITEM_STASH && strcmp(line, judge->item->new) == 0;
        if (stash)
            node->merge = false;
        str_append(input, line);
        if (stash && parents)
            str_appendf(input, " %.*s", (int)strcspn(parents, " "), parents);
        str_append_char(input, '\n');
        if (!parents && (++roots > ROOTS_MAX || is_cut(judge, line)))
            judge->failed = "a parent is missing";
    }
    judge->range->total = judge->node_count;
    qsort(judge->nodes, judge->node_count, sizeof *judge->nodes, node_compare);
}

/* ---- the class of a path ---- */

/* Whether a commit of a submodule is one that the user has there; another is not known, and git would check it out. */
static bool judge_has_link(struct judge *judge, const char *path, const char *id)
{
    for (const char *at = NULL; (at = str_list_next(&judge->links, at));) {
        const char *known = str_list_next(&judge->links, at);
        if (strcmp(at, path) == 0 && strcmp(known, id) == 0)
            return true;
        at = known;
    }
    if (judge->link_count++ >= RANGE_LINKS_MAX || !judge->item->top)
        return false;
    autoclose int top = open(judge->item->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int dir = -1;
    struct repo repo = REPO_INIT;
    if (top < 0 || path_open_beneath(top, path, O_RDONLY | O_DIRECTORY, 0, &dir, NULL) < 0)
        return false;
    bool found = false;
    if (repo_find(dir, git_owner(judge->item->git), &repo, NULL) == 0 &&
        (repo.kind == REPO_DIRECTORY || repo.kind == REPO_FILE)) {
        autostr struct str out = {0};
        const struct git_call how = {.git_dir = repo.git_dir, .out = &out};
        found = GIT(judge, &how, "rev-list", "-n", "1", id, "--not", "--exclude=refs/brig/*",
                    "--all") == 0 &&
                out.length == 0;
    }
    repo_done(&repo);
    if (found) {
        str_list_add(&judge->links, path);
        str_list_add(&judge->links, id);
    }
    return found;
}

/* Fills in kind, class and reason of a record; false: it is plain. */
static bool judge_path(struct judge *judge, const char *path, struct flag *flag)
{
    char in_home[PATH_LENGTH_MAX + 1];
    const char *home = NULL;
    if (judge->home &&
        str_fill(in_home, sizeof in_home, judge->home, *judge->home ? "/" : "", path))
        home = in_home;
    uint32_t before = judge->modes[0], after = judge->modes[1];
    struct names_mark mark;
    const char *unusual = before == 0 ? risk_name_find(path) : NULL;
    if (names_judge(path, home, before, after, &mark)) {
        flag->reason = mark.reason;
        flag->class = flag->name_class = mark.class;
    }
    if (unusual && flag->class != NAMES_UNASKED && flag->class != NAMES_WHEN_RUN) {
        flag->reason = unusual;
        flag->class = flag->name_class = NAMES_UNUSUAL;
    }
    if (flag->class == NAMES_UNASKED)
        return true;
    if (after == MODE_GITLINK && !judge_has_link(judge, path, judge->blobs[1])) {
        flag->class = NAMES_NOT_JUDGED;
        flag->reason = "a commit that your copy of the submodule does not have";
    } else if (after == MODE_LINK) {
        flag->kind = FLAG_LINK;
        flag->class = NAMES_UNASKED;
    } else if (S_ISREG(after) && flag->class != NAMES_WHEN_RUN &&
               strcmp(judge->blobs[0], judge->blobs[1]) != 0) {
        flag->kind = FLAG_CONTENT;
        flag->class = NAMES_WHEN_RUN;
    }
    return flag->class != NAMES_PLAIN;
}

/* ---- reading diff-tree ---- */

static void judge_mark(struct range *range, enum names_class class, const char *reason,
                       const char *path, const char *commit)
{
    struct range_mark *mark = &range->first[class];
    if (mark->reason)
        return;
    mark->reason = reason;
    mark->path = path ? strdup(path) : NULL;
    (void)snprintf(mark->commit, sizeof mark->commit, "%s", commit);
}

static bool judge_note_flag(struct judge *judge, const struct flag *flag)
{
    if (judge->flag_count >= RANGE_FLAGS_MAX) { /* it cannot be dropped again */
        judge_mark(judge->range, flag->class, flag->reason ? flag->reason : "it was not read",
                   flag->path, flag->commit);
        free(flag->path);
        return true;
    }
    if (!array_grow(&judge->flags, judge->flag_count))
        return false;
    judge->flags[judge->flag_count++] = *flag;
    return true;
}

/* Lists the file in its commit: its index, or SIZE_MAX. */
static size_t judge_list_file(struct judge *judge, const char *path, const struct flag *flag)
{
    struct range_commit *commit = judge->commit;
    if (!commit)
        return SIZE_MAX;
    for (size_t i = 0; i < commit->file_count && judge->merge; i++)
        if (strcmp(commit->files[i].path, path) == 0) /* the other parent has listed it */
            return i;
    if (commit->file_count >= RANGE_FILES_KEPT || !array_grow(&commit->files, commit->file_count)) {
        commit->more++;
        return SIZE_MAX;
    }
    struct range_file *file = &commit->files[commit->file_count];
    bool marked = flag->reason && !(judge->merge && flag->class != NAMES_UNASKED);
    *file = (struct range_file){.path = strdup(path),
                                .letter = judge->letter,
                                .mode = judge->modes[1],
                                .reason = marked ? flag->reason : NULL,
                                .class = marked ? flag->class : NAMES_PLAIN};
    return file->path ? commit->file_count++ : SIZE_MAX;
}

/* Whether a mark of this class counts where it was found. */
static bool judge_counts(const struct judge *judge, enum names_class class)
{
    bool always = class == NAMES_UNASKED || class == NAMES_NOT_JUDGED;
    if (judge->pass == PASS_ENDS) /* a new ref changes nothing that the user has */
        return !always || judge->item->old || judge->item->kind != GIT_ITEM_REF;
    return always || judge->pass == PASS_STAGED || judge->item->kind == GIT_ITEM_STASH;
}

static int flag_compare(const void *left, const void *right)
{
    const struct flag *const *a = left, *const *b = right;
    int order = strcmp((*a)->commit, (*b)->commit);
    return order ? order : strcmp((*a)->path, (*b)->path);
}

/* A tip has another version of these paths, so it does not explain them. */
static void judge_compare_tip(struct judge *judge, const char *path)
{
    size_t low = 0, high = judge->sorted_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct flag *flag = judge->sorted[middle];
        int order = strcmp(flag->commit, judge->at);
        order = order ? order : strcmp(flag->path, path);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < judge->sorted_count && strcmp(judge->sorted[low]->commit, judge->at) == 0 &&
           strcmp(judge->sorted[low]->path, path) == 0;
         low++)
        judge->sorted[low]->tips++;
}

static bool judge_take_path(struct judge *judge, const char *path)
{
    if (++judge->entries > RANGE_ENTRIES_MAX) {
        judge->failed = "there are too many files";
        return false;
    }
    if (judge->pass == PASS_TIPS) {
        judge_compare_tip(judge, path);
        return true;
    }
    struct flag flag = {.kept = SIZE_MAX, .merge = judge->merge, .ends = judge->pass == PASS_ENDS};
    bool flagged = judge_path(judge, path, &flag);
    flag.file = judge_list_file(judge, path, &flag);
    if (!flagged || !judge_counts(judge, flag.class))
        return true;
    if (judge->commit)
        flag.kept = (size_t)(judge->commit - judge->range->commits);
    flag.path = strdup(path);
    (void)snprintf(flag.commit, sizeof flag.commit, "%s", judge->at);
    memcpy(flag.blobs, judge->blobs, sizeof flag.blobs);
    return flag.path && judge_note_flag(judge, &flag);
}

/* Copies the object of a record and moves past the blank after it. */
static const char *judge_take_blob(const char *at, char ret_id[RANGE_ID_MAX + 1])
{
    size_t length = strcspn(at, " ");
    (void)snprintf(ret_id, RANGE_ID_MAX + 1, "%.*s", (int)length, at);
    return at + length + (at[length] == ' ');
}

/* ":MODE MODE OBJECT OBJECT LETTER" */
static bool judge_take_record(struct judge *judge, const char *text)
{
    const char *at = text + 1;
    for (size_t i = 0; i < 2; i++) {
        char *end;
        judge->modes[i] = (uint32_t)strtoul(at, &end, 8);
        at = end + (*end == ' ');
    }
    for (size_t i = 0; i < 2; i++)
        at = judge_take_blob(at, judge->blobs[i]);
    judge->letter = *at;
    return judge->letter && refs_is_id(judge->blobs[1]);
}

/* The header of a commit begins. Of a merge there is one for each parent. */
static bool judge_begin_commit(struct judge *judge, const char *id)
{
    struct range *range = judge->range;
    const struct node *node = judge_node(judge, id);
    bool again = strcmp(judge->at, id) == 0;
    (void)snprintf(judge->at, sizeof judge->at, "%s", id);
    judge->field = 1;
    judge->merge = judge->pass == PASS_TIPS || (node && node->merge);
    if (judge->pass == PASS_TIPS || again)
        return true;
    judge->commit = NULL;
    if (range->count >= RANGE_COMMITS_KEPT)
        return true;
    if (!array_grow(&range->commits, range->count))
        return false;
    judge->commit = &range->commits[range->count++];
    *judge->commit = (struct range_commit){0};
    (void)snprintf(judge->commit->id, sizeof judge->commit->id, "%s", id);
    return true;
}

static void judge_take_header(struct judge *judge, const char *text)
{
    struct range_commit *commit = judge->commit;
    unsigned field = judge->field++;
    if (field == 3)
        judge->field = 0;
    if (!commit || judge->pass == PASS_TIPS)
        return;
    if (field == 1 && !commit->author)
        commit->author = strndup(text, SUBJECT_MAX);
    else if (field == 2)
        commit->time = strtoll(text, NULL, 10);
    else if (field == 3 && !commit->subject)
        commit->subject = strndup(text, SUBJECT_MAX);
}

/* The texts of diff-tree: headers of four texts, and records of two. */
static bool judge_take(void *context, const char *text, size_t length)
{
    struct judge *judge = context;
    (void)length;
    if (judge->letter) {
        bool taken = judge_take_path(judge, text);
        judge->letter = '\0';
        return taken;
    }
    if (judge->field > 0) {
        judge_take_header(judge, text);
        return true;
    }
    text += *text == '\n';
    if (!*text)
        return true;
    return *text == ':' ? judge_take_record(judge, text)
                        : refs_is_id(text) && judge_begin_commit(judge, text);
}

#define DIFF_TREE                                                                                  \
    "-c", "log.diffMerges=separate", "diff-tree", "-r", "--raw", "-z", "--no-renames",             \
        "--no-abbrev", "--ignore-submodules=none"
#define HEADER "--format=%H%x00%an%x00%at%x00%s%x00"

/* Compares the commits of the input with their parents. */
static void judge_compare(struct judge *judge, const struct str *input)
{
    struct git_call how = judge->item->outside;
    how.input = input;
    how.each = judge_take;
    how.data = judge;
    judge->at[0] = '\0';
    judge->commit = NULL;
    if (input->failed || GIT(judge, &how, DIFF_TREE, "--stdin", "-m", "--root", "--always",
                             "--encoding=UTF-8", HEADER) != 0)
        judge->failed = judge->failed ? judge->failed : "git cannot read them";
}

/* Compares two trees. */
static void judge_compare_trees(struct judge *judge, const char *old, const char *new)
{
    struct git_call how = judge->item->outside;
    how.each = judge_take;
    how.data = judge;
    if (GIT(judge, &how, DIFF_TREE, old, new) != 0)
        judge->failed = judge->failed ? judge->failed : "git cannot read them";
}

/* ---- the passes ---- */

static void judge_commits(struct judge *judge, const char *new)
{
    autostr struct str input = {0}, ranges = {0};
    struct git_call how = judge->item->outside;
    str_concat(&ranges, new, "\n", judge->olds.data ? judge->olds.data : "");
    for (const char *at = NULL;
         judge->item->others && (at = str_list_next(judge->item->others, at));)
        str_concat(&ranges, at, "\n");
    how.input = &ranges;
    how.out = &judge->list;
    if (ranges.failed || GIT(judge, &how, "rev-list", "--parents", "--ignore-missing", "--stdin",
                             "--max-count=100001") != 0) {
        judge->failed = "git cannot list the commits, or one is missing";
        return;
    }
    judge_read_list(judge, &input);
    judge->pass = PASS_COMMITS;
    if (!judge->failed && judge->node_count > 0)
        judge_compare(judge, &input);
}

static const char *empty_tree(const char *id)
{
    return strlen(id) == RANGE_ID_MAX
               ? "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
               : "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
}

/* A stash: the work of it and of the index against its first parent, and all of the untracked files, which git writes
 * whatever their own parents are. */
static void judge_stash_ends(struct judge *judge, const char *new)
{
    autostr struct str text = {0};
    char ids[4][RANGE_ID_MAX + 1] = {"", "", "", ""};
    struct git_call how = judge->item->outside;
    how.out = &text;
    if (GIT(judge, &how, "rev-list", "--parents", "--no-walk", new) != 0 || !text.data) {
        judge->failed = "git cannot read it";
        return;
    }
    const char *at = text.data;
    for (size_t i = 0; i < ARRAY_LENGTH(ids) && *at && *at != '\n'; i++) {
        size_t length = strcspn(at, " \n");
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", (int)length, at);
        at += length + (at[length] == ' ');
    }
    const char *first = ids[1][0] ? ids[1] : empty_tree(new);
    judge_compare_trees(judge, first, new);
    if (ids[2][0])
        judge_compare_trees(judge, first, ids[2]);
    if (ids[3][0])
        judge_compare_trees(judge, empty_tree(new), ids[3]);
}

/* What the user had where this begins: the old value, or for a new ref what it has in common with the jail's first HEAD. A new
 * ref without new commits is only a name. */
static void judge_ends(struct judge *judge, const char *new)
{
    char fork[RANGE_ID_MAX + 1], head[RANGE_ID_MAX + 1] = "";
    const char *old = judge->item->old;
    autostr struct str text = {0};
    struct git_call base = judge->item->base;
    base.out = &text;
    judge->pass = PASS_ENDS;
    judge->merge = false;
    judge->commit = NULL;
    (void)snprintf(judge->at, sizeof judge->at, "%s", new);
    if (judge->item->kind == GIT_ITEM_STASH) {
        judge_stash_ends(judge, new);
        return;
    }
    if (!old && judge->item->kind == GIT_ITEM_REF && judge->node_count == 0)
        return;
    if (!old && GIT(judge, &base, "rev-parse", "-q", "--verify", "HEAD") == 0 && text.length > 0) {
        (void)snprintf(head, sizeof head, "%.*s", (int)strcspn(text.data, "\n"), text.data);
        old = judge_line(judge, fork, "merge-base", head, new) ? fork : NULL;
    }
    judge_compare_trees(judge, old ? old : empty_tree(new), new);
}

/* What is staged, beside the commit that HEAD leads to. */
static void judge_staged(struct judge *judge)
{
    const struct git_item *item = judge->item;
    struct range *range = judge->range;
    if (item->kind != GIT_ITEM_WORKTREE || !item->new_tree || judge->failed)
        return;
    if (!array_grow(&range->commits, range->count)) {
        judge->failed = "memory is lacking";
        return;
    }
    judge->pass = PASS_STAGED;
    judge->merge = false;
    judge->at[0] = '\0';
    judge->commit = &range->commits[range->count++];
    *judge->commit = (struct range_commit){.subject = strdup("staged")};
    judge_compare_trees(judge, item->new ? item->new : empty_tree(item->new_tree), item->new_tree);
    if (judge->commit->file_count + judge->commit->more == 0) {
        free(judge->commit->subject);
        range->count--;
    }
}

/* Collects the tips of the user that commits of the range have as a parent. */
static void judge_find_tips(struct judge *judge)
{
    autostr struct str olds = {0}, tips = {0}, wanted = {0};
    struct git_call how = judge->item->outside;
    for (const char *c = judge->olds.data; c && *c; c++)
        if (*c != '^')
            str_append_char(&wanted, *c);
    how.input = &wanted;
    how.out = &olds; /* commits, also of annotated tags */
    if (wanted.length == 0 ||
        GIT(judge, &how, "rev-list", "--no-walk=unsorted", "--ignore-missing", "--stdin") != 0)
        return;
    str_list_add(&tips, "");
    char *rest = olds.data;
    for (char *line; rest && (line = strsep(&rest, "\n")) && *line;)
        str_concat(&tips, " ", line);
    for (size_t i = 0; i < judge->node_count && !tips.failed; i++) {
        const char *at = judge->nodes[i].parents;
        while (*at) {
            char id[RANGE_ID_MAX + 2];
            size_t length = strcspn(at, " ");
            (void)snprintf(id, sizeof id, " %.*s", (int)length, at);
            if (memmem(tips.data, tips.length, id, strlen(id)) &&
                !str_list_has(&judge->tips, id + 1)) {
                str_list_add(&judge->tips, id + 1);
                judge->tip_count++;
            }
            at += length + (at[length] == ' ');
        }
    }
}

/* The upstream of the branch that moves: what the user had fetched there before the run is the user's. */
static void judge_find_upstream(struct judge *judge)
{
    const struct git_item *item = judge->item;
    autostr struct str name = {0}, id = {0};
    struct git_call outside = item->outside, base = item->base;
    const char *branch =
        item->kind == GIT_ITEM_REF ? item->name
        : item->kind == GIT_ITEM_WORKTREE && str_equal(item->old_head, item->new_head)
            ? item->old_head
            : NULL;
    outside.out = &name;
    base.out = &id;
    if (!branch || !str_starts_with(branch, "refs/heads/") ||
        GIT(judge, &outside, "for-each-ref", "--format=%(upstream)", branch) != 0 || !name.data)
        return;
    name.data[strcspn(name.data, "\n")] = '\0';
    if (!*name.data || GIT(judge, &base, "rev-parse", "-q", "--verify", name.data) != 0 || !id.data)
        return;
    id.data[strcspn(id.data, "\n")] = '\0';
    if (refs_is_id(id.data)) {
        str_list_add(&judge->tips, id.data);
        judge->tip_count = 1;
    }
}

/* Compares each commit that has flags with each tip, and drops what comes from one. */
static void judge_drop_from_tips(struct judge *judge, bool ends)
{
    autostr struct str input = {0};
    const char *last = "";
    free(judge->sorted);
    judge->sorted_count = judge->tip_count = 0;
    judge->tips.length = 0;
    judge->sorted = calloc(judge->flag_count + 1, sizeof *judge->sorted);
    for (size_t i = 0; i < judge->flag_count && judge->sorted; i++)
        if (ends ? judge->flags[i].ends : judge->flags[i].merge)
            judge->sorted[judge->sorted_count++] = &judge->flags[i];
    if (judge->sorted_count == 0 || judge->failed)
        return;
    if (ends)
        judge_find_upstream(judge);
    else
        judge_find_tips(judge);
    if (judge->tip_count == 0 || judge->tip_count > RANGE_TIPS_MAX)
        return;
    qsort(judge->sorted, judge->sorted_count, sizeof(struct flag *), flag_compare);
    for (size_t i = 0; i < judge->sorted_count; i++) {
        const struct flag *flag = judge->sorted[i];
        if (strcmp(flag->commit, last) == 0)
            continue;
        last = flag->commit;
        for (const char *tip = NULL; (tip = str_list_next(&judge->tips, tip));)
            str_concat(&input, flag->commit, " ", tip, "\n");
    }
    judge->pass = PASS_TIPS;
    judge_compare(judge, &input);
    for (size_t i = 0; i < judge->sorted_count && !judge->failed; i++)
        if (judge->sorted[i]->tips < judge->tip_count)
            judge->sorted[i]->class = NAMES_PLAIN;
}

/* ---- contents ---- */

/* What must be read of one object. */
struct content {
    const char *id;
    size_t max;    /* of its bytes, how many are looked at */
    uint64_t size; /* UINT64_MAX: there is none */
    struct str text;
};

static int content_compare(const void *left, const void *right)
{
    return strcmp(((const struct content *)left)->id, ((const struct content *)right)->id);
}

/* The objects of flags, sorted. */
struct contents {
    struct content *items;
    size_t count;
};

static void contents_done(struct contents *contents)
{
    for (size_t i = 0; i < contents->count; i++)
        str_done(&contents->items[i].text);
    free(contents->items);
}

static struct content *contents_find(const struct contents *contents, const char *id)
{
    const struct content key = {.id = id};
    return contents->count
               ? bsearch(&key, contents->items, contents->count, sizeof key, content_compare)
               : NULL;
}

static bool flag_reads(const struct flag *flag)
{
    return flag->class != NAMES_PLAIN && flag->kind != FLAG_NAME;
}

static const char *flag_name(const struct flag *flag)
{
    const char *slash = strrchr(flag->path, '/');
    return slash ? slash + 1 : flag->path;
}

static size_t flag_max(const struct flag *flag)
{
    return flag->kind == FLAG_LINK ? PATH_LENGTH_MAX : risk_content_max(flag_name(flag));
}

/* Lists the objects once each. */
static bool contents_list(const struct judge *judge, size_t from, size_t to,
                          struct contents *contents)
{
    size_t kept = 0;
    contents->items = calloc(2 * (to - from) + 1, sizeof *contents->items);
    for (size_t i = from; i < to && contents->items; i++)
        for (size_t j = 0; j < 2 && flag_reads(&judge->flags[i]); j++)
            if (judge->flags[i].blobs[j][strspn(judge->flags[i].blobs[j], "0")])
                contents->items[contents->count++] =
                    (struct content){.id = judge->flags[i].blobs[j],
                                     .max = flag_max(&judge->flags[i]),
                                     .size = UINT64_MAX};
    if (contents->count > 0)
        qsort(contents->items, contents->count, sizeof *contents->items, content_compare);
    for (size_t i = 0; i < contents->count; i++)
        if (i == 0 || strcmp(contents->items[i].id, contents->items[kept - 1].id) != 0)
            contents->items[kept++] = contents->items[i];
        else if (contents->items[kept - 1].max < contents->items[i].max)
            contents->items[kept - 1].max = contents->items[i].max;
    contents->count = kept;
    return contents->items != NULL;
}

/* "OBJECT blob SIZE" of each; a submodule's commit is missing. */
static void contents_measure(struct judge *judge, const struct contents *contents)
{
    autostr struct str ids = {0}, out = {0};
    struct git_call how = judge->item->outside;
    for (size_t i = 0; i < contents->count; i++)
        str_concat(&ids, contents->items[i].id, "\n");
    how.input = &ids;
    how.out = &out;
    how.bulk = true;
    if (contents->count == 0 || ids.failed || GIT(judge, &how, "cat-file", "--batch-check") != 0)
        return;
    char *rest = out.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        char *kind = strchr(line, ' ');
        if (!kind || !str_starts_with(kind, " blob "))
            continue;
        *kind = '\0';
        struct content *content = contents_find(contents, line);
        if (content)
            content->size = strtoull(kind + strlen(" blob "), NULL, 10);
    }
}

/* Cuts what git has printed about some objects into their texts. */
static void contents_cut(const struct contents *contents, const struct str *out)
{
    for (size_t at = 0; at < out->length;) {
        const char *line = out->data + at;
        const char *end = memchr(line, '\n', out->length - at);
        const char *blank = strchr(line, ' ');
        char id[RANGE_ID_MAX + 1];
        if (!end || !blank || blank > end)
            return;
        (void)snprintf(id, sizeof id, "%.*s", (int)(blank - line), line);
        at = (size_t)(end - out->data) + 1;
        struct content *content = contents_find(contents, id);
        if (!content || !str_starts_with(blank, " blob "))
            continue;
        if (content->size > out->length - at)
            return;
        str_append_bytes(&content->text, out->data + at,
                         content->size < content->max ? content->size : content->max);
        at += content->size + 1;
    }
}

static void contents_read(struct judge *judge, const struct contents *contents)
{
    for (size_t i = 0; i < contents->count;) {
        autostr struct str ids = {0}, out = {0};
        struct git_call how = judge->item->outside;
        uint64_t bytes = 0;
        for (; i < contents->count && bytes < BATCH_BYTES; i++) {
            const struct content *content = &contents->items[i];
            bool reads =
                content->size <= LARGE_BYTES && judge->read + content->size <= RANGE_READ_MAX;
            bytes += reads ? content->size : 0;
            judge->read += reads ? content->size : 0;
            str_concat(&ids, reads ? content->id : "", reads ? "\n" : "");
        }
        how.input = &ids;
        how.out = &out;
        how.bulk = true;
        if (ids.length > 0 && GIT(judge, &how, "cat-file", "--batch") == 0)
            contents_cut(contents, &out);
    }
}

static struct risk_content contents_get(const struct contents *contents, const char *id, size_t max)
{
    const struct content *content = contents_find(contents, id);
    if (!content)
        return (struct risk_content){0};
    bool whole = content->text.length == content->size && content->size <= max;
    return (struct risk_content){.data = content->text.data,
                                 .length = content->text.length < max ? content->text.length : max,
                                 .exists = true,
                                 .cut = !whole};
}

/* A large file whose beginning alone would be searched is left out. */
static const char *find_in_content(const struct contents *contents, const struct flag *flag)
{
    size_t max = flag_max(flag);
    const struct content *content = contents_find(contents, flag->blobs[1]);
    const struct risk_content before = contents_get(contents, flag->blobs[0], max);
    const struct risk_content after = contents_get(contents, flag->blobs[1], max);
    if (content && content->size != UINT64_MAX && content->size > LARGE_BYTES &&
        max == RISK_TEXT_MAX)
        return NULL;
    return after.cut && after.length == 0 ? reason_unread
                                          : risk_content_find(flag_name(flag), &before, &after);
}

/* The mark of a link: one that leads out counts in each commit, as a checkout writes it. */
static struct names_mark find_in_link(const struct judge *judge, const struct contents *contents,
                                      const struct flag *flag)
{
    char in_home[PATH_LENGTH_MAX + 1];
    struct names_mark mark;
    const struct content *content = contents_find(contents, flag->blobs[1]);
    const char *target = content ? content->text.data : NULL;
    bool has_home = judge->home && str_fill(in_home, sizeof in_home, judge->home,
                                            *judge->home ? "/" : "", flag->path);
    if (!target || !*target)
        return (struct names_mark){NAMES_UNASKED, "a link that cannot be read"};
    if (!risk_link_judge(flag->path, has_home ? in_home : NULL, target, &mark))
        return (struct names_mark){NAMES_PLAIN, NULL};
    return (struct names_mark){mark.class == NAMES_UNUSUAL ? NAMES_UNASKED : mark.class,
                               mark.reason};
}

/* The stronger one of the marks of the name and of what was read. */
static void judge_content(const struct judge *judge, const struct contents *contents,
                          struct flag *flag)
{
    struct names_mark mark = {NAMES_WHEN_RUN, NULL};
    if (!flag_reads(flag))
        return;
    if (flag->kind == FLAG_LINK)
        mark = find_in_link(judge, contents, flag);
    else
        mark.reason = find_in_content(contents, flag);
    bool named = flag->name_class != NAMES_PLAIN && (!mark.reason || flag->name_class < mark.class);
    flag->class = named ? flag->name_class : mark.reason ? mark.class : NAMES_PLAIN;
    if (!named)
        flag->reason = mark.reason;
}

#define FLAGS_AT_ONCE 2000 /* whose contents are in memory */

static void judge_contents(struct judge *judge)
{
    for (size_t i = 0; i < judge->flag_count; i += FLAGS_AT_ONCE) {
        __attribute__((cleanup(contents_done))) struct contents contents = {0};
        size_t left = judge->flag_count - i;
        size_t end = i + (left < FLAGS_AT_ONCE ? left : FLAGS_AT_ONCE);
        if (contents_list(judge, i, end, &contents)) {
            contents_measure(judge, &contents);
            contents_read(judge, &contents);
        }
        for (size_t j = i; j < end; j++)
            judge_content(judge, &contents, &judge->flags[j]);
    }
}

/* ---- the whole ---- */

/* The flags that are left become marks, also of the listed files. */
static void judge_finish(struct judge *judge)
{
    for (size_t i = 0; i < judge->flag_count; i++) {
        struct flag *flag = &judge->flags[i];
        if (flag->class != NAMES_PLAIN)
            judge_mark(judge->range, flag->class, flag->reason, flag->path, flag->commit);
        if (flag->kept == SIZE_MAX || flag->file == SIZE_MAX)
            continue;
        struct range_file *file = &judge->range->commits[flag->kept].files[flag->file];
        file->class = flag->class;
        file->reason = flag->class == NAMES_PLAIN ? NULL : flag->reason;
    }
    if (judge->failed)
        judge_mark(judge->range, NAMES_NOT_JUDGED, judge->failed, NULL, "");
}

static void judge_done(struct judge *judge)
{
    for (size_t i = 0; i < judge->flag_count; i++)
        free(judge->flags[i].path);
    free(judge->flags);
    free(judge->sorted);
    free(judge->nodes);
    str_done(&judge->olds);
    str_done(&judge->list);
    str_done(&judge->tips);
    str_done(&judge->links);
}

int range_judge(const struct git_item *item, struct range *ret_range, struct brig_error *err)
{
    __attribute__((cleanup(judge_done))) struct judge judge = {.item = item, .range = ret_range};
    char new[RANGE_ID_MAX + 1], peeled[RANGE_ID_MAX + 16];
    *ret_range = (struct range){0};
    if (item->unusual)
        judge_mark(ret_range, NAMES_UNUSUAL, item->unusual, NULL, "");
    if (item->kind == GIT_ITEM_CONFIG || !(item->new || item->new_tree))
        return 0;
    const char *home = git_variable(item->git->environment, "HOME");
    judge.home = home && item->top ? path_below(home, item->top) : NULL;
    (void)snprintf(peeled, sizeof peeled, "%s^{commit}", item->new ? item->new : "");
    if (item->new && !judge_line(&judge, new, "rev-parse", "-q", peeled))
        judge.failed = "it is no commit";
    judge_find_olds(&judge);
    if (item->new && !judge.failed)
        judge_commits(&judge, new);
    if (item->new && !judge.failed && !item->others)
        judge_ends(&judge, new);
    judge_staged(&judge);
    judge_drop_from_tips(&judge, false);
    judge_drop_from_tips(&judge, true);
    judge_contents(&judge);
    judge_finish(&judge);
    return judge.olds.failed || judge.list.failed ? brig_fail_nomem(err) : 0;
}

void range_done(struct range *range)
{
    for (size_t i = 0; i < range->count; i++) {
        struct range_commit *commit = &range->commits[i];
        for (size_t j = 0; j < commit->file_count; j++)
            free(commit->files[j].path);
        free(commit->files);
        free(commit->author);
        free(commit->subject);
    }
    free(range->commits);
    for (size_t i = 0; i < NAMES_CLASSES; i++)
        free(range->first[i].path);
    *range = (struct range){0};
}

const struct range_mark *range_stops(const struct range *range)
{
    static const enum names_class order[] = {NAMES_UNASKED, NAMES_NOT_JUDGED, NAMES_WHEN_RUN,
                                             NAMES_UNUSUAL};
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
        if (range->first[order[i]].reason)
            return &range->first[order[i]];
    return NULL;
}

void range_append_mark(struct str *out, const struct range_mark *mark)
{
    if (*mark->commit)
        str_appendf(out, "%.10s: ", mark->commit);
    else if (mark->path)
        str_append(out, "the index: ");
    if (mark->path) {
        str_append_shown(out, mark->path, strlen(mark->path), "");
        str_append(out, ": ");
    }
    str_append(out, mark->reason);
}
