import StoreInterface
import StoreModel

/// Creates the layers of a context's changes. All contexts of a coordinator share it.
final class LayerTemplate: Sendable {
    private let schema: StoreSchema
    private let empty: Layer

    init(_ schema: StoreSchema) {
        self.schema = schema
        empty = Layer(schema: schema)
        empty.seal()
    }

    /// Returns an empty, writable layer. O(1): its tables are those of all empty layers until it is written.
    func makeLayer() -> Layer { Layer(copying: empty) }

    /// Returns the changes of layers, oldest first, as one layer.
    func folding(_ layers: [Layer]) -> Layer { Layer.folding(layers, schema: schema) }
}
