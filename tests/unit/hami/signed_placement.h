/* A placement and its signature, for tests of who signs and of who believes. */
#ifndef HM_TESTS_HAMI_SIGNED_PLACEMENT_H
#define HM_TESTS_HAMI_SIGNED_PLACEMENT_H

/* The key of RFC 8032, 7.1, test 1. */
#define PRIVATE_1                                                                                                      \
	"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"              \
	"-----END PRIVATE KEY-----\n"

#define POD_UID "6c1f2f0e-8a53-4d9c-9a43-0c5a1b6f7e11"

/* openssl-pkeyutl's, of POD_UID on node-1 at 1787293239 with "GPU-a,NVIDIA,3000,30:;". */
#define PLAIN_BY_1 "Tj30BXA3w3HDZWM1GwDk-AoApolpPe6BiuJmim4IeVobBKclLbqJ6MnY8_SVp0EpjJHP2xJt3gAy4O6ZMjQsDQ"

#endif
