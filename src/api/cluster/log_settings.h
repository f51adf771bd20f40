/* SPDX-License-Identifier: Apache-2.0 */
/* How much is logged, as the cluster's settings say: logger._root, before --log-level. */
#ifndef TL_API_LOG_SETTINGS_H
#define TL_API_LOG_SETTINGS_H

struct journal;

/* Has the log go by the settings there are: at the start, and when they have changed. */
void log_settings_apply(struct journal *journal);

#endif
