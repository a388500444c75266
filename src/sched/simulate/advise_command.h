/* hami-scheduler advise: which pods would have to move. docs/placement.md */
#ifndef HM_SCHED_SIMULATE_ADVISE_COMMAND_H
#define HM_SCHED_SIMULATE_ADVISE_COMMAND_H

/* argv[0] is the sub-command's name. Returns an exit code (contract/exit_codes.h). */
int advise_main(int argc, char **argv);

#endif
