/* SPDX-License-Identifier: MIT */
/* The interface described from its tables: for programs, and for people. */
#pragma once

struct str;

/* OpenAPI 3.1, as JSON. */
void openapi_write(struct str *out);
/* docs/api.md */
void openapi_write_markdown(struct str *out);
