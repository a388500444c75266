/* What programs that run on virtual_time.so may ask of it. */
#ifndef HM_TESTS_VIRTUAL_TIME_H
#define HM_TESTS_VIRTUAL_TIME_H

#define VIRTUAL_TIME_MEET_NS 1000000

/* The virtual clock stands still until so many processes are here, and all go on at one moment. Not there (NULL) where
 * the library is not preloaded. */
__attribute__((weak)) void virtual_time_meet(unsigned processes);

#endif
