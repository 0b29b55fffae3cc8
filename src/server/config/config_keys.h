/* SPDX-License-Identifier: MIT */
/* The table of configuration keys, one row each. The reader, --print-config and the man page are
 * generated from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct brig_error;
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
    CONFIG_CHOICE, /* an enum; its value is the index in `choices` */
    CONFIG_LIST,   /* struct config_list */
    CONFIG_WORDS,  /* const char *[max + 1], ended by NULL */
};

struct config_key {
    const char *name; /* "server.listen"; for a runtime "limits.memory_mb" */
    enum config_type type;
    size_t offset, width;       /* in struct server_config or struct runtime */
    uint64_t min, max;          /* range of numbers, sizes and durations; for words their number */
    const char *initial;        /* built-in value as text; NULL: none, or from the environment */
    const char *const *choices; /* ended by NULL */
    int (*check)(const char *text, struct brig_error *err); /* checks a text, or each item */
    bool secret;                                            /* never printed */
    bool is_api_keys; /* an item may be a mapping, with the keys of config_api_key_keys */
    const char *doc;  /* roff text for the man page */
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;
extern const struct config_key config_runtime_keys[];
extern const size_t config_runtime_key_count;
/* What an item of security.allowed_keys may have besides `key` and `workdir_roots`. */
extern const struct config_key config_api_key_keys[];
extern const size_t config_api_key_key_count;

const struct config_key *config_key_find(const struct config_key *keys, size_t count,
                                         const char *name);
#define CONFIG_NAME_MAX 128
/* Appends a sentence with suggestions for an unknown name after `prefix` (which ends in a dot, or
 * is ""): the nearest name, or all names. */
void config_key_hint(const struct config_key *keys, size_t count, const char *prefix,
                     const char *shown_prefix, const char *name, struct str *out);
/* Returns whether a key's name begins with `name` and a dot. */
bool config_key_is_section(const struct config_key *keys, size_t count, const char *name);

/* config_value.c: converts text to the value at its place in `base`, and back to YAML. For a list,
 * each call adds one item. Errors name the value and what is allowed. */
int config_value_set(const struct config_key *key, void *base, struct arena *arena,
                     const char *text, struct brig_error *err);
/* Empties a list. */
void config_value_clear(const struct config_key *key, void *base);
void config_value_print(const struct config_key *key, const void *base, struct str *out);
/* Describes the allowed values in a few words: "a size", "one of sqlite, postgres, none". */
void config_value_describe(const struct config_key *key, struct str *out);

/* Checks used by the table. */
int config_check_backend(const char *text, struct brig_error *err);
int config_check_api_key(const char *text, struct brig_error *err);
int config_check_range(const char *text, struct brig_error *err);
int config_check_path(const char *text, struct brig_error *err);
int config_check_origin(const char *text, struct brig_error *err);
int config_check_log(const char *text, struct brig_error *err);
int config_check_upstream(const char *text, struct brig_error *err);
int config_check_file_name(const char *text, struct brig_error *err);
int config_check_image(const char *text, struct brig_error *err);
int config_check_word(const char *text, struct brig_error *err);
int config_check_module(const char *text, struct brig_error *err);
int config_check_destination(const char *text, struct brig_error *err);
int config_check_dsn(const char *text, struct brig_error *err);

/* Appends a PostgreSQL connection string as words, without passwords; appends nothing if it is
 * invalid. */
void config_dsn_print(const char *dsn, struct str *out);
bool config_dsn_is_plain(const char *dsn); /* sslmode=disable with a remote host */

/* config_yaml.c: parses the text into a config that already holds values. */
int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err);
/* config_runtimes.c: finds the runtime of that name, or NULL; and begins a new entry or changes an
 * existing one. */
struct runtime *config_runtime_entry(struct server_config *config, const char *name, size_t length);
int config_runtime_begin(struct server_config *config, const char *name, const char *file,
                         size_t line, struct brig_error *err);
/* Completes the runtimes from the common limits, and checks them. */
int config_finish_runtimes(struct server_config *config, struct brig_error *err);
