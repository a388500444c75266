/* What every cmocka test includes: cmocka.h and the headers that it wants before it. */
#ifndef HM_TESTS_HARNESS_UNIT_H
#define HM_TESTS_HARNESS_UNIT_H

/* clang-format off: cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#endif
