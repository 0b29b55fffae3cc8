/* SPDX-License-Identifier: MIT */
/* A jail's own directories and files: what is inside, who may write, and what is left of them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "job_support.h"
#include "policy/policy.h"

static struct brig_policy *policy_with_dirs(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    if (brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err) < 0 ||
        brig_policy_private(policy, BRIG_READ_WRITE, "/output", &err) < 0 ||
        brig_policy_file(policy, "/workspace/deep/er/main", "hello\n", 6, 0444, &err) < 0 ||
        brig_policy_file(policy, "/run/secrets/token", "secret", 6, 0400, &err) < 0 ||
        brig_policy_keep(policy, "/output", &err) < 0)
        tap_bail("policy: %s", err.message);
    return policy;
}

static void output_of(const struct brig_policy *policy, const char *script, const char *expected,
                      const char *what)
{
    struct brig_result result;
    run_shell(policy, script, &result);
    tap_is_str(result.out.data ? result.out.data : "", expected, "%s", what);
    if (result.err.length > 0)
        tap_diag("%s", result.err.data);
    result_done(&result);
}

static void test_inside(void)
{
    struct brig_policy *policy = policy_with_dirs();
    output_of(policy, "cat /workspace/deep/er/main", "hello\n", "a file is there");
    output_of(policy, "stat -c %a /workspace/deep/er/main /run/secrets/token", "444\n400\n",
              "with its mode");
    output_of(policy, "rm /run/secrets/token && ls /run/secrets", "", "and in /run can be removed");
    output_of(policy, "echo x > /output/x && cat /output/x", "x\n", "what is writable is");
    output_of(policy, "(echo x > /workspace/y) 2>/dev/null || echo refused", "refused\n",
              "what is read-only takes no new file");
    output_of(policy, "(chmod 777 /workspace/deep) 2>/dev/null || echo refused", "refused\n",
              "and no other mode");
    output_of(policy, "ls /tmp", "", "and nothing of it is elsewhere");
    brig_policy_free(policy);
}

static void test_limit(void)
{
    struct brig_policy *policy = policy_with_dirs();
    set_limit(policy, BRIG_LIMIT_TMP_BYTES, 1 << 20);
    output_of(policy, "head -c 900000 /dev/zero > /output/x && echo fits", "fits\n",
              "what fits can be written");
    output_of(policy,
              "head -c 600000 /dev/zero > /tmp/x; head -c 600000 /dev/zero 2>&1 > /output/x || "
              "echo full",
              "head: error writing 'standard output': No space left on device\nfull\n",
              "one limit holds for all private directories");
    brig_policy_free(policy);
}

/* Reads a file of the kept directory; the length or -errno. */
static int read_kept(const struct brig_job *job, const char *name, char text[64])
{
    int fd = openat(brig_job_kept_dir(job), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int length = (int)read(fd, text, 63);
    text[length > 0 ? length : 0] = '\0';
    (void)close(fd);
    return length;
}

static void keep_after(struct brig_job *job)
{
    char text[64] = "";
    if (!job || brig_job_wait(job, NULL) < 0)
        tap_bail("no job");
    tap_is_int(read_kept(job, "x", text), 3, "a file outlives the jail");
    tap_is_str(text, "kep", "with what was written");
    tap_is_int(read_kept(job, "link", text), -ELOOP, "a link is a link");
    tap_is_int(read_kept(job, "../run", text), -ENOENT, "and nothing is above it");
    brig_job_free(job);
}

static void test_kept(void)
{
    struct brig_policy *policy = policy_with_dirs();
    struct shell shell;
    shell_init(&shell, "printf kep > /output/x; ln -s /etc/passwd /output/link");
    keep_after(start(policy, &shell.command));
    struct brig_template *template = NULL;
    struct brig_job *job = NULL;
    tap_is_int(brig_template_new(policy, &template, NULL), 0, "a template has one too");
    tap_is_int(brig_template_start(template, &shell.command, &job, NULL), 0, "and starts");
    keep_after(job);
    brig_template_free(template);
    struct brig_policy *copy = brig_policy_copy(policy);
    brig_policy_free(policy);
    keep_after(start(copy, &shell.command));
    brig_policy_free(copy);
    policy = new_policy();
    shell_init(&shell, "true");
    job = start(policy, &shell.command);
    tap_is_int(brig_job_kept_dir(job), -1, "without being asked for there is none");
    brig_job_free(job);
    brig_policy_free(policy);
}

/* A name that is something else by the time it is mounted is not granted. */
static void grant_by_fd(void)
{
    char top[] = "/tmp/brig-grant-XXXXXX", a[64], b[64];
    if (!mkdtemp(top))
        tap_bail("mkdtemp");
    (void)snprintf(a, sizeof a, "%s/a", top);
    (void)snprintf(b, sizeof b, "%s/b", top);
    (void)mkdir(a, 0755);
    (void)chmod(top, 0755);
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    struct brig_result result;
    struct shell shell;
    shell_init(&shell, "ls -d /granted");
    int fd = open(a, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tap_is_int(policy_grant_fd(policy, BRIG_READ_ONLY, fd, "/granted", &err), 0,
               "an fd is granted");
    output_of(policy, "ls -d /granted", "/granted\n", "by its name");
    (void)rename(a, b);
    (void)mkdir(a, 0755);
    tap_is_int(job_run(policy, &shell.command, &result, &err), BRIG_E_SETUP,
               "another directory of that name is not");
    tap_has_str(err.message, "changed while it was being granted", "which is said");
    result_done(&result);
    brig_policy_free(policy);
    (void)close(fd);
    (void)rmdir(a);
    (void)rmdir(b);
    (void)rmdir(top);
}

static void test_refusals(void)
{
    struct brig_policy *policy = policy_with_dirs();
    struct brig_error err = {0};
    tap_is_int(brig_policy_private(policy, BRIG_MASK, "/x", &err), BRIG_E_INVALID,
               "a private directory cannot be a mask");
    tap_is_int(brig_policy_private(policy, BRIG_READ_ONLY, "x", &err), BRIG_E_INVALID,
               "nor relative");
    tap_is_int(brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err), BRIG_E_INVALID,
               "nor given twice");
    tap_is_int(brig_policy_file(policy, "/workspace/deep/er/main", "", 0, 0444, &err),
               BRIG_E_INVALID, "nor can a file");
    tap_is_int(brig_policy_file(policy, "/workspace/s", "", 0, 04755, &err), BRIG_E_INVALID,
               "a file has no setuid bit");
    tap_is_int(brig_policy_keep(policy, "/tmp", &err), BRIG_E_INVALID, "/tmp is not kept");
    tap_is_int(brig_policy_keep(policy, "/workspace", &err), BRIG_E_INVALID, "and only one is");
    tap_is_int(brig_policy_file(policy, "/usr/x", "", 0, 0444, &err), 0, "a file in /usr");
    struct brig_result result;
    struct shell shell;
    shell_init(&shell, "true");
    tap_is_int(job_run(policy, &shell.command, &result, &err), BRIG_E_SETUP, "is in no jail");
    tap_ok(strstr(err.message, "'/usr/x' is not in a private directory") != NULL, "which is said");
    result_done(&result);
    brig_policy_free(policy);
    grant_by_fd();
}

/* Without namespaces there is nothing to have them in, whatever the policy would put up with. */
static void test_no_namespaces(void)
{
    struct brig_policy *policy = policy_with_dirs();
    struct brig_error err = {0};
    struct brig_result result;
    struct shell shell;
    shell_init(&shell, "true");
    (void)brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, &err);
    (void)brig_policy_disable(policy, BRIG_LAYER_NAMESPACES, &err);
    tap_ok(job_run(policy, &shell.command, &result, &err) < 0, "no namespaces, no run");
    tap_ok(strstr(err.message, "private") != NULL, "and the message says why: %s", err.message);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_explain(void)
{
    struct brig_policy *policy = policy_with_dirs();
    char *text = NULL;
    (void)brig_policy_explain(policy, false, &text, NULL);
    tap_ok(text && strstr(text, "/output, kept"), "explain shows them");
    free(text);
    (void)brig_policy_explain(policy, true, &text, NULL);
    tap_ok(text && strstr(text, "\"dest\":\"/workspace\",\"kept\":false"), "as JSON too");
    free(text);
    brig_policy_free(policy);
}

int main(int argc, char **argv)
{
    static const struct job_test tests[] = {
        {"inside", test_inside},
        {"limit", test_limit},
        {"kept", test_kept},
        {"refusals", test_refusals},
        {"no-namespaces", test_no_namespaces},
        {"explain", test_explain},
    };
    return job_main(tests, sizeof tests / sizeof tests[0], argc, argv);
}
