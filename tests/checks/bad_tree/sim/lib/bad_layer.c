/* A seeded fault: a library of the simulation reaches into the loop. */
#include "io/loop.h"
