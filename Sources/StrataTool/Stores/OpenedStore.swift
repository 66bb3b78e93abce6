import Datasets
import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel

/// The kind of a file, from its first bytes.
enum FileKind: String {
    /// A store on LMDB.
    case lmdb
    /// A database of SQLite, which may be a store.
    case sqlite
    /// Anything else.
    case other

    /// - Throws: ``ToolError`` if the file cannot be read.
    init(ofFile path: String) throws {
        try Self.checkIsRegular(path)
        // Closing a second descriptor of the shell's SQLite file would release all locks that this process has on it.
        if let kept = Opening.current.kept, Self.areSame(path, kept.path) {
            self = kept.kind
            return
        }
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw ToolError.wrongInput("\(path): cannot be read. Check its permissions")
        }
        defer { try? handle.close() }
        let start = [UInt8]((try? handle.read(upToCount: 32)) ?? Data())
        if start.starts(with: Array("SQLite format 3\u{0}".utf8)) {
            self = .sqlite
        } else {
            // LMDB's magic number is after the header of the first page.
            self = start.count >= 20 && Array(start[16..<20]) == [0xDE, 0xC0, 0xEF, 0xBE] ? .lmdb : .other
        }
    }

    /// Whether two paths lead to one file.
    static func areSame(_ path: String, _ other: String) -> Bool {
        var (first, second) = (stat(), stat())
        return stat(path, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev
            && first.st_ino == second.st_ino
    }

    /// Throws if a path leads to no regular file. Reading a device or a pipe might never end.
    private static func checkIsRegular(_ path: String) throws {
        var status = stat()
        guard stat(path, &status) == 0 else {
            switch errno {
            case EACCES: throw ToolError.wrongInput("\(path): this user may not enter one of its folders. Grant that permission")
            case ELOOP: throw ToolError.wrongInput("\(path): its symbolic links lead in a circle. Remove them")
            default: throw ToolError.wrongInput("\(path): no such file. Check the path")
            }
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: throw ToolError.wrongInput("\(path): is a folder. Name a file")
        default: throw ToolError.wrongInput("\(path): is a device or a pipe, and not a regular file. Name a file")
        }
    }

    /// Returns the description of a store in a file of this kind.
    ///
    /// - Parameter check: The pages of an LMDB file to check at opening.
    func description(
        _ path: String, _ access: OpenedStore.Access, check: LMDBStore.Options.OpeningCheck = .roots
    ) -> StoreDescription {
        let url = URL(fileURLWithPath: path, isDirectory: false)
        if self == .sqlite { return .sqlite(url, readOnly: access == .reading) }
        var options = LMDBStore.Options()
        options.openingCheck = check
        return .lmdb(url, readOnly: access == .reading, options: options)
    }

    /// Returns the model that a store of this kind was written with. Every verb calls this before it opens a store.
    ///
    /// Checks every page of an LMDB file, unless the run says otherwise, without LMDB, which would crash on its own damaged pages. The
    /// file of an open store is not checked again.
    func storedModel(_ path: String) async throws -> Model {
        let opening = Opening.current
        let isChecked = opening.check == .roots || opening.kept(path) != nil
        let bar = ProgressBar("checking \(path)")
        if self == .lmdb, !isChecked { bar.showBusy() }
        defer { bar.finish() }
        guard let schema = try await storedSchema(path, check: isChecked ? .roots : .everything) else {
            throw ToolError.wrongInput(
                self == .sqlite
                    ? "\(path): an SQLite database, but not a store. Import it with `strata import`"
                    : "\(path): not a store that can be read: it is empty, or was written by a newer version. Check the path")
        }
        return try Model(stored: schema)
    }

    /// Returns the schema of a store, or nil if the file has none that this version can read.
    /// - Throws: `StoreError` if the file cannot be opened.
    func storedSchema(_ path: String, check: LMDBStore.Options.OpeningCheck) async throws -> StoreSchema? {
        let read = description(path, .reading, check: check).storedSchema
        return try await withCheckedThrowingContinuation { continuation in
            // Reading blocks.
            DispatchQueue.global().async { continuation.resume(with: Result { try read?() }) }
        }
    }
}

/// A store that was opened with the model in its file.
struct OpenedStore: Sendable {
    /// Whether a verb changes the file.
    enum Access { case reading, writing }

    let path: String
    let kind: FileKind
    let container: PersistentContainer

    /// The model, with names for relationships that the file does not name.
    var model: Model { container.model }

    /// The names of the objects for people.
    var names: ObjectNames { ObjectNames(model: model, store: container.coordinator.storeIdentity) }

    /// Opens a store, runs `body` and closes the store.
    static func with<R>(
        _ path: String, access: Access = .reading, _ body: (OpenedStore) async throws -> R
    ) async throws -> R {
        if access == .reading, let kept = Opening.current.kept(path) {
            // Other processes may have saved since the last line.
            try await kept.container.coordinator.refresh()
            return try await body(kept)
        }
        if access == .writing, let kept = Opening.current.kept(path), kept.kind == .lmdb {
            throw ToolError.wrongInput("\(path): the shell has it open for reading. Run this verb outside of the shell")
        }
        let opened = try await open(path, access)
        do {
            let result = try await body(opened)
            try await opened.container.close()
            return result
        } catch {
            try? await opened.container.close()
            throw error
        }
    }

    private static func open(_ path: String, _ access: Access) async throws -> OpenedStore {
        let kind = try FileKind(ofFile: path)
        let stored = try await kind.storedModel(path)
        let description = kind.description(path, access)
        let model = InverseNames.model(over: stored, pairs: OrderPairs(description, stored.storeSchema))
        let container = try await PersistentContainer(model: model, store: description)
        return OpenedStore(path: path, kind: kind, container: container)
    }

    /// Returns an entity by its name, in any case.
    /// - Throws: ``ToolError`` with the names that exist.
    func entity(_ name: String) throws -> Entity {
        if let exact = model.entity(named: name) { return exact }
        let known = model.entities.map(\.name) + model.subentities.map(\.name)
        if let near = known.first(where: { $0.lowercased() == name.lowercased() }).flatMap(model.entity) { return near }
        throw ToolError.wrongInput("\(path) has no entity \(name)\(Suggestion.hint(for: name, among: known))")
    }

    /// Runs `body` in a context on one state of the store.
    func read<T: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        try await container.read(body)
    }
}
