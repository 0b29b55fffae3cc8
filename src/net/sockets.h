/* SPDX-License-Identifier: MIT */
/* Sockets, their addresses, and messages with descriptors, for the broker and the job. */
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

/* Fills in a sockaddr and returns its length. */
socklen_t socket_address_fill(union socket_address *address, const struct net_address *from,
                              uint16_t port);
/* False if the family is neither IPv4 nor IPv6. */
bool socket_address_read(const union socket_address *address, struct net_address *ret_address,
                         uint16_t *ret_port);

/* 127.0.0.1 or ::1. */
struct net_address socket_loopback(enum net_family family);

/* The destination of an accepted connection, before a redirection if there was one. */
bool socket_destination(int fd, struct net_address *ret_address, uint16_t *ret_port);

/* Disables Nagle's algorithm; with `keep_alive` a vanished peer is detected. */
void socket_tune(int fd, bool keep_alive);

/* Limits the kernel's buffers in both directions. The receive buffer is also limited by
 * net.core.rmem_max, and is no longer tuned automatically. */
void socket_bound(int fd, size_t bytes);

bool socket_unblock(int fd);

/* Makes close() send a reset to the peer. */
void socket_reset(int fd);

/* Receives one message and its descriptors, which are close-on-exec; never blocks. *count is the
 * capacity of `fds`, then the number received. Returns the result of recvmsg(); a message with more
 * descriptors is an error. */
ssize_t socket_receive(int socket, void *data, size_t size, int *fds, size_t *count);
/* Sends one message with descriptors, which the caller keeps; never blocks. False with errno. */
bool socket_send(int socket, const void *data, size_t size, const int *fds, size_t count);
