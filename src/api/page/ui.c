/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /_ui/: the page. It reads all data by public calls; nothing is put into it here, so its bytes
 * are the same for all.
 */
#include "api/page/ui_page.h"
#include "api/request/handlers.h"

int handle_ui(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct buf *text = reply_text(request, 200);
    buf_append(text, ui_page, ui_page_bytes);
    request->exchange->content_type = "text/html; charset=UTF-8";
    reply_header(request, "Content-Security-Policy", slice_from(ui_page_policy));
    reply_header(request, "X-Content-Type-Options", SLICE_LIT("nosniff"));
    reply_header(request, "Referrer-Policy", SLICE_LIT("no-referrer"));
    reply_header(request, "Cross-Origin-Opener-Policy", SLICE_LIT("same-origin"));
    reply_header(request, "Cross-Origin-Resource-Policy", SLICE_LIT("same-origin"));
    reply_header(request, "Cache-Control", SLICE_LIT("no-store"));
    return REQUEST_DONE;
}
