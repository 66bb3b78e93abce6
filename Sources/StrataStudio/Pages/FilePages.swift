import ObjectGraph
import StoreInterface
import StoreModel

/// The file of a store: its size, its tables, and the states of it that are in use.
struct FilePages: Sendable {
    struct Summary: Encodable, Sendable {
        struct Count: Encodable, Sendable {
            var name: String
            var count: Int
        }

        var file: String
        var id: String
        var version: String
        var isWritable: Bool
        var bytes: Int
        var save: Generation
        var entities: [Count]
        /// The keyed collections.
        var collections: [Count]
        /// The reason why saves of other processes are noticed late.
        var note: String?
    }

    struct Snapshots: Encodable, Sendable { var snapshots: [SnapshotText] }

    struct SnapshotText: Encodable, Sendable {
        var owners: [String]
        var process: Int32
        var seconds: Int64?
        var save: Generation?
        var bytes: Int?
        var isNewest: Bool
    }

    struct FileMap: Encodable, Sendable {
        var bytes: Int
        var tables: [Table]
        /// The bytes of no table: the sum of ``freeBytes`` and ``retainedBytes``, if both are known. nil if the store does not know its
        /// tables.
        var otherBytes: Int?
        /// The bytes that are free, with the pages that list them, and with SQLite's log. nil if they are not known.
        var freeBytes: Int?
        /// The bytes that older states keep from reuse; nil if a state's are not known. The pages that one state keeps include those that
        /// newer states keep, so that this is the number of the oldest state.
        var retainedBytes: Int?
        /// The owners of the states that keep bytes from reuse, without those of unnamed reads.
        var retainedFor: [String]
    }

    struct Table: Encodable, Sendable {
        var name: String
        var content: String
        var entries: Int
        var bytes: Int
    }

    private let store: StudioStore
    private let feed: LiveFeed

    init(_ store: StudioStore, _ feed: LiveFeed) {
        self.store = store
        self.feed = feed
    }

    func store() async throws -> Summary {
        let snapshot = try store.coordinator.snapshot(owner: "studio")
        let names = store.model.entities.map(\.name) + store.model.subentities.map(\.name)
        let (counts, collections) = try await store.read(snapshot) { context in
            let counts = try names.map { try context.count(EntityFetchRequest($0)) }
            // The pages of the model can be shown even if the types of the collections are damaged.
            let collections = (try? context.storedCollections()) ?? []
            return (counts, try collections.map { Summary.Count(name: $0.name, count: try context.storedCount(of: $0)) })
        }
        return Summary(
            file: store.file, id: store.coordinator.storeIdentity.uuid.uuidString, version: store.model.version.description,
            isWritable: store.options.isWritable, bytes: try store.coordinator.fileBytes(), save: snapshot.generation,
            entities: zip(names, counts).map { Summary.Count(name: $0, count: $1) }, collections: collections,
            note: await feed.failure)
    }

    func snapshots() throws -> Snapshots {
        Snapshots(
            snapshots: try store.coordinator.snapshots().map { snapshot in
                SnapshotText(
                    owners: snapshot.owners, process: snapshot.processID, seconds: snapshot.age?.components.seconds,
                    save: snapshot.generation, bytes: snapshot.bytesRetained, isNewest: snapshot.isNewest)
            })
    }

    func map() async throws -> FileMap {
        let bytes = try store.coordinator.fileBytes()
        let sizes = try await store.coordinator.tableSizes()
        let used = sizes.reduce(0) { $0 + $1.bytes }
        let other = sizes.isEmpty ? nil : max(bytes - used, 0)
        let snapshots = try store.coordinator.snapshots()
        let known = snapshots.compactMap(\.bytesRetained)
        // The numbers are read one after the other, between which another process may save.
        let retained = known.count < snapshots.count ? nil : min(known.max() ?? 0, other ?? .max)
        return FileMap(
            bytes: bytes,
            tables: sizes.map { Table(name: $0.name, content: $0.content.rawValue, entries: $0.entries, bytes: $0.bytes) },
            otherBytes: other, freeBytes: other.flatMap { other in retained.map { other - $0 } }, retainedBytes: retained,
            retainedFor: Self.owners(of: snapshots.filter { $0.bytesRetained.map { $0 > 0 } ?? false }))
    }

    /// Returns the names of the owners, and the processes of states without an owner, which other processes read.
    private static func owners(of snapshots: [LiveSnapshot]) -> [String] {
        let names = snapshots.flatMap { snapshot in
            snapshot.owners.isEmpty && snapshot.generation == nil ? ["process \(snapshot.processID)"] : snapshot.owners
        }
        return Set(names).sorted()
    }
}
