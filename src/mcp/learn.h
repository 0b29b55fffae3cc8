/* SPDX-License-Identifier: MIT */
/* The first run of `brig mcp-wrap`. */
#pragma once

/* brig-mcp learn BRIG FILE HEADER WORD…: runs BRIG with the words, among them --net learn, between
 * the client and the server, and writes HEADER and the rules that brig has learned to FILE, if the
 * client has called a tool. Returns the exit status. */
int learn_main(int argc, char **argv);
