/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that Groovy adds to Java's classes. */
#include "script/method.h"

const struct method_table methods_groovy[] = {{0}};
