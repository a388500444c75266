/* The subcommands: argv[0] is the subcommand's name, the result the exit status (contract/exit_codes.h). */
#ifndef HM_SIMKUBELET_COMMANDS_H
#define HM_SIMKUBELET_COMMANDS_H

int command_serve(int argc, char **argv);
int command_client(int argc, char **argv); /* run, exec, logs, status, delete, kill, wait, kubelet-*, stop */

#endif
