/* SPDX-License-Identifier: MIT */
/* What rules about the home directory come to, and which of them a grant would undo. */
#include "base/own.h"
#include "cli/masks.c" /* the program's parts are no library */
#include "cli/settings.h"
#include "policy/policy.h"
#include "tap.h"

#define RULES_MAX 8

static struct masks resolve(const struct settings_mask *rules, size_t count)
{
    struct settings_mask copy[RULES_MAX];
    memcpy(copy, rules, count * sizeof *rules);
    const struct settings settings = {.masks = copy, .mask_count = count};
    struct masks masks;
    if (masks_resolve(&settings, &masks, NULL) < 0)
        tap_bail("out of memory");
    return masks;
}

static bool has(const char *const *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static void rules(void)
{
    struct masks masks;
    const struct settings_mask back[] = {
        {.path = ".ssh"}, {.path = ".aws"}, {.path = ".ssh", .unmask = true}};
    masks = resolve(back, ARRAY_LENGTH(back));
    tap_ok(!has(masks.hidden, masks.hidden_count, ".ssh"), "a rule is taken back");
    tap_ok(has(masks.hidden, masks.hidden_count, ".aws"), "and only that");
    masks_done(&masks);

    const struct settings_mask below[] = {{.path = ".config"},
                                          {.path = ".config/git", .unmask = true}};
    masks = resolve(below, ARRAY_LENGTH(below));
    tap_ok(has(masks.hidden, masks.hidden_count, ".config"), "what is above stays hidden");
    tap_ok(has(masks.shown, masks.shown_count, ".config/git"), "but for the exception");
    masks_done(&masks);

    const struct settings_mask again[] = {
        {.path = ".config"}, {.path = ".config/git", .unmask = true}, {.path = ".config"}};
    masks = resolve(again, ARRAY_LENGTH(again));
    tap_is_int(masks.shown_count, 0, "a later mask takes the exception back");
    masks_done(&masks);

    const struct settings_mask wild[] = {
        {.path = ".ssh"}, {.path = ".ssh/a"}, {.path = ".netrc"}, {.path = ".s*", .unmask = true}};
    masks = resolve(wild, ARRAY_LENGTH(wild));
    tap_ok(!has(masks.hidden, masks.hidden_count, ".ssh"), "an exception may have wildcards");
    tap_ok(has(masks.hidden, masks.hidden_count, ".netrc"), "which do not match everything");
    masks_done(&masks);
}

static size_t count_masks(const struct brig_policy *policy, const char *dest)
{
    size_t count = 0;
    for (size_t i = 0; i < policy->grant_count; i++)
        count += policy->grants[i].access == BRIG_MASK && strcmp(policy->grants[i].dest, dest) == 0;
    return count;
}

static void grants(void)
{
    const struct settings_mask list[] = {{.path = ".config/gh"},
                                         {.path = ".ssh"},
                                         {.path = ".aws"},
                                         {.path = ".config/open", .unmask = true}};
    struct masks masks = resolve(list, ARRAY_LENGTH(list));
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_CASUAL);
    tap_is_int(brig_policy_grant(policy, BRIG_READ_WRITE, "/home/u/.config", NULL, 0, NULL), 0,
               "a directory that holds something hidden is granted");
    tap_is_int(brig_policy_grant(policy, BRIG_READ_ONLY, "/home/u/.aws", NULL, 0, NULL), 0,
               "and something hidden itself");
    tap_is_int(masks_apply_to_grants(&masks, "/home/u", policy, NULL), 0, "masks are applied");
    tap_is_int(count_masks(policy, "/home/u/.config/gh"), 1,
               "what is hidden stays so inside a grant");
    tap_is_int(count_masks(policy, "/home/u/.aws"), 0, "what is granted by name is granted");
    tap_is_int(count_masks(policy, "/home/u/.ssh"), 0, "what no grant shows needs no rule");
    brig_policy_free(policy);
    masks_done(&masks);
}

int main(void)
{
    rules();
    grants();
    return tap_done();
}
