/* A seeded fault: does not compile alone. */
#ifndef HM_BAD_HEADER_H
#define HM_BAD_HEADER_H

size_t bad_header(void);

#endif
