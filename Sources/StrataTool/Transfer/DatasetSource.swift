import Datasets
import ObjectGraph
import StoreInterface

/// The rows of a data set as objects. The id of an object is its row, from 1.
final class DatasetSource: ObjectSource {
    let model: Model
    private let dataset: Dataset
    /// The rows that each row of a link's source is related to, by link.
    private let related: [[Int32: [UInt64]]]
    private var table = 0
    private var row = 0

    init(_ dataset: Dataset) throws {
        self.dataset = dataset
        model = try dataset.model()
        related = dataset.links.map { link in
            var rows: [Int32: [UInt64]] = [:]
            for pair in link.pairs { rows[pair.source, default: []].append(UInt64(pair.destination) + 1) }
            return rows
        }
    }

    var objectCount: Int? { dataset.objectCount }
    var notes: [String] { dataset.notes }

    func next() throws -> TransferObject? {
        while table < dataset.tables.count, row >= dataset.tables[table].rowCount {
            table += 1
            row = 0
        }
        guard table < dataset.tables.count else { return nil }
        defer { row += 1 }
        let found = dataset.tables[table]
        let references = found.references.map { reference -> Value in
            let target = reference.rows[row]
            return target < 0 ? .null : .reference(UInt64(target) + 1)
        }
        var object = TransferObject(
            entity: table, id: UInt64(row) + 1, values: found.attributes.map { $0.values[row] } + references)
        for (number, link) in dataset.links.enumerated() where link.source == table {
            guard let rows = related[number][Int32(row)] else { continue }
            object.links.append(TransferObject.Links(link: linkNumber(link), destinations: rows))
        }
        return object
    }

    /// Returns the number of a link in the model, which orders links by their first end.
    private func linkNumber(_ link: Link) -> Int {
        guard let relationship = model.entities[link.source].relationship(named: link.name),
            case .toMany(.link(let number, _, _)) = relationship.kind
        else { return 0 }
        return number
    }
}
