import StoreInterface
import StoreModel

/// The entities of a Core Data file by their numbers there, and how they inherit from each other.
struct CoreDataEntities {
    /// A row of the table `Z_PRIMARYKEY`.
    struct Row {
        var number: Int64
        var name: String
        /// The number of the entity from which it inherits; 0 for none.
        var parent: Int64
    }

    /// The entities that share a table, the root first, and each after the one from which it inherits.
    struct Family {
        struct Member {
            var number: Int64
            /// The name in the table of entities, which may be an older one.
            var storedName: String
            /// The name in the model.
            var name: String
            /// The position of the entity from which it inherits; nil for the root.
            var parent: Int?
            var isAbstract: Bool
        }

        var members: [Member]

        /// Returns whether objects of a member are objects of another one too.
        func inherits(_ member: Int, from ancestor: Int) -> Bool {
            var next: Int? = member
            while let position = next {
                if position == ancestor { return true }
                next = members[position].parent
            }
            return false
        }

        /// Returns the nearest ancestor of a member to which objects of all these kinds belong.
        func ancestor(of member: Int, including kinds: Set<Int>) -> Int {
            var member = member
            while let parent = members[member].parent, !kinds.allSatisfy({ inherits($0, from: member) }) { member = parent }
            return member
        }
    }

    /// The families, in the order of their roots' numbers.
    private(set) var families: [Family] = []
    /// The faults of the table of entities, one line each.
    private(set) var notes: [String] = []
    /// The family and position of each entity.
    private var places: [Int64: (family: Int, member: Int)] = [:]

    /// Entities from this number on are records of Core Data itself: the history.
    private static let firstInternalEntity: Int64 = 16_000
    /// More entities than any model has. The cost of resolving a hierarchy grows with the square of their number.
    private static let limit = 2000

    /// - Parameter hasTable: Whether the file has a table for an entity of this name.
    init(_ rows: [Row], _ model: CoreDataModel?, file: String, hasTable: (String) -> Bool) throws {
        var known: Set<Int64> = []
        let rows = rows.filter { $0.number < Self.firstInternalEntity && known.insert($0.number).inserted }
            .sorted { $0.number < $1.number }
        guard rows.count <= Self.limit else {
            throw DatasetError("\(file): its table Z_PRIMARYKEY has \(rows.count) entities, which no model has. Restore a copy")
        }
        let parents = parents(rows, hasTable)
        var children: [Int64: [Row]] = [:]
        for row in rows { parents[row.number].map { children[$0, default: []].append(row) } }
        for root in rows where parents[root.number] == nil {
            guard hasTable(root.name) else {
                notes.append(
                    "the entity \(root.name) has no table, so that \(children[root.number] == nil ? "it is" : "it and its sub-entities are") left out"
                )
                continue
            }
            var family = Family(members: [])
            var next: [(row: Row, parent: Int?)] = [(root, nil)]
            while !next.isEmpty {
                let (row, parent) = next.removeFirst()
                places[row.number] = (families.count, family.members.count)
                next += (children[row.number] ?? []).map { ($0, family.members.count) }
                family.members.append(
                    .init(
                        number: row.number, storedName: row.name, name: model?.name(ofEntity: row.name) ?? row.name,
                        parent: parent,
                        isAbstract: model?.isAbstract(row.name) ?? false))
            }
            families.append(family)
        }
    }

    func place(of number: Int64) -> (family: Int, member: Int)? { places[number] }

    func place(named name: String) -> (family: Int, member: Int)? {
        for (number, family) in families.enumerated() {
            if let member = family.members.firstIndex(where: { $0.name == name }) { return (number, member) }
        }
        return nil
    }

    /// Returns the entity from which each entity inherits. Breaks circles, which a damaged file may have, at an entity with a table.
    private mutating func parents(_ rows: [Row], _ hasTable: (String) -> Bool) -> [Int64: Int64] {
        let names = Dictionary(rows.map { ($0.number, $0.name) }, uniquingKeysWith: { first, _ in first })
        var parents: [Int64: Int64] = [:]
        for row in rows where names[row.parent] != nil { parents[row.number] = row.parent }
        var checked: Set<Int64> = []
        for row in rows {
            var passed: [Int64] = []
            var number: Int64? = row.number
            while let next = number, !checked.contains(next) {
                checked.insert(next)
                passed.append(next)
                number = parents[next]
            }
            guard let first = number, let start = passed.firstIndex(of: first) else { continue }
            let circle = passed[start...].sorted()
            let root = circle.first { hasTable(names[$0] ?? "") } ?? circle[0]
            parents[root] = nil
            notes.append(
                "the entity \(names[root] ?? "") inherits from itself in the table Z_PRIMARYKEY; it was read as one without a superentity"
            )
        }
        return parents
    }
}
