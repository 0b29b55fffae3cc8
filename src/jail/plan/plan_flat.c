/* SPDX-License-Identifier: MIT */
/* Writes a plan as one block of bytes. Structs are copied with offsets instead of pointers: the
 * reader was built together with the writer, and trusts it. */
#include "jail/plan/plan_flat.h"

#include <linux/filter.h>
#include <string.h>

#include "base/str.h"

#define ALIGNMENT 16

/* Appends data, aligned, and returns its offset. */
static size_t add(struct str *out, const void *data, size_t size)
{
    static const char zeros[ALIGNMENT];
    str_append_bytes(out, zeros, (ALIGNMENT - out->length % ALIGNMENT) % ALIGNMENT);
    size_t at = out->length;
    if (size > 0)
        str_append_bytes(out, data, size);
    return at;
}

static size_t add_text(struct str *out, const char *text)
{
    return text ? add(out, text, strlen(text) + 1) : 0;
}

/* A filesystem's options are several strings, ended by an empty one. */
static size_t add_options(struct str *out, const char *options)
{
    size_t length = 1;
    for (const char *at = options; *at; at += strlen(at) + 1)
        length += strlen(at) + 1;
    return add(out, options, length);
}

static bool has_options(const struct plan_step *step)
{
    return step->op == PLAN_TMPFS || step->op == PLAN_DEVPTS;
}

static void *as_pointer(size_t offset)
{
    return (void *)(uintptr_t)offset;
}

/* Appends a step's data with a NUL after it. The data of a symlink is a string without a length. */
static size_t add_data(struct str *out, const struct plan_step *step)
{
    size_t length = step->op == PLAN_SYMLINK ? strlen(step->data) : step->length;
    size_t where = add(out, step->data, length);
    str_append_char(out, 0);
    return where;
}

static void add_steps(const struct plan *plan, struct str *out, size_t at)
{
    for (size_t i = 0; i < plan->step_count && !out->failed; i++) {
        struct plan_step step = plan->steps[i];
        const char *path = step.path;
        if (path)
            step.path =
                as_pointer(has_options(&step) ? add_options(out, path) : add_text(out, path));
        if (step.data)
            step.data = as_pointer(add_data(out, &plan->steps[i]));
        step.what = step.hint = NULL;
        if (!out->failed)
            memcpy(out->data + at + i * sizeof step, &step, sizeof step);
    }
}

static void add_rules(const struct plan *plan, struct str *out, size_t at)
{
    for (size_t i = 0; i < plan->rule_count && !out->failed; i++) {
        struct plan_rule rule = plan->rules[i];
        rule.path = as_pointer(add_text(out, rule.path));
        if (!out->failed)
            memcpy(out->data + at + i * sizeof rule, &rule, sizeof rule);
    }
}

static size_t add_filter(struct str *out, const struct sock_fprog *filter, uint16_t *ret_count)
{
    *ret_count = filter ? filter->len : 0;
    return filter ? add(out, filter->filter, filter->len * sizeof *filter->filter) : 0;
}

int plan_flatten(const struct plan *plan, struct str *out)
{
    struct plan_flat flat = {.magic = PLAN_FLAT_MAGIC, .build = plan_flat_build(), .plan = *plan};
    str_append_bytes(out, (const char *)&flat, sizeof flat); /* reserves the space */
    flat.steps = add(out, plan->steps, plan->step_count * sizeof *plan->steps);
    add_steps(plan, out, flat.steps);
    flat.rules = add(out, plan->rules, plan->rule_count * sizeof *plan->rules);
    add_rules(plan, out, flat.rules);
    flat.seccomp = add_filter(out, plan->seccomp, &flat.seccomp_count);
    flat.seccomp_told = add_filter(out, plan->seccomp_told, &flat.seccomp_told_count);
    flat.workdir = add_text(out, plan->workdir);
    flat.length = out->length;
    if (out->failed)
        return BRIG_E_NOMEM;
    memcpy(out->data, &flat, sizeof flat);
    return 0;
}
