/* SPDX-License-Identifier: MIT */
/* The files that configure brig, read-only in the directories that are granted. */
#pragma once

struct brig_error;
struct settings;

/* Adds the rules, when everything else is in the policy. With the rights of the user. */
int own_files_protect(const struct settings *settings, struct brig_error *err);
