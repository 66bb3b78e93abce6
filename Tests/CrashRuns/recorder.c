// A library for LD_PRELOAD (Linux) that records the operations of a process on the files of one folder.
//
// STRATA_RECORD_FOLDER names the folder. STRATA_RECORD_LOG names the log, which several processes may share. Each record is a header and
// its bytes, appended by one write. A lock is held over the call and its record, so that records have the order of the calls.
// Syncs are recorded but not executed: the simulated disk decides what they have made durable. STRATA_RECORD_FORGETS=n leaves out every
// n-th sync, as a store with a missing sync would. The checks of power cuts must detect it.

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum operation {
    op_create = 1, op_write = 2, op_write_synced = 3, op_sync_begin = 4, op_sync_end = 5, op_truncate = 6,
    op_rename = 7, op_link = 8, op_unlink = 9, op_make_folder = 10, op_exchange = 11, op_map = 12,
};

struct header {
    uint32_t operation;
    uint32_t process;
    uint64_t inode;
    uint64_t offset;
    uint64_t length;
};

struct descriptor {
    uint64_t inode;  // 0: the file is not in the folder
    int flags;
};

#define DESCRIPTORS 65536
static struct descriptor table[DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_length;
static int log_descriptor = -1;
static int forgets, syncs;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("STRATA_RECORD_FOLDER"), *log = getenv("STRATA_RECORD_LOG");
    if (!path || !log || !realpath(path, folder)) return;
    folder_length = strlen(folder);
    const char *every = getenv("STRATA_RECORD_FORGETS");
    forgets = every ? atoi(every) : 0;
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void record(enum operation operation, uint64_t inode, uint64_t offset, const struct iovec *parts, int count, size_t length) {
    struct header header = {operation, (uint32_t)getpid(), inode, offset, length};
    // A call has few parts: LMDB writes at most 64 at once.
    struct iovec all[count + 1];
    all[0] = (struct iovec){&header, sizeof header};
    size_t left = length;
    int used = 1;
    for (int i = 0; i < count && left > 0; i++) {
        size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
        all[used++] = (struct iovec){parts[i].iov_base, part};
        left -= part;
    }
    if (syscall(SYS_writev, log_descriptor, all, used) != (long)(sizeof header + length)) {
        fprintf(stderr, "recorder: the log cannot be written\n");
        abort();
    }
}

static void record_text(enum operation operation, uint64_t inode, const char *first, const char *second) {
    struct iovec parts[2] = {{(void *)first, strlen(first) + 1}, {(void *)second, second ? strlen(second) + 1 : 0}};
    record(operation, inode, 0, parts, second ? 2 : 1, parts[0].iov_len + parts[1].iov_len);
}

static struct descriptor *known(int fd) {
    if (log_descriptor < 0 || fd < 0 || fd >= DESCRIPTORS || !table[fd].inode) return NULL;
    return &table[fd];
}

// Returns the path relative to the folder ("." for the folder itself), or NULL.
static const char *inside(const char *path) {
    if (log_descriptor < 0 || strncmp(path, folder, folder_length) != 0) return NULL;
    if (path[folder_length] == 0) return ".";
    return path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

// Resolves the folder of a path, but not its last name, as the kernel does to create, rename or remove a name.
static const char *named(int at, const char *path, char *buffer) {
    if (log_descriptor < 0 || !path) return NULL;
    char whole[PATH_MAX * 2], parent[PATH_MAX];
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char base[PATH_MAX], link[64];
        if (at == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return NULL;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length < 0) return NULL;
            base[length] = 0;
        }
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    char *slash = strrchr(whole, '/');
    if (!slash[1] || slash == whole) return NULL;
    *slash = 0;
    if (!realpath(whole, parent)) return NULL;
    if (strlen(parent) + strlen(slash + 1) + 2 > PATH_MAX) return NULL;
    strcpy(buffer, parent);
    strcat(buffer, "/");
    strcat(buffer, slash + 1);
    return inside(buffer);
}

static uint64_t inode_of(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// MARK: Opening and closing

static int opened(int at, const char *path, int flags, mode_t mode) {
    if (log_descriptor < 0) return (int)syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    char link[64], target[PATH_MAX];
    struct stat status;
    int is_new = (flags & O_CREAT) && fstatat(at, path, &status, 0) != 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    int failure = errno;
    if (fd >= 0 && fd < DESCRIPTORS) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        const char *name = inside(target);
        table[fd] = (struct descriptor){name ? inode_of(fd) : 0, flags};
        if (name && is_new) record_text(op_create, table[fd].inode, name, NULL);
        if (name && !is_new && (flags & O_TRUNC)) record(op_truncate, table[fd].inode, 0, NULL, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return fd;
}

static mode_t mode_argument(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(list, int) : 0; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list list; va_start(list, flags); mode_t mode = mode_argument(flags, list); va_end(list); \
        return opened(AT_FDCWD, path, flags, mode); }
OPEN(open)
OPEN(open64)
#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list list; va_start(list, flags); mode_t mode = mode_argument(flags, list); va_end(list); \
        return opened(at, path, flags, mode); }
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

int close(int fd) {
    if (log_descriptor >= 0 && fd == log_descriptor) return 0;
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < DESCRIPTORS) table[fd].inode = 0;
    int result = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return result;
}

static int copied(int from, int to) {
    if (to >= 0 && to < DESCRIPTORS && from >= 0 && from < DESCRIPTORS) table[to] = table[from];
    return to;
}
int dup(int fd) { return copied(fd, (int)syscall(SYS_dup, fd)); }
int dup2(int fd, int to) { return copied(fd, REAL(dup2)(fd, to)); }
int dup3(int fd, int to, int flags) { return copied(fd, (int)syscall(SYS_dup3, fd, to, flags)); }

#define FCNTL(name) \
    int name(int fd, int command, ...) { \
        va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list); \
        int result = (int)syscall(SYS_fcntl, fd, command, argument); \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) copied(fd, result); \
        if (command == F_SETFL && result == 0 && known(fd)) \
            table[fd].flags = (table[fd].flags & ~O_APPEND) | ((int)(intptr_t)argument & O_APPEND); \
        return result; }
FCNTL(fcntl)
FCNTL(fcntl64)

// MARK: Writing

static ssize_t written(int fd, const struct iovec *parts, int count, off_t offset) {
    // A negative offset means the descriptor's present offset.
    struct descriptor *of = known(fd);
    if (!of) {
        if (offset < 0) return syscall(SYS_writev, fd, parts, count);
        return syscall(SYS_pwritev, fd, parts, count, (long)offset, 0L);
    }
    pthread_mutex_lock(&lock);
    off_t place = offset;
    if (of->flags & O_APPEND) {
        struct stat status;
        fstat(fd, &status);
        place = status.st_size;
    } else if (offset < 0) {
        place = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    }
    ssize_t result = offset < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, (long)offset, 0L);
    int failure = errno;
    if (result > 0) {
        int is_synced = (of->flags & (O_DSYNC | O_SYNC)) != 0;
        record(is_synced ? op_write_synced : op_write, of->inode, (uint64_t)place, parts, count, (size_t)result);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

#define ONE(bytes, length) (&(struct iovec){(void *)(bytes), (length)}), 1
ssize_t write(int fd, const void *bytes, size_t length) { return written(fd, ONE(bytes, length), -1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return written(fd, ONE(bytes, length), offset); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) { return written(fd, ONE(bytes, length), offset); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return written(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return written(fd, parts, count, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) { return written(fd, parts, count, offset); }

// Refuses copies inside the kernel, so that the caller writes the bytes itself.
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
    if (!known(to)) return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
    errno = EXDEV;
    return -1;
}
#define SENDFILE(name, type) \
    ssize_t name(int to, int from, type *offset, size_t length) { \
        if (!known(to)) return syscall(SYS_sendfile, to, from, offset, length); \
        errno = EINVAL; \
        return -1; }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

static int cut(int fd, off_t size) {
    struct descriptor *of = known(fd);
    if (!of) return (int)syscall(SYS_ftruncate, fd, (long)size);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_ftruncate, fd, (long)size);
    int failure = errno;
    if (result == 0) record(op_truncate, of->inode, (uint64_t)size, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }
static int cut_path(const char *path, off_t size) {
    int fd = opened(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = cut(fd, size), failure = errno;
    close(fd);
    errno = failure;
    return result;
}
int truncate(const char *path, off_t size) { return cut_path(path, size); }
int truncate64(const char *path, off64_t size) { return cut_path(path, size); }

// Allocating room changes nothing that can be read, but a larger size does.
static int reserved(int fd, int mode, off_t offset, off_t length) {
    struct descriptor *of = known(fd);
    if (!of) return (int)syscall(SYS_fallocate, fd, mode, (long)offset, (long)length);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_fallocate, fd, mode, (long)offset, (long)length);
    int failure = errno;
    struct stat status;
    if (result == 0 && !(mode & FALLOC_FL_KEEP_SIZE) && fstat(fd, &status) == 0)
        record(op_truncate, of->inode, (uint64_t)status.st_size, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) { return reserved(fd, mode, offset, length); }
int fallocate64(int fd, int mode, off64_t offset, off64_t length) { return reserved(fd, mode, offset, length); }
int posix_fallocate(int fd, off_t offset, off_t length) { return reserved(fd, 0, offset, length) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t offset, off64_t length) { return reserved(fd, 0, offset, length) == 0 ? 0 : errno; }

// MARK: Syncing

static int synced(int fd) {
    struct descriptor *of = known(fd);
    if (!of) return 0;
    uint64_t inode = of->inode;
    pthread_mutex_lock(&lock);
    if (forgets > 0 && ++syncs % forgets == 0) {
        pthread_mutex_unlock(&lock);
        return 0;
    }
    // The thread tells syncs of one file apart that run at the same time.
    uint64_t thread = (uint64_t)syscall(SYS_gettid);
    record(op_sync_begin, inode, thread, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    // Other threads and processes may write meanwhile. The sync does not cover their writes.
    usleep(20);
    pthread_mutex_lock(&lock);
    record(op_sync_end, inode, thread, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}
int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

#define MMAP(name, type) \
    void *name(void *address, size_t length, int protection, int flags, int fd, type offset) { \
        struct descriptor *of = known(fd); \
        if (of && (flags & MAP_SHARED) && (protection & PROT_WRITE)) { \
            pthread_mutex_lock(&lock); \
            record(op_map, of->inode, (uint64_t)offset, NULL, 0, 0); \
            pthread_mutex_unlock(&lock); \
        } \
        return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, (long)offset); }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

// MARK: Names

static int renamed(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char first[PATH_MAX], second[PATH_MAX];
    if (log_descriptor < 0) return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    const char *old = named(from_at, from, first), *new = named(to_at, to, second);
    int result = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    int failure = errno;
    if (result == 0 && old && new) record_text(flags & RENAME_EXCHANGE ? op_exchange : op_rename, 0, old, new);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return renamed(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return renamed(from_at, from, to_at, to, flags);
}

static int linked(int from_at, const char *from, int to_at, const char *to, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    if (log_descriptor < 0) return (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    const char *old = named(from_at, from, first), *new = named(to_at, to, second);
    int result = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    int failure = errno;
    if (result == 0 && old && new) record_text(op_link, 0, old, new);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) { return linked(from_at, from, to_at, to, flags); }

static int removed(int at, const char *path, int flags) {
    char buffer[PATH_MAX];
    if (log_descriptor < 0) return (int)syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&lock);
    const char *name = named(at, path, buffer);
    int result = (int)syscall(SYS_unlinkat, at, path, flags);
    int failure = errno;
    if (result == 0 && name) record_text(op_unlink, 0, name, NULL);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }
int remove(const char *path) {
    int result = removed(AT_FDCWD, path, 0);
    return result != 0 && errno == EISDIR ? removed(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

static int made(int at, const char *path, mode_t mode) {
    char buffer[PATH_MAX];
    if (log_descriptor < 0) return (int)syscall(SYS_mkdirat, at, path, mode);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_mkdirat, at, path, mode);
    int failure = errno;
    const char *name = result == 0 ? named(at, path, buffer) : NULL;
    struct stat status;
    if (name && fstatat(at, path, &status, 0) == 0) record_text(op_make_folder, status.st_ino, name, NULL);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return made(at, path, mode); }
