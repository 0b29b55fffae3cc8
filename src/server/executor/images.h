/* SPDX-License-Identifier: MIT */
/* The images of runtimes: opened when the executor starts, and kept until it ends, so that their layers are not
 * removed meanwhile. */
#pragma once

struct server_config;

/* Opens the image of each runtime that has one. A runtime whose image cannot be opened is not available, and says
 * why. */
void executor_images_open(struct server_config *config);
void executor_images_close(struct server_config *config);
