import Dispatch

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

import StoreInterface
import StoreModel

/// One open store of the sample model, and short ways to write to it.
package struct StoreUnderTest {
    package let folder: TemporaryFolder
    package var store: any ObjectStore
    private let subject: StoreContract.Subject

    package init(_ subject: StoreContract.Subject) throws {
        folder = try TemporaryFolder()
        self.subject = subject
        store = try subject.open(Sample.schema, Self.location(folder))
    }

    private static func location(_ folder: TemporaryFolder) -> URL { folder.url.appendingPathComponent("store") }

    /// Opens the same store again. Returns the open object of a store that ends with its object.
    package func openAgain() throws -> any ObjectStore {
        subject.isPersistent ? try subject.open(Sample.schema, Self.location(folder)) : store
    }

    /// Opens the same store again, and releases the object that was used so far.
    package mutating func reopen() throws { store = try openAgain() }

    /// Expects that ``ObjectStore/verify()`` reports one finding per broken reference, pair, link or unique value, and nothing else.
    func expectRelationFindingsOnly() throws {
        let findings = try store.verify()
        try expect(findings.count, equals: RelationCheck.problems(store.snapshot()).count, "findings: \(findings.prefix(3))")
    }

    package func snapshot() throws -> any StoreSnapshot { try store.snapshot() }

    @discardableResult
    package func save(
        _ durability: Durability = .deferred, author: String = "", _ build: (Layer) -> Void
    ) throws -> Generation {
        try Self.save(store, durability: durability, metadata: SaveMetadata(author: author), build)
    }

    @discardableResult
    package func save(metadata: SaveMetadata, _ build: (Layer) -> Void) throws -> Generation {
        try Self.save(store, durability: .deferred, metadata: metadata, build)
    }

    /// Commits a layer, and returns the generation of the save.
    @discardableResult
    package static func save(
        _ store: any ObjectStore, durability: Durability = .deferred, metadata: SaveMetadata = SaveMetadata(),
        _ build: (Layer) -> Void
    ) throws -> Generation {
        try store.write(durability) { transaction in
            let layer = Layer(schema: store.schema)
            build(layer)
            try transaction.apply(layer, metadata: metadata)
            return layer.generation
        }
    }
}

extension StoreTransaction {
    /// Writes a layer as the next save.
    func apply(_ layer: Layer, metadata: SaveMetadata = SaveMetadata()) throws {
        layer.stamp(nextGeneration)
        layer.seal()
        try apply(layer, changes: layer.changeSet(metadata: metadata))
    }
}

/// A new folder, which is removed when the object is released.
package final class TemporaryFolder: Sendable {
    package let url: URL

    package init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// Values that several threads add to one list.
///
/// `@unchecked Sendable` is right because a queue guards the list.
final class Gathered<Element: Sendable>: @unchecked Sendable {
    private let queue = DispatchQueue(label: "gathered values")
    private var list: [Element] = []

    func append(_ element: Element) { queue.sync { list.append(element) } }

    var values: [Element] { queue.sync { list } }
}
