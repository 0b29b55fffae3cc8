/* SPDX-License-Identifier: MIT */
/* Theory of operation: the program of ours in a sandbox.
 *
 * brigd puts it into every sandbox as a read-only file. As the jail's first command it does nothing;
 * the jail stays when it has ended. As another command ("serve") it answers requests about files on
 * the socket that is its standard input, one after the other, with the rights of every command in
 * the jail: no process outside opens a path of the jail. It follows symlinks as any program does; it
 * opens nothing that could block it, and reads and writes only regular files. Hostile processes
 * beside it can stop it or kill it, so the executor does not rely on an answer. As a third command
 * ("connect PORT") it connects its standard input and output with a port of the sandbox; "send" and
 * "receive" copy files to a fork (guest_copy.h).
 *
 * It is freestanding, because a sandbox may have any root directory, and small, because every
 * sandbox has a copy. */
#include <stdbool.h>
#include <stddef.h>

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/inotify.h>
#include <linux/stat.h>

#include "jail/sys.h"
#include "server/guest/guest_copy.h"
#include "server/guest/guest_wire.h"

#define ERR_ENOENT 2
#define ERR_EINTR 4
#define ERR_EAGAIN 11
#define ERR_EEXIST 17
#define ERR_EISDIR 21
#define ERR_EINVAL 22
#define ERR_ENAMETOOLONG 36
#define ERR_ENOTEMPTY 39
#define ERR_ELOOP 40
#define SOCKET 0
#define FAMILY_4 2  /* AF_INET */
#define FAMILY_6 10 /* AF_INET6 */
#define POLL_IN 1
#define POLL_OUT 4
#define FILE_TYPE 0170000
#define DIRENT_NAME 19 /* offset of the name in a directory entry */
#define QUEUE_BYTES (256 << 10)

/* Compilers call these; there is no libc to provide them. */
void *memset(void *memory, int byte, size_t size);
__attribute__((used)) void *memset(void *memory, int byte, size_t size)
{
    volatile char *at = memory;
    while (size-- > 0)
        *at++ = (char)byte;
    return memory;
}

void *memcpy(void *to, const void *from, size_t size);
__attribute__((used)) void *memcpy(void *to, const void *from, size_t size)
{
    volatile char *out = to;
    const char *in = from;
    while (size-- > 0)
        *out++ = *in++;
    return to;
}

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

static bool is_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* ---- state: one request at a time ---- */

static struct guest_request request;
static struct {
    struct guest_reply head;
    char bytes[GUEST_PIECE_MAX];
} reply;
static char piece[GUEST_PIECE_MAX];
static char listing[GUEST_PIECE_MAX];
static char path[GUEST_PATH_MAX];
/* Directories that are still to be listed: a byte for the depth, then the path. */
static char queue[QUEUE_BYTES];
static size_t queue_first, queue_end;

/* ---- the socket ---- */

/* Blocks until the executor has room. If it is gone, there is nothing left to do. */
static void send_reply(size_t bytes)
{
    reply.head.version = GUEST_VERSION;
    long sent;
    do
        sent =
            SYS(sendto, SOCKET, &reply, sizeof reply.head + bytes, 0x4000 /* MSG_NOSIGNAL */, 0, 0);
    while (sent == -ERR_EINTR);
    if (sent < 0)
        (void)SYS(exit_group, 1);
}

static void send_done(long result)
{
    reply.head.type = GUEST_DONE;
    reply.head.error = result < 0 ? (int32_t)-result : 0;
    send_reply(0);
}

static long receive(void *buffer, size_t size)
{
    long got;
    do
        got = SYS(recvfrom, SOCKET, buffer, size, 0, 0, 0);
    while (got == -ERR_EINTR);
    if (got <= 0)
        (void)SYS(exit_group, 0); /* the executor has closed the socket */
    return got;
}

/* ---- paths ---- */

/* Appends "/name" to a path. */
static bool append(char *to, const char *name)
{
    size_t used = length_of(to), more = length_of(name);
    bool slash = used > 0 && to[used - 1] != '/';
    if (used + slash + more + 1 > GUEST_PATH_MAX)
        return false;
    if (slash)
        to[used++] = '/';
    memcpy(to + used, name, more + 1);
    return true;
}

/* Makes the directories above a path, and with `whole` the last component. Returns 1 if the last
 * mkdir made a directory. */
static long make_directories(const char *of, bool whole)
{
    long made = 0;
    size_t length = length_of(of);
    while (length > 1 && of[length - 1] == '/')
        length--;
    for (size_t i = 1; i <= length; i++) {
        if (of[i] != '/' && !(i == length && whole))
            continue;
        if (i == length && !whole)
            break;
        memcpy(path, of, i);
        path[i] = 0;
        made = SYS(mkdirat, AT_FDCWD, path, 0755);
        if (made < 0 && made != -ERR_EEXIST)
            return made;
        made = made == 0;
    }
    return made;
}

/* ---- entries ---- */

static uint32_t kind_of(unsigned mode)
{
    switch (mode & FILE_TYPE) {
    case 0100000:
        return GUEST_FILE;
    case 0040000:
        return GUEST_DIRECTORY;
    case 0120000:
        return GUEST_LINK;
    default:
        return GUEST_OTHER;
    }
}

/* Sends what is at a path, without following a link. Returns the kind, or an error. */
static long send_entry(const char *of)
{
    struct statx info;
    long result = SYS(statx, AT_FDCWD, of, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info);
    if (result < 0)
        return result;
    size_t length = length_of(of);
    struct guest_reply *head = &reply.head;
    *head = (struct guest_reply){.type = GUEST_ENTRY,
                                 .kind = kind_of(info.stx_mode),
                                 .mode = info.stx_mode & 07777,
                                 .uid = info.stx_uid,
                                 .gid = info.stx_gid,
                                 .size = info.stx_size,
                                 .modified_ns =
                                     info.stx_mtime.tv_sec * 1000000000 + info.stx_mtime.tv_nsec,
                                 .path_length = (uint32_t)length};
    memcpy(reply.bytes, of, length);
    if (head->kind == GUEST_LINK) {
        long target = SYS(readlinkat, AT_FDCWD, of, reply.bytes + length, GUEST_PATH_MAX - 1);
        head->target_length = target > 0 ? (uint32_t)target : 0;
    }
    uint32_t kind = head->kind;
    send_reply(length + head->target_length);
    reply.head = (struct guest_reply){0};
    return kind;
}

/* ---- lists: the directories of one level after those of the level above ---- */

static bool push(const char *directory, unsigned depth)
{
    size_t length = length_of(directory);
    if (queue_end + length + 2 > sizeof queue)
        return false;
    queue[queue_end] = (char)depth;
    memcpy(queue + queue_end + 1, directory, length + 1);
    queue_end += length + 2;
    return true;
}

struct walk {
    uint64_t depth; /* levels */
    uint64_t count;
    bool cut;
    bool (*visit)(struct walk *walk, const char *entry, unsigned char type, unsigned depth);
};

static long walk_directory(struct walk *walk, const char *directory, unsigned depth)
{
    long fd = SYS(openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    long got;
    while (!walk->cut && (got = SYS(getdents64, fd, listing, sizeof listing)) > 0)
        for (long at = 0; at < got && !walk->cut;) {
            const char *name = listing + at + DIRENT_NAME;
            unsigned char type = (unsigned char)listing[at + DIRENT_NAME - 1];
            at += *(const unsigned short *)(const void *)(listing + at + 16);
            if (is_same(name, ".") || is_same(name, ".."))
                continue;
            memcpy(path, directory, length_of(directory) + 1);
            if (!append(path, name) || !walk->visit(walk, path, type, depth))
                walk->cut = true;
        }
    (void)SYS(close, fd);
    return 0;
}

/* Directories that are gone or may not be read are skipped, but not the first. */
static long walk_all(struct walk *walk, const char *top)
{
    static char directory[GUEST_PATH_MAX];
    queue_first = queue_end = 0;
    long result = push(top, 1) ? 0 : -ERR_ENAMETOOLONG;
    for (bool first = true; result == 0 && queue_first < queue_end && !walk->cut; first = false) {
        unsigned depth = (unsigned char)queue[queue_first];
        size_t length = length_of(queue + queue_first + 1);
        memcpy(directory, queue + queue_first + 1, length + 1);
        queue_first += length + 2;
        long walked = walk_directory(walk, directory, depth);
        if (first)
            result = walked;
    }
    return result;
}

/* Of the list of "." the paths begin with "./", which is left out. */
static bool list_entry(struct walk *walk, const char *entry, unsigned char type, unsigned depth)
{
    (void)type;
    if (walk->count == GUEST_ENTRIES_MAX)
        return false;
    long kind = send_entry(is_same(request.path, ".") ? entry + 2 : entry);
    walk->count += kind >= 0;
    return kind != GUEST_DIRECTORY || depth >= walk->depth || push(entry, depth + 1);
}

static long list(void)
{
    struct walk walk = {.depth = request.depth, .visit = list_entry};
    long result = walk_all(&walk, request.path);
    reply.head = (struct guest_reply){.incomplete = walk.cut};
    return result;
}

/* ---- contents ---- */

/* Opens a regular file. Opening a FIFO or a device does not block, and is undone. */
static long open_regular(const char *of, int flags, unsigned mode, uint64_t *ret_size)
{
    struct statx info;
    long fd = SYS(openat, AT_FDCWD, of, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, mode);
    if (fd < 0)
        return fd;
    long result = SYS(statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info);
    if (result == 0 && kind_of(info.stx_mode) != GUEST_FILE)
        result = kind_of(info.stx_mode) == GUEST_DIRECTORY ? -ERR_EISDIR : -ERR_EINVAL;
    if (result < 0) {
        (void)SYS(close, fd);
        return result;
    }
    *ret_size = info.stx_size;
    return fd;
}

static long read_file(void)
{
    uint64_t size = 0, left = request.length;
    long fd = open_regular(request.path, O_RDONLY, 0, &size), got = 0;
    if (fd < 0)
        return fd;
    for (uint64_t at = request.offset; left > 0; at += (uint64_t)got, left -= (uint64_t)got) {
        size_t most = left < sizeof reply.bytes ? (size_t)left : sizeof reply.bytes;
        got = SYS(pread64, fd, reply.bytes, most, at);
        if (got <= 0)
            break;
        reply.head = (struct guest_reply){.type = GUEST_DATA};
        send_reply((size_t)got);
    }
    (void)SYS(close, fd);
    reply.head = (struct guest_reply){.bytes = size};
    return got < 0 ? got : 0;
}

static long write_piece(long fd, const char *bytes, size_t length, uint64_t at, bool appended)
{
    while (length > 0) {
        long done = appended ? SYS(write, fd, bytes, length) : SYS(pwrite64, fd, bytes, length, at);
        if (done == -ERR_EINTR)
            continue;
        if (done <= 0)
            return done;
        bytes += done;
        at += (uint64_t)done;
        length -= (size_t)done;
    }
    return 0;
}

/* The bytes come in any case, and are discarded after an error. */
static long write_file(void)
{
    bool appended = request.flags & GUEST_APPEND;
    int flags = O_WRONLY | O_CREAT | (appended ? O_APPEND : request.offset ? 0 : O_TRUNC);
    uint64_t size = 0, left = request.length, at = request.offset;
    long result = make_directories(request.path, false);
    /* Opened without O_TRUNC first: that would empty a file before its kind is known. */
    long fd = result < 0 ? result
                         : open_regular(request.path, flags & ~O_TRUNC, request.mode & 0777, &size);
    result = fd < 0 ? fd : 0;
    if (fd >= 0 && flags & O_TRUNC)
        result = SYS(ftruncate, fd, 0);
    while (left > 0) {
        long got = receive(piece, sizeof piece);
        if ((uint64_t)got > left)
            got = (long)left;
        if (result == 0)
            result = write_piece(fd, piece, (size_t)got, at, appended);
        left -= (uint64_t)got;
        at += (uint64_t)got;
    }
    if (fd >= 0)
        (void)SYS(close, fd);
    return result;
}

/* ---- removing: empties the deepest directory first; the path never gets too long to go back ---- */

/* Removes what it can of a directory. Returns 1 with the name of a directory that is not empty
 * appended to the path. */
static long empty_directory(long fd)
{
    long got;
    while ((got = SYS(getdents64, fd, listing, sizeof listing)) > 0)
        for (long at = 0; at < got;) {
            const char *name = listing + at + DIRENT_NAME;
            at += *(const unsigned short *)(const void *)(listing + at + 16);
            if (is_same(name, ".") || is_same(name, ".."))
                continue;
            long result = SYS(unlinkat, fd, name, 0);
            if (result < 0 && result != -ERR_ENOENT)
                result = SYS(unlinkat, fd, name, AT_REMOVEDIR);
            if (result == -ERR_ENOTEMPTY)
                return append(path, name) ? 1 : -ERR_ENAMETOOLONG;
            if (result < 0 && result != -ERR_ENOENT)
                return result;
        }
    return got;
}

static long remove_tree(void)
{
    size_t top = length_of(request.path);
    memcpy(path, request.path, top + 1);
    long result = SYS(unlinkat, AT_FDCWD, path, 0);
    if (result != -ERR_EISDIR)
        return result;
    for (;;) {
        long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0)
            return fd;
        result = empty_directory(fd);
        (void)SYS(close, fd);
        if (result < 0)
            return result;
        if (result == 1)
            continue;
        result = SYS(unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
        size_t length = length_of(path);
        if (length <= top || (result < 0 && result != -ERR_ENOTEMPTY))
            return result;
        while (result == 0 && path[length] != '/')
            length--;
        path[length] = 0;
    }
}

/* ---- watching ---- */

static struct {
    int number;
    char path[512]; /* relative to the watched directory; a longer one is not watched */
} watches[GUEST_WATCHES_MAX];
static size_t watch_count;
static long watcher;

/* Returns 0 or an error. */
static long add_watch(const char *directory)
{
    size_t top = length_of(request.path), length = length_of(directory);
    const char *relative = length > top ? directory + top + 1 : "";
    if (watch_count == GUEST_WATCHES_MAX || length_of(relative) >= sizeof watches[0].path)
        return -ERR_ENAMETOOLONG;
    long number = SYS(inotify_add_watch, watcher, directory,
                      IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVE | IN_ATTRIB | IN_MODIFY |
                          IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    if (number < 0)
        return number;
    watches[watch_count].number = (int)number;
    memcpy(watches[watch_count++].path, relative, length_of(relative) + 1);
    return 0;
}

static bool watch_below(struct walk *walk, const char *entry, unsigned char type, unsigned depth)
{
    (void)walk;
    if (type != 4 /* DT_DIR */)
        return true;
    return depth < GUEST_DEPTH_MAX && add_watch(entry) == 0 && push(entry, depth + 1);
}

static void send_event(uint32_t change, const char *directory, const char *name)
{
    static char relative[GUEST_PATH_MAX];
    relative[0] = 0;
    (void)(append(relative, directory) && append(relative, name));
    size_t length = length_of(relative);
    reply.head =
        (struct guest_reply){.type = GUEST_EVENT, .kind = change, .path_length = (uint32_t)length};
    memcpy(reply.bytes, relative, length);
    send_reply(length);
}

static uint32_t change_of(uint32_t mask)
{
    return mask & IN_CREATE                                         ? GUEST_CREATED
           : mask & (IN_CLOSE_WRITE | IN_MODIFY)                    ? GUEST_WRITTEN
           : mask & IN_DELETE                                       ? GUEST_REMOVED
           : mask & IN_MOVE                                         ? GUEST_RENAMED
           : mask & IN_ATTRIB                                       ? GUEST_CHANGED
           : mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF) ? GUEST_LOST
                                                                    : 0;
}

static void handle_event(const struct inotify_event *event)
{
    uint32_t change = change_of(event->mask);
    const char *name = event->len ? event->name : "";
    for (size_t i = 0; i < watch_count; i++) {
        if (watches[i].number != event->wd)
            continue;
        if (change == GUEST_LOST && i > 0)
            return; /* a directory below was removed, which the one above reports */
        if (change)
            send_event(change, watches[i].path, name);
        if (!(request.flags & GUEST_RECURSIVE) || !(event->mask & IN_ISDIR) ||
            !(event->mask & (IN_CREATE | IN_MOVED_TO)))
            return;
        memcpy(path, request.path, length_of(request.path) + 1);
        if (!append(path, watches[i].path) || !append(path, name) || add_watch(path) < 0)
            send_event(GUEST_LOST, watches[i].path, name);
        return;
    }
    if (event->mask & IN_Q_OVERFLOW)
        send_event(GUEST_LOST, "", "");
}

static long watch(void)
{
    watcher = SYS(inotify_init1, IN_CLOEXEC);
    if (watcher < 0)
        return watcher;
    size_t length = length_of(request.path);
    while (length > 1 && request.path[length - 1] == '/')
        request.path[--length] = 0;
    long added = add_watch(request.path);
    if (added < 0)
        return added;
    struct walk walk = {.visit = watch_below};
    if (request.flags & GUEST_RECURSIVE)
        (void)walk_all(&walk, request.path);
    send_event(walk.cut ? GUEST_LOST : 0, "", ""); /* it is being watched from now on */
    for (;;) {
        long got = SYS(read, watcher, piece, sizeof piece);
        if (got < 0 && got != -ERR_EINTR)
            return got;
        for (long at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(piece + at);
            at += (long)(sizeof *event + event->len);
            handle_event(event);
        }
    }
}

/* ---- requests ---- */

static long stat_one(void)
{
    long kind = send_entry(request.path);
    return kind < 0 ? kind : 0;
}

static long move(void)
{
    long result = make_directories(request.target, false);
    return result < 0 ? result
                      : SYS(renameat2, AT_FDCWD, request.path, AT_FDCWD, request.target, 0);
}

static long make(void)
{
    long made = make_directories(request.path, true);
    reply.head.incomplete = made == 0;
    return made < 0 ? made : 0;
}

static void serve(void)
{
    static long (*const operations[GUEST_OPERATIONS_])(void) = {
        [GUEST_READ] = read_file, [GUEST_WRITE] = write_file, [GUEST_REMOVE] = remove_tree,
        [GUEST_LIST] = list,      [GUEST_STAT] = stat_one,    [GUEST_MOVE] = move,
        [GUEST_MAKE] = make,      [GUEST_WATCH] = watch,
    };
    for (;;) {
        long got = receive(&request, sizeof request);
        reply.head = (struct guest_reply){0};
        request.path[GUEST_PATH_MAX - 1] = request.target[GUEST_PATH_MAX - 1] = 0;
        if (got != (long)sizeof request || request.version != GUEST_VERSION ||
            request.operation == 0 || request.operation >= GUEST_OPERATIONS_)
            (void)SYS(exit_group, 2);
        send_done(operations[request.operation]());
    }
}

/* ---- "connect": standard input and output to and from a port of the sandbox ---- */

struct poll_entry {
    int fd;
    short events, got;
};

static long connect_to(unsigned port)
{
    const unsigned char four[16] = {
        FAMILY_4 & 0xff, FAMILY_4 >> 8, port >> 8 & 0xff, port & 0xff, 127, 0, 0, 1};
    const unsigned char six[28] = {
        [0] = FAMILY_6, [2] = port >> 8 & 0xff, [3] = port & 0xff, [23] = 1};
    long fd = SYS(socket, FAMILY_4, 1 /* SOCK_STREAM */, 0);
    if (fd >= 0 && SYS(connect, fd, four, sizeof four) == 0)
        return fd;
    (void)SYS(close, fd);
    fd = SYS(socket, FAMILY_6, 1 /* SOCK_STREAM */, 0);
    return fd >= 0 && SYS(connect, fd, six, sizeof six) == 0 ? fd : -1;
}

static void write_out(const char *bytes, long length)
{
    while (length > 0) {
        long done = SYS(write, 1, bytes, length);
        if (done == -ERR_EINTR)
            continue;
        if (done <= 0)
            (void)SYS(exit_group, 1);
        bytes += done;
        length -= done;
    }
}

/* The end of the input does not end the connection: some servers would not answer then. */
static void relay(const char *text)
{
    unsigned port = 0;
    for (; *text >= '0' && *text <= '9' && port < 65536; text++)
        port = port * 10 + (unsigned)(*text - '0');
    long fd = *text || port == 0 || port > 65535 ? -1 : connect_to(port);
    if (fd < 0)
        (void)SYS(exit_group, GUEST_REFUSED);
    long waiting = 0, sent = 0; /* input that was read, and how much of it was sent */
    for (bool open = true;;) {
        struct poll_entry entries[] = {
            {(int)fd, (short)(POLL_IN | (waiting > sent ? POLL_OUT : 0)), 0},
            {open && waiting == sent ? 0 : -1, POLL_IN, 0},
        };
        if (SYS(ppoll, entries, 2, 0, 0, 8) < 0)
            continue;
        if (entries[1].got) {
            waiting = SYS(read, 0, piece, sizeof piece);
            sent = 0;
            open = waiting > 0 || waiting == -ERR_EINTR;
            waiting = waiting > 0 ? waiting : 0;
        }
        if (entries[0].got & POLL_OUT) {
            long done = SYS(sendto, fd, piece + sent, waiting - sent,
                            0x4040 /* NOSIGNAL, DONTWAIT */, 0, 0);
            sent += done > 0 ? done : 0;
            if (done < 0 && done != -ERR_EAGAIN && done != -ERR_EINTR)
                sent = waiting = open = 0;
        }
        if (entries[0].got & ~POLL_OUT) {
            long got = SYS(read, fd, listing, sizeof listing);
            if (got == 0 || (got < 0 && got != -ERR_EINTR))
                (void)SYS(exit_group, 0);
            write_out(listing, got);
        }
    }
}

static __attribute__((noreturn, used)) void guest_main(const long *stack)
{
    const char *const *argv = (const char *const *)(const void *)(stack + 1);
    if (stack[0] > 1 && is_same(argv[1], "serve"))
        serve();
    if (stack[0] > 2 && is_same(argv[1], "connect"))
        relay(argv[2]);
    int code = 0;
    if (stack[0] > 2 && is_same(argv[1], "send"))
        code = guest_send(argv + 2);
    if (stack[0] > 1 && is_same(argv[1], "receive"))
        code = guest_receive();
    for (;;)
        (void)SYS(exit_group, code);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall "
        "guest_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x30,#0\n\tmov x0,sp\n\tb guest_main\n");
#endif
