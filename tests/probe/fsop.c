/* SPDX-License-Identifier: MIT */
/* Does one thing to the filesystem and says what the kernel answered:
 *
 *     fsop OPERATION PATH [PATH]
 *
 * Exits 0 if it worked, 1 with the name of the error on standard output if not, 2 if misused. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int open_with(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);
    return fd < 0 ? -1 : close(fd);
}

static int do_read(const char *path, const char *unused)
{
    char byte;
    (void)unused;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, &byte, 1) < 0 ? -1 : 0;
}

static int do_write(const char *path, const char *unused)
{
    (void)unused;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, "x", 1) != 1 ? -1 : 0;
}

static int do_create(const char *path, const char *unused)
{
    (void)unused;
    return open_with(path, O_WRONLY | O_CREAT | O_EXCL);
}

static int do_open_truncate(const char *path, const char *unused)
{
    (void)unused;
    return open_with(path, O_WRONLY | O_TRUNC);
}

static int do_truncate(const char *path, const char *unused)
{
    (void)unused;
    return truncate(path, 1);
}

static int do_list(const char *path, const char *unused)
{
    (void)unused;
    return open_with(path, O_RDONLY | O_DIRECTORY);
}

static int do_mkdir(const char *path, const char *unused)
{
    (void)unused;
    return mkdir(path, 0700);
}

static int do_mkfifo(const char *path, const char *unused)
{
    (void)unused;
    return mkfifo(path, 0600);
}

static int do_mknod(const char *path, const char *unused)
{
    (void)unused;
    return mknod(path, S_IFCHR | 0600, 0);
}

static int do_unlink(const char *path, const char *unused)
{
    (void)unused;
    return unlink(path);
}

static int do_rmdir(const char *path, const char *unused)
{
    (void)unused;
    return rmdir(path);
}

static int make_socket(const char *path, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof ret_address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(ret_address->sun_path, path, strlen(path));
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int do_bind(const char *path, const char *unused)
{
    struct sockaddr_un address;
    (void)unused;
    int fd = make_socket(path, &address);
    return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
}

static int do_connect(const char *path, const char *unused)
{
    struct sockaddr_un address;
    (void)unused;
    int fd = make_socket(path, &address);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}

/* Both ends, as a program does that serves itself. */
static int do_serve(const char *path, const char *unused)
{
    struct sockaddr_un address;
    (void)unused;
    int fd = make_socket(path, &address);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1) < 0)
        return -1;
    return do_connect(path, NULL);
}

static int do_symlink(const char *path, const char *target)
{
    return symlink(target, path);
}

static int do_rename(const char *from, const char *to)
{
    return rename(from, to);
}

static int do_link(const char *from, const char *to)
{
    return link(from, to);
}

static const struct {
    const char *name;
    int paths;
    int (*run)(const char *, const char *);
} operations[] = {
    {"read", 1, do_read},         {"write", 1, do_write},
    {"create", 1, do_create},     {"open-truncate", 1, do_open_truncate},
    {"truncate", 1, do_truncate}, {"list", 1, do_list},
    {"mkdir", 1, do_mkdir},       {"mkfifo", 1, do_mkfifo},
    {"mknod", 1, do_mknod},       {"unlink", 1, do_unlink},
    {"rmdir", 1, do_rmdir},       {"bind", 1, do_bind},
    {"connect", 1, do_connect},   {"serve", 1, do_serve},
    {"symlink", 2, do_symlink},   {"rename", 2, do_rename},
    {"link", 2, do_link},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 3 && i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(operations[i].name, argv[1]) != 0 || argc != 2 + operations[i].paths)
            continue;
        if (operations[i].run(argv[2], argv[3]) == 0)
            return 0;
        const char *name = strerrorname_np(errno);
        (void)printf("%s\n", name ? name : "?");
        return 1;
    }
    (void)fprintf(stderr, "usage: fsop OPERATION PATH [PATH]\n");
    return 2;
}
