/* SPDX-License-Identifier: MIT */
/* Remedies of the library in the words of the command line. The library's messages name members of
 * its API, as most of its callers have no options; here is what the user of brig types instead.
 * e2e/messages checks that the library has each text, and none with an option of brig's. */
#include "cli/remedy.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const struct {
    const char *library, *command;
} remedies[] = {
    {"use BRIG_NET_ALLOW or BRIG_NET_OPEN", "use --net allow or open"},
    {"or use BRIG_NET_NONE (no network) or BRIG_NET_HOST (no door)",
     "or run with --net none (no network) or --net host (no door)"},
    {"sandboxes need BRIG_SECCOMP_DEV", "sandboxes need --seccomp dev"},
    {"patterns that are built in", "patterns, see brig --print-defaults"},
    {"unless it has brig_policy_allow_nested()", "unless it was started with --allow-nested"},
    {"build the jail around it with BRIG_SECCOMP_DEV and brig_policy_allow_nested()",
     "start the jail around it with --seccomp dev --allow-nested"},
    {"BRIG_DEVICE can grant it to FUSE programs", "--device can grant it to FUSE programs"},
    {"was not changed. See BRIG_PROTECT", "was not changed. See --unprotect"},
    {"Grant it with brig_policy_grant(), or choose another with brig_policy_workdir()",
     "Grant it with --dir, or choose another with --workdir"},
    {"With on_unsupported set to BRIG_UNSUPPORTED_WARN weaker limits are used",
     "With --on-unsupported warn brig uses weaker limits"},
    {"use a directory on another one, or run as an ordinary user",
     "use another one (for jails: --storage DIR), or run brig as an ordinary user"},
    {"use BRIG_GRANT_OPTIONAL to hide it as soon as it does",
     "use --mask? to hide it as soon as it does"},
    {"use BRIG_GRANT_CREATE to create a directory, or BRIG_GRANT_OPTIONAL to skip it",
     "use --dir! to create a directory, or --dir? to skip it"},
    {"use BRIG_GRANT_OPTIONAL to skip it", "use --rdir? to skip it"},
    {"Use BRIG_GRANT_OPTIONAL with BRIG_DEVICE to skip it", "Use --device? to skip it"},
};

static void replace(struct str *text, const char *old, const char *new)
{
    autostr struct str out = {0};
    const char *from = text->data, *found;
    if (!from || !strstr(from, old))
        return;
    for (; (found = strstr(from, old)); from = found + strlen(old)) {
        str_append_bytes(&out, from, (size_t)(found - from));
        str_append(&out, new);
    }
    str_append(&out, from);
    if (out.failed)
        return; /* the library's words are not wrong */
    struct str before = *text;
    *text = out;
    out = before;
}

void remedy_translate(struct str *text)
{
    for (size_t i = 0; i < ARRAY_LENGTH(remedies) && !text->failed; i++)
        replace(text, remedies[i].library, remedies[i].command);
}
