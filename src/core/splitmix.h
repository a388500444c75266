/* splitmix64: numbers that lie near one another become such as look random; not for what nobody may guess. */
#ifndef HM_CORE_SPLITMIX_H
#define HM_CORE_SPLITMIX_H

#include <stdint.h>

/* From one number to the next one that is to be scrambled. */
#define SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t splitmix_scramble(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
