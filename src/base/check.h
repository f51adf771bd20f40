/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that stay on in release.
 *
 * REQUIRE states what the caller owed at entry, ENSURE what the function owes at its end, INSIST what
 * must hold in between. A failed check is a bug in this program, never bad input: it prints the place
 * and the expression and aborts, since going on could acknowledge what is not there.
 */
#ifndef TL_BASE_CHECK_H
#define TL_BASE_CHECK_H

_Noreturn void check_failed(const char *kind, const char *expression, const char *file, int line);

#define REQUIRE(e) ((e) ? (void)0 : check_failed("REQUIRE", #e, __FILE__, __LINE__))
#define ENSURE(e) ((e) ? (void)0 : check_failed("ENSURE", #e, __FILE__, __LINE__))
#define INSIST(e) ((e) ? (void)0 : check_failed("INSIST", #e, __FILE__, __LINE__))
#define UNREACHABLE() check_failed("UNREACHABLE", "", __FILE__, __LINE__)

#endif
