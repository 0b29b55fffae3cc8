/* SPDX-License-Identifier: MIT */
/* The images of runtimes: opened when the executor starts, and kept until it ends, so that their layers are not
 * removed meanwhile. */
#pragma once

struct brig_error;
struct runtime;
struct server_config;

/* Opens the image of each runtime that has one. A runtime whose image cannot be opened is not available, and says
 * why. */
void executor_images_open(struct server_config *config);
void executor_images_close(struct server_config *config);

/* A copy of the runtime whose root directory is another image. The name is borrowed. Fails with BRIG_E_INVALID or
 * BRIG_E_NOT_FOUND if there is no such image. */
int executor_image_use(const struct server_config *config, const struct runtime *runtime,
                       const char *name, struct runtime **ret_copy, struct brig_error *err);
void executor_image_release(struct runtime *copy); /* accepts NULL */
