/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd for tests: members on loopback, on free ports, with their data in a directory of their own that goes with them. They end with the test, however
 * that ends. And relays before them, which can be cut.
 */
#ifndef TL_TESTS_ETCD_FIXTURE_H
#define TL_TESTS_ETCD_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etcd_fixture;

/* Starts 1 or 3 members; does not wait until they can be asked. More arguments for each, or NULL. */
struct etcd_fixture *etcd_fixture_start(int members, const char *const *arguments);
void etcd_fixture_stop(struct etcd_fixture *box);

/* "http://127.0.0.1:…,…/PREFIX" of all members, or of one. Good until the box is stopped. */
const char *etcd_fixture_url(struct etcd_fixture *box, const char *prefix);
int etcd_fixture_port(const struct etcd_fixture *box, int member);

void etcd_fixture_kill(struct etcd_fixture *box, int member);
void etcd_fixture_restart(struct etcd_fixture *box, int member);
void etcd_fixture_signal(struct etcd_fixture *box, int member, int signal);
/* Processor time that all members have used, in microseconds. */
uint64_t etcd_fixture_cpu_us(const struct etcd_fixture *box);

/*
 * A relay: a port of its own, behind which is another port of loopback. `swallow` lets that many bytes of all connections go to the member and then cuts them, before
 * the member's answer comes back; `cut` cuts at once and takes no more until `mend`; `hold`: nothing goes on either way, and nobody is told.
 */
struct relay;
struct relay *relay_start(int port);
void relay_stop(struct relay *relay);
int relay_port(const struct relay *relay);
/* All that the client sends from now on still arrives; nothing comes back, and after `answers` bytes would have, the connections are cut. */
void relay_drop_replies(struct relay *relay, size_t answers);
void relay_cut(struct relay *relay);
void relay_mend(struct relay *relay);
void relay_hold(struct relay *relay, bool held);

#endif
