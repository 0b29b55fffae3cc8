/* SPDX-License-Identifier: MIT */
/* Sockets, their addresses, and messages with descriptors: small things several parts need. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "policy/net_address.h"

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Fills it in; returns its length. */
socklen_t socket_address_fill(union socket_address *address, const struct net_address *from,
                              uint16_t port);
/* False if it is of no such family. */
bool socket_address_read(const union socket_address *address, struct net_address *ret_address,
                         uint16_t *ret_port);

/* Where a connection that was accepted was meant to go. */
bool socket_destination(int fd, struct net_address *ret_address, uint16_t *ret_port);

/* For one that is not connected yet, and whose other end will be on this machine. */
void socket_unpace(int fd);

/* No delay for small packets; with `keep_alive` a peer that has vanished is noticed. */
void socket_tune(int fd, bool keep_alive);

/* Bounds what the kernel keeps of it, each way. What is received is bounded by net.core.rmem_max as
 * well, and no longer adapts to the connection. */
void socket_bound(int fd, size_t bytes);

bool socket_unblock(int fd);

/* Breaks the connection off, so that the peer sees a reset. */
void socket_reset(int fd);

/* One message and its descriptors, which are born close-on-exec; never waits. *count is how many
 * there may be, and how many came; more are closed. As recv(). */
ssize_t socket_receive(int socket, void *data, size_t size, int *fds, size_t *count);
/* One message and a descriptor, or none if fd is -1; never waits. */
bool socket_send(int socket, const void *data, size_t size, int fd);
