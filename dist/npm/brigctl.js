#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Starts the program brigctl of the package for this processor.
"use strict";
require("./start.js")("brigctl");
