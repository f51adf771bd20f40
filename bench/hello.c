/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello: libmicrohttpd answering 100 bytes of JSON to everything, the limit that our HTTP layer is measured against.
 *
 *     hello PORT THREADS
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct MHD_Response *response;

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *data_size, void **state)
{
    (void)context, (void)url, (void)method, (void)version, (void)data;
    static int seen;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (*data_size > 0) {
        *data_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

int main(int argc, char **argv)
{
    static char body[101];
    if (argc != 3)
        return 2;
    memset(body, 'x', 100);
    memcpy(body, "{\"hello\":\"", 10);
    memcpy(body + 98, "\"}", 2);
    response = MHD_create_response_from_buffer(100, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, (uint16_t)atoi(argv[1]), NULL, NULL, answer, NULL,
                         MHD_OPTION_THREAD_POOL_SIZE, (unsigned)atoi(argv[2]), MHD_OPTION_END);
    if (daemon == NULL)
        return 1;
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
