#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/statfs.h>
#include <sys/syscall.h>
#else
#include <sys/mount.h>
#endif

#if defined(__linux__)
/* Declared here: asking the headers for them (_GNU_SOURCE) changes others of their types, and Swift's module of them has not asked. */
extern int fallocate(int file, int mode, off_t start, off_t length);
extern long syscall(long number, ...);

/* The id of the calling thread. A plain system call, because glibc has had a function for it only since 2.30. */
static inline int strata_thread_identifier(void) { return (int)syscall(SYS_gettid); }
#endif

/*
 * Has the system reserve room for a file from `start` to `end`, without changing the file's size. 0 also where the file system
 * cannot do that; otherwise an error number.
 */
static inline int strata_allocate(int file, long long start, long long end) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (unsigned long long)end > limit.rlim_cur)
        return EFBIG;
#if defined(__linux__)
    int code;
    do code = fallocate(file, 0x01 /* FALLOC_FL_KEEP_SIZE */, start, end - start);
    while (code != 0 && errno == EINTR);
    if (code == 0) return 0;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
#else
    fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, end - start, 0};
    if (fcntl(file, F_PREALLOCATE, &store) == 0) return 0;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
#endif
}
