/* SPDX-License-Identifier: MIT */
/* The system calls of brig-broker. Part of broker_confine.c. */
#pragma once

#include "net/broker_confine.h"

int filter_install(enum confine_role role, struct brig_error *err);
