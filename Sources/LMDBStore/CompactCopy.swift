import LMDB
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension LMDBStore {
    /// Writes a copy without free pages, on a queue of its own; see ``CompactableStore``. Takes about as long as writing and
    /// verifying a file of that size. Opening the copy beside this store gives a second store with the same identity.
    public func compactCopy(to url: URL) async throws {
        try await inBackground { store, cancellation in try CompactCopy(store, url, cancellation).run() }
    }
}

/// Makes the copy under a temporary name beside the wanted one; nothing has the wanted name before all is on disk and verified.
struct CompactCopy {
    private let store: LMDBStore
    private let target: URL
    private let partial: URL
    private let cancellation: Cancellation

    init(_ store: LMDBStore, _ target: URL, _ cancellation: Cancellation) {
        self.store = store
        self.target = target
        self.cancellation = cancellation
        partial = target.deletingLastPathComponent().appendingPathComponent(".\(target.lastPathComponent).\(UUID().uuidString)")
    }

    func run() throws {
        try cancellation.check()
        guard try FileIdentity.of(path: target.path) == nil else {
            throw StoreError(.cannotOpen, "\(target.path) is there already. Give another name, or remove it")
        }
        defer { removePartial() }
        do {
            try store.environment.copy(to: partial.path)
        } catch {
            throw StoreError(error, path: target.path)
        }
        try cancellation.check()
        try verify()
        try sync(partial.path)
        guard rename(partial.path, target.path) == 0 else { throw failed("cannot get its name") }
        // The name is on disk only when its folder is.
        let folder = target.deletingLastPathComponent().path
        try sync(folder.isEmpty ? "." : folder)
    }

    private func verify() throws {
        var options = store.options
        options.mapSize = 1 << 20
        let copy = try LMDBStore.open(partial, schema: store.schema, options: options)
        if let finding = try copy.verify().first {
            throw StoreError(.damaged, "\(target.path) was not made, because the copy is damaged: \(finding). Verify the store")
        }
    }

    private func sync(_ path: String) throws {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { throw failed("cannot be opened to be synced") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failed("cannot be synced") }
    }

    private func removePartial() {
        unlink(partial.path)
        unlink(partial.path + "-lock")
    }

    private func failed(_ what: String) -> StoreError {
        StoreError(.inputOutput, "\(target.path) \(what): \(String(cString: strerror(errno))). Check rights and disk")
    }
}
