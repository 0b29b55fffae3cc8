/* SPDX-License-Identifier: MIT */
/* Calling a function: its value, its failure, its limits, and what it is refused. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "call_support.h"

static const char *const kinds[] = {"without namespaces", "in the full jail"};

/* ---- Values ------------------------------------------------------------------------------- */

static int changed_by_function = 1;

static int return_text(struct brig_call_child *child, void *argument)
{
    changed_by_function = 2;
    return brig_call_return(child, argument, strlen(argument));
}

static int return_nothing(struct brig_call_child *child, void *argument)
{
    (void)child;
    return *(int *)argument;
}

static int return_twice(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)brig_call_return(child, "first and longer", 16);
    return brig_call_return(child, "last", 4);
}

struct size {
    size_t bytes, shrunk;
    bool in_place;
};

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 12));
}

static int return_size(struct brig_call_child *child, void *argument)
{
    const struct size *size = argument;
    unsigned char *bytes =
        size->in_place ? brig_call_reserve(child, size->bytes) : malloc(size->bytes);
    if (!bytes)
        return -1;
    for (size_t i = 0; i < size->bytes; i++)
        bytes[i] = pattern(i);
    if (size->in_place)
        return size->shrunk ? brig_call_shrink(child, size->shrunk) : 0;
    return brig_call_return(child, bytes, size->bytes);
}

static bool is_pattern(const struct brig_call_result *result, size_t length)
{
    const unsigned char *bytes = result->value;
    if (result->length != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != pattern(i))
            return false;
    return true;
}

static void test_sizes(bool namespaces)
{
    static const struct size sizes[] = {
        {1, 0, false},     {61440, 0, false}, {61441, 0, false},        {5 << 20, 0, false},
        {61440, 0, true},  {61441, 0, true},  {(5 << 20) + 1, 0, true}, {5 << 20, 70000, true},
        {5 << 20, 3, true}};
    struct brig_call_options options = new_options(namespaces);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct brig_call_result result;
        struct size size = sizes[i];
        size_t wanted = size.shrunk ? size.shrunk : size.bytes;
        (void)call(&options, return_size, &size, &result);
        tap_ok(is_pattern(&result, wanted), "%s: %zu bytes come back%s", kinds[namespaces], wanted,
               size.in_place ? ", written in place" : "");
        if (result.value)
            memset(result.value, 0, result.length); /* it is ours to write */
        call_result_done(&result);
    }
}

static void test_values(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    char text[] = "as it was";
    int zero = 0, seven = 7;
    (void)call(&options, return_text, text, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "%s: a function returns", kinds[namespaces]);
    tap_ok(result.length == 9 && memcmp(result.value, text, 9) == 0,
           "%s: its value comes back, made of the caller's memory", kinds[namespaces]);
    tap_is_int(changed_by_function, 1, "%s: what it changes stays its own", kinds[namespaces]);
    call_result_done(&result);

    (void)call(&options, return_nothing, &zero, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "%s: 0 is an empty value", kinds[namespaces]);
    tap_is_int(result.length, 0, "%s: of no bytes", kinds[namespaces]);
    call_result_done(&result);
    (void)call(&options, return_nothing, &seven, &result);
    (void)has_outcome(&result, BRIG_CALL_FAILED, "%s: 7 is a failure", kinds[namespaces]);
    tap_is_str(result.message, "7", "%s: and its message", kinds[namespaces]);
    char line[64];
    (void)brig_call_result_text(&result, line, sizeof line);
    tap_is_str(line, "the function failed: 7", "%s: in words", kinds[namespaces]);
    call_result_done(&result);
    (void)call(&options, return_twice, NULL, &result);
    tap_ok(result.length == 4 && memcmp(result.value, "last", 4) == 0, "%s: the last value counts",
           kinds[namespaces]);
    call_result_done(&result);
    test_sizes(namespaces);
}

static void test_value_limit(void)
{
    struct brig_call_options options = new_options(false);
    options.max_result = 100000;
    for (int i = 0; i < 4; i++) {
        struct size size = {.bytes = i & 1 ? 100001 : 100000, .in_place = i & 2};
        expect(&options, return_size, &size, i & 1 ? BRIG_CALL_OUTPUT : BRIG_CALL_RETURNED,
               "a value of %zu bytes where 100000 are allowed%s", size.bytes,
               size.in_place ? ", in place" : "");
    }
    if (SANITIZED) /* there is no limit of address space then */
        return;
    struct size size = {.bytes = 600 << 20, .in_place = true};
    options.max_result = 0;
    expect(&options, return_size, &size, BRIG_CALL_OUTPUT,
           "without a limit, a value is limited by the memory it lies in");
}

/* ---- Failures ----------------------------------------------------------------------------- */

static int fail_in_words(struct brig_call_child *child, void *argument)
{
    (void)argument;
    return brig_call_fail(child,
                          &(struct brig_call_failure){.size = sizeof(struct brig_call_failure),
                                                      .class_name = "ValueError",
                                                      .message = "no such thing",
                                                      .backtrace = "one\ntwo",
                                                      .sys_errno = EIO});
}

static int fail_at_length(struct brig_call_child *child, void *argument)
{
    (void)argument;
    size_t length = 400000;
    char *text = malloc(length + 1);
    if (!text)
        return 1;
    memset(text, 'x', length);
    text[length] = 0;
    return brig_call_fail(child,
                          &(struct brig_call_failure){.size = sizeof(struct brig_call_failure),
                                                      .class_name = "Long",
                                                      .message = "short",
                                                      .backtrace = text});
}

static void test_failures(void)
{
    struct brig_call_options options = new_options(false);
    struct brig_call_result result;
    char *json = NULL;
    (void)call(&options, fail_in_words, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_FAILED, "a failure of its own is one");
    tap_is_str(result.class_name, "ValueError", "with its class");
    tap_is_str(result.message, "no such thing", "its message");
    tap_is_str(result.backtrace, "one\ntwo", "its backtrace");
    tap_is_int(result.sys_errno, EIO, "and its errno");
    tap_is_int(brig_call_result_json(&result, &json, NULL), 0, "all of it is JSON, too");
    tap_has_str(json, "\"class\":\"ValueError\"", "with the class");
    tap_has_str(json, "\"outcome\":\"failed\"", "and the outcome");
    brig_text_free(json);
    call_result_done(&result);

    (void)call(&options, fail_at_length, NULL, &result);
    tap_is_str(result.message, "short", "where words are too many, the short ones are whole");
    tap_is_int(result.backtrace ? strlen(result.backtrace) : 0, BRIG_CALL_TEXT_MAX - 9,
               "and the backtrace is cut");
    call_result_done(&result);
}

/* ---- Time --------------------------------------------------------------------------------- */

static int spin(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    for (volatile unsigned i = 0;; i = i + 1)
        ;
    return 0;
}

static int sleep_forever(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    for (;;)
        (void)pause();
    return 0;
}

/* Two children burn, and their parent sleeps: no process alone is over its limit soon. */
static int spin_in_children(struct brig_call_child *child, void *argument)
{
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            (void)spin(child, argument);
    return sleep_forever(child, argument);
}

static int ignore_term(struct brig_call_child *child, void *argument)
{
    (void)signal(SIGTERM, SIG_IGN);
    return sleep_forever(child, argument);
}

static struct brig_call_child *term_child;

static void on_term(int signal)
{
    (void)signal;
    (void)brig_call_return(term_child, "bye", 3);
    brig_call_leave(term_child);
}

static int obey_term(struct brig_call_child *child, void *argument)
{
    term_child = child;
    (void)signal(SIGTERM, on_term);
    return sleep_forever(child, argument);
}

static void test_time(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    options.timeout_ms = 300;
    options.cpu_timeout_ms = 60000;
    expect(&options, spin, NULL, BRIG_CALL_TIMEOUT, "%s: an endless loop is ended",
           kinds[namespaces]);
    expect(&options, sleep_forever, NULL, BRIG_CALL_TIMEOUT, "%s: so is endless sleep",
           kinds[namespaces]);
    options.timeout_ms = (unsigned)await_ms();
    options.cpu_timeout_ms = 200;
    expect(&options, spin, NULL, BRIG_CALL_CPU_TIMEOUT, "%s: CPU time is another limit",
           kinds[namespaces]);
    expect(&options, spin_in_children, NULL, BRIG_CALL_CPU_TIMEOUT, "%s: that of all its processes",
           kinds[namespaces]);
    options.timeout_ms = 200;
    options.cpu_timeout_ms = 0;
    options.grace_ms = 300;
    expect(&options, ignore_term, NULL, BRIG_CALL_TIMEOUT, "%s: grace ends, too",
           kinds[namespaces]);
    options.grace_ms = (unsigned)await_ms();
    bool returned = false; /* on a slow machine the time is over before the handler is installed */
    for (; !returned && options.timeout_ms <= (unsigned)await_ms(); options.timeout_ms *= 2) {
        (void)call(&options, obey_term, NULL, &result);
        returned = result.outcome == BRIG_CALL_RETURNED && result.length == 3;
        call_result_done(&result);
    }
    tap_ok(returned, "%s: a function that uses the grace to return has returned",
           kinds[namespaces]);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static int take_memory(struct brig_call_child *child, void *argument)
{
    size_t bytes = *(size_t *)argument;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return brig_call_fail_errno(child, errno, NULL, BRIG_CALL_ACCESS_UNKNOWN);
    for (size_t i = 0; i < bytes; i += 4096)
        memory[i] = 1;
    return brig_call_return(child, memory, 1);
}

static int reserve_memory(struct brig_call_child *child, void *argument)
{
    size_t bytes = *(size_t *)argument;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? brig_call_fail_errno(child, errno, NULL, 0)
                                : brig_call_return(child, "ok", 2);
}

/* As an interpreter ends that has no memory for an exception. */
static int use_up_and_exit(struct brig_call_child *child, void *argument)
{
    size_t bytes = *(size_t *)argument;
    (void)child;
    for (size_t size = bytes; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
               MAP_FAILED)
            if (bytes < (size_t)1 << 20)
                break;
    exit(1);
}

static void test_memory(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    size_t huge = (size_t)10 << 30, small = (size_t)20 << 20;
    if (SANITIZED) /* there is no limit of address space then */
        return;
    options.memory_mb = 128;
    expect(&options, take_memory, &huge, BRIG_CALL_MEMORY, "%s: 10 GB are too much",
           kinds[namespaces]);
    expect(&options, take_memory, &small, BRIG_CALL_RETURNED, "%s: 20 MB are not",
           kinds[namespaces]);
    size_t all = (size_t)64 << 20, little = 65536;
    expect(&options, use_up_and_exit, &all, BRIG_CALL_MEMORY,
           "%s: who exits with an error because all is used up ran out of memory",
           kinds[namespaces]);
    expect(&options, use_up_and_exit, &little, BRIG_CALL_EXITED,
           "%s: who does so with memory left has exited", kinds[namespaces]);
    void *own = mmap(NULL, huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    tap_ok(own != MAP_FAILED, "%s: the program maps 10 GB", kinds[namespaces]);
    expect(&options, take_memory, &small, BRIG_CALL_RETURNED,
           "%s: what the program has mapped itself does not count", kinds[namespaces]);
    expect(&options, reserve_memory, &huge, BRIG_CALL_MEMORY,
           "%s: as much again is too much for the function", kinds[namespaces]);
    (void)munmap(own, huge);
    options.memory_mb = 0;
    expect(&options, reserve_memory, &huge, BRIG_CALL_RETURNED, "%s: without a limit there is none",
           kinds[namespaces]);
}

static void test_resident_memory(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    struct brig_error err = {0};
    size_t huge = (size_t)10 << 30, much = (size_t)200 << 20, small = (size_t)20 << 20;
    options.memory_mb = 64;
    options.memory = BRIG_MEMORY_RSS;
    int code = call_run(NULL, &options, take_memory, &much, &result, &err);
    if (code == BRIG_E_UNSUPPORTED) {
        (void)has_outcome(&result, BRIG_CALL_UNSUPPORTED,
                          "%s: where there is no cgroup, resident memory is not promised",
                          kinds[namespaces]);
        call_result_done(&result);
        return;
    }
    (void)has_outcome(&result, BRIG_CALL_MEMORY, "%s: 200 MB in 64 MB of resident memory",
                      kinds[namespaces]);
    tap_ok(result.usage.oom_kills > 0, "%s: the kernel counted it", kinds[namespaces]);
    call_result_done(&result);
    expect(&options, take_memory, &small, BRIG_CALL_RETURNED, "%s: 20 MB fit in",
           kinds[namespaces]);
    if (!SANITIZED)
        expect(&options, reserve_memory, &huge, BRIG_CALL_RETURNED,
               "%s: address space is no resident memory", kinds[namespaces]);
}

/* ---- The filesystem ----------------------------------------------------------------------- */

struct attempt {
    const char *path;
    int flags;
};

static int open_path(struct brig_call_child *child, void *argument)
{
    const struct attempt *attempt = argument;
    bool write = (attempt->flags & O_ACCMODE) != O_RDONLY;
    int fd = open(attempt->path, attempt->flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return brig_call_fail_errno(child, errno, attempt->path,
                                    write ? BRIG_CALL_ACCESS_WRITE : BRIG_CALL_ACCESS_READ);
    return brig_call_return(child, "ok", 2);
}

static int open_unknown(struct brig_call_child *child, void *argument)
{
    const struct attempt *attempt = argument;
    int fd = open(attempt->path, attempt->flags | O_CLOEXEC, 0600);
    return fd < 0 ? brig_call_fail_errno(child, errno, attempt->path, BRIG_CALL_ACCESS_UNKNOWN)
                  : brig_call_return(child, "ok", 2);
}

static char place[64]; /* a directory of our own, with: */
static char granted[96], file[96], other[96], locked[96], link_out[96], shut[96], in_shut[128];

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || fchmod(fd, mode) < 0)
        tap_bail("cannot make %s", path);
    (void)close(fd);
}

static void make_place(void)
{
    const char *base = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
    (void)snprintf(place, sizeof place, "%s/brig-call.XXXXXX", base);
    if (!mkdtemp(place) || chmod(place, 0755) < 0)
        tap_bail("mkdtemp");
    (void)snprintf(granted, sizeof granted, "%s/granted", place);
    (void)snprintf(file, sizeof file, "%s/file", granted);
    (void)snprintf(other, sizeof other, "%s/other", place);
    (void)snprintf(locked, sizeof locked, "%s/locked", granted);
    (void)snprintf(link_out, sizeof link_out, "%s/link", granted);
    if (mkdir(granted, 0777) < 0 || chmod(granted, 0777) < 0 || symlink(other, link_out) < 0)
        tap_bail("mkdir");
    make_file(file, 0666);
    make_file(other, 0666);
    make_file(locked, 0);
    (void)snprintf(shut, sizeof shut, "%s/shut", place);
    (void)snprintf(in_shut, sizeof in_shut, "%s/file", shut);
    if (mkdir(shut, 0700) < 0)
        tap_bail("mkdir");
    make_file(in_shut, 0);
    if (chmod(shut, 0) < 0)
        tap_bail("chmod");
}

static void remove_place(void)
{
    (void)chmod(shut, 0700);
    (void)unlink(in_shut);
    (void)rmdir(shut);
    (void)unlink(link_out);
    (void)unlink(locked);
    (void)unlink(other);
    (void)unlink(file);
    (void)rmdir(granted);
    (void)rmdir(place);
}

static void is_denied(const struct brig_call_options *options, brig_call_fn fn, const char *path,
                      int flags, enum brig_call_access access, const char *sentence)
{
    struct brig_call_result result;
    struct attempt attempt = {path, flags};
    (void)call(options, fn, &attempt, &result);
    if (has_outcome(&result, BRIG_CALL_FILESYSTEM, "%s", sentence)) {
        tap_is_str(result.denial ? result.denial->subject : NULL, path, "… which path is told");
        tap_is_int(result.denial ? result.denial->access : 0, access, "… and which access");
    }
    call_result_done(&result);
}

static void test_filesystem(void)
{
    const char *paths[] = {granted};
    struct brig_call_options options = new_options(false);
    struct attempt attempt = {file, O_RDONLY}, passwd = {"/etc/passwd", O_RDONLY};
    struct attempt system = {"/usr/bin/env", O_RDONLY}, null = {"/dev/null", O_RDWR};
    is_denied(&options, open_path, "/etc/passwd", O_RDONLY, BRIG_CALL_ACCESS_READ,
              "/etc/passwd is not for reading");
    is_denied(&options, open_path, file, O_RDONLY, BRIG_CALL_ACCESS_READ, "nor is a file");
    is_denied(&options, open_path, file, O_WRONLY, BRIG_CALL_ACCESS_WRITE, "or writing");
    is_denied(&options, open_unknown, file, O_RDONLY, BRIG_CALL_ACCESS_READ,
              "if it does not know what it did");
    is_denied(&options, open_path, "/etc/shadow", O_RDONLY, BRIG_CALL_ACCESS_READ,
              "a path that is not granted, whatever its mode and whoever asks");
    is_denied(&options, open_unknown, in_shut, O_RDONLY, BRIG_CALL_ACCESS_READ,
              "also in a directory that the caller may not enter");
    expect(&options, open_path, &system, BRIG_CALL_RETURNED, "the system can be read");
    expect(&options, open_path, &null, BRIG_CALL_RETURNED, "/dev/null can be used");

    options.fs_read_allow = paths;
    options.fs_read_allow_count = 1;
    expect(&options, open_path, &attempt, BRIG_CALL_RETURNED, "fs_read_allow lets it read");
    is_denied(&options, open_path, file, O_WRONLY, BRIG_CALL_ACCESS_WRITE, "but not write");
    is_denied(&options, open_unknown, file, O_WRONLY, BRIG_CALL_ACCESS_WRITE,
              "which it cannot have meant by reading");
    is_denied(&options, open_path, link_out, O_RDONLY, BRIG_CALL_ACCESS_READ,
              "a link in it leads nowhere");

    options = new_options(false);
    options.fs_allow = paths;
    options.fs_allow_count = 1;
    attempt.flags = O_RDWR;
    expect(&options, open_path, &attempt, BRIG_CALL_RETURNED, "fs_allow lets it write");
    is_denied(&options, open_path, other, O_WRONLY, BRIG_CALL_ACCESS_WRITE, "not beside it");
    attempt = (struct attempt){locked, O_WRONLY};
    expect(&options, open_path, &attempt, BRIG_CALL_FAILED,
           "what ordinary permissions refuse of a granted path is not the jail's doing");
    attempt = (struct attempt){"/nowhere/at/all", O_RDONLY};
    expect(&options, open_path, &attempt, BRIG_CALL_FAILED, "nor what does not exist");
    paths[0] = "/etc/passwd";
    options.fs_read_allow = paths;
    options.fs_read_allow_count = 1;
    options.fs_allow_count = 0;
    expect(&options, open_path, &passwd, BRIG_CALL_RETURNED, "a single file can be granted");
}

static void test_full_filesystem(void)
{
    const char *paths[] = {granted};
    struct brig_call_options options = new_options(true);
    struct attempt attempt = {file, O_RDWR};
    is_denied(&options, open_path, file, O_RDONLY, BRIG_CALL_ACCESS_READ,
              "in the full jail, what is not granted does not exist");
    options.fs_allow = paths;
    options.fs_allow_count = 1;
    expect(&options, open_path, &attempt, BRIG_CALL_RETURNED, "in the full jail, fs_allow works");
    is_denied(&options, open_path, other, O_RDONLY, BRIG_CALL_ACCESS_READ,
              "in the full jail, nothing is beside it");
}

static void test_bad_paths(void)
{
    const char *paths[] = {"/no/such/place"};
    struct brig_call_options options = new_options(false);
    struct brig_call_result result;
    struct brig_error err = {0};
    int zero = 0;
    options.fs_allow = paths;
    options.fs_allow_count = 1;
    tap_is_int(call_run(NULL, &options, return_nothing, &zero, &result, &err), BRIG_E_INVALID,
               "a path that does not exist cannot be granted");
    tap_has_str(err.message, "/no/such/place", "the message names it");
    (void)has_outcome(&result, BRIG_CALL_SETUP_FAILED, "and nothing ran");
    call_result_done(&result);
    paths[0] = "relative";
    tap_is_int(call_run(NULL, &options, return_nothing, &zero, &result, &err), BRIG_E_INVALID,
               "nor can a relative one");
    call_result_done(&result);
    tap_is_int(call_run(NULL, NULL, NULL, NULL, &result, &err), BRIG_E_INVALID,
               "nor is there a call without a function");
    call_result_done(&result);
}

/* ---- Network and system calls ------------------------------------------------------------- */

static int connect_to(struct brig_call_child *child, void *argument)
{
    const struct sockaddr_in *address = argument;
    char text[64];
    (void)snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(address->sin_port));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) < 0)
        return brig_call_fail_errno(child, errno, text, BRIG_CALL_ACCESS_CONNECT);
    return brig_call_return(child, "ok", 2);
}

static void test_network(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 8) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        tap_bail("cannot listen");
    expect(&options, connect_to, &address, BRIG_CALL_RETURNED,
           "%s: the network is the caller's unless said", kinds[namespaces]);
    options.network = BRIG_NET_NONE;
    struct brig_call_result result;
    (void)call(&options, connect_to, &address, &result);
    if (has_outcome(&result, BRIG_CALL_NETWORK, "%s: or none", kinds[namespaces]))
        tap_has_str(result.denial->subject, "127.0.0.1:", "%s: the address is told",
                    kinds[namespaces]);
    call_result_done(&result);
    (void)close(listener);
}

/* ---- UNIX sockets of the host ---- */

enum { BY_STREAM = 1, BY_DATAGRAM = 2, BY_PAIR = 4, BY_RAW_PAIR = 8, STREAM_PAIR = 16 };

struct unix_places {
    struct sockaddr_un stream, datagram;
};

static bool sends_from(int fd, const struct unix_places *places)
{
    return fd >= 0 && sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&places->datagram,
                             sizeof places->datagram) == 1;
}

static bool pair_sends(int type, const struct unix_places *places)
{
    int pair[2];
    return socketpair(AF_UNIX, type, 0, pair) == 0 && sends_from(pair[0], places);
}

/* Tries all ways to another process's socket; the value has a bit for each that worked. */
static int reach_sockets(struct brig_call_child *child, void *argument)
{
    const struct unix_places *places = argument;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    unsigned char reached = 0;
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&places->stream, sizeof places->stream) == 0)
        reached |= BY_STREAM;
    if (sends_from(socket(AF_UNIX, SOCK_DGRAM, 0), places))
        reached |= BY_DATAGRAM;
    if (pair_sends(SOCK_DGRAM, places))
        reached |= BY_PAIR;
    if (pair_sends(SOCK_RAW, places))
        reached |= BY_RAW_PAIR;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "x", 1) == 1)
        reached |= STREAM_PAIR;
    return brig_call_return(child, &reached, 1);
}

static int listen_at(struct sockaddr_un *address, int type, const char *directory, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", directory, name);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) < 0 ||
        (type == SOCK_STREAM && listen(fd, 8) < 0))
        tap_bail("cannot listen at %s", address->sun_path);
    return fd;
}

static int reached(const struct brig_call_options *options, struct unix_places *places)
{
    struct brig_call_result result;
    (void)call(options, reach_sockets, places, &result);
    int bits = result.outcome == BRIG_CALL_RETURNED && result.length == 1
                   ? *(const unsigned char *)result.value
                   : -1;
    call_result_done(&result);
    return bits;
}

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)argument;
    return brig_call_return(child, "", 0);
}

static int make_unix_socket(struct brig_call_child *child, void *argument)
{
    (void)argument;
    if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
        return brig_call_return(child, "", 0);
    return brig_call_fail(child,
                          &(struct brig_call_failure){.size = sizeof(struct brig_call_failure),
                                                      .syscall = "socket",
                                                      .sys_errno = errno});
}

/* The same check holds for a descriptor that is added after the options. */
static void test_kept_later(struct brig_call_options options, int connected, int loose)
{
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int allowed = 0; allowed < 2; allowed++) {
        struct brig_caller *caller = NULL;
        struct brig_call *begun = NULL;
        struct brig_error err = {0};
        options.unix_sockets = allowed;
        if (brig_caller_new(NULL, &options, &caller, &err) < 0 ||
            brig_call_begin(caller, &begun, &err) < 0)
            tap_bail("brig_call_begin: %s", err.message);
        tap_is_int(brig_call_keep_fd(begun, connected, NULL), 0,
                   "a connected stream can be kept later");
        tap_is_int(brig_call_keep_fd(begun, directory, NULL), BRIG_E_INVALID, "a directory cannot");
        tap_is_int(brig_call_keep_fd(begun, loose, NULL), allowed ? 0 : BRIG_E_INVALID,
                   "a UNIX datagram socket can%s", allowed ? " with unix_sockets" : "not");
        (void)brig_call_started(begun, -1, NULL);
        brig_call_free(begun);
        brig_caller_free(caller);
    }
    (void)close(directory);
}

/* One that can be connected elsewhere is not handed in where none can be made. */
static void test_kept_sockets(struct brig_call_options options)
{
    int pair[2], loose = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int datagrams = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (loose < 0 || datagrams < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        tap_bail("no sockets");
    options.keep_fd_count = 1;
    options.keep_fds = &pair[0];
    expect(&options, do_nothing, NULL, BRIG_CALL_RETURNED, "a connected stream can be kept");
    const int *const refused[] = {&loose, &datagrams};
    for (int i = 0; i < 2; i++) {
        struct brig_call_result result;
        struct brig_error err = {0};
        options.keep_fds = refused[i];
        tap_is_int(call_run(NULL, &options, do_nothing, NULL, &result, &err), BRIG_E_INVALID,
                   "a UNIX socket that is not connected for good cannot");
        tap_has_str(err.message, "unix_sockets", "the message names the option");
        call_result_done(&result);
        options.unix_sockets = 1;
        expect(&options, do_nothing, NULL, BRIG_CALL_RETURNED, "with it, it can");
        options.unix_sockets = 0;
    }
    options.keep_fd_count = 0;
    test_kept_later(options, pair[0], datagrams);
    (void)close(loose);
    (void)close(datagrams);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void test_unix_sockets(void)
{
    const int all = BY_STREAM | BY_DATAGRAM | BY_PAIR | BY_RAW_PAIR | STREAM_PAIR;
    char directory[] = "/tmp/test_call.XXXXXX";
    struct unix_places places;
    if (!mkdtemp(directory))
        tap_bail("mkdtemp");
    int stream = listen_at(&places.stream, SOCK_STREAM, directory, "stream");
    int datagram = listen_at(&places.datagram, SOCK_DGRAM, directory, "datagram");
    struct brig_call_options options = new_options(false);
    const char *const writable[] = {directory};
    options.fs_allow = writable; /* so that Landlock is no reason from ABI 9 on */
    options.fs_allow_count = 1;
    tap_is_int(reached(&options, &places), STREAM_PAIR,
               "sockets of the host are not reached with its network, either");
    expect(&options, make_unix_socket, NULL, BRIG_CALL_SYSCALL, "which is not blamed");
    options.unix_sockets = 1;
    tap_is_int(reached(&options, &places), all, "unless they are asked for");
    options.unix_sockets = 0;
    options.network = BRIG_NET_NONE;
    tap_is_int(reached(&options, &places), STREAM_PAIR,
               "without a network none is, but a stream of its own works");
    expect(&options, make_unix_socket, NULL, BRIG_CALL_NETWORK, "the missing network is blamed");
    test_kept_sockets(options);
    options.unix_sockets = 1;
    tap_is_int(reached(&options, &places), all, "they are reached where that is asked for");
    expect(&options, make_unix_socket, NULL, BRIG_CALL_RETURNED, "and can be made");
    (void)close(stream);
    (void)close(datagram);
    (void)unlink(places.stream.sun_path);
    (void)unlink(places.datagram.sun_path);
    (void)rmdir(directory);
}

static int trace_itself(struct brig_call_child *child, void *argument)
{
    bool tell = *(bool *)argument;
    long result = ptrace(PTRACE_TRACEME, 0, 0, 0);
    if (result == 0)
        return brig_call_return(child, "ok", 2);
    return brig_call_fail(child,
                          &(struct brig_call_failure){.size = sizeof(struct brig_call_failure),
                                                      .syscall = tell ? "ptrace" : NULL,
                                                      .sys_errno = errno});
}

static int mount_quietly(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL);
    (void)syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL);
    (void)syscall(SYS_reboot, 0, 0, 0, NULL);
    (void)syscall(SYS_getpid);
    return brig_call_return(child, "done", 4);
}

static void test_syscalls(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    bool tell = true;
    (void)call(&options, trace_itself, &tell, &result);
    if (has_outcome(&result, BRIG_CALL_SYSCALL, "%s: a refused system call", kinds[namespaces]))
        tap_is_str(result.denial->subject, "ptrace", "%s: is told by name", kinds[namespaces]);
    call_result_done(&result);
    tell = false;
    expect(&options, trace_itself, &tell, BRIG_CALL_FAILED,
           "%s: what it does not name is not guessed", kinds[namespaces]);
    options.trace = 1;
    (void)call(&options, trace_itself, &tell, &result);
    if (has_outcome(&result, BRIG_CALL_SYSCALL, "%s: with tracing it is seen", kinds[namespaces]))
        tap_is_str(result.denial->subject, "ptrace", "%s: by name", kinds[namespaces]);
    call_result_done(&result);
    (void)call(&options, mount_quietly, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "%s: who does not mind returns",
                      kinds[namespaces]);
    tap_is_int(result.denial_count, 2, "%s: each refused call is listed once", kinds[namespaces]);
    if (result.denial_count == 2) {
        tap_is_str(result.denials[0].subject, "mount", "%s: mount", kinds[namespaces]);
        tap_is_str(result.denials[1].subject, "reboot", "%s: reboot", kinds[namespaces]);
    }
    call_result_done(&result);
}

/* ---- Streams and descriptors -------------------------------------------------------------- */

static int print(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)printf("%s", (const char *)argument);
    (void)fprintf(stderr, "and errors");
    return 0;
}

static int flood(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    for (;;)
        (void)printf("more and more\n");
    return 0;
}

static void test_capture(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    char text[] = "printed";
    options.stdio[1] = options.stdio[2] = BRIG_STDIO_CAPTURE;
    (void)call(&options, print, text, &result);
    tap_is_str(result.out.data, "printed", "%s: output is captured", kinds[namespaces]);
    tap_is_str(result.err.data, "and errors", "%s: errors are, too", kinds[namespaces]);
    call_result_done(&result);
    options.max_output = 1000;
    (void)call(&options, flood, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_OUTPUT, "%s: too much of it ends the call",
                      kinds[namespaces]);
    tap_is_int(result.out.length, 1000, "%s: what was allowed is there", kinds[namespaces]);
    call_result_done(&result);
}

struct fds {
    int kept, closed;
};

static int look_at_fds(struct brig_call_child *child, void *argument)
{
    const struct fds *fds = argument;
    if (fcntl(fds->closed, F_GETFD) >= 0)
        return 1;
    if (write(fds->kept, "hello", 5) != 5)
        return 2;
    char byte;
    return read(0, &byte, 1) == 0 ? brig_call_return(child, "ok", 2) : 3;
}

static void test_descriptors(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    int kept[2], closed[2];
    char text[8] = "";
    if (pipe2(kept, O_CLOEXEC) < 0 || pipe2(closed, O_CLOEXEC) < 0)
        tap_bail("pipe2");
    struct fds fds = {.kept = kept[1], .closed = closed[1]};
    options.keep_fds = &kept[1];
    options.keep_fd_count = 1;
    expect(&options, look_at_fds, &fds, BRIG_CALL_RETURNED,
           "%s: fds are closed but for those that are kept", kinds[namespaces]);
    tap_ok(read(kept[0], text, sizeof text - 1) == 5 && strcmp(text, "hello") == 0,
           "%s: which work", kinds[namespaces]);
    for (int i = 0; i < 2; i++) {
        (void)close(kept[i]);
        (void)close(closed[i]);
    }
}

static void test_options(void)
{
    struct brig_call_options options = new_options(false);
    struct brig_caller *caller = NULL;
    struct brig_error err = {0};
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    options.keep_fds = &directory;
    options.keep_fd_count = 1;
    tap_is_int(brig_caller_new(NULL, &options, &caller, &err), BRIG_E_INVALID,
               "a directory is not kept open");
    (void)close(directory);
    options = new_options(false);
    options.size = 8;
    tap_is_int(brig_caller_new(NULL, &options, &caller, &err), BRIG_E_INVALID,
               "options of another size are refused");
    options = new_options(false);
    options.stdio[0] = BRIG_STDIO_CAPTURE;
    tap_is_int(brig_caller_new(NULL, &options, &caller, &err), BRIG_E_INVALID,
               "standard input is not captured");
    tap_ok(brig_caller_new(NULL, NULL, &caller, &err) == 0, "the defaults are fine");
    tap_ok(brig_caller_unenforced_count(caller) > 0 && brig_caller_unenforced(caller, 0),
           "what they do not enforce is listed");
    tap_ok(!brig_caller_unenforced(caller, brig_caller_unenforced_count(caller)), "to its end");
    brig_caller_free(caller);
    brig_caller_free(NULL);
}

static int set_wall(struct brig_policy *policy, int wall_ms)
{
    return brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)wall_ms, NULL);
}

static void test_policy(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_call_options options = new_options(false);
    struct brig_call_result result;
    struct brig_error err = {0};
    char text[] = "by a policy";
    if (!policy || set_wall(policy, await_ms()) < 0)
        tap_bail("brig_policy_new");
    brig_call_options_init(&options, sizeof options);
    if (SANITIZED)
        options.memory_mb = 0;
    tap_ok(call_run(policy, &options, return_text, text, &result, &err) == 0 &&
               result.outcome == BRIG_CALL_RETURNED,
           "a policy of one's own has the full jail: %s", err.message);
    call_result_done(&result);
    (void)set_wall(policy, 300);
    (void)call_run(policy, &options, sleep_forever, NULL, &result, &err);
    (void)has_outcome(&result, BRIG_CALL_TIMEOUT, "an option at its default leaves its limits");
    call_result_done(&result);
    (void)set_wall(policy, await_ms());
    (void)brig_policy_disable(policy, BRIG_LAYER_NAMESPACES, NULL);
    (void)brig_policy_view(policy, BRIG_VIEW_HOST, NULL, NULL);
    struct attempt passwd = {"/etc/passwd", O_RDONLY};
    (void)call_run(policy, &options, open_path, &passwd, &result, &err);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "what its view shows can be read");
    call_result_done(&result);
    brig_policy_free(policy);
}

int main(void)
{
    make_place();
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        test_values(namespaces);
        test_time(namespaces);
        test_memory(namespaces);
        test_resident_memory(namespaces);
        test_network(namespaces);
        test_syscalls(namespaces);
        test_capture(namespaces);
        test_descriptors(namespaces);
    }
    test_unix_sockets();
    test_value_limit();
    test_failures();
    test_filesystem();
    test_full_filesystem();
    test_bad_paths();
    test_options();
    test_policy();
    remove_place();
    return tap_done();
}
