internal import Platform
import StoreInterface
import StoreModel

extension FileIdentity {
    /// Returns the identity of a file, or nil if there is no file.
    static func of(path: String) throws -> FileIdentity? {
        let status: FileStatus
        do throws(SystemError) { status = try FileStatus(path) } catch {
            if error == .notFound { return nil }
            throw StoreError(.cannotOpen, "\(path) cannot be inspected: \(error). Check the path")
        }
        guard status.isRegularFile else {
            throw StoreError(.cannotOpen, "\(path) is not a file. A store is one file; give its path")
        }
        return status.identity
    }

    /// Returns the identity of an open file, or nil if the system does not provide it.
    static func of(descriptor: Int32) -> FileIdentity? { of(OpenFile(descriptor: descriptor)) }

    /// Returns the identity of an open file, or nil if the system does not provide it.
    static func of(_ file: OpenFile) -> FileIdentity? { try? file.status().identity }

    static func byteCount(path: String) throws -> Int {
        do throws(SystemError) { return try FileStatus(path).byteCount } catch {
            throw StoreError(.inputOutput, "\(path) cannot be inspected: \(error). Check the disk")
        }
    }
}
