import StoreModel
import Testing

@Suite struct LayerBuilderTests {
    /// Catches: a builder whose layer lacks a column, a pair or a generation, so that a store's own test checks less than its author thinks.
    @Test func aBuiltLayerHasTheRowsPairsAndGenerationOfTheSave() throws {
        let changes = LayerBuilder(schema: LayerTests.schema)
        changes.insert([.int(1), .null, .int(3)], entity: 0, key: 64)
        changes.update([2: .int(9)], entity: 0, key: 65)
        changes.delete(entity: 1, key: 70)
        changes.setLink(0, from: 64, to: 71, linked: true)
        let layer = changes.finish(as: 7)
        #expect(layer.isSealed)
        #expect(layer.generation == 7)
        let inserted = try #require(layer.row(0, 64))
        #expect(inserted.kind == .insert)
        #expect(inserted.columnIndices.allSatisfy { inserted.isSet($0) })
        #expect(inserted.columnIndices.map { inserted[$0] } == [.int(1), .null, .int(3)])
        let updated = try #require(layer.row(0, 65))
        #expect(updated.kind == .update)
        #expect(updated.columnIndices.filter { updated.isSet($0) } == [2])
        #expect(updated[2] == .int(9))
        #expect(updated.version == .committed(7))
        #expect(layer.row(1, 70)?.kind == .delete)
        #expect(layer.mayDelete)
        #expect(layer.links[0].forward == [64: [71: true]])
    }

    @Test func withoutAGenerationTheObjectsKeepTheirs() {
        let changes = LayerBuilder(schema: LayerTests.schema)
        changes.insert([.int(1)], entity: 1, key: 64, generation: 3)
        changes.update([0: .int(2)], entity: 1, key: 65, generation: 5)
        changes.insert([.int(2)], entity: 1, key: 65, generation: 6)
        let layer = changes.finish(as: nil)
        #expect(layer.row(1, 64)?.version == .committed(3))
        #expect(layer.row(1, 65)?.version == .committed(6))
        #expect(layer.row(1, 65)?.kind == .insert)
        #expect(layer.version == .unsaved)
    }
}
