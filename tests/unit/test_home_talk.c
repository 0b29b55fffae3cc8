/* SPDX-License-Identifier: MIT */
/* Questions to a jail's holder that ends while it is asked, or answers nobody. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "home/home.h"
#include "home/storage.h"
#include "tap.h"

#define JAIL "asked"

static char storage[] = "/tmp/test-home-talk-XXXXXX";

/* What the process does in the holder's place: ends at the first question, as one that is idle for long
 * enough; or closes each connection, as one of another version of brig. */
enum holder { ENDS, CLOSES };

static pid_t start(enum holder kind)
{
    char key[STORAGE_KEY_MAX];
    struct sockaddr_un address;
    struct brig_error err = {0};
    autoclose int directory = sockets_make(geteuid(), storage, &err);
    autoclose int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (directory < 0 || storage_key(storage, JAIL, key, &err) < 0 ||
        sockets_address(directory, key, &address, &err) < 0)
        tap_bail("no place for a socket: %s", err.message);
    (void)unlink(address.sun_path);
    int ready[2];
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        pipe2(ready, O_CLOEXEC) < 0)
        tap_bail("no socket");
    pid_t pid = fork();
    if (pid != 0) {
        (void)close(ready[1]);
        if (pid < 0 || !await_byte(ready[0]))
            tap_bail("no holder");
        (void)close(ready[0]);
        return pid;
    }
    (void)listen(listener, 4); /* here: the kernel tells whose process did it */
    (void)!write(ready[1], "", 1);
    struct pollfd asked = {.fd = listener, .events = POLLIN};
    while (poll(&asked, 1, -1) == 1 && kind == CLOSES)
        (void)close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    (void)unlink(address.sun_path);
    _exit(0);
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int main(void)
{
    const char *const path = "secret";
    const struct home_masks masks = {.user_home = "/nonexistent", .paths = &path, .count = 1};
    struct home_state state;
    struct home_masked masked;
    struct brig_error err = {0};
    uid_t uid = geteuid();
    if (!mkdtemp(storage))
        tap_bail("no directory");

    pid_t holder = start(ENDS);
    tap_is_int(home_ask(storage, JAIL, uid, &state, &err), 0, "a holder may end while it is asked");
    tap_ok(!state.held, "then there is none");
    end(holder);
    holder = start(ENDS);
    tap_is_int(home_stop(storage, JAIL, uid, &state, &err), 0, "or while it is told to end");
    tap_ok(!state.held, "which it then has");
    end(holder);
    holder = start(ENDS);
    tap_is_int(home_mask(storage, JAIL, uid, &masks, &masked, &err), 0,
               "or while it is told to hide a path");
    tap_ok(masked.done && masked.runs == 0, "which no run sees");
    end(holder);

    holder = start(CLOSES);
    tap_ok(home_stop(storage, JAIL, uid, &state, &err) < 0, "one that never answers is an error");
    tap_has_str(err.message, "is gone or of another version of brig", "which says what it may be");
    tap_ok(state.held && state.holder == holder, "and which process it is");
    end(holder);
    tap_is_int(home_stop(storage, JAIL, uid, &state, NULL), 0,
               "when it is gone nothing is to be ended");
    (void)rmdir(storage);
    return tap_done();
}
