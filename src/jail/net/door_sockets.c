/* SPDX-License-Identifier: MIT */
/* The sockets of a network door. */
#include "jail/net/door_sockets.h"

#include <unistd.h>

void door_sockets_add(struct door_sockets *sockets, int kind, int index, int fd)
{
    if (sockets->count == DOOR_SOCKET_LIST_MAX) {
        (void)close(fd);
        return;
    }
    sockets->items[sockets->count++] =
        (struct door_socket_item){.fd = fd, .kind = kind, .index = index};
}

void door_sockets_done(struct door_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        (void)close(sockets->items[i].fd);
    sockets->count = 0;
}
