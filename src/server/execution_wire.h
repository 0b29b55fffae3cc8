/* SPDX-License-Identifier: MIT */
/* Parts of an execution in the encoding between brigd's processes, for other messages that have them.
 * In execution.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/wire.h"
#include "server/execution.h"

void execution_put_texts(struct str *out, const char *const *texts, size_t count);
void execution_put_pairs(struct str *out, const struct execution_pair *pairs, size_t count);
/* At most `most`, each value at most `value_max` bytes. */
struct execution_pair *execution_get_pairs(struct wire_reader *in, struct arena *arena, size_t most,
                                           size_t value_max, size_t *ret_count);
struct execution_bytes execution_get_bytes(struct wire_reader *in, size_t max);
const char *execution_get_id(struct wire_reader *in, bool may_be_empty);
/* Returns 0, or fails if memory ran out while encoding. */
int execution_encoded(const struct str *out, struct brig_error *err);
