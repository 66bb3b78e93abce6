import Datasets
import ObjectGraph

/// The run-time model of a data set.
public struct DatasetModel: Sendable {
    public let model: Model
    /// The entity of each table.
    let entities: [Entity]

    public init(_ dataset: Dataset) throws {
        // The other stacks have no indexes over attributes either.
        var dataset = dataset
        for table in dataset.tables.indices { dataset.tables[table].indexes = [] }
        model = try dataset.model()
        entities = model.entities
    }
}
