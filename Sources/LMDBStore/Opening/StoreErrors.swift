import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension StoreError {
    /// Creates an error from LMDB's error about a file, with a code that callers can handle.
    init(_ error: LMDBError, path: String) {
        let code: Code =
            switch error.code {
            case .damaged: .damaged
            case .unusableEnvironment: .mustReopen
            case .mapFull, .mapResized, .transactionFull, .diskFull: .full
            case .readersFull: .readersFull
            case .versionMismatch: .formatTooNew
            case .notLMDB, .incompatible: .notAStore
            case .permission: .readOnly
            case .system: .inputOutput
            default: .internalInconsistency
            }
        self.init(code, "\(path): \(error)", cause: error)
    }

    /// The error for a page that cannot be read.
    static func damagedPage(_ store: LMDBStore, entity: EntityIndex, number: PageNumber, error: PageError) -> StoreError {
        StoreError(
            .damaged,
            "\(store.url.path): page \(number) of \(store.schema.entities[entity].name): \(error). Restore a backup, or copy what is whole with `strata repair`",
            cause: error)
    }

    static func damaged(_ store: LMDBStore, _ what: String, cause: (any Error)? = nil) -> StoreError {
        StoreError(
            .damaged, "\(store.url.path): \(what). Restore a backup, or copy what is whole with `strata repair`", cause: cause)
    }

    /// The error for an LMDB file of another program.
    /// - Parameter missing: The part of a store's file that the file does not have.
    static func fileOfAnotherProgram(_ path: String, _ missing: String) -> StoreError {
        StoreError(
            .notAStore,
            "cannot open \(path): the LMDB file belongs to another program, because it has no \(missing). Check the path")
    }

    /// The error for a file that this process has open for writing instead of read-only, or the reverse.
    static func openOtherwise(_ store: LMDBStore) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot open \(store.url.path) \(store.isReadOnly ? "for writing" : "read-only"): this process has it open "
                + "\(store.isReadOnly ? "read-only" : "for writing"). Close it first, or open it in the same way")
    }

    static func migratedElsewhere(_ store: LMDBStore) -> StoreError {
        StoreError(
            .schemaTooNew,
            "\(store.url.path) was migrated by another process after this process opened it. Open it again with that model")
    }

    static func outgrown(_ store: LMDBStore) -> StoreError {
        StoreError(
            .full,
            "\(store.url.path): another process has made the file larger than the map of this process. "
                + "Drop snapshots so that the map can grow, or open the file with a larger mapSize")
    }

    static func full(_ store: LMDBStore) -> StoreError {
        StoreError(
            .full,
            "\(store.url.path) has filled its map. Drop snapshots so that the map can grow, "
                + "open the file with a larger mapSize, or delete objects")
    }
}
