import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Applying folded layers gives the same result as applying them one after another.
@Suite struct LayerFoldingTests {
    /// The content of a store.
    struct State: Equatable {
        var objects: [ObjectKey: [Value]] = [:]
        var pairs: Set<[ObjectKey]> = []

        mutating func apply(_ layer: Layer) {
            if let changes = layer.entity(0) {
                for number in changes.sortedPageNumbers {
                    guard let page = changes.page(number) else { continue }
                    for slot in SlotIterator(page.touched) {
                        guard let row = page[slot] else { continue }
                        apply(row, PageAddress.key(page: number, slot: slot))
                    }
                }
            }
            for (source, partners) in layer.links[0].forward {
                for (destination, linked) in partners {
                    if linked { pairs.insert([source, destination]) } else { pairs.remove([source, destination]) }
                }
            }
        }

        private mutating func apply(_ row: Row, _ key: ObjectKey) {
            if row.kind == .delete {
                objects[key] = nil
                return
            }
            guard var values = objects[key] ?? (row.set.count == 3 ? [.null, .null, .null] : nil) else { return }
            row.set.forEach { values[$0] = row[$0] }
            objects[key] = values
        }
    }

    @Test func foldingIsTheSameAsApplyingOneAfterAnother() {
        var random = SeededGenerator(test: "folding layers")
        for _ in 0..<200 {
            var base = State()
            for key in 64..<90 as Range<ObjectKey> where Bool.random(using: &random) {
                base.objects[key] = [.int(0), .int(0), .int(0)]
            }
            var state = base
            var layers: [Layer] = []
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                let layer = Self.layer(over: state, &random)
                state.apply(layer)
                layers.append(layer)
            }
            let before = layers.map { $0.changeSet() }
            var folded = base
            folded.apply(Layer.folding(layers, schema: LayerTests.schema))
            #expect(folded == state)
            #expect(layers.map { $0.changeSet() } == before)
            if folded != state { return }
        }
    }

    private static func layer(over state: State, _ random: inout SeededGenerator) -> Layer {
        let layer = Layer(schema: LayerTests.schema)
        for key in 64..<90 as Range<ObjectKey> where Int.random(in: 0..<3, using: &random) == 0 {
            let value = Int64.random(in: 1...9, using: &random)
            if state.objects[key] == nil {
                LayerTests.put(layer, .insert, 0, key, [0: value, 1: value, 2: value])
            } else if Int.random(in: 0..<3, using: &random) == 0 {
                LayerTests.put(layer, .delete, 0, key, [:])
            } else {
                LayerTests.put(layer, .update, 0, key, [ColumnIndex(rawValue: Int.random(in: 0..<3, using: &random)): value])
            }
        }
        for _ in 0..<4 {
            layer.setLink(
                0, from: .random(in: 64..<70, using: &random), to: .random(in: 64..<70, using: &random),
                linked: .random(using: &random))
        }
        layer.seal()
        return layer
    }

    @Test func anInsertThatIsDeletedLeavesNothing() {
        let first = Layer(schema: LayerTests.schema)
        LayerTests.put(first, .insert, 0, 64, [0: 1, 1: 1, 2: 1])
        let second = Layer(schema: LayerTests.schema)
        LayerTests.put(second, .delete, 0, 64, [:])
        #expect(Layer.folding([first, second], schema: LayerTests.schema).isEmpty)
    }

    @Test func anInsertThatIsDeletedLeavesNoRemovedPair() {
        let (first, second) = (Layer(schema: LayerTests.schema), Layer(schema: LayerTests.schema))
        LayerTests.put(first, .insert, 0, 64, [0: 1, 1: 1, 2: 1])
        LayerTests.put(second, .delete, 0, 64, [:])
        for layer in [first, second] {
            layer.setLink(0, from: 64, to: 70, linked: layer === first)
            layer.setLink(0, from: 65, to: 70, linked: layer === first)
        }
        let folded = Layer.folding([first, second], schema: LayerTests.schema)
        #expect(folded.links[0].forward == [65: [70: false]] && folded.links[0].backward == [70: [65: false]])
    }

    @Test func aDeleteThatIsRevivedUpdatesEveryColumn() throws {
        let first = Layer(schema: LayerTests.schema)
        LayerTests.put(first, .delete, 0, 64, [:])
        let second = Layer(schema: LayerTests.schema)
        LayerTests.put(second, .insert, 0, 64, [0: 1, 1: 1, 2: 1])
        let row = try #require(Layer.folding([first, second], schema: LayerTests.schema).row(0, 64))
        #expect(row.kind == .update)
        #expect(row.set.count == 3)
    }
}
