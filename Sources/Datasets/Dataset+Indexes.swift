import ObjectGraph
import StoreInterface
import StoreModel

extension Table {
    /// Adds an index over properties. It is unique only if the converted values are, and leaves out an index that every reference has.
    mutating func addIndex(_ properties: [String], isUnique: Bool, notes: inout [String]) {
        guard Set(properties).count == properties.count,
            !indexes.contains(where: { $0.properties == properties && ($0.kind == .unique || !isUnique) })
        else { return }
        var kind = IndexKind.indexed
        if isUnique {
            if hasEqualRows(properties) {
                notes.append(
                    "\(name): the unique constraint over \(properties.joined(separator: ", ")) became an index, because converted values "
                        + "are equal")
            } else {
                kind = .unique
            }
        }
        let isReference = properties.count == 1 && references.contains { $0.name == properties[0] }
        if kind == .indexed, isReference { return }
        indexes.removeAll { $0.properties == properties }
        indexes.append(IndexDescription(properties: properties, kind: kind))
    }

    /// Returns whether two rows have the same values of all properties, none of which is null.
    private func hasEqualRows(_ properties: [String]) -> Bool {
        let columns = properties.map { property -> (Int) -> Value in
            if let attribute = attribute(named: property) { return { attribute.values[$0] } }
            let rows = references.first { $0.name == property }?.rows ?? []
            return { row in rows[row] < 0 ? .null : .int(Int64(rows[row])) }
        }
        var known: Set<[Value]> = []
        return (0..<rowCount).contains { row in
            let values = columns.map { $0(row) }
            return !values.contains(.null) && !known.insert(values).inserted
        }
    }
}
