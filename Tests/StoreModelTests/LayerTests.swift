import Foundation
import StoreInterface
import StoreModel
import Testing

@Suite struct LayerTests {
    static let schema = StoreSchema(
        entities: [
            EntitySchema(name: "A", columns: (0..<3).map { ColumnSchema(name: "c\($0)", type: .int64, isOptional: true) }),
            EntitySchema(name: "B", columns: [ColumnSchema(name: "c", type: .int64, isOptional: true)]),
        ], links: [LinkSchema(name: "l", source: 0, destination: 1)])

    static func put(_ layer: Layer, _ kind: RowKind, _ entity: EntityIndex, _ key: ObjectKey, _ values: [ColumnIndex: Int64]) {
        let count = kind == .delete ? 0 : schema.entities[entity].columns.count
        let row = Row.make(kind: kind, layer: layer.id, columnCount: count)
        for (column, value) in values { row[column] = .int(value) }
        layer.put(row, entity: entity, key: key)
    }

    @Test func masksFollowTheKindOfTheRow() throws {
        let layer = Layer(schema: Self.schema)
        Self.put(layer, .insert, 0, 64, [0: 1, 1: 1, 2: 1])
        Self.put(layer, .update, 0, 65, [0: 1])
        Self.put(layer, .delete, 0, 66, [:])
        Self.put(layer, .update, 0, 66, [1: 1])
        let page = try #require(layer.entity(0)?.page(1))
        #expect(page.inserted == 1)
        #expect(page.updated == 6)
        #expect(page.deleted == 0)
        layer.remove(entity: 0, key: 65)
        #expect(page.touched == 5)
        #expect(layer.row(0, 65) == nil)
        layer.remove(entity: 0, key: 64)
        layer.remove(entity: 0, key: 66)
        #expect(layer.isEmpty)
    }

    @Test func aCopySharesPagesOnlyUntilItWritesThem() {
        let layer = Layer(schema: Self.schema)
        Self.put(layer, .update, 0, 64, [0: 1])
        layer.setLink(0, from: 1, to: 2, linked: true)
        layer.seal()
        let copy = Layer(copying: layer)
        #expect(copy.entity(0)?.page(1) === layer.entity(0)?.page(1))
        Self.put(copy, .update, 0, 65, [0: 1])
        copy.forgetLink(0, from: 1, to: 2)
        #expect(layer.row(0, 65) == nil)
        #expect(layer.links[0].forward[1] == [2: true])
        #expect(copy.links[0].isEmpty)
        #expect(copy.row(0, 64) === layer.row(0, 64))
        copy.remove(entity: 0, key: 64)
        #expect(layer.row(0, 64) != nil)
    }

    /// Catches: a row that is freed while a page has it, or that outlives the last page that has it.
    @Test func aRowLivesAsLongAsAPageHasIt() {
        final class Watched { weak var row: Row? }
        let watched = (64..<68).map { _ in Watched() }
        var layers: [Layer] = []
        do {
            let layer = Layer(schema: Self.schema)
            for (slot, watched) in watched.enumerated() {
                Self.put(layer, .update, 0, ObjectKey(page: 1, slot: slot), [0: 1])
                watched.row = layer.row(0, ObjectKey(page: 1, slot: slot))
            }
            layer.seal()
            layers = [layer, Layer(copying: layer)]
        }
        func alive() -> [Bool] { watched.map { $0.row != nil } }
        Self.put(layers[1], .update, 0, 64, [1: 2])
        layers[1].remove(entity: 0, key: 65)
        #expect(alive() == [true, true, true, true])
        layers.removeFirst()
        #expect(alive() == [false, false, true, true])
        if let row = layers[0].row(0, 66) { layers[0].put(row, entity: 0, key: 66) }
        #expect(alive() == [false, false, true, true])
        layers[0].remove(entity: 0, key: 66)
        #expect(alive() == [false, false, false, true])
        layers.removeAll()
        #expect(alive() == [false, false, false, false])
    }

    /// Catches: layers of two contexts that share a table which one of them writes.
    @Test func copiesOfAnEmptyLayerAreSeparate() {
        let empty = Layer(schema: Self.schema)
        empty.seal()
        let (first, second) = (Layer(copying: empty), Layer(copying: empty))
        Self.put(first, .insert, 0, 64, [0: 1, 1: 1, 2: 1])
        first.setLink(0, from: 1, to: 2, linked: true)
        Self.put(second, .update, 1, 64, [0: 2])
        #expect(empty.isEmpty)
        #expect(second.row(0, 64) == nil && first.row(1, 64) == nil)
        #expect(second.links[0].isEmpty)
        #expect(Set([empty.id, first.id, second.id]).count == 3)
        #expect(first.version == .unsaved)
    }

    @Test func candidatesHoldEveryRowWithTheValue() {
        let layer = Layer(schema: Self.schema)
        for key in 64..<200 as Range<ObjectKey> { Self.put(layer, .insert, 0, key, [0: Int64(key.rawValue % 3), 1: 0, 2: 0]) }
        #expect(Set(layer.candidates(entity: 0, column: 0, value: .int(1))) == Set((64..<200).filter { $0.rawValue % 3 == 1 }))
        Self.put(layer, .insert, 0, 300, [0: 1, 1: 0, 2: 0])
        #expect(layer.candidates(entity: 0, column: 0, value: .int(1)).contains(300))
        let row = layer.row(0, 66)
        row?[0] = .int(77)
        if let row { layer.didSet(0, of: row, entity: 0, key: 66) }
        #expect(layer.candidates(entity: 0, column: 0, value: .int(77)) == [66])
        #expect(layer.candidates(entity: 1, column: 0, value: .int(1)).isEmpty)
    }

    @Test func aChangeSetNamesWhatALayerChanges() {
        let layer = Layer(schema: Self.schema)
        Self.put(layer, .insert, 0, 640, [0: 1, 1: 1, 2: 1])
        Self.put(layer, .update, 0, 64, [2: 1])
        Self.put(layer, .update, 0, 65, [0: 1])
        Self.put(layer, .delete, 1, 70, [:])
        layer.setLink(0, from: 640, to: 70, linked: false)
        layer.stamp(9)
        let changes = layer.changeSet(metadata: SaveMetadata(author: "me"))
        #expect(changes.generation == 9)
        #expect(changes.author == "me")
        #expect(changes.entities.map(\.entity) == [0, 1])
        #expect(changes.change(of: 0)?.insertedKeys == [640])
        #expect(changes.change(of: 0)?.updatedKeys == [64, 65])
        #expect(changes.change(of: 0)?.pages.first?.columns == ColumnSet(low: 0b101))
        #expect(changes.change(of: 1)?.deletedKeys == [70])
        #expect(changes.links == [.init(link: 0, sources: [640], destinations: [70])])
        #expect(Layer(schema: Self.schema).changeSet().isEmpty)
    }
}
