/* SPDX-License-Identifier: MIT */
/* Judge0's parsers from any bytes: submissions, forms, zip archives, words, base64 and notes. What is
 * accepted keeps to the limits, and the executor's decoder takes it. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/api/judge0_answer.h"
#include "server/api/judge0_request.h"
#include "server/api/judge0_text.h"
#include "server/config/config.h"
#include "server/history/notes.h"
#include "server/zip.h"

#define UNPACKED_MAX ((size_t)1 << 20)

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void unpack(const uint8_t *data, size_t size)
{
    struct zip_reader zip;
    struct zip_entry entry;
    bool open = zip_open(data, size, &zip);
    while (open && zip_next(&zip, &entry) > 0) {
        char *out = entry.size <= UNPACKED_MAX ? malloc(entry.size + 1) : NULL;
        if (out)
            (void)zip_extract(&entry, out);
        free(out);
    }
}

static void check(struct execution_request *request)
{
    autostr struct str packed = {0};
    struct execution_request again;
    request->id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    request->request_id = request->client = request->domain = "";
    expect(request->timeout_ms <= 20000 && request->file_count <= EXECUTION_FILES_MAX);
    expect(execution_request_encode(request, &packed, NULL) == 0);
    expect(execution_request_decode(packed.data, packed.length, &again, NULL) == 0);
    execution_request_done(&again);
}

static void submit(const struct server_config *config, const struct str *runtimes,
                   const json_t *object, bool base64)
{
    struct judge0_submission submission;
    struct judge0_language language;
    struct judge0_bounds bounds;
    struct judge0_errors errors;
    struct execution_request request = {0};
    judge0_bounds(config, &bounds);
    expect(judge0_read(object, base64, &bounds, &submission, &errors));
    bool found =
        judge0_language_find(config, runtimes, submission.number[JUDGE0_LANGUAGE_ID], &language);
    judge0_check(config, &bounds, &language, found, &submission, &errors);
    if (errors.count == 0 && judge0_translate(config, &language, &submission, &request, &errors))
        check(&request);
    else
        expect(errors.count > 0);
    execution_request_done(&request);
    judge0_submission_done(&submission);
}

static void read_texts(const char *text, size_t size)
{
    struct arena arena = {0};
    const char **words;
    size_t count;
    autostr struct str unknown = {0};
    char *bytes = malloc(size + 1);
    expect(bytes && judge0_base64_decode(text, size, bytes) <= size);
    (void)judge0_words(text, size, &arena, EXECUTION_ARGS_MAX, &words, &count);
    (void)judge0_is_same(text, size / 2, text + size / 2, size - size / 2);
    memcpy(bytes, text, size);
    bytes[size] = '\0';
    (void)judge0_members_read(bytes, &unknown);
    arena_done(&arena);
    free(bytes);
}

static void read_notes(const uint8_t *data, size_t size)
{
    struct judge0_submission submission;
    struct note note;
    struct note_list list;
    struct note_page page;
    if (judge0_note_decode(data, size, &submission, NULL) == 0)
        judge0_submission_done(&submission);
    if (note_decode(data, size, &note, NULL) == 0)
        note_done(&note);
    if (note_list_decode(data, size, &list, NULL) == 0)
        note_list_done(&list);
    (void)note_page_decode(data, size, &page, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "{\"runtimes\":[{\"name\":\"python\",\"available\":true},"
                               "{\"name\":\"project\",\"available\":true}]}";
    static struct server_config config;
    const struct str runtimes = {.data = (char *)(uintptr_t)text, .length = sizeof text - 1};
    for (size_t i = 0; i < 2; i++)
        config.runtimes[i] = (struct runtime){.name = i ? "project" : "python",
                                              .file_name = i ? "run" : "main.py",
                                              .limits = {256, 50, 100, 100},
                                              .max_limits = {1024, 500, 1024, 400},
                                              .max_timeout_ms = 60000};
    config.runtime_count = 2;
    config.sandbox.max_timeout_ms = 60000;
    memcpy(config.sandbox.max_limits, config.runtimes[0].max_limits,
           sizeof config.sandbox.max_limits);
    if (size == 0)
        return 0;
    json_t *object = data[0] & 2
                         ? judge0_form((const char *)data + 1, size - 1, 64)
                         : json_loadb((const char *)data + 1, size - 1, JSON_ALLOW_NUL, NULL);
    if (json_is_object(object))
        submit(&config, &runtimes, object, data[0] & 1);
    json_decref(object);
    unpack(data, size);
    read_texts((const char *)data, size);
    read_notes(data, size);
    return 0;
}
