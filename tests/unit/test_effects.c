/* SPDX-License-Identifier: MIT */
/* The interpreter of build steps, the facts of a printed plan, and that a policy with facts is not run. */

#include <brig/brig.h>

#include "jail/cgroup/cgroup.h"
#include "jail/plan/effects.h"
#include "jail/plan/facts.h"
#include "jail/plan/plan.h"
#include "policy/policy.h"
#include "tap.h"

static struct plan_step *add(struct plan *plan, enum plan_op op, int slot, const char *path)
{
    struct plan_step *step = plan_add(plan, op, "a test");
    if (!step)
        abort();
    step->slot = slot;
    step->path = path;
    return step;
}

static void attach(struct plan *plan, int slot, const char *path)
{
    add(plan, PLAN_ATTACH, slot, path);
}

static const struct effects_mount *mount_at(const struct effects *effects, const char *path)
{
    const struct effects_mount *mount = effects_mount_of(effects, path);
    return mount && strcmp(mount->path, path) == 0 ? mount : NULL;
}

/* A root, two trees and a private directory. */
static void begin(struct plan *plan)
{
    *plan = PLAN_INIT;
    for (int i = 0; i < 8; i++)
        (void)plan_new_slot(plan);
    add(plan, PLAN_TMPFS, 1, "mode=0755\0");
    add(plan, PLAN_ROOT, 1, NULL);
    add(plan, PLAN_TREE, 2, "/srv/a")->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_RECURSIVE;
}

static void test_mounts(void)
{
    struct plan plan;
    struct effects effects;
    begin(&plan);
    attach(&plan, 2, "/a");
    add(&plan, PLAN_TREE, 3, "/srv/b");
    attach(&plan, 3, "/a/b");
    tap_ok(effects_of(&plan, &effects, NULL) == 0, "steps are interpreted");
    tap_ok(mount_at(&effects, "/a") && mount_at(&effects, "/a/b"), "what is mounted below is seen");
    tap_ok(strcmp(effects_mount_of(&effects, "/a/c")->path, "/a") == 0,
           "a path is on what is above it");
    tap_ok(strcmp(mount_at(&effects, "/a")->tree.path, "/srv/a") == 0, "a mount knows its source");
    tap_ok(mount_at(&effects, "/a")->tree.flags == PLAN_ATTR_NOSUID, "and its flags");
    tap_ok(effects.keeps_host, "without a pivot the host's tree is there still");
    effects_done(&effects);

    add(&plan, PLAN_PIVOT, 1, NULL);
    add(&plan, PLAN_DETACH, PLAN_NO_SLOT, NULL);
    (void)effects_of(&plan, &effects, NULL);
    tap_ok(!effects.keeps_host, "with it, it is not");
    effects_done(&effects);

    add(&plan, PLAN_TREE, 4, "/srv/c");
    attach(&plan, 4, "/a");
    (void)effects_of(&plan, &effects, NULL);
    tap_ok(effects.mount_count == 2 && !mount_at(&effects, "/a/b"),
           "a mount covers what was below it");
    effects_done(&effects);
    plan_done(&plan);
}

static void test_flags(void)
{
    struct plan plan;
    struct effects effects;
    begin(&plan);
    attach(&plan, 2, "/a");
    struct plan_step *clone = add(&plan, PLAN_SUBTREE, 3, "part");
    clone->from = 2;
    attach(&plan, 3, "/b");
    add(&plan, PLAN_ATTR, 3, NULL)->flags = PLAN_ATTR_RDONLY;
    add(&plan, PLAN_ATTR, 1, NULL)->flags = PLAN_ATTR_NODEV;
    (void)effects_of(&plan, &effects, NULL);
    tap_ok(strcmp(mount_at(&effects, "/b")->tree.path, "/srv/a/part") == 0, "a clone is of a part");
    tap_ok(mount_at(&effects, "/b")->tree.flags == (PLAN_ATTR_NOSUID | PLAN_ATTR_RDONLY),
           "it has the flags it was cloned with, and its own that were set once it was mounted");
    tap_ok(mount_at(&effects, "/a")->tree.flags == PLAN_ATTR_NOSUID,
           "what it was cloned from has not");
    tap_ok(mount_at(&effects, "/")->tree.flags == PLAN_ATTR_NODEV, "one mount alone is changed");
    effects_done(&effects);

    add(&plan, PLAN_ATTR, 1, NULL)->flags = PLAN_ATTR_NOEXEC | PLAN_ATTR_RECURSIVE;
    (void)effects_of(&plan, &effects, NULL);
    tap_ok(mount_at(&effects, "/a")->tree.flags & PLAN_ATTR_NOEXEC &&
               mount_at(&effects, "/b")->tree.flags & PLAN_ATTR_NOEXEC,
           "or all below it");
    effects_done(&effects);
    plan_done(&plan);
}

static void test_objects(void)
{
    struct plan plan;
    struct effects effects;
    begin(&plan);
    add(&plan, PLAN_MKDIR, 1, "run")->mode = 0755;
    add(&plan, PLAN_MKDIR, 1, "run")->mode = 0700;
    struct plan_step *part = add(&plan, PLAN_SUBTREE, 3, "run");
    part->from = 1;
    struct plan_step *file = add(&plan, PLAN_MKFILE, 3, "note");
    file->data = "text";
    file->length = 4;
    (void)effects_of(&plan, &effects, NULL);
    int filesystem = mount_at(&effects, "/")->tree.filesystem;
    const struct effects_object *run = effects_object_at(&effects, filesystem, "run");
    const struct effects_object *note = effects_object_at(&effects, filesystem, "run/note");
    tap_ok(run && run->mode == 0755, "what exists stays as it is");
    tap_ok(note && note->length == 4, "what is made in a part is in its filesystem");
    effects_done(&effects);
    plan_done(&plan);
}

static const char whole[] = "# a comment\n"
                            "landlock 6\nnamespaces yes\nroot no\ngroups 27 100 # two\n"
                            "cgroup memory pids\ncgroup-at-hand no\n"
                            "files 1024 4096\nproc keys sys\n";

static void test_facts(void)
{
    struct facts facts;
    struct brig_error err = {0};
    tap_ok(facts_parse(whole, &facts, &err) == 0, "facts are read: %s", err.message);
    tap_ok(facts.landlock == 6 && facts.namespaces && !facts.root, "numbers and yes or no");
    tap_ok(facts.group_count == 2 && facts.groups[1] == 100, "lists of numbers");
    tap_ok(facts.cgroup == (CGROUP_MEMORY | CGROUP_PIDS), "lists of words");
    tap_ok(facts.files.rlim_cur == 1024 && facts.files.rlim_max == 4096, "two numbers");
    tap_ok(facts_has_proc(&facts, "keys") && facts_has_proc(&facts, "sys") &&
               !facts_has_proc(&facts, "key"),
           "names as a whole");
    static const char *const wrong[] = {"landlock 6\n",  "colour blue\n", "root no\nroot no\n",
                                        "root maybe\n",  "groups -1\n",   "cgroup swap\n",
                                        "landlock six\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        tap_ok(facts_parse(wrong[i], &facts, NULL) == BRIG_E_INVALID, "refused: %s", wrong[i]);
}

static void test_run(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    struct facts facts;
    const char *const argv[] = {"true", NULL};
    const struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    tap_ok(facts_parse(whole, &facts, NULL) == 0 && policy, "a policy with facts");
    policy->facts = &facts;
    tap_ok(brig_start(policy, &command, &job, &err) == BRIG_E_STATE && !job, "is not run: %s",
           err.message);
    policy->facts = NULL;
    brig_policy_free(policy);
}

int main(void)
{
    test_mounts();
    test_flags();
    test_objects();
    test_facts();
    test_run();
    return tap_done();
}
