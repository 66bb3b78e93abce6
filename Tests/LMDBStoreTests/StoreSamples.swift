import Foundation
import LMDB
import StoreContract
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// A folder with stores in it. It is removed with the value.
final class Scratch: Sendable {
    private let temporary: TemporaryFolder
    var folder: URL { temporary.url }

    init() throws {
        temporary = try TemporaryFolder()
    }

    var url: URL { folder.appendingPathComponent("store.lmdb") }

    func store(_ options: LMDBStore.Options = LMDBStore.Options()) throws -> LMDBStore {
        try LMDBStore.open(url, schema: Samples.schema, options: options)
    }
}

enum Samples {
    static let artist: EntityIndex = 0
    static let track: EntityIndex = 1

    /// Two entities, one of each kind of index, a reference and a link from tracks to tracks.
    static let schema = StoreSchema(
        entities: [
            EntitySchema(
                name: "Artist",
                columns: [
                    ColumnSchema(name: "name", type: .string, index: .indexed),
                    ColumnSchema(name: "founded", type: .int32, isOptional: true),
                ]),
            EntitySchema(
                name: "Track",
                columns: [
                    ColumnSchema(name: "isrc", type: .string, index: .unique),
                    ColumnSchema(name: "title", type: .string),
                    ColumnSchema(name: "plays", type: .int64, index: .indexed),
                    ColumnSchema(name: "length", type: .double, isOptional: true, index: .indexed),
                    ColumnSchema(name: "artist", type: .reference, isOptional: true, destination: 0),
                    ColumnSchema(name: "isLive", type: .bool),
                ]),
        ],
        links: [LinkSchema(name: "Track.similar", source: 1, destination: 1)])

    static func row(_ values: [Value], in layer: Layer) -> Row {
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: values.count)
        for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
        return row
    }

    /// - Parameter key: The key from which the track gets an isrc that is unique in its store. The first track has the isrc of
    ///   number 0.
    static func trackValues(_ number: Int, key: ObjectKey? = nil, artist: ObjectKey? = nil) -> [Value] {
        [
            .string("isrc-\(key.map { Int($0.rawValue) - 64 } ?? number)"), .string("title \(number % 7)"),
            .int(Int64(number % 10)),
            number % 3 == 0 ? .null : .double(Double(number) / 4), artist.map { .reference($0) } ?? .null,
            .bool(number % 2 == 0),
        ]
    }
}

extension LMDBStore {
    /// Fills a layer, gives it the next generation, applies it and commits.
    @discardableResult
    func save(author: String = "", _ fill: (Layer, any StoreTransaction) throws -> Void) throws -> Generation {
        try write(.durable) { transaction in
            let layer = Layer(schema: schema)
            try fill(layer, transaction)
            layer.stamp(transaction.generation.next)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet(metadata: SaveMetadata(author: author)))
            return layer.generation
        }
    }

    /// Changes tables without the store's knowledge, with a valid checksum of `meta`.
    func tamper<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        try environment.write { transaction in
            let result = try body(transaction)
            if format > 1 { try MetaCheck.write(tables.meta, in: transaction) }
            return result
        }
    }

    /// Saves `count` tracks and returns their keys.
    @discardableResult
    func insertTracks(_ count: Int, artist: ObjectKey? = nil) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try save { layer, transaction in
            keys = Array(try transaction.allocateKeys(Samples.track, pages: (count + 63) / 64).prefix(count))
            for (number, key) in keys.enumerated() {
                let values = Samples.trackValues(number, key: key, artist: artist)
                layer.put(Samples.row(values, in: layer), entity: Samples.track, key: key)
            }
        }
        return keys
    }
}
