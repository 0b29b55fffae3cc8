/* SPDX-License-Identifier: MIT */
/* The probe report: whole, sane, and without a trace in the process that asked for it. */
#include "jail/probe/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/confine/landlock.h"
#include "tap.h"

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    autodir DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    return count;
}

static ino_t namespace_of(const char *kind)
{
    char path[64];
    struct stat status = {0};
    (void)snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static void test_rows(const struct probe_report *report)
{
    tap_ok(report->count > 30, "there are more than 30 rows");
    for (size_t i = 0; i < report->count; i++) {
        const struct probe_row *row = &report->rows[i];
        tap_diag("%s %s (%s)", probe_state_name(row->state), row->label, row->detail);
        tap_ok(row->id && row->label && row->meaning, "row %zu has its texts", i);
        tap_ok(probe_find(report, row->id) == row, "%s is there once", row->id);
        tap_ok(row->state != PROBE_OK || row->remedy[0] == '\0', "%s: ok needs no remedy", row->id);
        tap_ok(row->state != PROBE_MISSING || row->remedy[0] != '\0' ||
                   strncmp(row->detail, "needs ", 6) == 0,
               "%s: missing has a remedy, or names what has it", row->id);
    }
    tap_ok(!probe_find(report, "nonsense"), "what is not there is not found");
    tap_is_int(probe_find(report, "landlock")->state == PROBE_OK, landlock_abi() >= 6,
               "Landlock is ok from ABI 6 on");
}

static void test_no_trace(const char *directory)
{
    static struct probe_report report;
    ino_t user = namespace_of("user"), mounts = namespace_of("mnt");
    int no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    unsigned fds = count_entries("/proc/self/fd"), files = count_entries(directory);
    probe_run(directory, &report);
    test_rows(&report);
    tap_is_int(count_entries("/proc/self/fd"), fds, "no fd is left open");
    tap_is_int(count_entries(directory), files, "nothing is left in the directory");
    tap_ok(namespace_of("user") == user && namespace_of("mnt") == mounts,
           "the caller's namespaces are its own still");
    tap_is_int(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), no_new_privs,
               "the caller may gain the privileges it could");
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0, "no child is left");
}

static void test_without_directory(void)
{
    static struct probe_report report;
    probe_run(NULL, &report);
    tap_is_int(probe_find(&report, "overlay-directory")->state, PROBE_LIMITED,
               "without a directory the overlay on disk is not tried");
}

static void test_remedy(void)
{
    char text[BRIG_MESSAGE_MAX], small[8];
    probe_userns_remedy(text, sizeof text);
    tap_has_str(text, "Run `brig doctor`.", "the remedy names the doctor");
    tap_has_str(text, "ser namespaces", "and what is refused");
    probe_userns_remedy(small, sizeof small);
    tap_is_int(strlen(small), sizeof small - 1, "a small buffer is cut, not passed");
}

int main(void)
{
    char directory[] = "/var/tmp/brig-probe-test.XXXXXX";
    if (!mkdtemp(directory))
        tap_bail("mkdtemp failed");
    test_no_trace(directory);
    tap_ok(rmdir(directory) == 0, "the directory can be removed");
    test_without_directory();
    test_remedy();
    return tap_done();
}
