/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the server's state to its supervisor: systemd's protocol of one datagram (sd_notify(3)),
 * for units of Type=notify.
 */
#ifndef TL_CLI_SUPERVISOR_H
#define TL_CLI_SUPERVISOR_H

/*
 * Sends a state, such as "READY=1", to the socket that NOTIFY_SOCKET names. Without one it does
 * nothing; a socket that does not accept it is logged.
 */
void supervisor_notify(const char *state);
/*
 * As supervisor_notify(), for a state that a later one follows: one that the socket does not accept
 * now is dropped. A supervisor that does not read would block the caller.
 */
void supervisor_report(const char *state);

#endif
