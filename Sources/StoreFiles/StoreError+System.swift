package import Platform
import StoreModel

extension StoreError {
    /// Creates an error from an error of the system: `.full` if there was no room, `.cannotOpen` for a name that is too long, else
    /// `.inputOutput`.
    /// - Parameters:
    ///   - error: The error of the system.
    ///   - what: The file and the operation that failed.
    package init(_ error: SystemError, _ what: String) {
        if error.isDiskFull {
            self.init(.full, "\(what): \(error). Make room on the disk, or raise the limit of the file's size")
        } else if error == .nameTooLong {
            self.init(
                .cannotOpen, "\(what): \(error). The files beside it have longer names. Choose a name with fewer than 240 bytes")
        } else {
            self.init(.inputOutput, "\(what): \(error). Check the permissions and the disk")
        }
    }
}
