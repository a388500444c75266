/* Exit codes of our programs, as sysexits-free small numbers that scripts can test. */
#ifndef HM_CONTRACT_EXIT_CODES_H
#define HM_CONTRACT_EXIT_CODES_H

enum hm_exit {
	HM_EXIT_OK = 0,
	HM_EXIT_FAILED = 1,        /* the work failed; stderr says why */
	HM_EXIT_USAGE = 2,         /* bad option, argument or input file */
	HM_EXIT_NO_DRIVER = 3,     /* libnvidia-ml.so.1 cannot be loaded or initialised */
	HM_EXIT_NO_AGENT = 4,      /* the agent's state folder is not there */
	HM_EXIT_NO_PERMISSION = 5, /* a file or folder may not be read */
};

#endif
