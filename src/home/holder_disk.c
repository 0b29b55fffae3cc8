/* SPDX-License-Identifier: MIT */
/* Limits on what the runs of a jail write to its private directories. */
#include "home/holder_parts.h"
#include "home/mounts.h"

/* What only those asked for that are gone does not hold. */
static struct private_limits least_disk(const struct holder *holder)
{
    struct private_limits least = {0};
    for (size_t i = 0; i < holder->run_count; i++)
        least = private_least(least, holder->runs[i].disk);
    return least;
}

static int set_disk(struct holder *holder, const struct private_limits *limits)
{
    if (limits->bytes == holder->disk.bytes && limits->inodes == holder->disk.inodes)
        return 0;
    int result = private_limit(MOUNTS_PRIVATE, limits);
    if (result == 0)
        holder->disk = *limits;
    return result;
}

void holder_limit_disk(struct holder *holder, struct holder_run *run,
                       const struct home_request *head, struct home_reply *reply)
{
    run->disk = (struct private_limits){head->disk_bytes, head->disk_inodes};
    struct private_limits least = least_disk(holder);
    int result = set_disk(holder, &least);
    if (result < 0) /* then it is as it was */
        run->disk = (struct private_limits){0};
    reply->disk_errno = -result;
    reply->disk_bytes = least.bytes;
    reply->disk_inodes = least.inodes;
    reply->crowded = holder->run_count > 1;
}

void holder_relax_disk(struct holder *holder)
{
    struct private_limits least = least_disk(holder);
    (void)set_disk(holder, &least);
}
