/* hami-scheduler simulate: how a policy would do on a trace. docs/placement.md */
#ifndef HM_SCHED_SIMULATE_SIMULATE_H
#define HM_SCHED_SIMULATE_SIMULATE_H

/* argv[0] is the sub-command's name. Returns an exit code (contract/exit_codes.h). */
int simulate_main(int argc, char **argv);

#endif
