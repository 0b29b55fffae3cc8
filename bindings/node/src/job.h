/* SPDX-License-Identifier: MIT */
/* Jobs and templates: starting in a thread of libuv's, then driven by its loop. */
#pragma once

#include "addon.h"

void job_define(napi_env env, napi_value exports);
