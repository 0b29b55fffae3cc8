/* SPDX-License-Identifier: MIT */
#include "base/record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"

/* ---- writing ---- */

void record_add(struct str *record, const char *key, const char *value)
{
    if (!value)
        return;
    str_concat(record, key, " ");
    for (const unsigned char *at = (const unsigned char *)value; *at; at++)
        if (*at < 0x20 || *at == 0x7f || *at == '%')
            str_appendf(record, "%%%02x", *at);
        else
            str_append_char(record, (char)*at);
    str_append_char(record, '\n');
}

void record_add_number(struct str *record, const char *key, uint64_t value)
{
    record_add(record, key, str_number(value).text);
}

void record_add_time(struct str *record, const char *key, int64_t time_ns)
{
    str_appendf(record, "%s %" PRId64 "\n", key, time_ns);
}

int record_write(int dir, const char *name, const struct str *record, bool durable,
                 struct brig_error *err)
{
    const char *text = record->data ? record->data : "";
    if (record->failed)
        return brig_fail_nomem(err);
    return durable ? files_write_durable(dir, name, text, record->length, err)
                   : files_write(dir, name, text, record->length, err);
}

/* ---- reading ---- */

int record_read(int dir, const char *name, struct str *ret_record, struct brig_error *err)
{
    if (files_read(dir, name, ret_record))
        return 1;
    return files_exists(dir, name)
               ? brig_fail(err, BRIG_E_SYSTEM, 0, "cannot read '%s' in the jail's storage", name)
               : 0;
}

static int record_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a value in place; false if it is not valid. */
static bool record_decode(char *value)
{
    char *to = value;
    for (const char *from = value; *from; from++) {
        if ((unsigned char)*from < 0x20)
            return false;
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = record_hex(from[1]), low = high < 0 ? -1 : record_hex(from[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return true;
}

bool record_next(struct str *record, struct record_place *place, const char **ret_key,
                 const char **ret_value)
{
    if (place->damaged || place->at >= record->length)
        return false;
    char *line = record->data + place->at;
    char *end = memchr(line, '\n', record->length - place->at);
    char *blank = end ? memchr(line, ' ', (size_t)(end - line)) : NULL;
    place->damaged = !blank || blank == line;
    if (place->damaged)
        return false;
    *end = *blank = '\0';
    place->damaged = strlen(blank + 1) != (size_t)(end - blank - 1) || !record_decode(blank + 1);
    if (place->damaged)
        return false;
    place->at = (size_t)(end + 1 - record->data);
    *ret_key = line;
    *ret_value = blank + 1;
    return true;
}

uint64_t record_number(const char *value)
{
    char *end;
    errno = 0;
    uintmax_t number = value[0] >= '0' && value[0] <= '9' ? strtoumax(value, &end, 10) : 0;
    return errno || number == 0 || *end ? 0 : (uint64_t)number;
}

int64_t record_time(const char *value)
{
    char *end;
    errno = 0;
    intmax_t number = strtoimax(value, &end, 10);
    return errno || end == value || *end ? 0 : (int64_t)number;
}
