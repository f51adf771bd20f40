/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommands of `tidelock`: a table in main.c, a file each.
 */
#ifndef TL_CLI_COMMAND_H
#define TL_CLI_COMMAND_H

/* What `tidelock NAME` does. Returns: the exit status. argv[0] is "tidelock NAME". */
int command_serve(int argc, char **argv);
int command_cert(int argc, char **argv);
int command_check(int argc, char **argv);
int command_import(int argc, char **argv);
int command_lock(int argc, char **argv);
int command_locks(int argc, char **argv);
int command_status(int argc, char **argv);
int command_hosts(int argc, char **argv);
int command_backup(int argc, char **argv);
int command_changes(int argc, char **argv);
int command_replicate(int argc, char **argv);
int command_mv(int argc, char **argv);
int command_restore(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_tree(int argc, char **argv);
int command_demo(int argc, char **argv);

#endif
