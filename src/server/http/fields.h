/* SPDX-License-Identifier: MIT */
/* Reads a JSON object, which is untrusted, by a table of its fields. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/execution.h"
#include "server/http/route.h"

/* A scan without allocation refuses JSON that is nested deeper or has more values than this, before
 * it is parsed. */
#define REQUEST_DEPTH_MAX 8
#define REQUEST_VALUES_MAX 8192

#define REQUEST_NO_BODY "the request has no body: send a JSON object"

#define REQUEST_FIELD_MAX 96
#define REQUEST_MESSAGE_MAX 512

/* An error: the code, the field ("limits.memory_mb", may be "") and a sentence. */
struct request_fault {
    enum http_error error;
    char field[REQUEST_FIELD_MAX];
    char message[REQUEST_MESSAGE_MAX];
};

enum request_shape { REQUEST_SHAPE_OK, REQUEST_TOO_DEEP, REQUEST_TOO_MANY };
/* The scan; it does not check that the text is JSON. */
enum request_shape request_shape(const char *text, size_t length, size_t depth_max,
                                 size_t values_max);

struct field_reader;

/* One row for each field: how it is read, and its documentation. */
struct field {
    const char *name;    /* "limits.memory_mb" */
    unsigned operations; /* bits: the requests that have it */
    bool required;
    bool (*read)(struct field_reader *reader, const struct field *field, const json_t *value);
    /* For the functions below: where the value is in reader->out, and its bounds. */
    size_t at, count_at; /* offsets of the value and, for several, of their number */
    size_t most, count_most;
    const char *type; /* the JSON type */
    const char *allowed, *doc;
};

/* The members from `read` to `count_most` of a row: one value, several, or a kind of its own. The file
 * of a table defines FIELD_OUT, the type of reader->out. */
#define FIELD_ONE(read, member, most) read, offsetof(FIELD_OUT, member), 0, most, 0
#define FIELD_MANY(read, member, count, most, count_most)                                          \
    read, offsetof(FIELD_OUT, member), offsetof(FIELD_OUT, count), most, count_most
#define FIELD_OWN(read) read, 0, 0, 0, 0

struct field_reader {
    const struct field *fields;
    size_t count;
    unsigned operations;         /* a bit: the request that is read */
    const char *const *sections; /* the objects that contain fields, "" first; ended by NULL */
    struct arena *arena;         /* values are copied to it */
    void *out;
    struct request_fault *fault;
    /* request_fault.field is the whole path, as "args.0"; else the field that it is in, and of an
     * unknown one the name alone. */
    bool items;
    const struct field *field; /* that is read */
};

/* Parses a whole body; on failure returns NULL with the fault filled in. The caller releases it. */
json_t *fields_parse(struct field_reader *reader, const char *text, size_t length);
/* Reads the fields. On failure returns false with the fault filled in. */
bool fields_read(struct field_reader *reader, const json_t *root);

/* Kinds of fields, for the table. What `out` has at the offsets is in the comment. */
typedef bool field_kind(struct field_reader *reader, const struct field *field,
                        const json_t *value);
field_kind field_text;     /* const char *; at most `most` bytes, without NUL */
field_kind field_bytes;    /* struct execution_bytes; a text, or {"content", "encoding"} */
field_kind field_texts;    /* const char **, size_t */
field_kind field_pairs;    /* struct execution_pair *, size_t */
field_kind field_duration; /* uint64_t, in milliseconds; a text, or a number of seconds */
field_kind field_number;   /* uint64_t, from 1 to `most` */
field_kind field_flag;     /* bool */

/* The head of the function of another kind. */
#define FIELD(name)                                                                                \
    static bool name(struct field_reader *reader, const struct field *field, const json_t *value)

/* For other kinds. Each returns false with the fault filled in; `name` is that of the field or item. */

__attribute__((format(printf, 4, 5))) bool fields_refuse(struct field_reader *reader,
                                                         enum http_error error, const char *name,
                                                         const char *format, ...);
bool fields_wrong_type(struct field_reader *reader, const char *name, const char *wanted);
bool fields_no_memory(struct field_reader *reader);
/* Writes "files.a.txt" to `path`, and returns it. */
const char *fields_below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name);
bool fields_text(struct field_reader *reader, const char *name, const json_t *value, size_t most,
                 const char **ret_text);
bool fields_bytes(struct field_reader *reader, const char *name, const json_t *value, size_t most,
                  struct execution_bytes *ret_bytes);
bool fields_duration(struct field_reader *reader, const char *name, const json_t *value,
                     uint64_t *ret_ms);
bool fields_number(struct field_reader *reader, const char *name, const json_t *value,
                   uint64_t most, uint64_t *ret_number);
/* Reads the members of an object, each into an item of `size` bytes. */
bool fields_members(struct field_reader *reader, const struct field *field, const json_t *value,
                    size_t size,
                    bool (*read)(struct field_reader *reader, const char *path, const char *name,
                                 const json_t *value, void *ret_item));
