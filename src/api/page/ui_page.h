/* SPDX-License-Identifier: Apache-2.0 */
/* The page as tools/embed-page has made it of page.html. */
#ifndef TL_API_UI_PAGE_H
#define TL_API_UI_PAGE_H

#include <stddef.h>

extern const unsigned char ui_page[];
extern const size_t ui_page_bytes;
extern const char ui_page_policy[]; /* its Content-Security-Policy */

#endif
