#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Starts the program brig of the package for this processor.
"use strict";
require("./start.js")("brig");
