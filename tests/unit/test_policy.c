/* SPDX-License-Identifier: MIT */
/* The builders: what they take, what they refuse, that a refusal changes nothing. */
#include "policy/policy.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "tap.h"

static struct brig_error err;

static struct brig_policy *fresh(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        tap_bail("no policy");
    return policy;
}

static void refused(int rc, const char *reason, const char *name)
{
    tap_is_int(rc, BRIG_E_INVALID, "%s is refused", name);
    tap_has_str(err.message, reason, "because: %s", reason);
}

static void presets(void)
{
    struct brig_policy *p = fresh();
    tap_is_int(p->view, BRIG_VIEW_SYSTEM, "sealed shows the system directories");
    tap_is_int(p->network, BRIG_NET_NONE, "sealed has no network");
    tap_is_int(p->seccomp, BRIG_SECCOMP_CODE, "sealed has the profile code");
    tap_is_int(p->limits[BRIG_LIMIT_OUTPUT_BYTES], 1 << 20, "sealed caps output at 1 MiB");
    tap_is_int(p->limits[BRIG_LIMIT_TMP_BYTES], 512 << 20, "sealed has 512 MiB of /tmp");
    tap_is_int(p->limits[BRIG_LIMIT_TMP_INODES], 65536, "sealed has 65536 inodes in it");
    tap_is_int(p->limits[BRIG_LIMIT_GRACE_MS], 0, "the library kills at once");
    tap_is_str(p->hostname, "brig", "the host name is brig");
    tap_is_int(p->host_uid, (uid_t)-1, "the uid is chosen later");
    tap_is_int(policy_validate(p, &err), 0, "a fresh policy is valid");
    brig_policy_free(p);
    brig_policy_free(NULL);
    tap_ok(!brig_policy_new((enum brig_mode)4), "there is no mode 4");
    tap_ok(!brig_policy_new((enum brig_mode) - 1), "there is no mode -1");
}

static void enums(void)
{
    struct brig_policy *p = fresh();
    struct brig_policy before = *p;
    refused(brig_policy_view(p, (enum brig_view)5, NULL, &err), "unknown view 5", "a sixth view");
    refused(brig_policy_view(p, (enum brig_view) - 1, NULL, &err), "unknown view -1", "view -1");
    refused(brig_policy_network(p, (enum brig_network)5, &err),
            "none, loopback, allow, open or host", "network 5");
    refused(brig_policy_seccomp(p, (enum brig_seccomp)2, &err), "dev or code", "profile 2");
    refused(brig_policy_terminal(p, (enum brig_terminal)2, &err), "auto or none", "terminal 2");
    refused(brig_policy_on_unsupported(p, (enum brig_on_unsupported)3, &err), "fail, warn",
            "answer 3");
    refused(brig_policy_disable(p, 1 << 5, &err), "0x20", "a sixth layer");
    refused(brig_policy_grant(p, (enum brig_access)5, "/a", NULL, 0, &err), "unknown access",
            "access 5");
    refused(brig_policy_grant(p, BRIG_READ_ONLY, "/a", NULL, 1 << 2, &err), "flags 0x4",
            "a third flag");
    refused(brig_policy_limit(p, BRIG_LIMIT_COUNT_, 1, &err), "unknown limit", "a limit too many");
    refused(brig_policy_limit(p, (enum brig_limit) - 1, 1, &err), "unknown limit", "limit -1");
    tap_ok(memcmp(&before, p, sizeof before) == 0, "none of it changed the policy");
    tap_is_int(brig_policy_network(p, BRIG_NET_HOST, &err), 0, "the host's network can be chosen");
    tap_is_int(brig_policy_seccomp(p, BRIG_SECCOMP_DEV, &err), 0, "the profile dev too");
    tap_is_int(brig_policy_terminal(p, BRIG_TERMINAL_NONE, &err), 0, "no terminal too");
    tap_is_int(brig_policy_on_unsupported(p, BRIG_UNSUPPORTED_WARN, &err), 0, "warning too");
    tap_is_int(brig_policy_disable(p, BRIG_LAYER_CAPS, &err), 0, "a layer can be switched off");
    tap_is_int(brig_policy_disable(p, BRIG_LAYER_NESTED, &err), 0, "and another");
    tap_is_int(p->disabled_layers, BRIG_LAYER_CAPS | BRIG_LAYER_NESTED, "both stay off");
    brig_policy_free(p);
}

static void views(void)
{
    struct brig_policy *p = fresh();
    refused(brig_policy_view(p, BRIG_VIEW_ROOT, NULL, &err), "root directory", "no root path");
    refused(brig_policy_view(p, BRIG_VIEW_ROOT, "x", &err), "relative", "a relative root");
    refused(brig_policy_view(p, BRIG_VIEW_ROOT, "//", &err), "host", "the host's root as root");
    refused(brig_policy_view(p, BRIG_VIEW_HOST, "/x", &err), "no root", "a root for the host");
    tap_is_int(p->view, BRIG_VIEW_SYSTEM, "the view is as it was");
    tap_is_int(brig_policy_view(p, BRIG_VIEW_ROOT, "/srv//tree/", &err), 0, "a root is taken");
    tap_is_str(p->root_path, "/srv/tree", "and normalised");
    tap_is_int(brig_policy_view(p, BRIG_VIEW_EMPTY, NULL, &err), 0, "the view can change");
    tap_ok(!p->root_path, "which drops the root");
    p->view = BRIG_VIEW_ROOT;
    refused(policy_validate(p, &err), "needs the directory", "the view root without one");
    brig_policy_free(p);
}

static void grants(void)
{
    struct brig_policy *p = fresh();
    size_t removed = 9;
    brig_policy_origin(p, "brig.conf:12", &err);
    tap_is_int(brig_policy_grant(p, BRIG_READ_WRITE, "/src/../x y", "/w/./", 0, &err), 0,
               "a grant with a destination");
    tap_is_str(p->grants[0].source, "/src/../x y", "the source keeps '..'");
    tap_is_str(p->grants[0].dest, "/w", "the destination is normalised");
    tap_is_str(p->grants[0].origin, "brig.conf:12", "the origin is noted");
    tap_is_int(brig_policy_grant(p, BRIG_MASK, "/w/.env", NULL, BRIG_GRANT_OPTIONAL, &err), 0,
               "a mask");
    tap_is_int(brig_policy_grant(p, BRIG_MASK, NULL, "/w/k", 0, &err), 0, "a mask by destination");
    tap_is_str(p->grants[2].source, "/w/k", "its source is the destination");
    tap_is_int(brig_policy_grant(p, BRIG_READ_ONLY, "/w", NULL, BRIG_GRANT_CREATE, &err), 0,
               "a second rule for one destination");
    tap_is_int(p->grant_count, 4, "is kept beside the first");
    tap_is_int(brig_policy_ungrant(p, "/w/", &removed, &err), 0, "taking back");
    tap_is_int(removed, 2, "removes both");
    tap_is_int(p->grant_count, 2, "and leaves the others");
    tap_is_str(p->grants[0].dest, "/w/.env", "in their order");
    tap_is_int(brig_policy_ungrant(p, "/none", &removed, &err), 0, "taking back nothing");
    tap_is_int(removed, 0, "removes nothing");
    refused(brig_policy_ungrant(p, "w", NULL, &err), "relative", "a relative path to take back");
    tap_is_int(brig_policy_grant(p, BRIG_DEVICE, "/dev/dri", NULL, 0, &err), 0, "a device");
    tap_is_int(brig_policy_grant(p, BRIG_READ_WRITE, "/dev/shm", NULL, 0, &err), 0, "/dev/shm");
    tap_is_int(policy_validate(p, &err), 0, "all of it is valid");
    brig_policy_free(p);
}

static void bad_grants(void)
{
    static const struct {
        enum brig_access access;
        const char *source, *dest;
        unsigned flags;
        const char *reason;
    } rows[] = {
        {BRIG_READ_ONLY, NULL, NULL, 0, "empty path"},
        {BRIG_READ_ONLY, NULL, "/x", 0, "source"},
        {BRIG_READ_ONLY, "x", "/x", 0, "source: path 'x' is relative"},
        {BRIG_READ_ONLY, "x", NULL, 0, "grant: path 'x' is relative"},
        {BRIG_READ_ONLY, "/x", "x", 0, "destination: path 'x' is relative"},
        {BRIG_READ_ONLY, "/x", "/a/../b", 0, "'..'"},
        {BRIG_READ_ONLY, "/x", "/", 0, "choose a view"},
        {BRIG_READ_ONLY, "/", "/host", 0, "view 'host'"},
        {BRIG_READ_ONLY, "/proc/1", "/p", 0, "processes outside"},
        {BRIG_MASK, "/", NULL, 0, "'/' cannot be masked"},
        {BRIG_READ_WRITE, "/x", "/proc", 0, "/proc of its own"},
        {BRIG_READ_WRITE, "/x", "/proc/sys", 0, "/proc of its own"},
        {BRIG_MASK, NULL, "/proc/cpuinfo", 0, "/proc of its own"},
        {BRIG_READ_WRITE, "/dev", NULL, 0, "single devices"},
        {BRIG_DEVICE, "/dev", NULL, 0, "single devices"},
        {BRIG_DEVICE, "/dev/pts/3", NULL, 0, "its own /dev/pts"},
        {BRIG_DEVICE, "/dev/tty", NULL, 0, "its own /dev/tty"},
        {BRIG_READ_WRITE, "/x", "/dev/x", 0, "only devices"},
        {BRIG_DEVICE, "/dev/kvm", "/kvm", 0, "not below /dev"},
        {BRIG_MASK, "/x", NULL, BRIG_GRANT_CREATE, "cannot create"},
        {BRIG_DEVICE, "/dev/kvm", NULL, BRIG_GRANT_CREATE, "cannot create"},
    };
    struct brig_policy *p = fresh();
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        refused(
            brig_policy_grant(p, rows[i].access, rows[i].source, rows[i].dest, rows[i].flags, &err),
            rows[i].reason, "this grant");
    tap_is_int(p->grant_count, 0, "none of them was added");
    for (size_t i = 0; i < POLICY_GRANTS_MAX; i++)
        if (brig_policy_grant(p, BRIG_READ_ONLY, "/x", NULL, 0, &err) < 0)
            tap_fail("grant %zu: %s", i, err.message);
    tap_is_int(p->grant_count, POLICY_GRANTS_MAX, "the limit of grants can be reached");
    refused(brig_policy_grant(p, BRIG_READ_ONLY, "/x", NULL, 0, &err), "at most 1024",
            "one grant more");
    static char wrong[] = "/proc";
    p->grants[7].dest = wrong;
    refused(policy_validate(p, &err), "caller: '/proc'", "a wrong grant in the whole, with origin");
    brig_policy_free(p);
}

static const struct brig_identity nobody = {
    .size = sizeof(struct brig_identity),
    .host_uid = (uid_t)-1,
    .host_gid = (gid_t)-1,
    .inside_uid = (uid_t)-1,
    .inside_gid = (gid_t)-1,
};

static void bad_identity(struct brig_policy *p, struct brig_identity identity, const char *reason)
{
    refused(brig_policy_identity(p, &identity, &err), reason, "this identity");
}

static void identities(void)
{
    struct brig_policy *p = fresh();
    struct brig_identity id = nobody;
    char name[257];
    id.host_uid = 0;
    bad_identity(p, id, "never runs as uid 0");
    id = nobody;
    id.host_gid = 0;
    bad_identity(p, id, "never runs as gid 0");
    id = nobody;
    id.name = "";
    bad_identity(p, id, "bad user name");
    id.name = "a:b";
    bad_identity(p, id, "user name 'a:b'");
    id.name = "a\nroot";
    bad_identity(p, id, "'a\\nroot'");
    id.name = "+@group";
    bad_identity(p, id, "in front");
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    id.name = name;
    bad_identity(p, id, "1 to 255");
    name[255] = '\0';
    tap_is_int(brig_policy_identity(p, &id, &err), 0, "a name of 255 bytes is taken");
    id = nobody;
    id.home = "home";
    bad_identity(p, id, "home: path 'home' is relative");
    id.home = "/a:b";
    bad_identity(p, id, "home '/a:b'");
    id = nobody;
    id.shell = "/bin/sh\n";
    bad_identity(p, id, "shell");
    refused(brig_policy_identity(p, NULL, &err), "no identity", "none at all");
    tap_is_str(p->user_name, name, "what was set stays");
    id = (struct brig_identity){
        sizeof(struct brig_identity), 1000, 1001, 0, 0, "agent", "/home//agent", "/bin/bash"};
    tap_is_int(brig_policy_identity(p, &id, &err), 0, "root inside is fine");
    tap_is_int(p->inside_uid, 0, "the uid inside is set");
    tap_is_int(p->host_gid, 1001, "the gid outside is set");
    tap_is_str(p->home, "/home/agent", "the home is normalised");
    tap_is_int(brig_policy_identity(p, &nobody, &err), 0, "all can be left to choose again");
    tap_ok(!p->user_name && !p->home && !p->shell, "which clears the names");
    brig_policy_free(p);
}

static void names(void)
{
    struct brig_policy *p = fresh();
    char name[66];
    refused(brig_policy_hostname(p, "", &err), "bad host name", "an empty host name");
    refused(brig_policy_hostname(p, NULL, &err), "bad host name", "no host name");
    refused(brig_policy_hostname(p, "a b", &err), "'a b'", "a space in it");
    refused(brig_policy_hostname(p, "a_b", &err), "'a_b'", "an underscore in it");
    memset(name, 'h', sizeof name);
    name[65] = '\0';
    refused(brig_policy_hostname(p, name, &err), "1 to 64", "one of 65 letters");
    tap_is_str(p->hostname, "brig", "the host name is as it was");
    name[64] = '\0';
    tap_is_int(brig_policy_hostname(p, name, &err), 0, "one of 64 letters is taken");
    refused(brig_policy_workdir(p, "w", &err), "working directory", "a relative directory");
    refused(brig_policy_workdir(p, "/w/..", &err), "'..'", "'..' in it");
    tap_is_int(brig_policy_workdir(p, "/w/", &err), 0, "an absolute one is taken");
    tap_is_str(p->workdir, "/w", "and normalised");
    refused(brig_policy_origin(p, "", &err), "1 to 8192", "an empty origin");
    char *origin = calloc(1, 8194);
    if (!origin)
        tap_bail("no memory");
    memset(origin, 'o', 8193);
    refused(brig_policy_origin(p, origin, &err), "1 to 8192", "an origin too long");
    origin[8192] = '\0';
    tap_is_int(brig_policy_origin(p, origin, &err), 0, "one at the limit is taken");
    free(origin);
    brig_policy_free(p);
}

static void limits(void)
{
    static const struct {
        enum brig_limit limit;
        uint64_t max;
    } rows[] = {
        {BRIG_LIMIT_WALL_MS, PARSE_DURATION_MS_MAX},
        {BRIG_LIMIT_CPU_MS, PARSE_DURATION_MS_MAX},
        {BRIG_LIMIT_GRACE_MS, PARSE_DURATION_MS_MAX},
        {BRIG_LIMIT_ADDRESS_SPACE, INT64_MAX},
        {BRIG_LIMIT_FILE_SIZE, INT64_MAX},
        {BRIG_LIMIT_OPEN_FILES, 1 << 30},
        {BRIG_LIMIT_PROCESSES, 1 << 22},
        {BRIG_LIMIT_OUTPUT_BYTES, INT64_MAX},
        {BRIG_LIMIT_TMP_BYTES, INT64_MAX},
        {BRIG_LIMIT_TMP_INODES, UINT64_C(1) << 32},
        {BRIG_LIMIT_MEMORY_BYTES, INT64_MAX},
        {BRIG_LIMIT_CPU_PERCENT, 819200},
        {BRIG_LIMIT_IO_READ_BYTES, INT64_MAX},
        {BRIG_LIMIT_IO_WRITE_BYTES, INT64_MAX},
        {BRIG_LIMIT_INOTIFY_WATCHES, INT32_MAX},
        {BRIG_LIMIT_NET_CONNECTIONS, 65536},
        {BRIG_LIMIT_NET_BYTES, INT64_MAX},
        {BRIG_LIMIT_NET_IDLE_MS, PARSE_DURATION_MS_MAX},
    };
    _Static_assert(ARRAY_LENGTH(rows) == BRIG_LIMIT_COUNT_, "each limit is tested");
    struct brig_policy *p = fresh();
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const char *name = policy_word(POLICY_LIMIT, rows[i].limit);
        tap_is_int(brig_policy_limit(p, rows[i].limit, rows[i].max, &err), 0, "%s at most", name);
        refused(brig_policy_limit(p, rows[i].limit, rows[i].max + 1, &err), name, name);
        tap_ok(p->limits[rows[i].limit] == rows[i].max, "and stays as it was");
        tap_is_int(brig_policy_limit(p, rows[i].limit, 0, &err), 0, "%s of none", name);
    }
    brig_policy_free(p);
}

static void env_rules(void)
{
    const size_t longest = 131071; /* of "N=value" */
    struct brig_policy *p = fresh();
    refused(brig_policy_setenv(p, "", "x", &err), "not empty", "a variable without name");
    refused(brig_policy_setenv(p, NULL, "x", &err), "not empty", "no name at all");
    refused(brig_policy_setenv(p, "A=B", "x", &err), "'A=B'", "'=' in a name");
    refused(brig_policy_unsetenv(p, "", &err), "pattern", "an empty pattern");
    refused(brig_policy_unsetenv(p, "A=*", &err), "pattern", "'=' in a pattern");
    tap_is_int(p->env_count, 0, "none of them was added");
    char *value = calloc(1, longest + 1);
    if (!value)
        tap_bail("no memory");
    memset(value, 'v', longest - 1);
    refused(brig_policy_setenv(p, "N", value, &err), "too long", "one byte more than execve takes");
    value[longest - 2] = '\0';
    tap_is_int(brig_policy_setenv(p, "N", value, &err), 0, "what execve takes is taken");
    free(value);
    tap_is_int(brig_policy_setenv(p, "E", "", &err), 0, "an empty value is a value");
    tap_is_int(p->env[1].kind, POLICY_ENV_SET, "that is set");
    tap_is_int(brig_policy_setenv(p, "X", NULL, &err), 0, "a name can be exposed");
    tap_is_int(p->env[2].kind, POLICY_ENV_EXPOSE, "by no value");
    while (p->env_count < POLICY_ENV_MAX)
        if (brig_policy_unsetenv(p, "*", &err) < 0)
            tap_bail("%s", err.message);
    refused(brig_policy_setenv(p, "A", "b", &err), "at most 4096", "one rule past the limit");
    brig_policy_free(p);
}

static void nested(void)
{
    struct brig_policy *p = fresh();
    tap_is_int(brig_policy_allow_nested(p, true, &err), 0, "nesting can be allowed");
    refused(policy_validate(p, &err), "nested sandboxes need BRIG_SECCOMP_DEV",
            "nesting with the profile code");
    brig_policy_seccomp(p, BRIG_SECCOMP_DEV, &err);
    tap_is_int(policy_validate(p, &err), 0, "with dev it is valid");
    brig_policy_free(p);
}

static void copies(void)
{
    struct brig_policy *p = fresh();
    const struct brig_identity id = {
        sizeof(struct brig_identity), 1000, 1000, 1, 2, "agent", "/home/agent", "/bin/sh"};
    brig_policy_identity(p, &id, &err);
    brig_policy_view(p, BRIG_VIEW_ROOT, "/tree", &err);
    brig_policy_workdir(p, "/w", &err);
    for (int i = 0; i < 5; i++) {
        brig_policy_grant(p, BRIG_READ_ONLY, "/x", NULL, 0, &err);
        brig_policy_setenv(p, "A", "b", &err);
    }
    struct brig_policy *copy = brig_policy_copy(p);
    if (!copy)
        tap_bail("no copy");
    char *before = NULL;
    char *after = NULL;
    brig_policy_explain(p, true, &before, &err);
    brig_policy_free(p);
    brig_policy_explain(copy, true, &after, &err);
    tap_is_str(after, before, "a copy says the same after its original is gone");
    tap_is_int(brig_policy_grant(copy, BRIG_READ_ONLY, "/y", NULL, 0, &err), 0,
               "a copy can be added to");
    tap_is_int(brig_policy_setenv(copy, "A", "c", &err), 0, "its environment too");
    free(before);
    free(after);
    brig_policy_free(copy);
}

static void vocabulary_is(enum policy_vocabulary of, int value, const char *word)
{
    tap_is_str(policy_word(of, value), word, "%d is called %s", value, word);
    tap_is_int(policy_word_value(of, word), value, "and %s is read as it", word);
    tap_has_str(policy_choices(of), word, "and offered");
}

static void vocabulary(void)
{
    vocabulary_is(POLICY_MODE, BRIG_MODE_SEALED, "sealed");
    vocabulary_is(POLICY_MODE, BRIG_MODE_CASUAL, "casual");
    vocabulary_is(POLICY_MODE, BRIG_MODE_BARE, "bare");
    vocabulary_is(POLICY_MODE, BRIG_MODE_STRICT, "strict");
    vocabulary_is(POLICY_VIEW, BRIG_VIEW_SYSTEM, "system");
    vocabulary_is(POLICY_VIEW, BRIG_VIEW_HOST, "host");
    vocabulary_is(POLICY_VIEW, BRIG_VIEW_ROOT, "root");
    vocabulary_is(POLICY_VIEW, BRIG_VIEW_EMPTY, "empty");
    vocabulary_is(POLICY_NETWORK, BRIG_NET_NONE, "none");
    vocabulary_is(POLICY_NETWORK, BRIG_NET_HOST, "host");
    vocabulary_is(POLICY_NETWORK, BRIG_NET_ALLOW, "allow");
    vocabulary_is(POLICY_NETWORK, BRIG_NET_OPEN, "open");
    vocabulary_is(POLICY_NETWORK, BRIG_NET_LOOPBACK, "loopback");
    vocabulary_is(POLICY_SECCOMP, BRIG_SECCOMP_DEV, "dev");
    vocabulary_is(POLICY_SECCOMP, BRIG_SECCOMP_CODE, "code");
    vocabulary_is(POLICY_LAYER, BRIG_LAYER_LANDLOCK, "landlock");
    vocabulary_is(POLICY_LAYER, BRIG_LAYER_SECCOMP, "seccomp");
    vocabulary_is(POLICY_LAYER, BRIG_LAYER_CAPS, "caps");
    vocabulary_is(POLICY_LAYER, BRIG_LAYER_NAMESPACES, "namespaces");
    vocabulary_is(POLICY_LAYER, BRIG_LAYER_NESTED, "nested");
    vocabulary_is(POLICY_ON_UNSUPPORTED, BRIG_UNSUPPORTED_FAIL, "fail");
    vocabulary_is(POLICY_ON_UNSUPPORTED, BRIG_UNSUPPORTED_WARN, "warn");
    vocabulary_is(POLICY_ON_UNSUPPORTED, BRIG_UNSUPPORTED_IGNORE, "ignore");
    tap_is_str(policy_word(POLICY_VIEW, 5), "?", "what is no view has no name");
    tap_is_int(policy_word_value(POLICY_VIEW, "System"), -1, "case matters");
    tap_is_int(policy_word_value(POLICY_VIEW, ""), -1, "nothing is no view");
    tap_is_int(policy_word_value(POLICY_VIEW, NULL), -1, "nor is NULL");
    tap_is_str(policy_word(POLICY_ACCESS, BRIG_DEVICE), "device", "access has names");
    tap_is_str(policy_word(POLICY_LIMIT, BRIG_LIMIT_COUNT_), "?", "what is no limit has no name");
}

int main(void)
{
    presets();
    enums();
    views();
    grants();
    bad_grants();
    identities();
    names();
    limits();
    env_rules();
    nested();
    copies();
    vocabulary();
    return tap_done();
}
