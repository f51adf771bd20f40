/* SPDX-License-Identifier: Apache-2.0 */
/* StringBuilder and StringBuffer: a text_buf as a value of a script. */
#ifndef TL_SCRIPT_BUILDER_H
#define TL_SCRIPT_BUILDER_H

#include "script/value/text.h"

struct builder {
    struct object object;
    struct text_buf buf;
};

static inline bool builder_append_to(const struct builder *builder, struct text_buf *out)
{
    for (size_t i = 0; i < builder->buf.length; i++)
        text_buf_unit(out, builder->buf.units[i]);
    return !out->failed;
}

#endif
