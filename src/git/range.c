/* SPDX-License-Identifier: MIT */
/* Judges commits. Four passes of git: the commits (rev-list), their files (diff-tree), the merges against the tips that they
 * merge, and the two ends; then the contents of links and of package.json files. */
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

#define ROOTS_MAX 16                    /* commits without a parent that are looked at */
#define PACKAGE_BYTES ((size_t)1 << 20) /* a longer package.json is flagged without being read */
#define MODE_LINK 0120000
#define MODE_GITLINK 0160000
#define SUBJECT_MAX 500

static const char reason_absolute[] = "a link to an absolute path";
static const char reason_out[] = "a link that leads out of the directory";
static const char reason_scripts[] = "scripts that a package manager runs";
static const char reason_dependency[] = "a dependency that is not from the registry";

/* What decides whether a flag stays. */
enum flag_kind {
    FLAG_NAME,    /* nothing */
    FLAG_LINK,    /* the target of the link */
    FLAG_PACKAGE, /* both versions of the file */
};

struct flag {
    enum flag_kind kind;
    enum names_class class, name_class; /* the latter by the name alone */
    const char *reason;
    char *path;
    char commit[RANGE_ID_MAX + 1];
    char blobs[2][RANGE_ID_MAX + 1]; /* before and after, of what must be read */
    bool merge;                      /* of a merge, or of the ends: tips can explain it */
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
    uint64_t entries;
    struct str links; /* paths and commits of submodules that are known, a list of pairs */
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

static bool is_package(const char *path)
{
    const char *name = strrchr(path, '/');
    return strcmp(name ? name + 1 : path, "package.json") == 0;
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
    if (names_judge(path, home, before, after, &mark)) {
        flag->reason = mark.reason;
        flag->class = flag->name_class = mark.class == NAMES_UNUSUAL ? NAMES_WHEN_RUN : mark.class;
    }
    if (flag->class == NAMES_UNASKED)
        return true;
    if (after == MODE_GITLINK && !judge_has_link(judge, path, judge->blobs[1])) {
        flag->class = NAMES_NOT_JUDGED;
        flag->reason = "a commit that your copy of the submodule does not have";
    } else if (after == MODE_LINK) {
        flag->kind = FLAG_LINK;
        flag->class = NAMES_UNASKED;
    } else if (after != 0 && is_package(path)) {
        flag->kind = FLAG_PACKAGE;
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
    bool marked = flag->reason && !(judge->merge && flag->class == NAMES_WHEN_RUN);
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
    if (judge->pass == PASS_ENDS)
        return class == NAMES_WHEN_RUN;
    return class != NAMES_WHEN_RUN || judge->pass == PASS_STAGED ||
           judge->item->kind == GIT_ITEM_STASH;
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
    struct flag flag = {.kept = SIZE_MAX, .merge = judge->merge};
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

/* What the user had where this begins: the old value, or for a new ref what it has in common with the jail's first HEAD. */
static void judge_ends(struct judge *judge, const char *new)
{
    char fork[RANGE_ID_MAX + 1], head[RANGE_ID_MAX + 1] = "";
    const char *old = judge->item->old;
    autostr struct str text = {0};
    struct git_call base = judge->item->base;
    base.out = &text;
    if (judge->item->kind == GIT_ITEM_STASH)
        return; /* its commits are judged by both classes */
    if (!old && GIT(judge, &base, "rev-parse", "-q", "--verify", "HEAD") == 0 && text.length > 0) {
        (void)snprintf(head, sizeof head, "%.*s", (int)strcspn(text.data, "\n"), text.data);
        old = judge_line(judge, fork, "merge-base", head, new) ? fork : NULL;
    }
    judge->pass = PASS_ENDS;
    judge->merge = true;
    judge->commit = NULL;
    (void)snprintf(judge->at, sizeof judge->at, "%s", new);
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

/* Compares each commit that has flags with each tip, and drops what comes from one. */
static void judge_drop_merged(struct judge *judge)
{
    autostr struct str input = {0};
    const char *last = "";
    judge->sorted = calloc(judge->flag_count + 1, sizeof *judge->sorted);
    for (size_t i = 0; i < judge->flag_count && judge->sorted; i++)
        if (judge->flags[i].merge)
            judge->sorted[judge->sorted_count++] = &judge->flags[i];
    if (judge->sorted_count == 0 || judge->failed)
        return;
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

static bool judge_read_blob(struct judge *judge, const char *id, struct str *text)
{
    struct git_call how = judge->item->outside;
    how.out = text;
    return GIT(judge, &how, "cat-file", "blob", id) == 0 && text->length <= PACKAGE_BYTES;
}

static enum risk_package scan(struct judge *judge, const char *id, enum risk_package_part part,
                              char hash[SHA256_HEX_LENGTH + 1])
{
    autostr struct str text = {0};
    return judge_read_blob(judge, id, &text)
               ? risk_package_scan(text.data ? text.data : "", text.length, part, hash)
               : RISK_PACKAGE_UNSURE;
}

static bool has_other_part(struct judge *judge, const struct flag *flag,
                           enum risk_package_part part)
{
    char before[SHA256_HEX_LENGTH + 1], after[SHA256_HEX_LENGTH + 1];
    enum risk_package is = scan(judge, flag->blobs[1], part, after);
    if (is != RISK_PACKAGE_SOME)
        return is == RISK_PACKAGE_UNSURE;
    bool new = strspn(flag->blobs[0], "0") == strlen(flag->blobs[0]);
    return new || scan(judge, flag->blobs[0], part, before) != is || strcmp(before, after) != 0;
}

static const char *find_in_package(struct judge *judge, const struct flag *flag)
{
    if (has_other_part(judge, flag, RISK_PACKAGE_SCRIPTS))
        return reason_scripts;
    return has_other_part(judge, flag, RISK_PACKAGE_DEPENDENCIES) ? reason_dependency : NULL;
}

static const char *find_in_link(struct judge *judge, const struct flag *flag)
{
    autostr struct str target = {0};
    if (!judge_read_blob(judge, flag->blobs[1], &target) || !target.data)
        return "a link that cannot be read";
    if (target.data[0] == '/')
        return reason_absolute;
    return path_leads_above(flag->path, target.data) ? reason_out : NULL;
}

static void judge_contents(struct judge *judge)
{
    size_t read = 0;
    for (size_t i = 0; i < judge->flag_count; i++) {
        struct flag *flag = &judge->flags[i];
        if (flag->class == NAMES_PLAIN || flag->kind == FLAG_NAME)
            continue;
        const char *reason = "it was not read: there are too many";
        if (read++ < RANGE_BLOBS_MAX)
            reason =
                flag->kind == FLAG_LINK ? find_in_link(judge, flag) : find_in_package(judge, flag);
        if (reason) {
            flag->reason = reason;
        } else if (flag->reason) { /* the name of a link is of the other class */
            flag->class = flag->name_class;
        } else {
            flag->class = NAMES_PLAIN;
        }
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
    const char *home = git_variable(item->git->environment, "HOME");
    *ret_range = (struct range){0};
    judge.home = home && item->top ? path_below(home, item->top) : NULL;
    (void)snprintf(peeled, sizeof peeled, "%s^{commit}", item->new ? item->new : "");
    if (item->new && !judge_line(&judge, new, "rev-parse", "-q", peeled))
        judge.failed = "it is no commit";
    judge_find_olds(&judge);
    if (item->new && !judge.failed)
        judge_commits(&judge, new);
    if (item->new && !judge.failed && judge.node_count > 0)
        judge_ends(&judge, new);
    judge_staged(&judge);
    judge_drop_merged(&judge);
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
    if (range->first[NAMES_UNASKED].reason)
        return &range->first[NAMES_UNASKED];
    return range->first[NAMES_NOT_JUDGED].reason ? &range->first[NAMES_NOT_JUDGED] : NULL;
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
