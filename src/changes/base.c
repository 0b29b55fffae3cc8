/* SPDX-License-Identifier: MIT */
/* Comparing states of files. */
#include "changes/base.h"
