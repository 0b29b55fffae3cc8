/* SPDX-License-Identifier: MIT */
/* Names on the host whose appearance can lay bare what is covered in a jail. */
#include <string.h>

#include "jail/plan/plan.h"

static void watch_name(struct plan *plan, const char *host_path, size_t length, size_t name_at,
                       struct plan_mask covered)
{
    if (!plan_reserve(plan, (void **)&plan->masks, plan->mask_count, &plan->mask_room,
                      sizeof *plan->masks))
        return;
    covered.host_dir = arena_strndup(&plan->arena, host_path, name_at > 1 ? name_at - 1 : 1);
    covered.name = arena_strndup(&plan->arena, host_path + name_at, length - name_at);
    plan->masks[plan->mask_count++] = covered;
}

void plan_watch_cover(struct plan *plan, enum plan_cover cover, const struct plan_place *place,
                      const char *host_path, const char *dest)
{
    struct plan_mask covered = {.cover = cover, .host_path = host_path, .path = dest};
    if (place->writable)
        covered.writable = place->dest;
    size_t name_at = strlen(place->host) + 1;
    while (host_path[name_at]) {
        size_t length = name_at + strcspn(host_path + name_at, "/");
        watch_name(plan, host_path, length, name_at, covered);
        name_at = length + (host_path[length] == '/');
    }
}
