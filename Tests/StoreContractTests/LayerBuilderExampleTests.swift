import MemoryStore
import StoreInterface
import Testing

@Suite struct LayerBuilderExampleTests {
    @Test func `a store takes a layer that is made by hand`() throws {
        let store = MemoryStore(
            schema: StoreSchema(entities: [
                EntitySchema(
                    name: "Person", columns: [ColumnSchema(name: "name", type: .string), ColumnSchema(name: "age", type: .int32)])
            ]))
        let earlier = LayerBuilder(schema: store.schema)
        earlier.insert([.string("Ada"), .int(35)], entity: 0, key: 65)
        let first = earlier.finish(as: 1)
        try store.write(.durable) { try $0.apply(first, changes: first.changeSet()) }
        // Sources/StoreModel/Rows/LayerBuilder.swift
        try store.write(.durable) { transaction in
            let changes = LayerBuilder(schema: store.schema)
            changes.insert([.string("Kim"), .int(41)], entity: 0, key: 64)
            changes.update([1: .int(42)], entity: 0, key: 65)
            let layer = changes.finish(as: transaction.nextGeneration)
            try transaction.apply(layer, changes: layer.changeSet())
        }
        // end
        let snapshot = try store.snapshot()
        #expect(try snapshot.value(0, key: 64, column: 0) == .string("Kim"))
        #expect(try snapshot.value(0, key: 65, column: 0) == .string("Ada"))
        #expect(try snapshot.value(0, key: 65, column: 1) == .int(42))
    }
}
