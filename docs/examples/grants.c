/* SPDX-License-Identifier: MIT */
/* Give a jail a project directory: writable as a whole, its .git read-only, its .env hidden. The
 * most specific rule wins, in whatever order the rules are given.
 *
 *     grants /absolute/path/of/a/project */
#include <stdio.h>

#include <brig/brig.h>

/* What the command finds: each line says what the jail answered. */
static const char script[] =
    "echo written >made-inside && echo 'made-inside: written';"
    "if [ -s .env ]; then echo '.env: readable'; else echo '.env: hidden'; fi;"
    "if (echo x >.git/inside) 2>/dev/null; then echo '.git: writable';"
    "else echo '.git: read-only'; fi;"
    "echo \"$GREETING from $(pwd)\"";

/* Adds every rule; the first that is refused ends it, with the reason in *error. */
static int fill_policy(struct brig_policy *policy, const char *project, struct brig_error *error)
{
    char git[4096], env[4096];
    (void)snprintf(git, sizeof(git), "%s/.git", project);
    (void)snprintf(env, sizeof(env), "%s/.env", project);

    int code = brig_policy_grant(policy, BRIG_READ_WRITE, project, NULL, 0, error);
    /* Optional: a project without .git or .env is no error. */
    if (code == 0)
        code = brig_policy_grant(policy, BRIG_READ_ONLY, git, NULL, BRIG_GRANT_OPTIONAL, error);
    if (code == 0)
        code = brig_policy_grant(policy, BRIG_MASK, env, NULL, BRIG_GRANT_OPTIONAL, error);
    if (code == 0)
        code = brig_policy_setenv(policy, "GREETING", "hello", error);
    if (code == 0)
        code = brig_policy_workdir(policy, project, error);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "usage: grants /ABSOLUTE/PROJECT\n");
        return 2;
    }
    struct brig_error error = {0};
    struct brig_result *result = NULL;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy || fill_policy(policy, argv[1], &error) < 0) {
        fprintf(stderr, "grants: %s\n", policy ? error.message : "out of memory");
        brig_policy_free(policy);
        return 125;
    }

    const char *const command_argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = command_argv;
    command.stdio[1].kind = command.stdio[2].kind = BRIG_STDIO_INHERIT;
    if (brig_run(policy, &command, &result, &error) < 0)
        fprintf(stderr, "grants: %s\n", error.message);

    int status = result ? brig_result_status(result) : 125;
    brig_result_free(result);
    brig_policy_free(policy);
    return status;
}
