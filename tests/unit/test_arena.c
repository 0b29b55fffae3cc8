/* SPDX-License-Identifier: MIT */
/* Texts put together in memory that is released at once. */
#include "base/arena.h"
#include "tap.h"

static void numbers(struct arena *arena)
{
    tap_is_str(arena_number(arena, 0), "0", "nought has a digit");
    tap_is_str(arena_number(arena, 1005), "1005", "a number in decimal");
    tap_is_str(arena_number(arena, UINT64_MAX), "18446744073709551615", "the largest is whole");
}

static void texts(struct arena *arena)
{
    tap_is_str(arena_concat(arena, ""), "", "nothing is a text");
    tap_is_str(arena_concat(arena, "a", "", "bc", "d"), "abcd", "texts one after the other");
    tap_is_str(arena_concat(arena, "1", "22", "333", "4444", "55555", "", "7"), "1223334444555557",
               "also where there are many");
    tap_ok(!arena->failed, "there was memory for all of them");
}

int main(void)
{
    struct arena arena = {0};
    numbers(&arena);
    texts(&arena);
    arena_done(&arena);
    return tap_done();
}
