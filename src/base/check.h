/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks, also in release builds.
 *
 * REQUIRE states a precondition of a function, ENSURE a postcondition, INSIST an internal
 * invariant. A failed check is a bug in this program, never bad input. It logs the expression with
 * its file and line and aborts, because the process could otherwise acknowledge writes that do not
 * exist.
 */
#ifndef TL_BASE_CHECK_H
#define TL_BASE_CHECK_H

_Noreturn void check_failed(const char *kind, const char *expression, const char *file, int line);

#define REQUIRE(e) ((e) ? (void)0 : check_failed("REQUIRE", #e, __FILE__, __LINE__))
#define ENSURE(e) ((e) ? (void)0 : check_failed("ENSURE", #e, __FILE__, __LINE__))
#define INSIST(e) ((e) ? (void)0 : check_failed("INSIST", #e, __FILE__, __LINE__))
#define UNREACHABLE() check_failed("UNREACHABLE", "", __FILE__, __LINE__)

#endif
