/* SPDX-License-Identifier: MIT */
/* libcurl in the broker's loop. */
#include "net/broker_curl.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define LIBRARY "libcurl.so.4"
#define LIBRARY_GNUTLS "libcurl-gnutls.so.4" /* where Debian has only that */

struct broker_curl_socket {
    struct garbage garbage; /* must be first */
    struct watch watch;
    struct broker_curl *curl;
};

/* ---- Memory. What libcurl gives back may have held a credential. ---- */

static void wiping_free(void *memory)
{
    if (memory)
        explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

static void *wiping_realloc(void *memory, size_t size)
{
    void *larger = malloc(size);
    if (!larger || !memory)
        return larger;
    size_t had = malloc_usable_size(memory);
    memcpy(larger, memory, had < size ? had : size);
    wiping_free(memory);
    return larger;
}

/* ---- Functions ---- */

#define API_ROW(name)                                                                              \
    {                                                                                              \
        "curl_" #name, offsetof(struct curl_api, name)                                             \
    }
static const struct {
    const char *symbol;
    size_t place;
} api_rows[] = {
    API_ROW(global_init_mem),     API_ROW(easy_init),           API_ROW(easy_setopt),
    API_ROW(easy_getinfo),        API_ROW(easy_pause),          API_ROW(easy_cleanup),
    API_ROW(easy_strerror),       API_ROW(slist_append),        API_ROW(slist_free_all),
    API_ROW(multi_init),          API_ROW(multi_setopt),        API_ROW(multi_add_handle),
    API_ROW(multi_remove_handle), API_ROW(multi_socket_action), API_ROW(multi_info_read),
    API_ROW(multi_assign),        API_ROW(multi_cleanup),
};

static int load(struct broker_curl *curl, struct brig_error *err)
{
    curl->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!curl->library)
        curl->library = dlopen(LIBRARY_GNUTLS, RTLD_NOW | RTLD_LOCAL);
    if (!curl->library)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "injecting credentials needs " LIBRARY ", which is not installed");
    for (size_t i = 0; i < ARRAY_LENGTH(api_rows); i++) {
        void *function = dlsym(curl->library, api_rows[i].symbol);
        if (!function)
            return brig_fail(err, BRIG_E_UNSUPPORTED, 0, LIBRARY " has no %s: it is too old",
                             api_rows[i].symbol);
        memcpy((char *)&curl->api + api_rows[i].place, &function, sizeof function);
    }
    return 0;
}

/* ---- The loop ---- */

static void collect(struct broker_curl *curl)
{
    int left;
    CURLMsg *message;
    while ((message = curl->api.multi_info_read(curl->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            curl->ended(curl, message->easy_handle, message->data.result);
}

static void act(struct broker_curl *curl, curl_socket_t fd, int events)
{
    int running;
    (void)curl->api.multi_socket_action(curl->multi, fd, events, &running);
    collect(curl);
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    struct broker_curl_socket *socket =
        (struct broker_curl_socket *)((char *)watch - offsetof(struct broker_curl_socket, watch));
    int mask =
        (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
    if (events & (EPOLLERR | EPOLLHUP))
        mask |= CURL_CSELECT_ERR;
    act(socket->curl, watch->fd, mask);
}

static void timer_fires(struct timer *timer)
{
    struct broker_curl *curl =
        (struct broker_curl *)((char *)timer - offsetof(struct broker_curl, timer));
    act(curl, CURL_SOCKET_TIMEOUT, 0);
}

static int timer_changes(CURLM *multi, long wait_ms, void *data)
{
    struct broker_curl *curl = data;
    (void)multi;
    if (wait_ms < 0)
        loop_disarm(curl->loop, &curl->timer);
    else
        loop_arm(curl->loop, &curl->timer, wait_ms);
    return 0;
}

static struct broker_curl_socket *new_socket(struct broker_curl *curl, curl_socket_t fd)
{
    struct broker_curl_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return NULL;
    socket->watch = (struct watch){.fd = fd, .ready = socket_ready};
    socket->curl = curl;
    if (!loop_watch(curl->loop, &socket->watch, 0)) {
        free(socket);
        return NULL;
    }
    (void)curl->api.multi_assign(curl->multi, fd, socket);
    return socket;
}

static int socket_changes(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    struct broker_curl *curl = data;
    struct broker_curl_socket *socket = socket_data;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (!socket)
            return 0;
        loop_forget(curl->loop, &socket->watch);
        loop_free_later(curl->loop, &socket->garbage);
        return 0;
    }
    if (!socket && !(socket = new_socket(curl, fd)))
        return -1;
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    loop_rewatch(curl->loop, &socket->watch, events);
    return 0;
}

int broker_curl_init(struct broker_curl *curl, struct loop *loop, struct brig_error *err)
{
    *curl = (struct broker_curl){.loop = loop, .timer.fire = timer_fires};
    int status = load(curl, err);
    if (status < 0)
        return status;
    const struct curl_api *api = &curl->api;
    if (api->global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup,
                             calloc) != CURLE_OK ||
        !(curl->multi = api->multi_init()))
        return brig_fail(err, BRIG_E_SYSTEM, 0, LIBRARY " cannot be used");
    (void)api->multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION, socket_changes);
    (void)api->multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl);
    (void)api->multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION, timer_changes);
    (void)api->multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl);
    return 0;
}

void broker_curl_done(struct broker_curl *curl)
{
    if (curl->multi)
        (void)curl->api.multi_cleanup(curl->multi);
    curl->multi = NULL;
    loop_disarm(curl->loop, &curl->timer);
}
