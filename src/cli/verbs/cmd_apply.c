/* SPDX-License-Identifier: MIT */
/* `brig apply`: writes what a jail has changed to the user's files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "changes/diff/hunks.h"
#include "changes/diff/merge.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/operation/apply.h"
#include "changes/operation/apply_git.h"
#include "changes/operation/operation.h"
#include "changes/show/ignored_trees.h"
#include "changes/show/risk.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/verbs/layers.h"
#include "cli/verbs/layers_git.h"
#include "cli/verbs/selection.h"
#include "git/git.h"
#include "git/guard.h"
#include "held/names.h"

#define SKIPPED 1        /* the exit status if something was not applied */
#define TOLD_MAX 100     /* lines about changes that were not applied */
#define PART_BYTES 65536 /* bytes copied at a time */
#define ANSWER_MAX 16

enum conflict_rule { CONFLICT_ASK, CONFLICT_MINE, CONFLICT_THEIRS, CONFLICT_SKIP, CONFLICT_MERGE };

struct words {
    const char *jail;
    bool all, shown, hunks, dry, risky, live, fetch, go_on, abort;
    enum conflict_rule conflict;
    int count;
    char **paths;
};

struct applying {
    const struct words *words;
    struct verb_layers layers;
    struct selections selections;
    const char *here; /* the directory that is meant if no path is given; NULL: all */
    size_t layer;     /* the index of the current one */
    bool asks;        /* at a terminal */
    struct git git;
    struct ignored_trees trees; /* of the current layer, in a dry run */
    struct hunks *hunks;        /* of the current layer, or NULL */
    enum apply_choice choice;   /* for the current change */
    int contents;               /* of the current change, merged or chosen; -1 */
    const char *accepted;       /* the risk of the current change that was accepted, or NULL */
    char flagged;               /* the answer for all flagged changes that follow: 'a', 'o'; or 0 */
    bool stopped;               /* the user has quit at a question: nothing is applied */
    bool quits;                 /* nothing more is to be chosen with -p */
    bool declined;              /* the user has just declined the current change */
    int git_part;               /* NAME.git, or -1 */
    struct hand_over *hand_over; /* what is taken of git, or NULL */
    bool git_moved, git_left;
    struct str notes; /* about git */
    uint64_t applied, kept, skipped, told;
    uint64_t risky, conflicts; /* of those skipped: without a question, for lack of a terminal */
    uint64_t unmerged;         /* and because a merge was not possible */
};

/* ---- the words ---- */

static bool take_conflict(const char *value, enum conflict_rule *ret_rule)
{
    static const char *const names[] = {"", "mine", "theirs", "skip", "merge"};
    for (size_t i = 1; i < ARRAY_LENGTH(names); i++)
        if (strcmp(value, names[i]) == 0) {
            *ret_rule = (enum conflict_rule)i;
            return true;
        }
    return false;
}

static int parse(const struct app *app, int argc, char **argv, struct words *words,
                 struct brig_error *err)
{
    const char *conflict = NULL;
    const struct jails_word options[] = {
        {"--all", &words->all, NULL},        {"--shown", &words->shown, NULL},
        {"-p", &words->hunks, NULL},         {"--patch", &words->hunks, NULL},
        {"--dry-run", &words->dry, NULL},    {"--risky", &words->risky, NULL},
        {"--live", &words->live, NULL},      {"--fetch", &words->fetch, NULL},
        {"--continue", &words->go_on, NULL}, {"--abort", &words->abort, NULL},
        {"--conflict", NULL, &conflict},     {0}};
    int at = jails_parse_words(app, argc, argv, options, &words->jail, err);
    if (at < 0)
        return at;
    if (conflict && !take_conflict(conflict, &words->conflict))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--conflict '%s': it is mine, theirs, skip or merge",
                         str_shown(conflict).text);
    words->paths = argv + at;
    words->count = argc - at;
    if (words->go_on || words->abort) {
        if (words->count > 0 || words->all || (words->go_on && words->abort))
            return brig_fail(err, BRIG_E_INVALID, 0, "--%s stands alone",
                             words->go_on ? "continue" : "abort");
    } else if (words->shown && (words->all || words->hunks || words->count > 0)) {
        return brig_fail(err, BRIG_E_INVALID, 0, "--shown takes neither paths nor --all nor -p");
    } else if (words->count == 0 && !words->all && !words->hunks && !words->shown) {
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "apply needs a path, or --all, or -p to choose. See brig status%s",
                         jails_option(words->jail ? words->jail : "").text);
    } else if (words->count > 0 && words->all) {
        return brig_fail(err, BRIG_E_INVALID, 0, "--all takes no paths");
    }
    return 0;
}

/* ---- output ---- */

static void tell_skipped(struct applying *applying, const char *root, const char *path,
                         const char *reason)
{
    autostr struct str shown = {0};
    bool declined = applying->declined;
    applying->declined = false;
    applying->skipped++;
    verb_append_path(&shown, root, path);
    if (!declined && applying->told++ < TOLD_MAX)
        message_warning("not applied: %s: %s", shown.failed ? "" : shown.data, reason);
}

static void report(void *context, const char *root, const char *path, const char *reason)
{
    struct applying *applying = context;
    tell_skipped(applying, root, path, reason);
    if (applying->applied > 0)
        applying->applied--;
}

static const char *verb_of(const struct change *change, enum apply_choice choice)
{
    static const char *const verbs[] = {[CHANGE_DELETED] = "delete",
                                        [CHANGE_TYPE] = "replace",
                                        [CHANGE_MODIFIED] = "modify",
                                        [CHANGE_METADATA] = "set",
                                        [CHANGE_ADDED] = "add"};
    return choice == APPLY_KEEP    ? "keep yours"
           : choice == APPLY_MERGE ? "merge"
           : choice == APPLY_WRITE ? "modify in part"
                                   : verbs[change->kind];
}

static void tell(void *context, const struct change *change, enum apply_choice choice,
                 const char *reason)
{
    struct applying *applying = context;
    struct ignored_tree *tree = ignored_trees_at(&applying->trees, change);
    if (tree) {
        bool file = !S_ISDIR(change->after.st_mode);
        *(choice == APPLY_SKIP ? &tree->skipped : &tree->seen) += file;
        return;
    }
    if (choice == APPLY_SKIP) {
        tell_skipped(applying, change->layer->root, change->path, reason);
        return;
    }
    if (choice == APPLY_KEEP)
        applying->kept++;
    else
        applying->applied++;
    if (!applying->words->dry)
        return;
    autostr struct str line = {0};
    str_concat(&line, verb_of(change, choice), " ");
    verb_append_path(&line, change->layer->root, change->path);
    str_append_char(&line, '\n');
    (void)message_print(&line, NULL);
}

/* "add DIR/ (12 ignored files)", and how many of them would be left out. */
static void tell_trees(struct applying *applying, const struct layer *layer)
{
    for (size_t i = 0; i < applying->trees.count; i++) {
        const struct ignored_tree *tree = &applying->trees.items[i];
        autostr struct str path = {0}, line = {0};
        verb_append_path(&path, layer->root, tree->path);
        if (path.failed)
            continue;
        if (tree->seen > 0 || tree->skipped == 0)
            str_appendf(&line, "add %s/ (%ju ignored file%s)\n", path.data, (uintmax_t)tree->seen,
                        tree->seen == 1 ? "" : "s");
        if (tree->skipped > 0)
            message_warning("not applied: %s/: %ju ignored file%s with a risk or conflict",
                            path.data, (uintmax_t)tree->skipped, tree->skipped == 1 ? "" : "s");
        applying->skipped += tree->skipped > 0;
        applying->told += tree->skipped > 0;
        applying->applied += tree->seen;
        (void)message_print(&line, NULL);
    }
}

/* ---- questions ---- */

struct answer {
    char letter;
    const char *word;
};

/* Reads a line. Returns the letter of the answer, 'q' at the end of input, or 0 if it is another word. */
static char read_answer(const struct answer *answers, size_t count)
{
    char text[ANSWER_MAX] = "", more[ANSWER_MAX];
    ssize_t length = read(STDIN_FILENO, text, sizeof text - 1);
    if (length <= 0)
        return 'q';
    for (ssize_t last = length; last > 0 && !memchr(text, '\n', sizeof text);)
        if ((last = read(STDIN_FILENO, more, sizeof more)) > 0 && more[last - 1] == '\n')
            break;
    text[strcspn(text, " \t\r\n")] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(text, answers[i].word) == 0 ||
            strcasecmp(text, (char[]){answers[i].letter, '\0'}) == 0)
            return answers[i].letter;
    return '\0';
}

/* Asks on the terminal until an answer is known. `text` says about what, and is changed. */
static char ask_text(struct str *text, const char *question, const struct answer *answers,
                     size_t count)
{
    str_concat(text, "\n", question, " ");
    for (char letter = '\0';;) {
        if (text->failed || write_all(STDERR_FILENO, text->data, text->length) < 0)
            return 'q';
        if ((letter = read_answer(answers, count)) != '\0')
            return letter;
    }
}

static char ask(const struct change *change, const char *reason, const char *question,
                const struct answer *answers, size_t count)
{
    autostr struct str text = {0};
    verb_append_path(&text, change->layer->root, change->path);
    str_concat(&text, ": ", reason);
    return ask_text(&text, question, answers, count);
}

/* Whether to apply a change that git cannot offer in parts. */
static bool ask_whole(struct applying *applying, const struct change *change)
{
    static const struct answer answers[] = {{'y', "yes"}, {'n', "no"}, {'n', ""}, {'q', "quit"}};
    char answer = applying->quits
                      ? 'q'
                      : ask(change, "this change cannot be divided",
                            "Apply it? [y]es, [n]o, [q]uit?", answers, ARRAY_LENGTH(answers));
    applying->quits = answer == 'q';
    return answer == 'y';
}

/* Whether to apply a change with a risk. An answer can stand for all that follow. */
static bool ask_risk(struct applying *applying, const struct change *change, const char *risk)
{
    static const struct answer answers[] = {{'y', "yes"}, {'n', "no"},   {'n', ""},
                                            {'a', "all"}, {'o', "only"}, {'q', "quit"}};
    char answer = applying->flagged;
    if (answer == '\0')
        answer = ask(change, risk,
                     "Apply it all the same? [y]es, [n]o, [a]ll flagged changes, [o]nly the "
                     "others, [q]uit?",
                     answers, ARRAY_LENGTH(answers));
    if (answer == 'a' || answer == 'o')
        applying->flagged = answer;
    applying->stopped = answer == 'q';
    applying->declined = answer != 'y' && answer != 'a';
    return !applying->declined;
}

static enum conflict_rule ask_conflict(struct applying *applying, const struct change *change)
{
    static const struct answer answers[] = {
        {'m', "mine"}, {'t', "theirs"}, {'g', "merge"}, {'s', "skip"}, {'q', "quit"}};
    switch (ask(change, change->conflict,
                "Keep [m]ine, take [t]heirs (the jail's), mer[g]e, [s]kip, [q]uit?", answers,
                ARRAY_LENGTH(answers))) {
    case 'm':
        return CONFLICT_MINE;
    case 't':
        return CONFLICT_THEIRS;
    case 'g':
        return CONFLICT_MERGE;
    case 'q':
        applying->stopped = true;
        return CONFLICT_SKIP;
    default:
        applying->declined = true;
        return CONFLICT_SKIP;
    }
}

/* ---- conflicts ---- */

/* Merges the two versions. Returns NULL, or the reason why not. */
static const char *merge(struct applying *applying, const struct change *change)
{
    enum merge_outcome outcome;
    autoclose int base = change->kind == CHANGE_MODIFIED ? merge_open_base(change) : -1;
    if (base < 0)
        return "it cannot be merged: the version that both started from is not known";
    autoclose int mine = change_open_before(change);
    autoclose int theirs = change_open_after(change);
    if (mine < 0 || theirs < 0 || !applying->git.program)
        return "it cannot be merged: a version cannot be read, or git is missing";
    close_fd(&applying->contents);
    if (merge_files(&applying->git, change->layer->record, base, mine, theirs, &outcome,
                    &applying->contents, NULL) < 0 ||
        outcome == MERGE_IMPOSSIBLE)
        return "it cannot be merged: it is not text";
    return outcome == MERGE_CLEAN ? NULL : "both versions have changed the same lines";
}

static void settle_conflict(struct applying *applying, const struct change *change,
                            enum apply_choice *choice, const char **reason)
{
    enum conflict_rule rule = applying->words->conflict;
    if (rule == CONFLICT_ASK) {
        rule = applying->asks ? ask_conflict(applying, change) : CONFLICT_SKIP;
        applying->conflicts += !applying->asks;
    }
    switch (rule) {
    case CONFLICT_MINE:
        *choice = APPLY_KEEP;
        break;
    case CONFLICT_THEIRS:
        break;
    case CONFLICT_MERGE:
        *reason = applying->words->dry ? NULL : merge(applying, change);
        *choice = *reason ? APPLY_SKIP : APPLY_MERGE;
        applying->unmerged += *reason != NULL;
        break;
    case CONFLICT_ASK:
    case CONFLICT_SKIP:
        *choice = APPLY_SKIP;
        *reason = change->conflict;
        break;
    }
}

/* ---- choosing ---- */

/* A new directory that is not empty. */
static bool is_parent(const struct change *change)
{
    if (change->kind != CHANGE_ADDED || !S_ISDIR(change->after.st_mode))
        return false;
    autodir DIR *dir = NULL;
    int fd =
        openat(change->upper_dir, change->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !(dir = fdopendir(fd)))
        return false;
    size_t count = 0;
    while (count <= 2 && readdir(dir))
        count++;
    return count > 2; /* besides . and .. */
}

/* A deleted directory follows the choices for what is in it. */
static bool is_removed(const struct change *change)
{
    return change->kind == CHANGE_DELETED && S_ISDIR(change->before.st_mode);
}

static int choose_part(struct applying *applying, const struct change *change,
                       enum apply_choice *choice, struct brig_error *err)
{
    struct hunks_found found = hunks_find(applying->hunks, change->path);
    switch (found.choice) {
    case HUNKS_NONE:
        *choice = APPLY_SKIP;
        break;
    case HUNKS_ALL:
        break;
    case HUNKS_PART:
        close_fd(&applying->contents);
        applying->contents = hunks_open(applying->hunks, &found, err);
        *choice = S_ISREG(found.mode) ? APPLY_WRITE : APPLY_SKIP;
        return applying->contents < 0 ? applying->contents : 0;
    case HUNKS_NOT_ASKED:
        if (is_parent(change))
            *choice = APPLY_SKIP; /* the files that are chosen in it create it */
        else if (!is_removed(change) && !ask_whole(applying, change))
            *choice = APPLY_SKIP;
        break;
    }
    return 0;
}

static void judge_risk(struct applying *applying, const struct change *change,
                       enum apply_choice *choice, const char **reason)
{
    const char *risk = risk_find(change);
    bool accepted =
        risk && (applying->words->risky || (applying->asks && ask_risk(applying, change, risk)));
    applying->accepted = accepted ? risk : NULL;
    if (!risk || accepted)
        return;
    applying->risky += !applying->asks;
    *choice = APPLY_SKIP;
    *reason = risk;
}

static int choose(void *context, const struct change *change, enum apply_choice *choice,
                  const char **reason, struct brig_error *err)
{
    struct applying *applying = context;
    applying->accepted = NULL;
    applying->choice = *choice;
    if (!selection_has(&applying->selections, applying->layer, change, reason)) {
        *choice = APPLY_SKIP;
        return 0;
    }
    int status = applying->hunks ? choose_part(applying, change, choice, err) : 0;
    if (status < 0 || *choice == APPLY_SKIP)
        return status;
    if (change->conflict)
        settle_conflict(applying, change, choice, reason);
    if (*choice != APPLY_SKIP && *choice != APPLY_KEEP)
        judge_risk(applying, change, choice, reason);
    applying->choice = *choice;
    /* Nothing is written before all questions are answered. */
    return applying->stopped ? brig_fail(err, BRIG_E_STATE, 0, "nothing was applied") : 0;
}

/* The jail may have changed the file since it was judged. */
static const char *check(void *context, const struct change *change)
{
    const struct applying *applying = context;
    const char *risk = risk_find(change), *accepted = applying->accepted;
    bool any = applying->words->risky && !applying->words->shown;
    if (risk && !any && !(accepted && strcmp(accepted, risk) == 0))
        return risk;
    if (!applying->words->shown || !S_ISREG(change->after.st_mode))
        return NULL;
    /* The copy differs from the jail's file, so it cannot be compared with what was shown. */
    if (change->startup || applying->choice != APPLY_TAKE)
        return "it is merged with yours: do that when no run is active";
    return selection_fits(&applying->selections, applying->layer, change) ? NULL
                                                                          : SELECTION_CHANGED;
}

/* Copies the merged or chosen contents. */
static int write_contents(void *context, const struct change *change, int fd,
                          struct brig_error *err)
{
    const struct applying *applying = context;
    char part[PART_BYTES];
    ssize_t length;
    if (lseek(applying->contents, 0, SEEK_SET) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the new contents");
    while ((length = read(applying->contents, part, sizeof part)) > 0) {
        int failed = write_all(fd, part, (size_t)length);
        if (failed < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s'",
                             str_shown(change->path).text);
    }
    return length < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the new contents") : 0;
}

/* ---- applying ---- */

/* Lets the user choose parts of the changes of a layer. */
static int ask_hunks(struct applying *applying, const struct apply_options *options,
                     const struct layer *layer, struct brig_error *err)
{
    const struct change_options changes = {
        .paths = options->paths, .path_count = options->path_count, .expand = true};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    if (!applying->git.program)
        return brig_fail(err, BRIG_E_STATE, 0, "-p needs git, which is not installed");
    int status = hunks_new(&applying->git, layer->record, &applying->hunks, err);
    if (status == 0)
        status = changes_walk(layer, &changes, hunks_add, applying->hunks, err);
    if (status < 0)
        return status;
    (void)sigaction(SIGINT, &ignore, &before);
    status = hunks_ask(applying->hunks, err);
    (void)sigaction(SIGINT, &before, NULL);
    return status;
}

static int plan_layer(struct applying *applying, struct operation *operation, size_t index,
                      bool live, struct brig_error *err)
{
    const struct layer *layer = &applying->layers.layers.items[index];
    const struct selection *selection = &applying->selections.items[index];
    const struct apply_options options = {.paths = selection->paths,
                                          .path_count = selection->path_count,
                                          .risky = applying->words->risky,
                                          .live = live,
                                          .choose = choose,
                                          .check = live ? check : NULL,
                                          .write = write_contents,
                                          .tell = tell,
                                          .context = applying};
    if (selection_is_empty(&applying->selections, index))
        return 0;
    applying->layer = index;
    int status = applying->words->hunks ? ask_hunks(applying, &options, layer, err) : 0;
    if (status == 0 && applying->words->dry)
        status = ignored_trees_find(layer, options.paths, options.path_count, &applying->git,
                                    &applying->trees, err);
    if (status == 0)
        status = apply_plan(operation, layer, &options, err);
    if (status == 0)
        tell_trees(applying, layer);
    ignored_trees_done(&applying->trees);
    hunks_free(take_ptr(&applying->hunks));
    return status;
}

static int describe(const struct applying *applying, struct operation *operation,
                    struct brig_error *err)
{
    autostr struct str text = {0};
    for (int i = 0; i < applying->words->count && text.length < OPERATION_TEXT_MAX; i++)
        str_concat(&text, i > 0 ? " " : "", applying->words->paths[i]);
    if (applying->words->shown)
        selections_describe(&applying->selections, &text);
    else if (applying->words->count == 0)
        str_append(&text, applying->here ? applying->here : "--all");
    if (text.failed)
        return brig_fail_nomem(err);
    operation_describe(operation, text.data ? text.data : "");
    return 0;
}

/* "applied 3 changes, kept your version of 1 file; brig undo 4 reverts them" */
static void tell_done(const struct applying *applying, uint64_t id)
{
    autostr struct str text = {0};
    if (applying->applied > 0)
        str_appendf(&text, "applied %ju change%s%s", (uintmax_t)applying->applied,
                    applying->applied == 1 ? "" : "s", applying->kept > 0 ? ", " : "");
    if (applying->kept > 0)
        str_appendf(&text, "kept your version of %ju file%s", (uintmax_t)applying->kept,
                    applying->kept == 1 ? "" : "s");
    bool files = text.length > 0;
    if (applying->git_moved)
        str_concat(&text, files ? " and " : "applied ", "what was done in git");
    message_note("%s; brig undo%s %ju reverts %s", text.failed ? "" : text.data,
                 jails_option(applying->layers.setup.settings.jail).text, (uintmax_t)id,
                 applying->git_moved && files                                    ? "both"
                 : applying->applied + applying->kept + applying->git_moved == 1 ? "it"
                                                                                 : "them");
}

static bool is_running(const struct layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        if (layers->items[i].running)
            return true;
    return false;
}

/* Names items of git that were shown and are not there any more. */
static void tell_git(struct applying *applying)
{
    const struct selection *git = &applying->selections.git;
    bool live = applying->words->live && is_running(&applying->layers.layers);
    for (size_t i = 0; i < git->count; i++) {
        if (git->words[i].matched)
            continue;
        applying->skipped++;
        if (applying->told++ < TOLD_MAX)
            message_warning("not applied: %s: %s", str_shown(git->words[i].typed).text,
                            live ? "a run of the jail is active" : SELECTION_CHANGED);
    }
}

static int finish(struct applying *applying, uint64_t id)
{
    const struct str *changed = &applying->selections.changed;
    for (const char *path = NULL; (path = str_list_next(changed, path));)
        tell_skipped(applying, "/", path + 1, SELECTION_CHANGED);
    if (!applying->words->dry)
        tell_git(applying);
    const char *unmatched = selections_unmatched(&applying->selections);
    if (applying->told > TOLD_MAX)
        message_warning("%ju more changes were not applied",
                        (uintmax_t)(applying->told - TOLD_MAX));
    if (unmatched)
        message_warning("nothing has changed at '%s'", str_shown(unmatched).text);
    if (applying->risky > 0)
        message_note("flagged changes need --risky, or an answer at a terminal");
    if (applying->conflicts > 0)
        message_note("conflicts need --conflict mine, theirs or merge, or an answer at a terminal");
    const struct jails_option jail = jails_option(applying->layers.setup.settings.jail);
    if (applying->unmerged > 0)
        message_note(
            "what could not be merged waits: brig diff%s PATH shows the jail's part; edit your "
            "file, then brig apply%s --conflict mine PATH, or theirs",
            jail.text, jail.text);
    if (applying->applied + applying->kept + applying->skipped == 0 && !unmatched &&
        !applying->git_moved)
        message_note("%s",
                     applying->words->hunks ? "nothing was applied" : "there is nothing to apply");
    else if (applying->applied + applying->kept + applying->git_moved > 0 && id)
        tell_done(applying, id);
    if (applying->skipped > applying->told)
        message_note("%ju change%s left out; brig apply%s asks again",
                     (uintmax_t)(applying->skipped - applying->told),
                     applying->skipped - applying->told == 1 ? " was" : "s were", jail.text);
    return applying->skipped > 0 || unmatched || applying->git_left ? SKIPPED : 0;
}

/* Asks about commits, the index or a stash, with a mark. An answer for all flagged files holds for these as well. */
static bool ask_git(void *data, const struct inventory_item *item)
{
    static const struct answer answers[] = {{'y', "yes"}, {'n', "no"}, {'n', ""}};
    const struct applying *applying = data;
    autostr struct str text = {0};
    if (applying->flagged == 'o')
        return false;
    str_append_shown(&text, item->path, strlen(item->path), "");
    str_concat(&text, ": ", item->risk, names_class_words(item->class));
    return ask_text(&text, "Move it all the same? [y]es, [n]o?", answers, ARRAY_LENGTH(answers)) ==
           'y';
}

static struct operation_git operation_git(struct applying *applying)
{
    return (struct operation_git){
        .git = &applying->git, .storage = applying->git_part, .notes = &applying->notes};
}

static bool was_shown(void *data, const struct inventory_item *item)
{
    struct applying *applying = data;
    return selections_have_git(&applying->selections, item);
}

/* Plans git's part of the operation, for directories that are applied as a whole, or of items that were shown. */
static int plan_git(struct applying *applying, struct operation *operation, struct brig_error *err)
{
    bool wanted[LAYERS_MAX];
    const char *storage = applying->layers.setup.settings.storage;
    const struct layers *layers = &applying->layers.layers;
    bool shown = applying->words->shown;
    if (shown && applying->selections.git.count == 0)
        return 0;
    for (size_t i = 0; i < LAYERS_MAX; i++)
        wanted[i] = shown || selection_is_whole(&applying->selections, i);
    if (applying->words->fetch &&
        layers_fetch_git(layers, wanted, storage, &applying->notes, err) < 0)
        return err ? err->code : BRIG_E_SYSTEM;
    const struct apply_git options = {.git = operation_git(applying),
                                      .chosen = shown ? was_shown : NULL,
                                      .risky = applying->words->risky,
                                      .ask = applying->asks ? ask_git : NULL,
                                      .data = applying};
    return apply_git_plan(operation, layers, wanted, &options, &applying->hand_over, err);
}

static int apply(struct applying *applying, bool live, struct brig_error *err)
{
    const struct words *words = applying->words;
    struct layers *layers = &applying->layers.layers;
    struct operation *operation = NULL;
    int status = words->dry ? 0
                            : operation_begin(layers, layers->items[0].record, OPERATION_APPLY,
                                              &operation, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        status = plan_layer(applying, operation, i, live, err);
    if (status == 0 && operation && !words->hunks && !live)
        status = plan_git(applying, operation, err);
    if (status == 0 && operation)
        status = describe(applying, operation, err);
    if (operation && applying->applied + applying->kept > operation_count(operation))
        applying->applied = operation_count(operation) - applying->kept; /* not empty directories */
    interrupt_begin(applying->layers.setup.settings.jail);
    if (status == 0 && operation)
        status = operation_run(operation, report, applying, err);
    interrupt_end();
    uint64_t id = operation ? operation_id(operation) : 0;
    applying->git_moved = operation && operation_moves_git(operation);
    if (status == 0 && applying->hand_over)
        applying->git_left =
            hand_over_end(applying->hand_over, applying->git_moved, &applying->notes);
    hand_over_free(take_ptr(&applying->hand_over));
    operation_free(operation);
    if (status == 0)
        status = finish(applying, id);
    message_lines(&applying->notes);
    return status;
}

/* Returns an fd. */
static int take_lock(struct applying *applying, int record, bool live, struct brig_error *err)
{
    int lock = live ? record_lock(record, err) : layers_lock(&applying->layers.layers, err);
    if (lock == BRIG_E_STATE)
        return brig_advise(err, lock, "brig apply%s --live applies during a run",
                           jails_option(applying->layers.setup.settings.jail).text);
    return lock;
}

/* Also for a jail without layers: undoing a run with a checkpoint can be interrupted too. */
static int recover(struct applying *applying, struct brig_error *err)
{
    const struct settings *settings = &applying->layers.setup.settings;
    struct layers *layers = &applying->layers.layers;
    uint64_t id;
    autoclose int record = record_open(settings->storage, settings->jail, err);
    if (record < 0)
        return record;
    bool live = layers->count == 0 || (applying->words->live && is_running(layers));
    autoclose int lock = take_lock(applying, record, live, err);
    const struct operation_git git = operation_git(applying);
    interrupt_begin(settings->jail);
    int status = lock < 0 ? lock
                          : operation_recover(layers, record, &git, applying->words->abort, report,
                                              applying, &id, err);
    interrupt_end();
    message_lines(&applying->notes);
    if (status < 0)
        return status;
    if (id == 0)
        message_note("no operation was interrupted");
    else
        message_note("operation %ju was %s", (uintmax_t)id,
                     applying->words->abort ? "reverted" : "completed");
    return applying->skipped > 0 ? SKIPPED : 0;
}

static int run_layers(struct applying *applying, struct brig_error *err)
{
    const struct words *words = applying->words;
    struct layers *layers = &applying->layers.layers;
    autoclose int lock = -1;
    int status = git_find_own(&applying->git, err);
    if (status < 0 || words->go_on || words->abort)
        return status < 0 ? status : recover(applying, err);
    if (layers->count == 0) {
        message_note("there are no changes");
        return 0;
    }
    bool live = words->live && is_running(layers);
    applying->here =
        words->count == 0 && !words->shown ? verb_layers_here(&applying->layers) : NULL;
    if (!words->dry) /* a dry run changes nothing */
        lock = take_lock(applying, layers->items[0].record, live, err);
    if (!words->dry && lock < 0)
        return lock;
    char *here = (char *)(uintptr_t)applying->here;
    status =
        words->shown
            ? selections_read_shown(&applying->selections, &applying->layers, &applying->git, err)
            : selections_make(&applying->selections, &applying->layers, false,
                              here ? 1 : words->count, here ? &here : words->paths, err);
    if (status == 0)
        status = apply(applying, live, err);
    close_fd(&lock);
    selections_done(&applying->selections);
    if (status >= 0)
        verb_tell_elsewhere(&applying->layers, here, cmd_diff.name);
    return status;
}

static int run_apply(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct words words = {0};
    autofree struct applying *applying = calloc(1, sizeof *applying);
    int status = applying ? parse(app, argc, argv, &words, err) : brig_fail_nomem(err);
    if (status < 0)
        return status;
    applying->words = &words;
    applying->contents = applying->git_part = -1;
    bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !words.shown;
    applying->asks = terminal && !words.dry;
    if (words.hunks && !terminal)
        return brig_fail(err, BRIG_E_INVALID, 0, "-p asks at a terminal: there is none");
    status = verb_layers_settled(&applying->layers, cmd_apply.name, words.jail, err);
    if (status < 0)
        return status;
    applying->git_part = jails_open_git(applying->layers.setup.settings.storage,
                                        applying->layers.setup.settings.jail);
    status = run_layers(applying, err);
    git_done(&applying->git);
    str_done(&applying->notes);
    close_fd(&applying->git_part);
    close_fd(&applying->contents);
    verb_layers_done(&applying->layers);
    return status;
}

const struct command cmd_apply = {
    .name = "apply",
    .summary = "write what a jail has changed to your files",
    .usage = "[-j NAME] [--all|-p] [--dry-run] [--risky] [--fetch] [--live] "
             "[--conflict mine|theirs|skip|merge] [--continue|--abort] [--shown] [PATH|GLOB...]",
    .words = COMMAND_WORDS_FILES,
    .run = run_apply,
};
