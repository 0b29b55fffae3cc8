/* SPDX-License-Identifier: MIT */
/* The record of an image from any bytes. What is accepted is written as a text that is read as the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/str.h"
#include "image/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_record record = {0}, again = {0};
    struct str text = {0}, same = {0};
    if (image_record_read((const char *)data, size, &record, NULL) < 0)
        return 0;
    image_record_write(&record, &text);
    if (image_record_read(text.data, text.length, &again, NULL) < 0)
        abort();
    image_record_write(&again, &same);
    if (!str_equal(text.data, same.data))
        abort();
    image_record_done(&record);
    image_record_done(&again);
    str_done(&text);
    str_done(&same);
    return 0;
}
