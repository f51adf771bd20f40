/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values as YAML, as Jackson lays it out: for `?format=yaml` and `Accept: application/yaml`.
 */
#ifndef TL_API_YAML_H
#define TL_API_YAML_H

#include "base/buf.h"
#include "json/json.h"

/* Appends a document: "---\n" and the value; strings in double quotes, lists at their parent's column. */
void yaml_write(struct buf *buf, yyjson_val *value, enum dialect dialect);

#endif
