#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The error number with which a call of the operating system failed.
package struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    package let number: Int32

    package init(number: Int32) { self.number = number }

    /// `errno`: the error of the last failed call of this thread. Read it at once, because any other call may change it.
    package static var last: SystemError { SystemError(number: errno) }

    /// `strerror`: the system's description.
    package var description: String { String(cString: strerror(number)) }

    /// Whether there was no room: a full disk, a quota, or the limit on the size of files.
    package var isDiskFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(number) }

    /// Whether a permission is missing, or the file system is read-only.
    package var isPermission: Bool { [EACCES, EPERM, EROFS].contains(number) }

    /// `EACCES`
    package static let accessDenied = SystemError(number: EACCES)
    /// `EAGAIN`
    package static let tryAgain = SystemError(number: EAGAIN)
    /// `EBADF`
    package static let badDescriptor = SystemError(number: EBADF)
    /// `EBUSY`
    package static let busy = SystemError(number: EBUSY)
    /// `EEXIST`
    package static let exists = SystemError(number: EEXIST)
    /// `EFBIG`: beyond the limit on the size of files.
    package static let fileTooLarge = SystemError(number: EFBIG)
    /// `EILSEQ`: bytes that are no text.
    package static let notText = SystemError(number: EILSEQ)
    /// `EINVAL`
    package static let invalidArgument = SystemError(number: EINVAL)
    /// `EINTR`
    package static let interrupted = SystemError(number: EINTR)
    /// `EIO`
    package static let failedTransfer = SystemError(number: EIO)
    /// `EISDIR`
    package static let isFolder = SystemError(number: EISDIR)
    /// `ELOOP`: too many symbolic links, or a link where no link is followed.
    package static let linkLoop = SystemError(number: ELOOP)
    /// `ENAMETOOLONG`
    package static let nameTooLong = SystemError(number: ENAMETOOLONG)
    /// `ENOENT`
    package static let notFound = SystemError(number: ENOENT)
    /// `ENOMEM`
    package static let noMemory = SystemError(number: ENOMEM)
    /// `ENOSPC`
    package static let diskFull = SystemError(number: ENOSPC)
    /// `ENOTDIR`
    package static let notFolder = SystemError(number: ENOTDIR)
}
