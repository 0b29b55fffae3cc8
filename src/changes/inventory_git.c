/* SPDX-License-Identifier: MIT */
/* What a jail has done in git, as items of the inventory. */
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "git/guard.h"

void inventory_git_done(struct inventory_git *judged)
{
    range_done(&judged->range);
    str_done(&judged->risk);
}

int inventory_judge_git(const struct git_item *git, struct inventory_git *ret_judged,
                        struct brig_error *err)
{
    struct inventory_git *judged = ret_judged;
    bool tree = git->kind == GIT_ITEM_WORKTREE;
    *judged = (struct inventory_git){0};
    int status = range_judge(git, &judged->range, err);
    const struct range_mark *mark = status == 0 ? range_stops(&judged->range) : NULL;
    if (mark)
        range_append_mark(&judged->risk, mark);
    if (status == 0 && judged->risk.failed)
        status = brig_fail_nomem(err);
    if (status < 0) {
        inventory_git_done(judged);
        return status;
    }
    judged->item = (struct inventory_item){
        .git = git,
        .range = &judged->range,
        .path = tree ? git->new_head : git->name,
        .risk = mark ? judged->risk.data : NULL,
        .class = mark ? (enum names_class)(mark - judged->range.first) : NAMES_PLAIN,
        .token = token_of_git(git, mark ? judged->risk.data : NULL)};
    return 0;
}

struct listing {
    inventory_visit visit;
    void *context;
};

static int list_item(void *data, const struct git_item *git, struct str *reason,
                     struct brig_error *err)
{
    const struct listing *listing = data;
    struct inventory_git judged;
    (void)reason;
    int status = inventory_judge_git(git, &judged, err);
    if (status < 0)
        return status;
    status = listing->visit(listing->context, &judged.item, err);
    bool marked = judged.item.risk;
    inventory_git_done(&judged);
    return status < 0 ? status : !marked;
}

int inventory_each_git(const struct guard_options *options, const char *root, inventory_visit visit,
                       void *context, struct brig_error *err)
{
    struct guard_options asking = *options;
    struct listing listing = {visit, context};
    const struct git_chooser chooser = {list_item, &listing};
    asking.chooser = &chooser;
    return guard_list(&asking, root, err);
}
