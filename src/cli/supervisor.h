/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whoever started the server how far it is: systemd's protocol of one datagram (sd_notify(3)), for units of Type=notify. */
#ifndef TL_CLI_SUPERVISOR_H
#define TL_CLI_SUPERVISOR_H

/*
 * Sends a state, such as "READY=1", to the socket that NOTIFY_SOCKET names. Without one nobody wants to know; a socket that does not
 * take it is told in the log.
 */
void supervisor_tell(const char *state);

#endif
