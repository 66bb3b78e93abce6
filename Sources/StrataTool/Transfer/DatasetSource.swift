import Datasets
import ObjectGraph
import StoreInterface
import StoreModel

/// The rows of a data set as objects. The id of an object is its row, from 1.
final class DatasetSource: ObjectSource {
    /// The content of a column of the model.
    private enum Content {
        case attribute(Int)
        case reference(Int)
        /// The positions of the objects in the lists that a reference leads to.
        case position(Int)
        /// The types of the objects of a hierarchy, by the position of their entity.
        case types([Int64])
    }

    let model: Model
    private let dataset: Dataset
    /// The contents of the columns of each entity.
    private let contents: [[Content]]
    /// The links of each entity as the model has them, with the rows that each row is related to.
    private let links: [[(index: LinkIndex, rows: [Int32: [UInt64]])]]
    /// The objects of hidden entities, which follow those of the tables.
    private let orders: [LinkOrder]
    private var table = 0
    private var row = 0

    init(_ dataset: Dataset) throws {
        self.dataset = dataset
        let model: Model
        do throws(ModelError) { model = try dataset.model() } catch {
            throw ToolError.wrongInput("\(dataset.name): cannot be a store: \(error)")
        }
        self.model = model
        contents = zip(model.entities, dataset.tables).map { entity, table in
            let types = [0] + table.subentities.map { SubentitySchema.type(of: $0.name) }
            let schema = model.storeSchema.entities[entity.number]
            return entity.columns.enumerated(as: ColumnIndex.self).map { number, column in
                if let attribute = table.attributes.firstIndex(where: { $0.name == column.name }) { return .attribute(attribute) }
                if let reference = table.references.firstIndex(where: { $0.name == column.name }) { return .reference(reference) }
                let ordered = table.references.firstIndex { reference in
                    schema.columnIndices.first { schema.columns[$0].name == reference.name }.flatMap(schema.position) == number
                }
                return ordered.map { .position($0) } ?? .types(types)
            }
        }
        orders = dataset.linkOrders(in: model)
        var links: [[(index: LinkIndex, rows: [Int32: [UInt64]])]] = dataset.tables.map { _ in [] }
        for link in dataset.links {
            let relationship = model.entities[link.source].relationship(named: link.name)
            guard case .toMany(.link(let number, let direction, _))? = relationship?.kind else { continue }
            // The model decides which end is the source of a link.
            let isForward = direction == .forward
            var rows: [Int32: [UInt64]] = [:]
            for pair in link.pairs {
                let (source, destination) = isForward ? (pair.source, pair.destination) : (pair.destination, pair.source)
                rows[source, default: []].append(UInt64(destination) + 1)
            }
            links[isForward ? link.source : link.destination].append((number, rows))
        }
        self.links = links
    }

    var objectCount: Int? { orders.reduce(dataset.objectCount) { $0 + $1.count } }
    var notes: [String] { dataset.notes }
    var lostReferences: Int { dataset.lostReferences }

    func next() throws -> TransferObject? {
        let tables = dataset.tables
        while table < tables.count + orders.count,
            row >= (table < tables.count ? tables[table].rowCount : orders[table - tables.count].count)
        {
            table += 1
            row = 0
        }
        guard table < tables.count + orders.count else { return nil }
        defer { row += 1 }
        return table < tables.count ? object(tables[table]) : pair(orders[table - tables.count])
    }

    /// The object of a hidden entity with the position of a pair.
    private func pair(_ order: LinkOrder) -> TransferObject {
        let (owner, member, position) = order[row]
        return TransferObject(
            entity: order.entity, id: UInt64(row) + 1,
            values: [
                .reference(ObjectKey(rawValue: UInt64(owner) + 1)), .reference(ObjectKey(rawValue: UInt64(member) + 1)), position,
            ])
    }

    private func object(_ found: Table) -> TransferObject {
        let values = contents[table].map { content -> Value in
            switch content {
            case .attribute(let number): return found.attributes[number].values[row]
            case .reference(let number):
                let target = found.references[number].rows[row]
                return target < 0 ? .null : .reference(ObjectKey(rawValue: UInt64(target) + 1))
            case .position(let number): return found.references[number].position(ofRow: row)
            case .types(let types): return .int(found.kinds.isEmpty ? 0 : types[Int(found.kinds[row])])
            }
        }
        var object = TransferObject(entity: EntityIndex(rawValue: table), id: UInt64(row) + 1, values: values)
        for link in links[table] {
            guard let rows = link.rows[Int32(row)] else { continue }
            object.links.append(TransferObject.Links(link: link.index, destinations: rows))
        }
        return object
    }
}
