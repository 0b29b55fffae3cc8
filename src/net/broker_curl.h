/* SPDX-License-Identifier: MIT */
/* libcurl in the broker's loop. It is loaded only where credentials are injected, as its many
 * libraries take longer to load than the broker takes to start, and before the broker confines
 * itself, after which no code can be loaded. */
#pragma once

#include <curl/curl.h>

#include "net/broker_loop.h"

struct brig_error;
struct broker_curl_socket;

/* The functions that are used, found by name. */
struct curl_api {
    typeof(&curl_global_init_mem) global_init_mem;
    typeof(&curl_easy_init) easy_init;
    typeof(&curl_easy_setopt) easy_setopt;
    typeof(&curl_easy_getinfo) easy_getinfo;
    typeof(&curl_easy_pause) easy_pause;
    typeof(&curl_easy_cleanup) easy_cleanup;
    typeof(&curl_easy_strerror) easy_strerror;
    typeof(&curl_slist_append) slist_append;
    typeof(&curl_slist_free_all) slist_free_all;
    typeof(&curl_multi_init) multi_init;
    typeof(&curl_multi_setopt) multi_setopt;
    typeof(&curl_multi_add_handle) multi_add_handle;
    typeof(&curl_multi_remove_handle) multi_remove_handle;
    typeof(&curl_multi_socket_action) multi_socket_action;
    typeof(&curl_multi_info_read) multi_info_read;
    typeof(&curl_multi_assign) multi_assign;
    typeof(&curl_multi_cleanup) multi_cleanup;
};

struct broker_curl {
    struct loop *loop;
    void *library;
    struct curl_api api;
    CURLM *multi;
    struct timer timer;
    /* A transfer has ended; not called from inside another call. */
    void (*ended)(struct broker_curl *curl, CURL *easy, CURLcode result);
};

int broker_curl_init(struct broker_curl *curl, struct loop *loop, struct brig_error *err);
void broker_curl_done(struct broker_curl *curl);
