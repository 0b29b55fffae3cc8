/* SPDX-License-Identifier: MIT */
/* brigd's own dialect of the API for contexts: the handlers of the routes for interpreters in a
 * sandbox. */
#pragma once

struct exchange;

void contexts_create(struct exchange *exchange);
void contexts_list(struct exchange *exchange);
void contexts_get(struct exchange *exchange);
void contexts_end(struct exchange *exchange);
void contexts_restart(struct exchange *exchange);
void contexts_interrupt(struct exchange *exchange);
void contexts_run(struct exchange *exchange); /* also in the default context of a language */
