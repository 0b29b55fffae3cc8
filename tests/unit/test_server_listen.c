/* SPDX-License-Identifier: MIT */
/* Where brigd listens. */
#include "server/listen.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

static void test_good(const char *where, const char *begins, bool is_public)
{
    char text[LISTEN_TEXT_MAX] = "";
    bool public = !is_public;
    struct brig_error err = {0};
    autoclose int fd = -1;
    int result = listen_open(where, NULL, NULL, &fd, text, &public, &err);
    tap_ok(result == 0 && fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC), "'%s' is listened on (%s)",
           where, err.message);
    tap_ok(str_starts_with(text, begins) && public == is_public, "as '%s'", text);
}

static void test_local(void)
{
    char folder[] = "/tmp/brig-listen.XXXXXX", where[64], text[LISTEN_TEXT_MAX];
    bool public = true;
    struct brig_error err = {0};
    if (!mkdtemp(folder))
        exit(1);
    (void)snprintf(where, sizeof where, "unix:%s/s", folder);
    int fd = -1;
    autoclose int second = -1;
    tap_is_int(listen_open(where, NULL, NULL, &fd, text, &public, &err), 0,
               "a path is listened on");
    tap_is_str(text, where, "as itself");
    tap_ok(!public, "nobody else reaches it");
    tap_ok(listen_open(where, NULL, NULL, &second, text, &public, &err) < 0,
           "not while somebody else does: %s", err.message);
    (void)close(fd);
    tap_is_int(listen_open(where, NULL, NULL, &second, text, &public, &err), 0,
               "again when nobody does any more");
    (void)unlink(where + 5);
    autoclose int file = open(where + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    autoclose int third = -1;
    tap_ok(file >= 0 && listen_open(where, NULL, NULL, &third, text, &public, &err) < 0 &&
               access(where + 5, F_OK) == 0,
           "a file in its place is not removed");
    (void)unlink(where + 5);
    (void)rmdir(folder);
}

int main(void)
{
    static const char *const bad[] = {"",           "8080",      "127.0.0.1",    "127.0.0.1:",
                                      "1.2.3:80",   "::1:80",    "[::1]",        "127.0.0.1:65536",
                                      "example:80", "unix:here", "127.0.0.1:80x"};
    test_good("127.0.0.1:0", "127.0.0.1:", false);
    test_good("localhost:0", "127.0.0.1:", false);
    test_good("[::1]:0", "[::1]:", false);
    test_good(":0", "[::]:", true);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        char text[LISTEN_TEXT_MAX];
        bool public;
        int fd = -1;
        struct brig_error err = {0};
        tap_is_int(listen_open(bad[i], NULL, NULL, &fd, text, &public, &err), BRIG_E_INVALID,
                   "'%s' is refused: %s", bad[i], err.message);
    }
    test_local();
    return tap_done();
}
