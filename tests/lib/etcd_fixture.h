/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An etcd cluster for tests, on free ports of the loopback interface, and relays in front of its
 * members. The processes end with the test, however it ends; the data directory is removed then.
 */
#ifndef TL_TESTS_ETCD_FIXTURE_H
#define TL_TESTS_ETCD_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etcd_fixture;

/*
 * Starts 1 to 3 members; does not wait until they serve requests. `arguments`: further arguments of
 * each member, ended by NULL, valid until the fixture is stopped; or NULL. Owns: the caller;
 * etcd_fixture_stop().
 */
struct etcd_fixture *etcd_fixture_start(int members, const char *const *arguments);
void etcd_fixture_stop(struct etcd_fixture *fixture);

/* Returns: "http://127.0.0.1:…,…/PREFIX" with all members, or https:// if the arguments include
   --cert-file; valid until the next call. */
const char *etcd_fixture_url(struct etcd_fixture *fixture, const char *prefix);
int etcd_fixture_port(const struct etcd_fixture *fixture, int member);

void etcd_fixture_kill(struct etcd_fixture *fixture, int member);
void etcd_fixture_restart(struct etcd_fixture *fixture, int member);
void etcd_fixture_signal(struct etcd_fixture *fixture, int member, int signal);
/* Returns: the processor time of all members, in microseconds. */
uint64_t etcd_fixture_cpu_us(const struct etcd_fixture *fixture);

/* A TCP proxy to a port of the loopback interface, which can interrupt its connections. */
struct relay;
/* Starts a relay to `port`. Owns: the caller; relay_stop(). */
struct relay *relay_start(int port);
void relay_stop(struct relay *relay);
int relay_port(const struct relay *relay);
/*
 * Discards replies while requests still arrive; after `reply_bytes` of them closes all connections
 * and forwards again.
 */
void relay_drop_replies(struct relay *relay, size_t reply_bytes);
/* Closes all connections and rejects new ones until relay_mend(). */
void relay_cut(struct relay *relay);
void relay_mend(struct relay *relay);
/* Stalls all connections in both directions without closing them, or resumes them. */
void relay_hold(struct relay *relay, bool held);

#endif
