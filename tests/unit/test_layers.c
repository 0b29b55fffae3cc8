/* SPDX-License-Identifier: MIT */
/* A root of layers: what the overlay shows, that writes stay in memory, and that mounts do not follow
 * an image's symbolic links. */
#include "jail/job/job.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "base/tree.h"
#include "job_support.h"
#include "policy/layers.h"
#include "policy/policy.h"

#define BUSYBOX "/bin/busybox"

static char base[] = "/tmp/brig-layers-XXXXXX";

/* A path below the directory of the test; valid until the fourth next call. */
static const char *at(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void make_directory(const char *name)
{
    if (mkdir(at(name), 0755) < 0)
        tap_bail("mkdir %s: %s", name, strerror(errno));
}

static void make_file(const char *name, const char *text)
{
    autoclose int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        tap_bail("write %s: %s", name, strerror(errno));
}

static void copy_busybox(const char *name)
{
    char command[512];
    (void)snprintf(command, sizeof command, "cp " BUSYBOX " '%s'", at(name));
    if (system(command) != 0)
        tap_bail("copy busybox");
}

/* The lower layer has the programs, the upper one replaces, hides and adds. */
static void make_layers(void)
{
    if (!mkdtemp(base) || chmod(base, 0755) < 0)
        tap_bail("mkdtemp: %s", strerror(errno));
    static const char *const directories[] = {"low",     "low/bin", "low/etc", "low/dir",
                                              "low/old", "low/usr", "up",      "up/etc",
                                              "up/dir",  "links",   "files"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        make_directory(directories[i]);
    copy_busybox("low/bin/busybox");
    (void)symlink("busybox", at("low/bin/sh"));
    make_file("low/etc/below", "below\n");
    make_file("low/etc/both", "lower\n");
    make_file("low/etc/gone", "gone\n");
    make_file("low/dir/one", "one\n");
    make_file("up/etc/both", "upper\n");
    make_file("up/dir/two", "two\n");
    make_file("links/file", "x\n");
    if (mknod(at("up/etc/gone"), S_IFCHR, makedev(0, 0)) < 0 ||
        setxattr(at("up/dir"), "user.overlay.opaque", "y", 1, 0) < 0)
        tap_bail("whiteouts: %s", strerror(errno));
}

static struct brig_policy *policy_of(const char *const *names, size_t count)
{
    struct brig_policy *policy = new_policy();
    const char *layers[ROOT_LAYERS_MAX];
    struct brig_error err = {0};
    for (size_t i = 0; i < count; i++)
        layers[i] = strdup(at(names[i]));
    if (policy_layers(policy, layers, count, &err) < 0)
        tap_bail("policy_layers: %s", err.message);
    for (size_t i = 0; i < count; i++)
        free((char *)layers[i]);
    return policy;
}

static const char *const both[] = {"up", "low"};

/* Runs a script in busybox's shell; the output ends with a newline less. */
static const char *outcome(const struct brig_policy *policy, const char *script)
{
    static char text[4096];
    const char *const argv[] = {"/bin/busybox", "sh", "-c", script, NULL};
    const struct brig_command command = {.size = sizeof(struct brig_command),
                                         .argv = argv,
                                         .stdio = {{.kind = BRIG_STDIO_BYTES},
                                                   {.kind = BRIG_STDIO_CAPTURE},
                                                   {.kind = BRIG_STDIO_CAPTURE}}};
    struct brig_result *result = NULL;
    struct brig_error err = {0};
    if (brig_run(policy, &command, &result, &err) < 0) {
        (void)snprintf(text, sizeof text, "%s", err.message);
        return text;
    }
    size_t length = 0;
    int truncated = 0;
    const char *out = brig_result_output(result, 1, &length, &truncated);
    (void)snprintf(text, sizeof text, "%.*s", (int)length, out ? out : "");
    const char *errors = brig_result_output(result, 2, &length, &truncated);
    if (length > 0)
        tap_diag("%.*s", (int)length, errors);
    brig_result_free(result);
    return text;
}

static void test_merged(void)
{
    struct brig_policy *policy = policy_of(both, 2);
    tap_is_str(outcome(policy, "cat /etc/below"), "below\n", "a file of the lower layer");
    tap_is_str(outcome(policy, "cat /etc/both"), "upper\n", "the upper layer's replaces it");
    tap_is_str(outcome(policy, "busybox ls /etc/gone 2>&1 >/dev/null && echo there || echo gone"),
               "ls: /etc/gone: No such file or directory\ngone\n", "a whiteout hides");
    tap_is_str(outcome(policy, "busybox ls /dir"), "two\n", "an opaque directory hides");
    brig_policy_free(policy);
    policy = policy_of(both + 1, 1);
    tap_is_str(outcome(policy, "cat /etc/both /etc/gone; busybox ls /dir"), "lower\ngone\none\n",
               "without the upper layer everything is there");
    brig_policy_free(policy);
}

static void test_writes(void)
{
    struct brig_policy *policy = policy_of(both, 2);
    tap_is_str(outcome(policy,
                       "echo new >/etc/both && cat /etc/both; busybox rm -r /old && echo ok"
                       "; busybox mkdir /made && echo made; busybox rm /etc/below && echo rm"),
               "new\nok\nmade\nrm\n", "the root is writable");
    tap_is_str(outcome(policy, "cat /etc/both /etc/below; busybox ls -d /old /made 2>/dev/null"),
               "upper\nbelow\n/old\n", "and the same for the next run");
    struct stat info;
    tap_ok(stat(at("low/old"), &info) == 0 && stat(at("low/made"), &info) < 0 &&
               stat(at("up/made"), &info) < 0,
           "the layers are as they were");
    (void)brig_policy_limit(policy, BRIG_LIMIT_TMP_BYTES, 1 << 20, NULL);
    tap_is_str(outcome(policy, "busybox dd if=/dev/zero of=/big bs=1k count=4096 2>/dev/null"
                               " && echo written || echo full"),
               "full\n", "what it writes is counted with /tmp");
    tap_is_str(outcome(policy, "busybox dd if=/dev/zero of=/big bs=1k count=64 2>/dev/null"
                               " && echo written || echo full"),
               "written\n", "within the limit it can");
    brig_policy_free(policy);
}

static void test_places(void)
{
    struct brig_policy *policy = policy_of(both, 2);
    tap_is_str(outcome(policy, "busybox ls -d /proc/self /dev/null /tmp /run /dev/shm /dev/pts"),
               "/dev/null\n/dev/pts\n/dev/shm\n/proc/self\n/run\n/tmp\n", "mount points are made");
    tap_is_str(outcome(policy, "busybox id -u | busybox grep -q ^0$ || echo x >/tmp/y && echo ok"),
               "ok\n", "/tmp is writable");
    tap_is_str(outcome(policy, "busybox cut -d: -f1 /etc/passwd | busybox head -1"), "root\n",
               "there is a passwd");
    tap_is_str(outcome(policy, "while read a b c d at rest; do case $at in /|*image*) echo $at;; "
                               "esac; done </proc/self/mountinfo"),
               "/\n", "the root is mounted once, and no part of it");
    tap_is_str(outcome(policy, "[ $(busybox stat -c %i:%d /..) = $(busybox stat -c %i:%d /) ] && "
                               "echo same"),
               "same\n", "nothing is on top of it");
    (void)brig_policy_grant(policy, BRIG_READ_ONLY, at("files"), "/new/place", 0, NULL);
    make_file("files/f", "granted\n");
    tap_is_str(outcome(policy, "cat /new/place/f; echo x 2>/dev/null >/new/place/g || echo no"),
               "granted\nno\n", "a grant is mounted at a new path, read-only");
    brig_policy_free(policy);
}

/* A root whose directories are symbolic links that lead out, or to another part. */
static void test_links(void)
{
    static const char *const names[] = {"links", "low"};
    struct brig_policy *policy = policy_of(names, 2);
    (void)symlink("/etc", at("links/srv"));
    (void)symlink("../../../../../../../../etc", at("links/up"));
    tap_is_str(outcome(policy, "cat /srv/below"), "below\n",
               "a link leads to the image's own file");
    (void)brig_policy_grant(policy, BRIG_READ_ONLY, at("files"), "/srv/place", 0, NULL);
    tap_has_str(outcome(policy, "echo started"), "/srv/place",
                "no mount follows a link of the image");
    brig_policy_free(policy);
    (void)symlink("/etc", at("links/proc"));
    policy = policy_of(names, 2);
    tap_has_str(outcome(policy, "echo started"), "/proc", "nor does that of /proc");
    brig_policy_free(policy);
    (void)unlink(at("links/proc"));
    policy = policy_of(names, 2);
    tap_is_str(outcome(policy, "echo started"), "started\n", "without the link it starts");
    brig_policy_free(policy);
}

/* As many layers as there can be. */
static void test_most(void)
{
    const char *names[ROOT_LAYERS_MAX + 1];
    char numbers[ROOT_LAYERS_MAX][8];
    for (size_t i = 0; i + 1 < ROOT_LAYERS_MAX; i++) {
        (void)snprintf(numbers[i], sizeof numbers[i], "n%zu", i);
        make_directory(numbers[i]);
        names[i] = numbers[i];
    }
    make_file("n0/top", "top\n");
    make_file("n125/top", "bottom\n");
    make_file("n125/last", "last\n");
    names[ROOT_LAYERS_MAX - 1] = "low";
    struct brig_policy *policy = policy_of(names, ROOT_LAYERS_MAX);
    tap_is_str(outcome(policy, "cat /top /last"), "top\nlast\n", "%d layers", ROOT_LAYERS_MAX);
    struct brig_error err = {0};
    names[ROOT_LAYERS_MAX] = "low";
    tap_is_int(policy_layers(policy, names, ROOT_LAYERS_MAX + 1, &err), BRIG_E_INVALID,
               "one more is refused");
    tap_is_int(policy_layers(policy, names, 0, &err), BRIG_E_INVALID, "and so are none");
    brig_policy_free(policy);
}

static void test_refused(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    const char *relative[] = {"x"}, *missing[] = {"/nonexistent/layer"};
    tap_is_int(policy_layers(policy, relative, 1, &err), BRIG_E_INVALID, "a relative path");
    tap_is_int(brig_policy_view(policy, VIEW_LAYERS, NULL, &err), BRIG_E_INVALID,
               "the view without layers");
    tap_is_int(policy_layers(policy, missing, 1, &err), 0, "a layer is looked up later");
    tap_has_str(outcome(policy, "echo started"), "/nonexistent/layer", "when the jail starts");
    brig_policy_free(policy);
}

int main(void)
{
    make_layers();
    test_merged();
    test_writes();
    test_places();
    test_links();
    test_most();
    test_refused();
    (void)tree_remove(AT_FDCWD, base, NULL);
    return tap_done();
}
