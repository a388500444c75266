/* Which MIG profiles may be made on which cards, as an administrator wrote it. Plain data; whoever made it owns it. */
#ifndef HM_MODEL_MIG_ALLOWLIST_H
#define HM_MODEL_MIG_ALLOWLIST_H

#include <stddef.h>

/* A card whose model has one of `models` in its name may have these profiles ("2g.10gb"). Neither list is empty. */
struct mig_allowed {
	const char **models;
	size_t model_count;
	const char **profiles;
	size_t profile_count;
};

/* The first item that fits a card counts. */
struct mig_allowlist {
	struct mig_allowed *items;
	size_t count;
};

#endif
