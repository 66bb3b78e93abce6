#include <lmdb.h>
#ifdef __linux__
#include <sys/statfs.h>
#else
#include <sys/mount.h>
#endif
