import Datasets
import StoreInterface

/// A data set with its values laid out by row, so that the timed part of an import only passes them on.
///
/// A data set keeps its values by column. Collecting a row from it costs as much as storing it.
struct PreparedDataset: Sendable {
    let dataset: Dataset
    /// The values of each row, by table: those of the attributes, then null for each reference.
    let rows: [[[Value]]]

    init(_ dataset: Dataset) {
        self.dataset = dataset
        rows = dataset.tables.map { table in
            let columns = table.attributes.map { Array($0.values) }
            let references = Array(repeating: Value.null, count: table.references.count)
            return (0..<table.rowCount).map { row in columns.map { $0[row] } + references }
        }
    }
}
