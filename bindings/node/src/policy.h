/* SPDX-License-Identifier: MIT */
/* Policies: one function of the addon for each brig_policy_*() of libbrig. */
#pragma once

#include "addon.h"

void policy_define(napi_env env, napi_value exports);
/* The policy behind a value, or NULL with an exception pending. */
struct brig_policy *policy_of(struct args *args, napi_value value);
