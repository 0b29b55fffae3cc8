/* SPDX-License-Identifier: MIT */
/* The default masks and environment filters, from default_masks.txt and default_filters.txt. */
#include "policy/defaults.h"

/* clang-format off */
const char policy_default_masks[] =
#include "default_masks.h"
    ;

const char policy_default_filters[] =
#include "default_filters.h"
    ;
/* clang-format on */

const size_t policy_default_masks_bytes = sizeof policy_default_masks;

const char policy_default_spools[] = "/var/mail\0"
                                     "/var/spool/mail\0"
                                     /* Jobs of cron and at. */
                                     "/var/spool/cron\0"
                                     "/var/spool/at\0"
                                     /* Core dumps of programs that have crashed. */
                                     "/var/crash\0"
                                     "/var/lib/systemd/coredump\0";
