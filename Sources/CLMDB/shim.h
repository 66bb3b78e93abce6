#include <lmdb.h>

/* Asks the processor for a line of memory; an address that is not mapped does no harm. */
static inline void strata_prefetch(const void *address) { __builtin_prefetch(address); }
