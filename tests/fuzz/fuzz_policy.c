/* SPDX-License-Identifier: MIT */
/* Any sequence of builder calls with any arguments: "op flags text NUL text NUL", again and again.
 * Whatever was taken can be checked, copied, explained and made an environment of. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"

struct input {
    const char *text; /* ends in two NULs */
    const char *end;
};

static unsigned char next_byte(struct input *in)
{
    return in->text < in->end ? (unsigned char)*in->text++ : 0;
}

static const char *next_text(struct input *in)
{
    const char *text = in->text < in->end ? in->text : in->end;
    in->text = text + strlen(text) + 1;
    return text;
}

static void build(struct brig_policy *policy, struct input *in)
{
    struct brig_error err;
    unsigned char op = next_byte(in);
    unsigned char number = next_byte(in);
    const char *a = next_text(in);
    const char *b = next_text(in);
    struct brig_identity identity = {
        sizeof(struct brig_identity), number, number, number, number, a, b, b};
    switch (op % 18) {
    case 0:
        (void)brig_policy_grant(policy, (enum brig_access)(number % 6), a, b, number / 8U, &err);
        break;
    case 1:
        (void)brig_policy_grant(policy, (enum brig_access)(number % 4), a, NULL, 0, &err);
        break;
    case 2:
        (void)brig_policy_ungrant(policy, a, NULL, &err);
        break;
    case 3:
        (void)brig_policy_view(policy, (enum brig_view)(number % 6), *a ? a : NULL, &err);
        break;
    case 4:
        (void)brig_policy_identity(policy, &identity, &err);
        break;
    case 5:
        (void)brig_policy_setenv(policy, a, number % 2 ? b : NULL, &err);
        break;
    case 6:
        (void)brig_policy_unsetenv(policy, a, &err);
        break;
    case 7:
        (void)brig_policy_hostname(policy, a, &err);
        break;
    case 8:
        (void)brig_policy_workdir(policy, a, &err);
        break;
    case 9:
        (void)brig_policy_origin(policy, a, &err);
        break;
    case 10:
        (void)brig_policy_limit(policy, (enum brig_limit)(number % 12), strlen(a), &err);
        break;
    case 11:
        (void)brig_policy_seccomp(policy, (enum brig_seccomp)(number % 4), &err);
        break;
    case 12:
        (void)brig_policy_allow_nested(policy, number % 2, &err);
        (void)brig_policy_trace(policy, number / 2 % 2, &err);
        break;
    case 13:
        (void)brig_policy_disable(policy, number, &err);
        break;
    case 14:
        (void)brig_policy_network(policy, (enum brig_network)(number % 4), &err);
        break;
    case 15:
        (void)brig_policy_private(policy, (enum brig_access)(number % 4), a, &err);
        break;
    case 16:
        (void)brig_policy_file(policy, a, b, strlen(b), number * 8U, &err);
        break;
    case 17:
        (void)brig_policy_keep(policy, a, &err);
        break;
    }
}

static void use(const struct brig_policy *policy)
{
    static const char *const envp[] = {"PATH=/bin", "LANG=C", "A=b", "broken", "A=c", NULL};
    struct brig_error err;
    (void)policy_validate(policy, &err);
    autofree char **env = NULL;
    autofree char *text = NULL;
    autofree char *json = NULL;
    (void)policy_environment(policy, envp, &env, &err);
    (void)brig_policy_explain(policy, false, &text, &err);
    (void)brig_policy_explain(policy, true, &json, &err);
    struct brig_policy *copy = brig_policy_copy(policy);
    if (copy) {
        autofree char *again = NULL;
        if (brig_policy_explain(copy, true, &again, &err) == 0 && json && strcmp(json, again) != 0)
            abort();
    }
    brig_policy_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *bytes = calloc(1, size + 1);
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (bytes && policy) {
        if (size > 0)
            memcpy(bytes, data, size);
        struct input in = {bytes, bytes + size};
        while (in.text < in.end)
            build(policy, &in);
        use(policy);
    }
    brig_policy_free(policy);
    return 0;
}
