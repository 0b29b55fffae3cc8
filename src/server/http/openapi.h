/* SPDX-License-Identifier: MIT */
/* The interface described from its tables. */
#pragma once

struct str;

/* OpenAPI 3.1, as JSON. */
void openapi_write(struct str *out);
