/* SPDX-License-Identifier: MIT */
/* A look at JSON text before it is parsed: how deep it is nested and how many values it has. */
#pragma once

#include <stddef.h>

enum json_shape { JSON_SHAPE_OK, JSON_SHAPE_TOO_DEEP, JSON_SHAPE_TOO_MANY };

/* Says nothing about whether it is JSON. One pass, no memory. */
enum json_shape json_shape(const char *text, size_t length, size_t depth_max, size_t values_max);
