/* SPDX-License-Identifier: MIT */
/* What rules about the home directory come to, and which of them a grant would undo. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/run/masks.h"
#include "cli/settings/settings.h"
#include "jail/view/mask_names.h"
#include "jail/view/mask_watch.h"
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

static bool has(const char **list, size_t count, const char *text)
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
    tap_ok(!has(masks.rules.hidden, masks.rules.hidden_count, ".ssh"), "a rule is taken back");
    tap_ok(has(masks.rules.hidden, masks.rules.hidden_count, ".aws"), "and only that");
    masks_done(&masks);

    const struct settings_mask below[] = {{.path = ".config"},
                                          {.path = ".config/git", .unmask = true}};
    masks = resolve(below, ARRAY_LENGTH(below));
    tap_ok(has(masks.rules.hidden, masks.rules.hidden_count, ".config"),
           "what is above stays hidden");
    tap_ok(has(masks.rules.shown, masks.rules.shown_count, ".config/git"), "but for the exception");
    masks_done(&masks);

    const struct settings_mask again[] = {
        {.path = ".config"}, {.path = ".config/git", .unmask = true}, {.path = ".config"}};
    masks = resolve(again, ARRAY_LENGTH(again));
    tap_is_int(masks.rules.shown_count, 0, "a later mask takes the exception back");
    masks_done(&masks);

    const struct settings_mask wild[] = {
        {.path = ".ssh"}, {.path = ".ssh/a"}, {.path = ".netrc"}, {.path = ".s*", .unmask = true}};
    masks = resolve(wild, ARRAY_LENGTH(wild));
    tap_ok(!has(masks.rules.hidden, masks.rules.hidden_count, ".ssh"),
           "an exception may have wildcards");
    tap_ok(has(masks.rules.hidden, masks.rules.hidden_count, ".netrc"),
           "which do not match everything");
    masks_done(&masks);
}

static size_t count_masks(const struct brig_policy *policy, const char *dest)
{
    size_t count = 0;
    for (size_t i = 0; i < policy->grant_count; i++)
        count += policy->grants[i].access == BRIG_MASK && strcmp(policy->grants[i].dest, dest) == 0;
    return count;
}

/* ---- a home with links ---- */

static char scratch[] = "/tmp/brig-test-masks.XXXXXX";
static char home[64];

static void make(const char *path, const char *link)
{
    char full[256];
    (void)snprintf(full, sizeof full, "%s/%s", scratch, path);
    if ((link ? symlink(link, full) : mkdir(full, 0700)) < 0)
        tap_bail("cannot make a home to look at");
}

static void make_home(void)
{
    static const char *const directories[] = {
        "home",         "home/.config",    "home/.config/open", "home/dotfiles", "home/dotfiles/gh",
        "home/.wild-a", "outside",         "outside/gh",        "home/deep",     "home/deep/er",
        "home/.ssh",    "home/dotfiles/x",
    };
    if (!mkdtemp(scratch))
        tap_bail("no directory to work in");
    (void)snprintf(home, sizeof home, "%s/home", scratch);
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        make(directories[i], NULL);
    make("home/.linked", "dotfiles");
    make("home/.far", "../outside");
    make("home/.itself", "dotfiles/gh");
    make("home/.twice", ".again");
    make("home/.again", "deep/../dotfiles/x");
    make("home/.loop", ".loop");
    make("home/.all", ".");
    make("home/.root", "/");
    make("home/.wild-b", "outside-of-nothing");
    make("home/deep/up", "../.ssh");
    make("other", "home");
}

static void remove_home(void)
{
    const char *const argv[] = {"rm", "-r", scratch, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv("/bin/rm", (char *const *)(uintptr_t)argv);
        _exit(1);
    }
    (void)waitpid(pid, NULL, 0);
}

static void leads(const char *path, bool last, enum mask_link wanted, const char *to,
                  const char *name)
{
    char found[PATH_LENGTH_MAX + 1] = "", expected[PATH_LENGTH_MAX + 1];
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *real = realpath(home, NULL);
    const struct mask_home where = {.fd = fd, .path = home, .real = real};
    enum mask_link result = mask_follow_links(&where, path, last, found);
    if (wanted == MASK_LINK_OUTSIDE)
        (void)snprintf(expected, sizeof expected, "%s/%s", scratch, to);
    else
        (void)snprintf(expected, sizeof expected, "%s", to ? to : found);
    tap_ok(result == wanted && strcmp(found, expected) == 0, "%s", name);
    if (result != wanted || strcmp(found, expected) != 0)
        tap_diag("%s: %d '%s', not %d '%s'", path, result, found, wanted, expected);
}

static void links(void)
{
    char absolute[128];
    (void)snprintf(absolute, sizeof absolute, "%s/dotfiles", home);
    make("home/.absolute", absolute);
    leads(".config/gh", false, MASK_LINK_NONE, ".config/gh", "without links a path is itself");
    leads("none/at/all", true, MASK_LINK_NONE, "none/at/all", "also if there is nothing");
    leads(".linked/gh", false, MASK_LINK_INSIDE, "dotfiles/gh", "a link on the way is followed");
    leads(".linked/new", false, MASK_LINK_INSIDE, "dotfiles/new", "to what is missing as well");
    leads(".absolute/gh", false, MASK_LINK_INSIDE, "dotfiles/gh", "so is an absolute one");
    leads(".far/gh", false, MASK_LINK_OUTSIDE, "outside/gh", "a link may lead out of the home");
    leads(".itself", false, MASK_LINK_NONE, ".itself", "a link at the end is left alone");
    leads(".itself", true, MASK_LINK_INSIDE, "dotfiles/gh", "unless it is asked for");
    leads(".twice", true, MASK_LINK_INSIDE, "dotfiles/x", "links lead to links, and up again");
    leads("deep/up/key", false, MASK_LINK_INSIDE, ".ssh/key", "from a directory below");
    leads(".loop/x", false, MASK_LINK_NOWHERE, NULL, "a loop leads nowhere");
    leads(".all", true, MASK_LINK_NOWHERE, NULL, "the home itself is nothing to hide");
    leads(".root", true, MASK_LINK_NOWHERE, NULL, "nor what holds it");
}

/* ---- grants ---- */

static size_t count_at(const struct brig_policy *policy, const char *path)
{
    char dest[256];
    (void)snprintf(dest, sizeof dest, "%s/%s", scratch, path);
    return count_masks(policy, dest);
}

static void grant(struct brig_policy *policy, enum brig_access access, const char *path)
{
    char source[256];
    (void)snprintf(source, sizeof source, "%s/%s", scratch, path);
    if (brig_policy_grant(policy, access, source, NULL, 0, NULL) < 0)
        tap_bail("cannot grant");
}

static struct brig_policy *apply(enum brig_mode mode, const struct settings_mask *list,
                                 size_t count, const char *first, const char *second)
{
    struct masks masks = resolve(list, count);
    struct brig_policy *policy = brig_policy_new(mode);
    struct mask_names names;
    grant(policy, BRIG_READ_WRITE, first);
    if (second)
        grant(policy, BRIG_READ_ONLY, second);
    tap_ok(mask_names_init(&names, policy, home, NULL) == 0 &&
               masks_apply(&masks, &names, NULL) == 0,
           "masks are applied");
    mask_names_done(&names);
    masks_done(&masks);
    return policy;
}

static void grants(void)
{
    const struct settings_mask list[] = {{.path = ".config/gh"},
                                         {.path = ".ssh"},
                                         {.path = ".aws"},
                                         {.path = ".linked/gh"},
                                         {.path = ".far/gh"},
                                         {.path = ".wild-*"},
                                         {.path = ".config/open", .unmask = true}};
    struct brig_policy *policy =
        apply(BRIG_MODE_STRICT, list, ARRAY_LENGTH(list), "home/.config", "home/.ssh");
    tap_is_int(count_at(policy, "home/.config/gh"), 1, "what is hidden stays so inside a grant");
    tap_is_int(count_at(policy, "home/.ssh"), 0, "what is granted by name is granted");
    tap_is_int(count_at(policy, "home/.aws"), 0, "what no grant shows needs no rule");
    tap_is_int(count_at(policy, "outside/gh"), 0, "wherever it is");
    brig_policy_free(policy);

    policy = apply(BRIG_MODE_STRICT, list, ARRAY_LENGTH(list), "home/dotfiles", "outside");
    tap_is_int(count_at(policy, "home/dotfiles/gh"), 1, "a grant that a link leads into");
    tap_is_int(count_at(policy, "outside/gh"), 1, "also outside of the home");
    brig_policy_free(policy);

    policy = apply(BRIG_MODE_STRICT, list, ARRAY_LENGTH(list), "other", NULL);
    tap_is_int(count_at(policy, "other/.ssh"), 1, "the home granted by another name");
    tap_is_int(count_at(policy, "other/.wild-a"), 1, "with what wildcards stand for");
    tap_is_int(count_at(policy, "other/dotfiles/gh"), 1, "and where links lead");
    brig_policy_free(policy);

    policy = apply(BRIG_MODE_CASUAL, list, ARRAY_LENGTH(list), "home/deep", NULL);
    tap_is_int(count_at(policy, "outside/gh"), 1, "in the host's view what a link leads to");
    tap_is_int(count_at(policy, "home/.ssh"), 0, "but not what the jail's home has hidden");
    brig_policy_free(policy);
}

/* A part of what is hidden is shown, behind a link. */
static void exceptions(void)
{
    const struct settings_mask list[] = {{.path = ".linked"},
                                         {.path = ".linked/x", .unmask = true}};
    struct brig_policy *policy =
        apply(BRIG_MODE_STRICT, list, ARRAY_LENGTH(list), "home/dotfiles", NULL);
    tap_is_int(count_at(policy, "home/dotfiles/gh"), 1, "what is beside an exception is hidden");
    tap_is_int(count_at(policy, "home/dotfiles/x"), 0, "the exception is not");
    brig_policy_free(policy);
}

/* ---- many in one directory ---- */

struct told {
    const char *const *expected;
    size_t found, others;
};

static int note_linked(void *context, const struct mask_path *found, struct brig_error *err)
{
    struct told *told = context;
    (void)err;
    if (!found->linked)
        return 0;
    bool known = false;
    for (const char *const *path = told->expected; *path; path++)
        known = known || strcmp(*path, found->path) == 0;
    told->found += known;
    told->others += !known;
    return 0;
}

/* Of a directory whose names are read, those that are links are followed all the same. */
static void neighbours(void)
{
    static const char *hidden[] = {"deep/none", "deep/more",   "deep/up",   "deep/last",
                                   "deep/up/a", "deep/up/key", ".linked/a", ".linked/gh"};
    static const char *const expected[] = {".ssh",       ".ssh/a",      ".ssh/key",
                                           "dotfiles/a", "dotfiles/gh", NULL};
    const struct mask_rules all = {.hidden = hidden, .hidden_count = ARRAY_LENGTH(hidden)};
    struct told told = {.expected = expected};
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *real = realpath(home, NULL);
    const struct mask_home where = {.fd = fd, .path = home, .real = real};
    const struct mask_visitor visitor = {.path = note_linked, .context = &told};
    tap_is_int(mask_each(&where, &all, &visitor, NULL), 0, "all are looked at");
    tap_is_int(told.found, 5, "where links lead is found among many of one directory");
    tap_is_int(told.others, 0, "and nothing else");
}

/* ---- new names ---- */

static int pass_over(void *context, const struct mask_path *path, struct brig_error *err)
{
    (void)context;
    (void)path;
    (void)err;
    return 0;
}

/* Whether a new directory in the home is news to the watcher, which is filled again each time. */
static bool is_news(struct mask_watch *watch, const struct mask_rules *all, const char *path)
{
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct mask_home where = {.fd = fd, .path = home};
    mask_watch_begin(watch);
    (void)mask_each(&where, all, &(struct mask_visitor){pass_over, NULL, watch}, NULL);
    mask_watch_end(watch);
    make(path, NULL);
    return mask_watch_has_news(watch);
}

static void news(void)
{
    static const char *hidden[] = {".netrc", ".far/key", ".wild-?/*/x", "deep"};
    static const char *shown[] = {"deep/er"};
    const struct mask_rules all = {.hidden = hidden,
                                   .hidden_count = ARRAY_LENGTH(hidden),
                                   .shown = shown,
                                   .shown_count = ARRAY_LENGTH(shown)};
    struct mask_watch watch = MASK_WATCH_INIT;
    if (mask_watch_open(&watch) < 0)
        tap_bail("no inotify");
    tap_ok(!is_news(&watch, &all, "home/other"), "a name that no mask is for is no news");
    tap_ok(is_news(&watch, &all, "home/.netrc"), "the name of a mask is");
    tap_ok(is_news(&watch, &all, "outside/key"), "where a link leads, too");
    tap_ok(is_news(&watch, &all, "home/.wild-a/new"), "and what a pattern matches");
    tap_ok(is_news(&watch, &all, "home/.wild-a/new/x"), "and below it");
    tap_ok(is_news(&watch, &all, "home/deep/beside"), "and what is beside an exception");
    tap_ok(!is_news(&watch, &all, "home/deep/er/open"), "but not what is in it");
    tap_ok(!watch.blind && watch.count < 12, "few directories are watched");
    size_t count = watch.count;
    watch.limit = count;
    make("home/.wild-c", NULL);
    make("home/.wild-c/one", NULL);
    (void)is_news(&watch, &all, "home/.wild-c/two");
    tap_ok(watch.blind && watch.count == count, "and no more than the limit");
    mask_watch_done(&watch);
}

int main(void)
{
    rules();
    make_home();
    links();
    neighbours();
    grants();
    exceptions();
    news();
    remove_home();
    return tap_done();
}
