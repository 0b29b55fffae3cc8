/* SPDX-License-Identifier: MIT */
/* A policy in words and as JSON. */
#include "base/cleanup.h"
#include "policy/policy.h"
#include "tap.h"

int main(void)
{
    struct brig_error err;
    struct brig_policy *p = brig_policy_new(BRIG_MODE_SEALED);
    if (!p)
        tap_bail("no policy");
    autofree char *plain = NULL;
    tap_is_int(brig_policy_explain(p, false, &plain, &err), 0, "a fresh policy can be explained");
    tap_has_str(plain, "mode            sealed\n", "its mode is named");
    tap_has_str(plain, "network         none\n", "its network too");
    tap_has_str(plain, "  wall_ms                   none\n", "no limit is none");
    tap_has_str(plain, "  output_bytes              1048576\n", "a limit is a number");
    tap_has_str(plain, "grants          none\n", "no grants are none");
    tap_ok(!strstr(plain, "switched off"), "nothing is switched off");

    brig_policy_origin(p, "brig.conf:12", &err);
    brig_policy_grant(p, BRIG_READ_WRITE, "/src", "/w", BRIG_GRANT_OPTIONAL, &err);
    brig_policy_origin(p, "command line", &err);
    brig_policy_grant(p, BRIG_MASK, "/w/a\nb\"", NULL, 0, &err);
    brig_policy_setenv(p, "A", "1\xff", &err);
    brig_policy_unsetenv(p, "SECRET_*", &err);
    brig_policy_disable(p, BRIG_LAYER_SECCOMP | BRIG_LAYER_CAPS, &err);
    const struct brig_identity id = {
        sizeof(struct brig_identity), 1000, 1000, 0, (gid_t)-1, "agent", NULL, NULL};
    brig_policy_identity(p, &id, &err);
    autofree char *text = NULL;
    brig_policy_explain(p, false, &text, &err);
    tap_has_str(text, "  read-write  /w from /src, if it exists  [brig.conf:12]\n",
                "a grant stands with its origin");
    tap_has_str(text, "  mask        /w/a\\nb\"  [command line]\n", "a newline keeps to its line");
    tap_has_str(text, "  unset       SECRET_*  [command line]\n", "so does an environment rule");
    tap_has_str(text, "switched off    seccomp, caps\n", "what is switched off is listed");
    tap_has_str(text, "uid inside      0\n", "an id is a number");
    tap_has_str(text, "gid inside      (chosen at the start)\n", "or left to choose");

    autofree char *json = NULL;
    tap_is_int(brig_policy_explain(p, true, &json, &err), 0, "it can be told as JSON");
    tap_has_str(json, "{\"mode\":\"sealed\",\"view\":\"system\",\"root\":null,",
                "from its mode on");
    tap_has_str(json,
                "\"grants\":[{\"access\":\"read-write\",\"source\":\"/src\",\"dest\":\"/w\","
                "\"optional\":true,\"create\":false,\"origin\":\"brig.conf:12\"},"
                "{\"access\":\"mask\",\"source\":\"/w/a\\nb\\\"\",",
                "with its grants");
    tap_has_str(json, "\"value\":\"1\xef\xbf\xbd\"", "in UTF-8 whatever the value was");
    tap_has_str(json, "\"disabled_layers\":[\"seccomp\",\"caps\"]", "with the layers off");
    tap_has_str(json, "\"inside_uid\":0,\"inside_gid\":null,\"name\":\"agent\",\"home\":null",
                "and the identity");
    tap_is_int(json[strlen(json) - 1], '\n', "ending in a newline");
    brig_policy_free(p);
    return tap_done();
}
