/* SPDX-License-Identifier: MIT */
/* The spool: what is appended is read again, in order, also after a crash; damage is noticed. */
#include "server/history/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tap.h"

static char directory[64];

static struct spool *open_spool(void)
{
    struct spool *spool = NULL;
    struct brig_error err = {0};
    if (spool_open(directory, &spool, &err) < 0)
        tap_bail("%s", err.message);
    return spool;
}

static void append_number(struct spool *spool, unsigned number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "record %u", number);
    if (spool_append(spool, text, strlen(text), NULL) < 0)
        tap_fail("append");
}

/* The batches from here on hold the records from `first` to before `end`. */
static bool holds(struct spool *spool, unsigned first, unsigned end, bool release)
{
    unsigned at = first;
    for (;;) {
        struct spool_batch batch;
        if (spool_read(spool, &batch, NULL) < 0)
            return false;
        size_t count = batch.count;
        for (size_t i = 0; i < count; i++, at++) {
            char text[32];
            (void)snprintf(text, sizeof text, "record %u", at);
            if (batch.records[i].length != strlen(text) ||
                memcmp(batch.records[i].bytes, text, strlen(text)) != 0) {
                tap_diag("record %u is '%.*s'", at, (int)batch.records[i].length,
                         batch.records[i].bytes);
                spool_batch_done(&batch);
                return false;
            }
        }
        if (release)
            (void)spool_release(spool, &batch, NULL);
        spool_batch_done(&batch);
        if (count == 0 || !release)
            return at == end;
    }
}

static size_t count_files(const char *suffix)
{
    size_t count = 0;
    autodir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        count += dot && strcmp(dot, suffix) == 0;
    }
    return count;
}

static void wipe(void)
{
    autodir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
}

static int open_last_file(int flags)
{
    char name[300] = "";
    autodir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strstr(entry->d_name, ".spool") && !strstr(entry->d_name, ".damaged") &&
            strcmp(entry->d_name, name) > 0)
            (void)snprintf(name, sizeof name, "%s", entry->d_name);
    return openat(dirfd(dir), name, flags | O_CLOEXEC);
}

static void test_basics(void)
{
    struct spool *spool = open_spool(), *second = NULL;
    struct brig_error err = {0};
    struct stat info;
    tap_is_int(spool_open(directory, &second, &err), BRIG_E_STATE, "nobody else gets it");
    tap_has_str(err.message, "in use by another brigd", "and is told why");
    tap_ok(stat(directory, &info) == 0 && (info.st_mode & 0777) == 0700, "it is its owner's alone");
    char id[40];
    (void)snprintf(id, sizeof id, "%s", spool_server_id(spool));
    tap_ok(holds(spool, 0, 0, true), "a new one is empty");
    for (unsigned i = 0; i < 1000; i++)
        append_number(spool, i);
    tap_is_int(spool_waiting_records(spool), 1000, "a thousand records wait");
    tap_ok(holds(spool, 0, SPOOL_BATCH_MAX, false), "a batch has the oldest");
    tap_ok(holds(spool, 0, SPOOL_BATCH_MAX, false), "which stay until they are released");
    spool_free(spool);
    spool = open_spool();
    tap_is_str(spool_server_id(spool), id, "its id stays");
    tap_is_int(spool_waiting_records(spool), 1000, "all wait in the next process");
    tap_ok(holds(spool, 0, 1000, true), "and are read in order");
    tap_is_int(spool_waiting_bytes(spool), 0, "then nothing waits");
    int fd = open_last_file(O_RDONLY);
    tap_ok(fstat(fd, &info) == 0 && info.st_size == 0, "and the file is empty again");
    (void)close(fd);
    autofree char *large = malloc(SPOOL_RECORD_MAX + 1);
    memset(large, 'x', SPOOL_RECORD_MAX + 1);
    tap_is_int(spool_append(spool, large, SPOOL_RECORD_MAX + 1, NULL), BRIG_E_INVALID,
               "a record that is too long is refused");
    tap_is_int(spool_append(spool, large, SPOOL_RECORD_MAX, NULL), 0, "one just as long is not");
    tap_is_int(spool_append(spool, "", 0, NULL), 0, "nor an empty one");
    struct spool_batch batch;
    tap_ok(spool_read(spool, &batch, NULL) == 0 && batch.count >= 1 &&
               batch.records[0].length == SPOOL_RECORD_MAX,
           "it is read");
    spool_batch_done(&batch);
    spool_free(spool);
    wipe();
}

static void test_segments(void)
{
    struct spool *spool = open_spool();
    autofree char *large = malloc(1 << 20);
    memset(large, 'x', 1 << 20);
    for (int i = 0; i < 50; i++)
        (void)spool_append(spool, large, 1 << 20, NULL);
    tap_is_int(count_files(".spool"), 4, "fifty megabytes are in four files");
    tap_ok(spool_waiting_bytes(spool) > 50 << 20, "and counted");
    size_t count = 0;
    for (;;) {
        struct spool_batch batch;
        if (spool_read(spool, &batch, NULL) < 0 || batch.count == 0)
            break;
        count += batch.count;
        (void)spool_release(spool, &batch, NULL);
        spool_batch_done(&batch);
        append_number(spool, 0);
        if (count > 45)
            break;
    }
    tap_ok(count > 45, "they are read while others are appended");
    tap_ok(count_files(".spool") <= 2, "files that were read are gone");
    spool_free(spool);
    wipe();
}

static void test_torn(void)
{
    for (size_t cut = 1; cut < 24; cut += 3) {
        struct stat info;
        struct spool *spool = open_spool();
        for (unsigned i = 0; i < 10; i++)
            append_number(spool, i);
        spool_free(spool);
        int fd = open_last_file(O_RDWR);
        if (fstat(fd, &info) < 0 || ftruncate(fd, info.st_size - (off_t)cut) < 0)
            tap_bail("truncate");
        (void)close(fd);
        spool = open_spool();
        tap_ok(spool_waiting_records(spool) == 9 && spool_damaged_bytes(spool) > 0,
               "a tail that lacks %zu bytes is cut away", cut);
        append_number(spool, 9);
        tap_ok(holds(spool, 0, 10, true), "and what follows is found");
        spool_free(spool);
        wipe();
    }
}

static void test_damaged(void)
{
    struct spool *spool = open_spool();
    for (unsigned i = 0; i < 10; i++)
        append_number(spool, i);
    int fd = open_last_file(O_RDWR);
    (void)!pwrite(fd, "X", 1, 5 * 24 + SPOOL_HEAD_BYTES + 3);
    (void)close(fd);
    tap_ok(holds(spool, 0, 5, false), "up to the damage all is read");
    struct spool_batch batch;
    (void)spool_read(spool, &batch, NULL);
    (void)spool_release(spool, &batch, NULL);
    spool_batch_done(&batch);
    (void)spool_read(spool, &batch, NULL);
    tap_is_int(batch.count, 0, "then there is nothing");
    spool_batch_done(&batch);
    tap_ok(spool_damaged_bytes(spool) > 0 && count_files(".damaged") == 1,
           "the damage is counted, and the file kept for people");
    append_number(spool, 10);
    tap_ok(holds(spool, 10, 11, true), "what comes later is read");
    spool_free(spool);
    wipe();
}

/* As on a full disk: a file may not grow. */
static void test_full(void)
{
    struct spool *spool = open_spool();
    append_number(spool, 0);
    struct rlimit before, small = {30, 30};
    (void)getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &small);
    struct brig_error err = {0};
    int result = spool_append(spool, "record 1", 8, &err);
    (void)setrlimit(RLIMIT_FSIZE, &before); /* before anything is printed: that may be to a file */
    tap_is_int(result, BRIG_E_SYSTEM, "no room is an error");
    tap_has_str(err.message, "append to the spool", "that says so");
    append_number(spool, 1);
    tap_ok(holds(spool, 0, 2, true), "half a record was not left behind");
    spool_free(spool);
    wipe();
}

/* The child says over a pipe which record is in; then it is killed. */
static void test_killed(void)
{
    unsigned told = 0;
    for (int round = 0; round < 5; round++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            tap_bail("pipe");
        pid_t pid = fork();
        if (pid == 0) {
            struct spool *spool = open_spool();
            for (unsigned i = told;; i++) {
                append_number(spool, i);
                (void)!write(ends[1], &i, sizeof i);
            }
        }
        (void)close(ends[1]);
        unsigned last = 0;
        for (int i = 0; i < 2000 && read(ends[0], &last, sizeof last) == sizeof last; i++)
            continue;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        while (read(ends[0], &last, sizeof last) == sizeof last)
            continue;
        (void)close(ends[0]);
        struct spool *spool = open_spool();
        uint64_t waiting = spool_waiting_records(spool);
        tap_ok(waiting == last + 1 || waiting == last + 2, "killed after record %u, there are %u",
               last, (unsigned)waiting);
        told = (unsigned)waiting;
        spool_free(spool);
    }
    struct spool *spool = open_spool();
    tap_ok(holds(spool, 0, told, true), "all of them are whole and in order");
    spool_free(spool);
    wipe();
}

int main(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/test-spool-XXXXXX");
    if (!mkdtemp(directory))
        tap_bail("no directory");
    test_basics();
    test_segments();
    test_torn();
    test_damaged();
    test_full();
    test_killed();
    wipe();
    (void)rmdir(directory);
    return tap_done();
}
