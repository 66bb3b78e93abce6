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
        if access(path, F_OK) != 0 {
            guard errno == ENOENT, !isReadOnly, isDenied(folder, W_OK) else { return nil }
            return StoreError(
                .readOnly,
                "cannot create \(path): this user may not write to the folder \(folder). Grant that permission, or choose another folder"
            )
        }
        if isDenied(path, R_OK) {
            return StoreError(.cannotOpen, "cannot open \(path): this user may not read the file. Grant that permission")
        }
        if isReadOnly { return nil }
        if isDenied(path, W_OK) {
            return StoreError(
                .readOnly,
                "cannot open \(path) for writing: this user may not write to the file. Grant that permission, or open it with "
                    + "readOnly: true")
        }
        return companions.lazy.compactMap { companionFailure(path, path + $0, folder) }.first
    }

    private static func companionFailure(_ path: String, _ companion: String, _ folder: String) -> StoreError? {
        if access(companion, F_OK) == 0 {
            guard isDenied(companion, R_OK | W_OK) else { return nil }
            return StoreError(
                .readOnly,
                "cannot open \(path) for writing: this user may not read and write \(companion), which processes that write the file "
                    + "share. Grant that permission, or open it with readOnly: true")
        }
        guard isDenied(folder, W_OK) else { return nil }
        return StoreError(
            .readOnly,
            "cannot open \(path) for writing: this user may not write to the folder \(folder), where \(companion) is to be made. "
                + "Grant that permission, or open it with readOnly: true")
    }

    /// Returns an error for the first folder on the path that this user may not enter, or nil if there is none.
    package static func unreachable(_ path: String) -> StoreError? {
        guard isDenied(folder(of: path), X_OK) else { return nil }
        var denied = folder(of: path)
        while denied != "/", denied != ".", isDenied(folder(of: denied), X_OK) { denied = folder(of: denied) }
        return StoreError(
            .cannotOpen, "cannot open \(path): this user may not enter the folder \(denied). Grant that permission")
    }

    /// Returns whether a permission is missing; false if there is no such file.
    private static func isDenied(_ path: String, _ mode: Int32) -> Bool {
        access(path, mode) != 0 && (errno == EACCES || errno == EPERM || errno == EROFS)
    }

    package static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns whether this user may create files in the folder of a file.
    package static func mayWriteFolder(of path: String) -> Bool { access(folder(of: path), W_OK) == 0 }
}
