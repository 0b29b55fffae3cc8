/* SPDX-License-Identifier: MIT */
/* SQLite as the spool of PostgreSQL: rows wait in it until they are released, also after a crash; damage is
 * noticed, and the file kept. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "server/history/store.h"
#include "tap.h"

#define FIRST_NS INT64_C(1700000000000000000)

static char directory[64];
static struct store *spool;
static struct row rows[SPOOL_BATCH_MAX];

static void open_spool(void)
{
    struct brig_error err = {0};
    if (spool_open(directory, &spool, &err) < 0)
        tap_bail("%s", err.message);
}

static void wipe(void)
{
    autodir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
}

static void close_and_wipe(void)
{
    store_close(spool);
    wipe();
}

static const char *id_of(unsigned number)
{
    static char id[EXECUTION_ID_LENGTH + 1];
    (void)snprintf(id, sizeof id, "%08x-0000-4000-8000-000000000000", number);
    return id;
}

static int apply(struct row *row, struct brig_error *err)
{
    int result = store_apply(spool, row, 1, err);
    row_done(row);
    return result;
}

static int try_begin(unsigned number, struct execution_bytes code, struct brig_error *err)
{
    struct row row;
    const struct row_keep keep = {KEEP_FULL, KEEP_FULL};
    const struct execution_request request = {.id = id_of(number),
                                              .request_id = "r",
                                              .client = "c",
                                              .domain = "",
                                              .language = "python",
                                              .code = code};
    if (row_from_request(ROW_BEGIN, &request, keep, store_server_id(spool), FIRST_NS + number, &row,
                         NULL) < 0)
        tap_bail("row");
    return apply(&row, err);
}

static void begin(unsigned number)
{
    if (try_begin(number, (struct execution_bytes){"print(1)", 8}, NULL) < 0)
        tap_fail("begin %u", number);
}

static void end(unsigned number)
{
    struct row row;
    const struct row_keep keep = {KEEP_FULL, KEEP_FULL};
    const struct execution_result result = {.id = id_of(number),
                                            .status = EXECUTION_OK,
                                            .output = {"out", 3},
                                            .error_output = {"", 0},
                                            .message = "",
                                            .started_ns = FIRST_NS};
    if (row_from_result(&result, keep, store_server_id(spool), FIRST_NS + number, &row, NULL) < 0 ||
        apply(&row, NULL) < 0)
        tap_fail("end %u", number);
}

static int read_rows(void)
{
    uint64_t sequence = 0;
    return spool_read(spool, rows, &sequence, NULL);
}

static void drop_rows(int count)
{
    for (int i = 0; i < count; i++)
        row_done(&rows[i]);
}

/* The next batch holds the rows from `first` to before `last`, in order. */
static bool holds(unsigned first, unsigned last, bool release)
{
    int count = read_rows();
    unsigned at = first;
    for (int i = 0; i < count && strcmp(rows[i].id, id_of(at)) == 0; i++)
        at++;
    if (count > 0 && release && spool_release(spool, rows, (size_t)count, NULL) < 0)
        tap_fail("release");
    drop_rows(count);
    return at == last && count == (int)(last - first);
}

/* What waits of one row, as its kind and status. */
static const char *waits_as(void)
{
    static const char *const kinds[] = {
        [ROW_BEGIN] = "begin", [ROW_END] = "end", [ROW_BLOCKED] = "blocked", [ROW_WHOLE] = "whole"};
    static char text[64];
    int count = read_rows();
    if (count != 1)
        (void)snprintf(text, sizeof text, "%d rows", count);
    else
        (void)snprintf(text, sizeof text, "%s %s", kinds[rows[0].kind], rows[0].status);
    if (count > 0 && spool_release(spool, rows, (size_t)count, NULL) < 0)
        tap_fail("release");
    drop_rows(count);
    return text;
}

static void test_basics(void)
{
    struct store *second = NULL;
    struct brig_error err = {0};
    struct stat info;
    char id[EXECUTION_ID_LENGTH + 1];
    (void)rmdir(directory);
    open_spool();
    tap_is_int(spool_open(directory, &second, &err), BRIG_E_STATE, "nobody else gets it");
    tap_has_str(err.message, "Give this one its own database.spool_dir", "and is told why");
    tap_ok(stat(directory, &info) == 0 && (info.st_mode & 0777) == 0700, "it is its owner's alone");
    tap_ok(holds(0, 0, true) && spool->sequence == 0, "a new one is empty");
    uint64_t empty = spool_bytes(spool);
    (void)snprintf(id, sizeof id, "%s", store_server_id(spool));
    for (unsigned i = 0; i < 1000; i++)
        end(i);
    tap_is_int(spool_count(spool), 1000, "a thousand rows wait");
    tap_ok(spool_bytes(spool) > empty, "and take room");
    tap_ok(holds(0, SPOOL_BATCH_MAX, false), "a batch has the oldest");
    tap_ok(holds(0, SPOOL_BATCH_MAX, false), "which stay until they are released");
    store_close(spool);
    open_spool();
    tap_is_str(store_server_id(spool), id, "its id stays");
    tap_is_int(spool_count(spool), 1000, "all wait in the next process");
    tap_ok(holds(0, 256, true) && holds(256, 512, true) && holds(512, 768, true) &&
               holds(768, 1000, true) && holds(1000, 1000, true),
           "and are read in order");
    tap_is_int(spool_count(spool), 0, "then none waits");
    tap_is_int((long)spool_bytes(spool), (long)empty, "and the file is small again");
    close_and_wipe();
}

/* A row is sent when it begins and when it ends, or once. */
static void test_parts(void)
{
    struct row row;
    open_spool();
    begin(1);
    tap_is_str(waits_as(), "begin running", "a beginning waits");
    tap_is_str(waits_as(), "0 rows", "and is sent once");
    end(1);
    tap_is_str(waits_as(), "whole ok", "with its end it waits again, as a whole");
    tap_is_str(waits_as(), "0 rows", "and is removed");
    tap_is_int(store_get(spool, id_of(1), &row, NULL), 0, "for good");
    begin(2);
    end(2);
    tap_is_str(waits_as(), "whole ok", "what began and ended meanwhile is one row");
    end(3);
    tap_is_str(waits_as(), "end ok", "an end alone is one too");
    begin(4);
    tap_is_str(waits_as(), "begin running", "another begins and is sent");
    (void)row_lost(store_server_id(spool), FIRST_NS + 5, &row, NULL);
    tap_is_int(apply(&row, NULL), 0, "a new executor comes");
    tap_is_str(waits_as(), "whole lost", "the run is sent as lost");
    (void)row_lost(store_server_id(spool), FIRST_NS + 5, &row, NULL);
    (void)apply(&row, NULL);
    tap_is_str(waits_as(), "0 rows", "once");
    begin(6);
    int count = read_rows();
    end(6);
    tap_ok(count == 1 && spool_release(spool, rows, 1, NULL) == 0, "a beginning is sent");
    drop_rows(count);
    tap_is_str(waits_as(), "whole ok", "an end that came meanwhile is not lost");
    close_and_wipe();
}

static void test_large(void)
{
    const size_t length = EXECUTION_CODE_MAX;
    autofree char *large = malloc(length);
    uint64_t sequence = 0;
    open_spool();
    memset(large, 'x', length);
    for (unsigned i = 0; i < 20; i++)
        if (try_begin(i, (struct execution_bytes){large, length}, NULL) < 0)
            tap_fail("begin");
    tap_ok(spool_bytes(spool) > 20 * length, "twenty megabytes are counted");
    int count = spool_read(spool, rows, &sequence, NULL);
    tap_is_int(count, (int)(SPOOL_BATCH_BYTES / length), "a batch has a limit in bytes");
    tap_ok(sequence < spool->sequence, "and more is to come");
    drop_rows(count);
    close_and_wipe();
}

/* As on a full disk: a file may not grow. */
static void test_full(void)
{
    struct brig_error err = {0};
    struct rlimit before, small = {1, 1};
    open_spool();
    begin(0);
    (void)getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &small);
    int result = try_begin(1, (struct execution_bytes){"x", 1}, &err);
    (void)setrlimit(RLIMIT_FSIZE, &before); /* before anything is printed: that may be to a file */
    tap_is_int(result, BRIG_E_SYSTEM, "no room is an error");
    tap_has_str(err.message, "SQLite cannot", "that says so");
    tap_ok(!store_is_damaged(spool), "and no damage");
    begin(1);
    tap_ok(holds(0, 2, true), "nothing is missing, and nothing there twice");
    close_and_wipe();
}

/* The child says over a pipe which row is in; then it is killed. */
static unsigned kill_writer(unsigned first)
{
    int ends[2];
    unsigned last = first;
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe");
    pid_t pid = fork();
    if (pid == 0) {
        open_spool();
        for (unsigned i = first;; i++) {
            end(i);
            (void)!write(ends[1], &i, sizeof i);
        }
    }
    (void)close(ends[1]);
    for (int i = 0; i < 30 && read(ends[0], &last, sizeof last) == sizeof last; i++)
        continue;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    while (read(ends[0], &last, sizeof last) == sizeof last)
        continue;
    (void)close(ends[0]);
    return last;
}

static void test_killed(void)
{
    unsigned next = 0;
    for (int round = 0; round < 5; round++) {
        unsigned last = kill_writer(next);
        open_spool();
        uint64_t waiting = spool_count(spool);
        tap_ok(waiting == last + 1 || waiting == last + 2, "killed after row %u, there are %u",
               last, (unsigned)waiting);
        next = (unsigned)waiting;
        store_close(spool);
    }
    open_spool();
    unsigned at = 0;
    while (at < next && holds(at, next - at > SPOOL_BATCH_MAX ? at + SPOOL_BATCH_MAX : next, true))
        at = next - at > SPOOL_BATCH_MAX ? at + SPOOL_BATCH_MAX : next;
    tap_is_int(at, next, "all of them are whole and in order");
    close_and_wipe();
}

static void path_of(const char *suffix, char path[128])
{
    (void)snprintf(path, 128, "%s/spool.sqlite%s", directory, suffix);
}

static void test_torn(void)
{
    for (off_t cut = 1; cut < 5000; cut += 1700) {
        char path[128];
        struct stat info;
        unsigned last = kill_writer(0);
        path_of("-wal", path);
        if (stat(path, &info) < 0 || truncate(path, info.st_size - cut) < 0)
            tap_bail("truncate");
        open_spool();
        tap_ok(spool_count(spool) <= last + 1 && spool_count(spool) >= last - 2,
               "of a tail that lacks %ld bytes the last rows are lost", (long)cut);
        tap_ok(!store_replaces(spool), "and no others");
        unsigned next = (unsigned)spool_count(spool);
        end(next);
        tap_is_int(spool_count(spool), next + 1, "what follows is stored");
        close_and_wipe();
    }
}

static size_t count_damaged(void)
{
    size_t count = 0;
    autodir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += strstr(entry->d_name, "spool.sqlite.damaged-") != NULL &&
                 !strstr(entry->d_name, "-wal") && !strstr(entry->d_name, "-shm");
    return count;
}

static void overwrite(off_t from, off_t to)
{
    char path[128], noise[4096];
    memset(noise, 0xa5, sizeof noise);
    path_of("", path);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (off_t at = from; at < to; at += (off_t)sizeof noise)
        (void)!pwrite(fd, noise, sizeof noise, at);
}

static void test_damaged(void)
{
    char id[EXECUTION_ID_LENGTH + 1];
    open_spool();
    end(1);
    store_close(spool);
    overwrite(0, 4096);
    open_spool();
    tap_ok(store_replaces(spool) && access(store_replaces(spool), R_OK) == 0,
           "what is no database is replaced, and kept for people");
    end(2);
    tap_ok(holds(2, 3, true), "the new one is used");
    close_and_wipe();

    open_spool();
    for (unsigned i = 0; i < 500; i++)
        end(i);
    store_close(spool); /* writes all to the file */
    open_spool();
    overwrite(4 * 4096, 400 * 4096);
    (void)snprintf(id, sizeof id, "%s", store_server_id(spool));
    for (unsigned i = 0; i < 500 && !store_is_damaged(spool); i++) {
        int count = read_rows();
        drop_rows(count);
        (void)try_begin(1000 + i, (struct execution_bytes){"x", 1}, NULL);
    }
    tap_ok(store_is_damaged(spool), "damage in the middle is noticed when it is met");
    tap_is_int(store_replace(spool, NULL), 0, "the spool is replaced");
    tap_ok(!store_is_damaged(spool) && count_damaged() == 1, "and kept for people");
    tap_is_str(store_server_id(spool), id, "the server is the same");
    end(7);
    tap_ok(holds(7, 8, true), "what comes later is stored");
    close_and_wipe();
}

int main(void)
{
    (void)umask(077);
    (void)snprintf(directory, sizeof directory, "/tmp/test-spool-XXXXXX");
    if (!mkdtemp(directory))
        tap_bail("no directory");
    test_basics();
    test_parts();
    test_large();
    test_full();
    test_killed();
    test_torn();
    test_damaged();
    wipe();
    (void)rmdir(directory);
    return tap_done();
}
