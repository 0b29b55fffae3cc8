/* SPDX-License-Identifier: MIT */
/* Asks the user's systemd for a scope, on its private socket, which uses D-Bus without a bus
 * daemon. The only call is built by hand (the D-Bus specification, "Message Protocol"), to need
 * neither a library nor a program that may not be installed. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/cgroup/cgroup_driver.h"

#define PATIENCE_MS 4000
#define WAIT_FIRST_NS 200000
#define WAIT_LAST_NS 20000000
#define LINE_MAX_BYTES 256  /* length of the greeting */
#define ANSWER_MAX 65536    /* a longer message cannot be the reply */
#define ANSWER_TEXT_MAX 160 /* part of an error that is repeated in the message */

/* ---- writing messages ---- */

enum { TYPE_CALL = 1, TYPE_RETURN = 2, TYPE_ERROR = 3 };
enum { FIELD_PATH = 1, FIELD_INTERFACE = 2, FIELD_MEMBER = 3, FIELD_DESTINATION = 6 };
#define FIELD_SIGNATURE 8
#define HEADER_FIXED 16 /* including the length of the fields that follow */
#define AT_BODY_LENGTH 4
#define AT_SERIAL 8
#define AT_FIELDS_LENGTH 12

struct message {
    uint8_t *bytes; /* CGROUP_SYSTEMD_MESSAGE_MAX bytes, enough for every message */
    size_t length;
};

static void put_bytes(struct message *m, const void *bytes, size_t length)
{
    if (m->length + length > CGROUP_SYSTEMD_MESSAGE_MAX)
        return; /* only for an absurd unit name; systemd then refuses the call */
    memcpy(m->bytes + m->length, bytes, length);
    m->length += length;
}

static void put_padding(struct message *m, size_t alignment)
{
    static const uint8_t zeros[8] = {0};
    put_bytes(m, zeros, (alignment - m->length % alignment) % alignment);
}

static void set_u32(uint8_t *at, size_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i)); /* little-endian, as the header says */
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put_u32(struct message *m, size_t value)
{
    uint8_t bytes[4];
    set_u32(bytes, value);
    put_padding(m, 4);
    put_bytes(m, bytes, sizeof bytes);
}

static void put_string(struct message *m, const char *text)
{
    put_u32(m, strlen(text));
    put_bytes(m, text, strlen(text) + 1);
}

static void put_signature(struct message *m, const char *text)
{
    uint8_t length = (uint8_t)strlen(text);
    put_bytes(m, &length, 1);
    put_bytes(m, text, strlen(text) + 1);
}

static void put_field(struct message *m, uint8_t code, const char *type, const char *value)
{
    put_padding(m, 8);
    put_bytes(m, &code, 1);
    put_signature(m, type);
    if (type[0] == 'g')
        put_signature(m, value);
    else
        put_string(m, value);
}

/* Everything before the body. */
static void put_header(struct message *m)
{
    const uint8_t fixed[HEADER_FIXED] = {'l', TYPE_CALL, 0, 1, [AT_SERIAL] = 1};
    put_bytes(m, fixed, sizeof fixed);
    put_field(m, FIELD_PATH, "o", "/org/freedesktop/systemd1");
    put_field(m, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
    put_field(m, FIELD_INTERFACE, "s", "org.freedesktop.systemd1.Manager");
    put_field(m, FIELD_MEMBER, "s", "StartTransientUnit");
    put_field(m, FIELD_SIGNATURE, "g", "ssa(sv)a(sa(sv))");
    set_u32(m->bytes + AT_FIELDS_LENGTH, m->length - HEADER_FIXED);
    put_padding(m, 8);
}

/* Writes the name of a property and the type of the value that follows. */
static void put_property(struct message *m, const char *name, const char *type)
{
    put_padding(m, 8);
    put_string(m, name);
    put_signature(m, type);
}

size_t cgroup_systemd_message(const char *unit, pid_t pid,
                              uint8_t buffer[CGROUP_SYSTEMD_MESSAGE_MAX])
{
    struct message m = {.bytes = buffer};
    put_header(&m);
    size_t body = m.length;
    put_string(&m, unit);
    put_string(&m, "fail"); /* the mode: fail rather than replace a queued job */
    put_u32(&m, 0);
    size_t at_length = m.length - 4;
    put_padding(&m, 8);
    size_t properties = m.length;
    put_property(&m, "Description", "s");
    put_string(&m, "brig");
    put_property(&m, "PIDs", "au");
    put_u32(&m, sizeof(uint32_t));
    put_u32(&m, (size_t)pid);
    put_property(&m, "Delegate", "b");
    put_u32(&m, 1);
    put_property(&m, "CollectMode", "s"); /* a failed scope needs no manual reset */
    put_string(&m, "inactive-or-failed");
    set_u32(buffer + at_length, m.length - properties);
    put_u32(&m, 0); /* no auxiliary units */
    put_padding(&m, 8);
    set_u32(buffer + AT_BODY_LENGTH, m.length - body);
    return m.length;
}

/* ---- the conversation ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int await(int fd, short events, int64_t deadline_ms)
{
    struct pollfd waiting = {.fd = fd, .events = events};
    int64_t left = deadline_ms - now_ms();
    if (left <= 0)
        return -ETIMEDOUT;
    return poll(&waiting, 1, (int)left) < 0 && errno != EINTR ? -errno : 0;
}

static int send_all(int fd, const void *bytes, size_t length, int64_t deadline_ms)
{
    const uint8_t *at = bytes;
    while (length > 0) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        int result = sent >= 0 ? 0 : errno == EAGAIN ? await(fd, POLLOUT, deadline_ms) : -errno;
        if (result < 0 && result != -EINTR)
            return result;
        at += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t length, int64_t deadline_ms)
{
    uint8_t *at = bytes;
    while (length > 0) {
        ssize_t got = recv(fd, at, length, 0);
        int result = got > 0           ? 0
                     : got == 0        ? -ECONNRESET
                     : errno == EAGAIN ? await(fd, POLLIN, deadline_ms)
                                       : -errno;
        if (result < 0 && result != -EINTR)
            return result;
        at += got > 0 ? got : 0;
        length -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* "EXTERNAL": the kernel passes the uid as socket credentials, and the client repeats it, as
 * decimal digits encoded in hexadecimal. */
static int authenticate(int fd, int64_t deadline_ms)
{
    char uid[16], line[LINE_MAX_BYTES] = "";
    struct message hello = {.bytes = (uint8_t[CGROUP_SYSTEMD_MESSAGE_MAX]){0}};
    int digits = snprintf(uid, sizeof uid, "%u", geteuid());
    put_bytes(&hello, "\0AUTH EXTERNAL ", sizeof "\0AUTH EXTERNAL " - 1);
    for (int i = 0; i < digits; i++) {
        char hex[] = {'3', uid[i]};
        put_bytes(&hello, hex, sizeof hex);
    }
    put_bytes(&hello, "\r\n", 2);
    int result = send_all(fd, hello.bytes, hello.length, deadline_ms);
    for (size_t i = 0; result == 0 && i + 1 < sizeof line; i++)
        if ((result = receive_all(fd, line + i, 1, deadline_ms)) == 0 && line[i] == '\n')
            break;
    if (result == 0 && !str_starts_with(line, "OK "))
        result = -EACCES;
    return result < 0 ? result : send_all(fd, "BEGIN\r\n", sizeof "BEGIN\r\n" - 1, deadline_ms);
}

/* Extracts the text of an error message, its first value. */
static int explain_error(const uint8_t *body, size_t length, struct brig_error *err)
{
    char text[ANSWER_TEXT_MAX] = "";
    size_t size = length >= 4 ? get_u32(body) : 0;
    if (size > 0 && size <= length - 4)
        (void)snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text),
                       (const char *)body + 4);
    return brig_fail(err, BRIG_E_SYSTEM, 0, "systemd does not give us a scope: %s",
                     str_shown(text).text);
}

/* Reads messages up to the first reply to a call; signals may come before. */
static int await_answer(int fd, int64_t deadline_ms, struct brig_error *err)
{
    autofree uint8_t *rest = malloc(ANSWER_MAX);
    if (!rest)
        return brig_fail_nomem(err);
    for (;;) {
        uint8_t head[HEADER_FIXED] = {0};
        int result = receive_all(fd, head, sizeof head, deadline_ms);
        size_t fields = (get_u32(head + AT_FIELDS_LENGTH) + (size_t)7) & ~(size_t)7;
        size_t body = get_u32(head + AT_BODY_LENGTH);
        if (result == 0 && (head[0] != 'l' || fields > ANSWER_MAX || body > ANSWER_MAX - fields))
            result = -EBADMSG;
        if (result == 0)
            result = receive_all(fd, rest, fields + body, deadline_ms);
        if (result < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -result, "systemd does not answer");
        if (head[1] == TYPE_ERROR)
            return explain_error(rest + fields, body, err);
        if (head[1] == TYPE_RETURN)
            return 0;
    }
}

int cgroup_systemd_ask(int fd, const char *unit, struct brig_error *err)
{
    uint8_t buffer[CGROUP_SYSTEMD_MESSAGE_MAX];
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    int result = authenticate(fd, deadline_ms);
    if (result == 0)
        result = send_all(fd, buffer, cgroup_systemd_message(unit, getpid(), buffer), deadline_ms);
    if (result < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -result, "cannot talk to systemd");
    return await_answer(fd, deadline_ms, err);
}

/* ---- joining ---- */

/* To a systemd in another pid namespace, this pid means nothing or another process. */
static bool shares_pids(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    char path[64], theirs[64] = "", ours[64] = "";
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)peer.pid);
    ssize_t read = readlink(path, theirs, sizeof theirs - 1);
    if (read < 0) /* no permission to read it */
        return true;
    return readlink("/proc/self/ns/pid", ours, sizeof ours - 1) == read && str_equal(ours, theirs);
}

static int dial_systemd(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/run/user/%u/systemd/private",
                   geteuid());
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        !shares_pids(fd))
        return -1;
    return take_fd(&fd);
}

/* The reply only says that the job is queued: wait for the move. */
static bool await_move(const char *unit)
{
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    struct timespec wait = {.tv_nsec = WAIT_FIRST_NS};
    while (now_ms() < deadline_ms) {
        autofree char *own = cgroup_read_proc("/proc/self/cgroup");
        if (own && strstr(own, unit))
            return true;
        (void)nanosleep(&wait, NULL);
        if (wait.tv_nsec < WAIT_LAST_NS)
            wait.tv_nsec += wait.tv_nsec / 2;
    }
    return false;
}

bool cgroup_systemd_join(struct brig_error *err)
{
    char unit[CGROUP_NAME_MAX];
    autoclose int fd = dial_systemd();
    if (fd < 0) {
        (void)brig_fail(err, BRIG_E_UNSUPPORTED, 0, "your user has no systemd to ask for a cgroup");
        return false;
    }
    (void)snprintf(unit, sizeof unit, CGROUP_PREFIX "%d-%" PRIu64 ".scope", (int)getpid(),
                   cgroup_start_time(getpid()));
    if (cgroup_systemd_ask(fd, unit, err) < 0)
        return false;
    if (!await_move(unit)) {
        (void)brig_fail(err, BRIG_E_SYSTEM, 0, "systemd did not move us into '%s'", unit);
        return false;
    }
    return true;
}
