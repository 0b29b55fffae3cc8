/* SPDX-License-Identifier: MIT */
/* Undo: an operation with the steps of another in reverse order, each turned around. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/record.h"
#include "base/str.h"
#include "changes/checkpoint/restore.h"
#include "changes/layer/layer.h"
#include "changes/layer/touched.h"
#include "changes/operation/operation_files.h"
#include "git/take.h"

#define TEXT_TOLD_MAX 60 /* bytes of what an operation was */

struct undoing {
    const struct operation_undo *undo;
    struct operation *old, *new;
    int64_t since_ns; /* the end of the last operation that has exchanged these files */
    struct touched touched;
    struct undo_found found;
};

/* ---- which operation ---- */

struct finding {
    int record;
    const struct operation_undo *undo;
    bool reversible; /* look for one that can be undone */
    uint64_t id;
};

/* Whether a step is at one of the paths or below it. */
static int is_there(void *context, const char *root, const char *path, const char *what,
                    struct brig_error *err)
{
    const struct operation_undo *undo = context;
    (void)what;
    (void)err;
    for (size_t i = 0; i < undo->path_count; i++) {
        const char *below = path_below(root, undo->paths[i]);
        if (path_is_beneath(undo->paths[i], root) || (below && path_is_beneath(below, path)))
            return 1;
    }
    return 0;
}

/* Whether a run could write at one of the paths. */
static bool could_write(const struct operation_info *info, const struct operation_undo *undo)
{
    for (const char *at = NULL; (at = str_list_next(&info->roots, at));)
        for (size_t i = 0; i < undo->path_count; i++)
            if (path_is_beneath(undo->paths[i], at) || path_is_beneath(at, undo->paths[i]))
                return true;
    return false;
}

/* Whether all that it did is known, and something is. */
static bool is_reversible(const struct operation_info *info)
{
    return info->has_steps || info->has_checkpoint ||
           (info->has_git && info->files == OPERATION_NONE);
}

bool operation_can_undo(const struct operation_info *info)
{
    return is_reversible(info) && !info->undone_by && !info->interrupted;
}

static bool is_hold(const struct operation_info *info)
{
    return strcmp(info->kind, OPERATION_HOLD) == 0;
}

bool operation_is_undecided(const struct operation_info *info)
{
    return is_hold(info) && operation_can_undo(info);
}

bool operation_counts(const struct operation_info *info)
{
    bool beside = is_hold(info) || strcmp(info->kind, OPERATION_GIT) == 0;
    bool effect = info->files != OPERATION_NONE || info->git != OPERATION_NONE;
    return effect && !beside && !info->undoes && !info->undone_by && info->end_ns;
}

/* Whether an operation has moved refs of a working tree at one of the paths. */
static int has_git_there(int record, const struct operation_info *info,
                         const struct operation_undo *undo)
{
    autoclose int dir = info->has_git ? restore_open_run(record, info->id) : -1;
    autostr struct str text = {0};
    struct record_place place = {0};
    const char *key, *value;
    if (dir < 0 || record_read(dir, GIT_RECORD, &text, NULL) <= 0)
        return 0;
    while (record_next(&text, &place, &key, &value))
        for (size_t i = 0; i < undo->path_count && git_record_names_tree(key); i++)
            if (path_is_beneath(undo->paths[i], value) || path_is_beneath(value, undo->paths[i]))
                return 1;
    return 0;
}

static int find_newest(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct finding *finding = context;
    const struct operation_undo *undo = finding->undo;
    int found = 1;
    if (!operation_counts(info) || (finding->reversible && !operation_can_undo(info)))
        return 0;
    if (undo->paths && info->files == OPERATION_LISTED)
        found = operation_steps(finding->record, info->id, is_there, (void *)(uintptr_t)undo, err);
    else if (undo->paths)
        found = 0;
    if (found == 0 && undo->here)
        found = has_git_there(finding->record, info, undo) ||
                (!operation_can_undo(info) && could_write(info, undo));
    if (found > 0)
        finding->id = info->id;
    return found;
}

static int fail_elsewhere(int record, const struct operation_undo *undo, struct brig_error *err)
{
    const struct operation_undo anywhere = {0};
    struct finding finding = {.record = record, .undo = &anywhere, .reversible = true};
    const struct jails_option jail = record_option(record);
    autostr struct str text = {0};
    str_concat(&text, "there is no operation at '", str_shown(undo->paths[0]).text,
               "' that can be undone. ");
    if (operations_each(record, find_newest, &finding, NULL) > 0)
        str_concat(&text, "The newest elsewhere is: brig undo", jail.text, " ",
                   str_number(finding.id).text, ". ");
    str_concat(&text, "See brig log", jail.text);
    return text.failed ? brig_fail_nomem(err) : brig_fail(err, BRIG_E_STATE, 0, "%s", text.data);
}

/* The newest operation that counts, and has changed something at the paths. */
static int find_newest_there(int record, const struct operation_undo *undo, uint64_t *ret_id,
                             struct brig_error *err)
{
    struct finding finding = {.record = record, .undo = undo};
    int status = operations_each(record, find_newest, &finding, err);
    if (status < 0)
        return status;
    *ret_id = finding.id;
    if (finding.id == 0 && undo->paths)
        return fail_elsewhere(record, undo, err);
    return finding.id ? 0
                      : brig_fail(err, BRIG_E_STATE, 0,
                                  "there is no operation that can be undone. See brig log%s",
                                  record_option(record).text);
}

/* "run git reset --hard HEAD~1" */
static void append_text(struct str *out, const char *before, const char *text)
{
    size_t length = strlen(text);
    size_t cut = length > TEXT_TOLD_MAX ? utf8_cut(text, TEXT_TOLD_MAX) : length;
    str_append(out, length > 0 ? before : "");
    str_append_shown(out, text, cut, "");
    str_append(out, cut < length ? "…" : "");
}

void operation_append_name(struct str *out, const struct operation_info *info)
{
    str_append(out, info->kind);
    append_text(out, " ", info->text);
}

/* What a run has done that cannot be reverted, and what can be done about it. */
static int fail_irreversible(int record, const struct operation_info *info,
                             const struct operation_undo *undo, struct brig_error *err)
{
    autostr struct str text = {0};
    struct operation_info before = {0};
    struct finding finding = {.record = record, .undo = undo, .reversible = true};
    const struct jails_option jail = record_option(record);
    str_concat(&text, undo->id ? "operation " : "the last run (#", str_number(info->id).text,
               undo->id ? " (" : ", ");
    append_text(&text, "", *info->text ? info->text : info->kind);
    str_append(&text, ") ");
    str_append_shown(&text, info->did, strlen(info->did), "");
    if (info->files == OPERATION_UNKNOWN)
        str_concat(&text, info->did[0] ? " and " : "",
                   "could write to your files directly, without a checkpoint");
    else if (!info->did[0])
        str_append(&text,
                   info->git == OPERATION_NONE ? "cannot be undone" : "changed something in git");
    if (info->did[0] && info->has_git)
        str_concat(&text, "; brig undo", jail.text, " --git ", str_number(info->id).text,
                   " brings that back");
    if (!undo->id && operations_each(record, find_newest, &finding, NULL) > 0 &&
        operation_find(record, finding.id, &before, NULL) == 0) {
        str_concat(&text, "; brig undo", jail.text, " ", str_number(before.id).text,
                   " reverts operation ", str_number(before.id).text, " (");
        operation_append_name(&text, &before);
        str_append_char(&text, ')');
    }
    operation_info_done(&before);
    return text.failed ? brig_fail_nomem(err)
                       : brig_fail(err, BRIG_E_STATE, 0, "%s. Nothing was undone", text.data);
}

/* What has changed between the end of a killed run and its settlement may be the user's. */
static int check_settled(int record, const struct operation_info *info,
                         const struct operation_undo *undo, struct brig_error *err)
{
    if (!info->settled_ns || undo->force || (undo->paths && !undo->here))
        return 0;
    return brig_fail(
        err, BRIG_E_STATE, 0,
        "the run of operation %ju was killed, and what has changed until it was noticed "
        "counts as its changes, also what you have changed yourself. brig log%s %ju "
        "lists them; name some of them, or use --force to undo all",
        (uintmax_t)info->id, record_option(record).text, (uintmax_t)info->id);
}

static int find_operation(int record, const struct operation_undo *undo, uint64_t *ret_id,
                          struct brig_error *err)
{
    struct operation_info info;
    *ret_id = undo->id;
    int status = undo->id == 0 ? find_newest_there(record, undo, ret_id, err) : 0;
    if (status == 0)
        status = operation_find(record, *ret_id, &info, err);
    if (status < 0)
        return status;
    if (undo->only_git && is_reversible(&info))
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "operation %ju is undone as a whole, files and git: brig undo%s %ju",
                           (uintmax_t)info.id, record_option(record).text, (uintmax_t)info.id);
    else if (undo->only_git ? !info.has_git : !is_reversible(&info))
        status = fail_irreversible(record, &info, undo, err);
    else if (info.undone_by)
        status = brig_fail(err, BRIG_E_STATE, 0,
                           "operation %ju was undone by operation %ju: undo that one instead",
                           (uintmax_t)info.id, (uintmax_t)info.undone_by);
    else
        status = check_settled(record, &info, undo, err);
    operation_info_done(&info);
    return status;
}

/* An undo, and the undo of an undo, change the times of the same files. */
static int find_since(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct undoing *undoing = context;
    (void)err;
    if (info->objects == undoing->old->info.objects && info->end_ns > undoing->since_ns)
        undoing->since_ns = info->end_ns;
    return 0;
}

/* ---- which steps ---- */

/* Whether a step belongs to the paths that were given: to one of them, or as a helper to a directory above one. */
static bool is_selected(const struct undoing *undoing, const struct step *step)
{
    const struct operation_undo *undo = undoing->undo;
    const char *root = undoing->old->steps.trees[step->tree].root;
    bool helps =
        step->upper == STEP_PRUNE || ((step->flags & STEP_HELPER) && step->lower != STEP_TIME);
    if (!undo->paths)
        return true;
    for (size_t i = 0; i < undo->path_count; i++) {
        const char *below = path_below(root, undo->paths[i]);
        if (path_is_beneath(undo->paths[i], root))
            return true;
        if (!below)
            continue;
        if (path_is_beneath(below, step->path) ||
            (helps && (!*step->path || path_is_beneath(step->path, below))))
            return true;
    }
    return false;
}

/* Objects that went to another filesystem and back have other inodes. */
static bool is_copy(const struct ident *wanted, const struct stat *now)
{
    struct ident found = ident_of(now);
    if (S_ISDIR(wanted->mode))
        return S_ISDIR(now->st_mode);
    return wanted->mode == found.mode && wanted->size == found.size &&
           wanted->mtime_ns == found.mtime_ns;
}

/* Whether a file of several names got its mode by another one of them. */
static bool is_other_mode(const struct ident *wanted, const struct stat *now)
{
    struct ident found = ident_of(now);
    return wanted->mode && (wanted->mode & S_IFMT) == (found.mode & S_IFMT) &&
           wanted->inode == found.inode && wanted->size == found.size &&
           wanted->mtime_ns == found.mtime_ns && !S_ISDIR(found.mode);
}

/* Whether a directory above a path cannot be searched, as the jail wanted it, and has not changed since the operation: so
 * has nothing in it, and that is looked at again when it is replaced. */
static bool is_closed(const struct undoing *undoing, const struct step *step)
{
    char part[PATH_LENGTH_MAX + 1];
    int top = undoing->old->steps.trees[step->tree].lower;
    for (const char *slash = step->path; geteuid() != 0 && (slash = strchr(slash, '/')); slash++) {
        struct stat info;
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - step->path), step->path);
        autoclose int fd = step_open_directory(top, part);
        if (fd < 0 || fstat(fd, &info) < 0)
            return false;
        if (!(info.st_mode & S_IXUSR))
            return ident_of(&info).ctime_ns <= undoing->since_ns;
    }
    return false;
}

/* A file that was replaced after the operation is another one; one that was written to has a later time of
 * change, which no operation has caused. */
static bool is_changed(struct undoing *undoing, struct step *inverted)
{
    struct stat now;
    struct step_context *steps = &undoing->old->steps;
    if (inverted->lower != STEP_SWAP && inverted->lower != STEP_MODE)
        return false;
    bool same = step_state(steps, inverted, &inverted->before, &now);
    if (!now.st_mode && is_closed(undoing, inverted))
        return false;
    if (inverted->lower == STEP_MODE) {
        mode_t mode = now.st_mode & 07777;
        inverted->before = now.st_mode ? ident_of(&now) : (struct ident){0};
        return !(inverted->flags & STEP_HELPER) && mode != inverted->mode_before &&
               (!now.st_mode || mode != inverted->mode_after);
    }
    bool explained =
        touched_explains(&undoing->touched, now.st_ino, undoing->since_ns, ident_of(&now).ctime_ns);
    bool moved = steps->trees[inverted->tree].remote >= 0 && is_copy(&inverted->before, &now);
    bool renewed = touched_is_copy(&undoing->touched, &inverted->before, &now);
    if (!same && !moved && !renewed && (!explained || !is_other_mode(&inverted->before, &now)))
        return true;
    if (now.st_mode)
        inverted->before = ident_of(&now);
    return now.st_mode && !S_ISDIR(now.st_mode) && !explained;
}

/* The step expects the file that is there now, whatever it is. */
static void expect_current(struct step_context *steps, struct step *step)
{
    struct stat now;
    (void)step_state(steps, step, &step->before, &now);
    step->before = now.st_mode ? ident_of(&now) : (struct ident){0};
    if (step->lower == STEP_MODE)
        step->mode_before = now.st_mode & 07777;
}

static void report(const struct undoing *undoing, const struct step *step, const char *reason)
{
    if (undoing->undo->report)
        undoing->undo->report(undoing->undo->context, undoing->old->steps.trees[step->tree].root,
                              step->path, reason);
}

/* Reads what the step puts in place: the number of the inode may differ from the journal's. */
static void find_object(const struct step_context *steps, struct step *step)
{
    char name[STEP_NAME_MAX];
    struct stat info;
    const struct step_tree *tree = &steps->trees[step->tree];
    step_object_name(name, step->number, step->flags & STEP_REVERSED ? STEP_OLD : "");
    step->other = fstatat(step_objects(steps, tree), name, &info, AT_SYMLINK_NOFOLLOW) == 0
                      ? ident_of(&info)
                      : (struct ident){0};
}

/* The time of a directory is restored, unless something in it has changed since. Undoing that restores the time of now. */
static int add_time(struct undoing *undoing, struct step *step, struct brig_error *err)
{
    struct stat now;
    if (undoing->undo->to)
        return 0;
    step_invert(step);
    (void)step_state(&undoing->old->steps, step, &step->before, &now);
    step->before = S_ISDIR(now.st_mode) ? ident_of(&now) : (struct ident){0};
    return step->other.mode && step->before.mtime_ns > undoing->since_ns
               ? 0
               : operation_add(undoing->new, step, err);
}

static int add_inverted(struct undoing *undoing, struct step *step, struct brig_error *err)
{
    struct step_context *steps = &undoing->old->steps;
    if (step->lower == STEP_TIME)
        return add_time(undoing, step, err);
    bool taken = step_is_taken(steps, step);
    bool upper =
        step->upper == STEP_OPAQUE || step->upper == STEP_UPPER_META ||
        (step->flags & STEP_REVERSED ? !step_has_entry(steps, step) : step_has_entry(steps, step));
    if (step->lower == STEP_SWAP && !taken) {
        undoing->found.already++;
        return 0;
    }
    if (step->lower == STEP_LOWER_NONE && !upper)
        return 0;
    step_invert(step);
    if (step->lower == STEP_SWAP)
        find_object(steps, step);
    if (is_changed(undoing, step)) {
        if (!undoing->undo->force) {
            undoing->found.changed++;
            report(undoing, step, "it has changed since");
            return 0;
        }
        expect_current(steps, step);
    }
    if (step->lower == STEP_SWAP && !step->before.mode && !step->other.mode)
        return 0;
    return operation_add(undoing->new, step, err);
}

static int add_steps(struct undoing *undoing, struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = journal_open(undoing->old->dir, true, &journal, err);
    undoing->found.whole = true;
    while (status == 0 && (status = journal_previous(&journal, &step, err)) > 0) {
        status = 0;
        if (is_selected(undoing, &step))
            status = add_inverted(undoing, &step, err);
        else
            undoing->found.whole = false;
    }
    step_done(&undoing->old->steps);
    return status;
}

/* The new operation has the layers of the old one, in the same order, and uses its objects. */
static int take_over(struct undoing *undoing, struct brig_error *err)
{
    struct operation *old = undoing->old, *new = undoing->new;
    close_fd(&new->steps.objects);
    new->steps.objects = fcntl(old->steps.objects, F_DUPFD_CLOEXEC, 0);
    new->info.objects = old->info.objects;
    new->info.undoes = old->info.id;
    new->steps.trees = take_ptr(&old->steps.trees);
    new->steps.tree_count = old->steps.tree_count;
    old->steps.tree_count = 0;
    return new->steps.objects < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor")
               : operation_write_info(new, err);
}

/* What was held back goes to another directory than the one it is from. */
static int move_to(struct operation *old, const char *to, struct brig_error *err)
{
    struct step_tree *tree = &old->steps.trees[0];
    autoclose int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || old->steps.tree_count != 1 || !path_of_fd(fd, tree->root))
        return brig_fail(err, BRIG_E_INVALID, errno, "cannot open the directory '%s'",
                         str_shown(to).text);
    close_fd(&tree->lower);
    tree->lower = take_fd(&fd);
    return place_of(tree->lower, &tree->place, err);
}

/* Both operations share the layers from here on. */
static int plan(struct undoing *undoing, struct brig_error *err)
{
    struct operation *old = undoing->old, *new = undoing->new;
    int status = take_over(undoing, err);
    if (status < 0)
        return status;
    /* Objects of another filesystem are moved there before their inodes are read. The journal that names them is the
     * old one. */
    int dir = new->dir;
    new->dir = old->dir;
    status = operation_export(new, err);
    new->dir = dir;
    if (status < 0)
        return status;
    old->steps.trees = new->steps.trees;
    old->steps.tree_count = new->steps.tree_count;
    status = add_steps(undoing, err);
    old->steps.trees = NULL;
    old->steps.tree_count = 0;
    return status;
}

int undo_run(struct operation *operation, const struct operation_undo *undo,
             const struct operation_info *old, const struct undo_found *found,
             struct brig_error *err)
{
    char text[OPERATION_TEXT_MAX];
    if (found->changed > 0)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "%ju file%s changed since operation %ju, so nothing was undone. Name "
                         "other files, or use --force, which replaces them",
                         (uintmax_t)found->changed, found->changed == 1 ? " has" : "s have",
                         (uintmax_t)old->id);
    if (found->count == 0 && found->already > 0 && undo->paths && !operation_has_git(operation))
        return brig_fail(err, BRIG_E_STATE, 0,
                         "what operation %ju did at '%s' is undone already. See brig log%s",
                         (uintmax_t)old->id, str_shown(undo->paths[0]).text,
                         record_option(operation->record).text);
    if (found->count == 0 && found->lost > 0 && !operation_has_git(operation))
        return brig_fail(err, BRIG_E_STATE, 0,
                         "operation %ju has changed there only what the checkpoint left out, so "
                         "nothing was undone",
                         (uintmax_t)old->id);
    if (found->count == 0 && !operation_has_git(operation))
        return brig_fail(err, BRIG_E_STATE, 0,
                         "operation %ju has nothing to undo at '%s'. See brig log%s %ju",
                         (uintmax_t)old->id, undo->paths ? str_shown(undo->paths[0]).text : "/",
                         record_option(operation->record).text, (uintmax_t)old->id);
    operation->info.undoes = old->id;
    operation->info.whole = found->whole;
    (void)snprintf(text, sizeof text, "operation %ju (%s)", (uintmax_t)old->id, old->kind);
    operation_describe(operation, text);
    return operation_run(operation, undo->report, undo->context, err);
}

static bool has_steps(int record, uint64_t id)
{
    struct operation_info info;
    if (operation_find(record, id, &info, NULL) < 0)
        return false;
    operation_info_done(&info);
    return info.has_steps;
}

/* Of an operation that has only moved refs, or of which nothing else is known. */
static int undo_only_git(const struct layers *layers, int record, const struct operation_undo *undo,
                         uint64_t *ret_id, struct brig_error *err)
{
    struct operation *operation = NULL;
    struct operation_info old = {0};
    const struct undo_found found = {.whole = true};
    int status = operation_find(record, undo->id, &old, err);
    if (status == 0)
        status = operation_begin(layers, record, OPERATION_UNDO, &operation, err);
    if (status == 0)
        status = operation_git_reverse(operation, undo->id, &undo->git, err);
    if (status == 0)
        status = undo_run(operation, undo, &old, &found, err);
    if (status == 0)
        *ret_id = operation->info.id;
    operation_info_done(&old);
    operation_free(operation);
    return status;
}

int operation_undo(const struct layers *layers, int record, const struct operation_undo *undo,
                   uint64_t *ret_undone, uint64_t *ret_id, struct brig_error *err)
{
    struct undoing undoing = {.undo = undo, .touched.record = record};
    uint64_t id = 0;
    int status = operation_check_interrupted(record, err);
    if (status == 0)
        status = find_operation(record, undo, &id, err);
    if (status < 0)
        return status;
    struct operation_undo same = *undo;
    same.id = *ret_undone = id;
    if (restore_can(record, id))
        return restore_run(layers, record, &same, ret_id, err);
    if (undo->only_git || !has_steps(record, id))
        return undo_only_git(layers, record, &same, ret_id, err);
    if (status == 0)
        status = operation_begin(layers, record, OPERATION_UNDO, &undoing.new, err);
    if (status == 0)
        status = operation_open(layers, record, id, &undoing.old, err);
    if (status == 0 && undo->to)
        status = move_to(undoing.old, undo->to, err);
    if (status == 0)
        status = operation_check_roots(undoing.old, undo->force, err);
    if (status == 0)
        status = operations_each(record, find_since, &undoing, err);
    if (status == 0)
        status = plan(&undoing, err);
    if (status == 0 && undoing.found.whole)
        status = operation_git_reverse(undoing.new, id, &undo->git, err);
    if (status == 0) {
        undoing.found.count = operation_count(undoing.new);
        status = undo_run(undoing.new, undo, &undoing.old->info, &undoing.found, err);
    }
    if (status == 0)
        *ret_id = undoing.new->info.id;
    operation_free(undoing.old);
    operation_free(undoing.new);
    touched_done(&undoing.touched);
    return status;
}
