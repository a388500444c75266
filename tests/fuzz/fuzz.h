/* What a fuzz target defines. It must not fail, leak or run long, whatever the bytes; returns 0. */
#ifndef HM_TESTS_FUZZ_H
#define HM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
