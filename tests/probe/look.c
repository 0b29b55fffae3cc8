/* SPDX-License-Identifier: MIT */
/* Prints what a process sees of its jail, for tests/golden/probe.py, which takes out what differs from
 * machine to machine: sections of lines, each headed by its name and a colon. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static void print_link(const char *directory, const char *name)
{
    char path[512], target[512];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    printf("  %s %s\n", name, target);
}

static void print_directory(const char *directory, int links)
{
    struct dirent **items;
    int count = scandir(directory, &items, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strcmp(items[i]->d_name, ".") == 0 || strcmp(items[i]->d_name, "..") == 0)
            continue;
        if (links)
            print_link(directory, items[i]->d_name);
        else
            printf("  %s\n", items[i]->d_name);
    }
    if (count < 0)
        printf("  cannot be read\n");
}

static void print_file(const char *path)
{
    char line[4096];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        printf("  %s", line);
    if (file)
        (void)fclose(file);
}

/* The mounts that a path leads to; others are covered. */
static void print_mounts(void)
{
    char line[4096], path[4096];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long id;
        struct statx info;
        if (sscanf(line, "%llu %*d %*s %*s %4095s", &id, path) == 2 &&
            (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &info) <
                 0 ||
             info.stx_mnt_id == id))
            printf("  %s", line);
    }
    if (file)
        (void)fclose(file);
}

static void print_limits(void)
{
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resource, &limit) == 0)
            printf("  %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max);
    }
}

int main(void)
{
    char text[4096] = "";
    mode_t mask = umask(0);
    printf("descriptors:\n"); /* before anything is opened; the directory itself is one */
    print_directory("/proc/self/fd", 1);
    printf("status:\n");
    print_file("/proc/self/status");
    printf("uid_map:\n");
    print_file("/proc/self/uid_map");
    printf("gid_map:\n");
    print_file("/proc/self/gid_map");
    printf("namespaces:\n");
    print_directory("/proc/self/ns", 1);
    printf("mounts:\n");
    print_mounts();
    printf("limits:\n");
    print_limits();
    printf("environment:\n");
    for (char **variable = environ; *variable; variable++)
        printf("  %s\n", *variable);
    (void)gethostname(text, sizeof text);
    printf("process:\n  pid %d parent %d session %d\n  host name %s\n", getpid(), getppid(),
           getsid(0), text);
    printf("  directory %s\n  umask %03o\n", getcwd(text, sizeof text), mask);
    const char *const directories[] = {"/", "/dev", "/etc", "/run", "/tmp", getenv("HOME"), "."};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        printf("in %s:\n", directories[i]);
        print_directory(directories[i], 0);
    }
    return 0;
}
