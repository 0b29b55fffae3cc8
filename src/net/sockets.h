/* SPDX-License-Identifier: MIT */
/* Sockets, their addresses, and messages with descriptors; for the broker and for the job. */
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

/* 127.0.0.1 or ::1. */
struct net_address socket_loopback(enum net_family family);

/* Where an accepted connection was meant to go: before a redirection, if there was one. */
bool socket_destination(int fd, struct net_address *ret_address, uint16_t *ret_port);

/* No delay for small packets; with `keep_alive` a peer that has vanished is noticed. */
void socket_tune(int fd, bool keep_alive);

/* Bounds what the kernel keeps of it, each way. What is received is bounded by net.core.rmem_max as
 * well, and no longer adapts to the connection. */
void socket_bound(int fd, size_t bytes);

bool socket_unblock(int fd);

/* Makes close() send a reset to the peer. */
void socket_reset(int fd);

/* Receives one message and its descriptors, which are close-on-exec; never waits. *count is how many
 * there may be, and then how many came. Returns what recv() would; a message with more is an error. */
ssize_t socket_receive(int socket, void *data, size_t size, int *fds, size_t *count);
/* Sends one message with descriptors, which stay the caller's; never waits. False with errno. */
bool socket_send(int socket, const void *data, size_t size, const int *fds, size_t count);
