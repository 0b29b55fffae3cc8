/* SPDX-License-Identifier: MIT */
/* Parts of brigctl that read what others wrote: events, base64, settings, names of files. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"
#include "tap.h"

static int on_event(void *context, const char *event, char *data, size_t length)
{
    struct str *seen = context;
    str_appendf(seen, "%s=%.*s;", event, (int)length, data);
    return strcmp(event, "stop") == 0 ? 5 : 0;
}

/* The same, however the stream is cut into pieces. */
static void check_events(const char *text, const char *wanted, int result)
{
    for (size_t size = 1; size <= strlen(text) + 1; size += size < 8 ? 1 : 37) {
        struct sse sse = {0};
        autostr struct str seen = {0};
        int got = 0;
        for (size_t at = 0; at < strlen(text) && got == 0; at += size) {
            size_t left = strlen(text) - at;
            got = sse_feed(&sse, text + at, left < size ? left : size, on_event, &seen);
        }
        bool same = strcmp(seen.data ? seen.data : "", wanted) == 0 && got == result;
        if (!same || size == 1)
            tap_ok(same, "events in pieces of %zu are %s", size, seen.data ? seen.data : "none");
        sse_done(&sse);
    }
}

static void test_events(void)
{
    check_events("", "", 0);
    check_events("event: stdout\ndata: hello\n\n", "stdout=hello;", 0);
    check_events(": comment\n\nevent: a\ndata: 1\ndata: 2\n\ndata: 3\n\n", "a=1\n2;message=3;", 0);
    check_events("event: a\r\ndata:x\r\n\r\n", "a=x;", 0);
    check_events("event: a\n\ndata\n\n", "message=;", 0);
    check_events("event: stop\ndata: 1\n\ndata: 2\n\n", "stop=1;", 5);
    check_events("data: unfinished", "", 0);
    check_events("id: 3\nretry: 4\nnonsense\ndata: x\n\n", "message=x;", 0);
}

static void test_base64(void)
{
    static const char *const wrong[] = {"A",     "AA",       "AAA",  "A===", "AA=A",
                                        "AAAA=", "AA==AAAA", "A!AA", "====", "AA\nA"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        char text[16];
        size_t length;
        (void)snprintf(text, sizeof text, "%s", wrong[i]);
        tap_ok(!base64_decode(text, strlen(text), text, &length), "'%s' is not base64", wrong[i]);
    }
    unsigned char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    bool same = true;
    for (size_t length = 0; length <= sizeof bytes; length++) {
        autostr struct str text = {0};
        base64_append(&text, bytes, length);
        size_t got = 0;
        same = same && base64_decode(text.data, text.length, text.data, &got) && got == length &&
               memcmp(text.data ? text.data : "", bytes, length) == 0;
    }
    tap_ok(same, "what is encoded is decoded as the same");
}

static void test_settings(void)
{
    struct client_settings settings = {0};
    struct brig_error err = {0};
    tap_is_int(client_settings_read("f", "# x\n\n server = http://a:1 \r\nkey=b=c\ncacert = /c d\n",
                                    &settings, &err),
               0, "a file is read");
    tap_is_str(settings.server, "http://a:1", "with a server");
    tap_is_str(settings.key, "b=c", "and a key");
    tap_is_str(settings.cacert, "/c d", "and a file of certificates");
    tap_is_int(client_settings_read("f", "server = a\nport = 1", &settings, &err), BRIG_E_INVALID,
               "what is not known is refused");
    tap_has_str(err.message, "f:2: 'port'", "by line and name");
    client_settings_done(&settings);
}

static void test_returned(void)
{
    char directory[] = "/tmp/test-client-XXXXXX", path[128];
    if (!mkdtemp(directory) || chdir(directory) < 0)
        tap_bail("no directory");
    (void)snprintf(path, sizeof path, "%s/out", directory);
    tap_is_int(returned_write(path, "a/b/c.txt", "text", 4, NULL), 0, "a file is written");
    tap_ok(access("out/a/b/c.txt", R_OK) == 0, "with its directories");
    static const char *const wrong[] = {"../x", "a/../../x", "/tmp/x", "a//x", ".",
                                        "..",   "",          "a/",     "./x"};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        tap_ok(returned_write(path, wrong[i], "x", 1, NULL) < 0, "'%s' is not written", wrong[i]);
    tap_ok(access("x", F_OK) < 0, "nothing was written beside it");
    (void)!symlink("..", "out/link");
    (void)!symlink("../secret", "out/file");
    tap_ok(returned_write(path, "link/linked", "x", 1, NULL) < 0 && access("linked", F_OK) < 0,
           "a link to a directory is not followed");
    tap_ok(returned_write(path, "file", "x", 1, NULL) < 0 && access("secret", F_OK) < 0,
           "nor one to a file");
    static const char *const files[] = {"out/link", "out/file", "out/a/b/c.txt"};
    static const char *const folders[] = {"out/a/b", "out/a", "out"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        (void)unlink(files[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++)
        (void)rmdir(folders[i]);
    (void)rmdir(directory);
}

int main(void)
{
    test_events();
    test_base64();
    test_settings();
    test_returned();
    return tap_done();
}
