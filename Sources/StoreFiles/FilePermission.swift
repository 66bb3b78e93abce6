import StoreModel
internal import Platform

/// A check that finds the missing permission when a store's file cannot be opened (S166).
package enum FilePermission {
    /// Returns an error that names the file or folder and the missing permission, or nil if none is missing. Takes some
    /// microseconds.
    /// - Parameters:
    ///   - path: The path of the store's file.
    ///   - companions: The suffixes of the files beside it that an opening for writing uses, such as `-lock`.
    ///   - isReadOnly: Whether the file is only read.
    package static func failure(_ path: String, companions: [String], isReadOnly: Bool) -> StoreError? {
        if let failure = unreachable(path) { return failure }
        let folder = folder(of: path)
        do throws(SystemError) {
            try FileSystem.checkAccess(path)
        } catch {
            guard error == .notFound, !isReadOnly, isDenied(folder, .write) else { return nil }
            return StoreError(
                .readOnly,
                "cannot create \(path): this user may not write to the folder \(folder). Grant that permission, or choose another folder"
            )
        }
        if isDenied(path, .read) {
            return StoreError(.cannotOpen, "cannot open \(path): this user may not read the file. Grant that permission")
        }
        if isReadOnly { return nil }
        if isDenied(path, .write) {
            return StoreError(
                .readOnly,
                "cannot open \(path) for writing: this user may not write to the file. Grant that permission, or open it with "
                    + "readOnly: true")
        }
        return companions.lazy.compactMap { companionFailure(path, companion: path + $0, in: folder) }.first
    }

    private static func companionFailure(_ path: String, companion: String, in folder: String) -> StoreError? {
        if FileSystem.allows(companion) {
            guard isDenied(companion, [.read, .write]) else { return nil }
            return StoreError(
                .readOnly,
                "cannot open \(path) for writing: this user may not read and write \(companion), which processes that write the file "
                    + "share. Grant that permission, or open it with readOnly: true")
        }
        guard isDenied(folder, .write) else { return nil }
        return StoreError(
            .readOnly,
            "cannot open \(path) for writing: this user may not write to the folder \(folder), where \(companion) is to be made. "
                + "Grant that permission, or open it with readOnly: true")
    }

    /// Returns an error for the first folder on the path that this user may not enter, or nil if there is none.
    package static func unreachable(_ path: String) -> StoreError? {
        guard isDenied(folder(of: path), .enter) else { return nil }
        var denied = folder(of: path)
        while denied != "/", denied != ".", isDenied(folder(of: denied), .enter) { denied = folder(of: denied) }
        return StoreError(
            .cannotOpen, "cannot open \(path): this user may not enter the folder \(denied). Grant that permission")
    }

    /// Returns whether a permission is missing; false if there is no such file.
    private static func isDenied(_ path: String, _ permission: FileSystem.Permission) -> Bool {
        do throws(SystemError) {
            try FileSystem.checkAccess(path, permission)
            return false
        } catch {
            return error.isPermission
        }
    }

    private static func folder(of path: String) -> String { FileSystem.folder(of: path) }

    /// Returns whether this user may create files in the folder of a file.
    package static func mayWriteFolder(of path: String) -> Bool { FileSystem.allows(folder(of: path), .write) }
}
