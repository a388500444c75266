/* A seeded fault: core/ reaches up, and knows of the simulation. */
#include "base/log.h"

const char *where = "HAMI_SIM_DIR";
