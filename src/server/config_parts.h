/* SPDX-License-Identifier: MIT */
/* What the files of the configuration have from each other. */
#pragma once

#include <stddef.h>

struct brig_error;
struct runtime;
struct server_config;

/* config_yaml.c: the text, over what the config holds already. */
int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err);

/* config_runtime.c. An entry of that name begins: one that is there, or a new one. */
int config_runtime_begin(struct server_config *config, const char *name, const char *file,
                         size_t line, struct brig_error *err);
/* The entry that has begun. */
struct runtime *config_runtime_entry(struct server_config *config, const char *name, size_t length);
/* Copies the built-in ones, and fills in at the end what entries leave to all. */
int config_runtime_defaults(struct server_config *config, struct brig_error *err);
int config_runtime_finish(struct server_config *config, struct brig_error *err);

/* config_finish.c: what holds between several keys; what is worth a warning. */
int config_finish(struct server_config *config, struct brig_error *err);
