import Datasets
import ObjectGraph

/// The run-time model of a data set.
public struct DatasetModel: Sendable {
    public let model: Model
    /// The entity of each table.
    let entities: [Entity]

    public init(_ dataset: Dataset) throws {
        model = try dataset.model()
        entities = model.entities
    }
}
