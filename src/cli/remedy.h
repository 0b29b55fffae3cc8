/* SPDX-License-Identifier: MIT */
/* Remedies of the library in the words of the command line. */
#pragma once

struct str;

/* The library names members of its API; replaces what brig has an option for. */
void remedy_translate(struct str *text);
