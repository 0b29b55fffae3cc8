/* SPDX-License-Identifier: MIT */
/* A PostgreSQL of the test's own: in a temporary directory, reached by its socket alone, run as an
 * ordinary user, as it refuses to run as root. */
#pragma once

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define POSTGRES_NOBODY 65534

static struct {
    char programs[128], directory[64], dsn[160];
} postgres;

/* Its output goes to a file beside the data. */
__attribute__((unused)) static int postgres_run(const char *program, const char *const *arguments)
{
    char path[256], log[128];
    const char *argv[16] = {path}; /* it looks for the others beside itself */
    for (size_t i = 0; arguments[i] && i < 14; i++)
        argv[i + 1] = arguments[i];
    (void)snprintf(path, sizeof path, "%s/%s", postgres.programs, program);
    (void)snprintf(log, sizeof log, "%s/log", postgres.directory);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(POSTGRES_NOBODY) < 0 || setuid(POSTGRES_NOBODY) < 0))
            _exit(126);
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void)dup2(null, 0);
        (void)dup2(fd, 1);
        (void)dup2(fd, 2);
        if (chdir(postgres.directory) == 0)
            (void)execv(path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

__attribute__((unused)) static bool postgres_start(void)
{
    char data[96], options[160], log[128];
    (void)snprintf(data, sizeof data, "%s/data", postgres.directory);
    (void)snprintf(log, sizeof log, "%s/server.log", postgres.directory);
    (void)snprintf(options, sizeof options, "-c listen_addresses= -c unix_socket_directories=%s -F",
                   postgres.directory);
    return postgres_run("pg_ctl", (const char *const[]){"-D", data, "-l", log, "-w", "-t", "30",
                                                        "-o", options, "start", NULL}) == 0;
}

/* mode: "fast", or "immediate" as after a crash. */
__attribute__((unused)) static bool postgres_stop(const char *mode)
{
    char data[96];
    (void)snprintf(data, sizeof data, "%s/data", postgres.directory);
    return postgres_run("pg_ctl",
                        (const char *const[]){"-D", data, "-w", "-m", mode, "stop", NULL}) == 0;
}

/* False, with a skip, where there is none. */
__attribute__((unused)) static bool postgres_make(void)
{
    glob_t found;
    char data[96];
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) != 0) {
        tap_skip("there is no PostgreSQL server: apt-get install postgresql", "PostgreSQL");
        return false;
    }
    (void)snprintf(postgres.programs, sizeof postgres.programs, "%s",
                   found.gl_pathv[found.gl_pathc - 1]);
    *strrchr(postgres.programs, '/') = '\0';
    globfree(&found);
    (void)snprintf(postgres.directory, sizeof postgres.directory, "/tmp/test-postgres-XXXXXX");
    if (!mkdtemp(postgres.directory) ||
        (geteuid() == 0 && chown(postgres.directory, POSTGRES_NOBODY, POSTGRES_NOBODY) < 0))
        tap_bail("no directory for PostgreSQL");
    /* Root without capabilities is a stranger to it. */
    (void)chmod(postgres.directory, 0755);
    (void)snprintf(data, sizeof data, "%s/data", postgres.directory);
    (void)snprintf(postgres.dsn, sizeof postgres.dsn, "host=%s user=brig dbname=postgres",
                   postgres.directory);
    if (postgres_run("initdb", (const char *const[]){"-D", data, "-U", "brig", "-A", "trust", "-N",
                                                     "--locale=C", "--encoding=UTF8", NULL}) != 0)
        tap_bail("initdb failed; see %s/log", postgres.directory);
    return true;
}

__attribute__((unused)) static void postgres_remove(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/rm", "rm", "-rf", "--", postgres.directory, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}
