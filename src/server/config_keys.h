/* SPDX-License-Identifier: MIT */
/* The table of brigd's configuration: one row a key, from which the reader, --print-config and the man
 * page are made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct brig_error;
struct nearest;
struct runtime;
struct server_config;
struct str;

enum config_type {
    CONFIG_TEXT,     /* const char * */
    CONFIG_PATH,     /* const char *, absolute */
    CONFIG_NUMBER,   /* an integer of `width` bytes */
    CONFIG_SIZE,     /* uint64_t, bytes */
    CONFIG_DURATION, /* uint64_t, milliseconds */
    CONFIG_BOOLEAN,
    CONFIG_CHOICE, /* an enum; its value is the place of the name in `choices` */
    CONFIG_LIST,   /* struct config_list */
    CONFIG_WORDS,  /* const char *[max + 1], ended by NULL */
};

struct config_key {
    const char *name; /* "server.listen"; of a runtime "limits.memory_mb" */
    enum config_type type;
    size_t offset, width;       /* in struct server_config or struct runtime */
    uint64_t min, max;          /* of numbers, sizes and durations; of words: how many */
    const char *initial;        /* the built-in value as it would be written; NULL: none, or from
                                 * the environment */
    const char *const *choices; /* ended by NULL */
    int (*check)(const char *text, struct brig_error *err); /* of a text, or of each item */
    bool secret;                                            /* never printed */
    bool with_roots; /* an item may be a mapping {key: ITEM, workdir_roots: [PATH, …]} */
    const char *doc; /* for the man page: a sentence or more, roff */
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;
extern const struct config_key config_runtime_keys[];
extern const size_t config_runtime_key_count;

const struct config_key *config_key_find(const struct config_key *keys, size_t count,
                                         const char *name);
#define CONFIG_NAME_MAX 128
/* The names in a table, whose rows begin with a dotted name, that follow `prefix`, up to their next dot
 * and each once; and the nearest of them to `name`. */
void config_names_below(const void *rows, size_t stride, size_t count, const char *prefix,
                        const char *name, struct str *out, struct nearest *nearest);
/* What could have been meant by an unknown name after `prefix` (which ends in a dot, or is ""), as a
 * sentence: the nearest, or all there are. */
void config_key_hint(const struct config_key *keys, size_t count, const char *prefix,
                     const char *shown_prefix, const char *name, struct str *out);
/* Whether it is the beginning of some key's name, before a dot. */
bool config_key_is_section(const struct config_key *keys, size_t count, const char *name);

/* From text to the value at its place in `base`, and back, as it stands in YAML. A list takes one
 * more item with each call. Errors name the value and what is allowed. */
int config_value_set(const struct config_key *key, void *base, struct arena *arena,
                     const char *text, struct brig_error *err);
/* Takes away what a list holds. */
void config_value_clear(const struct config_key *key, void *base);
void config_value_print(const struct config_key *key, const void *base, struct str *out);
/* What may be written, in a few words: "a size", "one of sqlite, postgres, none". */
void config_value_describe(const struct config_key *key, struct str *out);

/* The checks of the table. */
int config_check_backend(const char *text, struct brig_error *err);
int config_check_api_key(const char *text, struct brig_error *err);
int config_check_range(const char *text, struct brig_error *err);
int config_check_path(const char *text, struct brig_error *err);
int config_check_origin(const char *text, struct brig_error *err);
int config_check_log(const char *text, struct brig_error *err);
int config_check_upstream(const char *text, struct brig_error *err);
int config_check_file_name(const char *text, struct brig_error *err);
int config_check_word(const char *text, struct brig_error *err);
int config_check_module(const char *text, struct brig_error *err);

/* A PostgreSQL connection string as words, without passwords, appended; nothing if it is wrong. */
void config_dsn_print(const char *dsn, struct str *out);
bool config_dsn_is_plain(const char *dsn); /* sslmode=disable, to somewhere else */

/* config_yaml.c: the text, over what the config holds already. */
int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err);
/* config.c: the runtime of that name, or NULL; and a new entry, or one that is there, begins. */
struct runtime *config_runtime_entry(struct server_config *config, const char *name, size_t length);
int config_runtime_begin(struct server_config *config, const char *name, const char *file,
                         size_t line, struct brig_error *err);
