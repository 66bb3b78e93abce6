import StoreModel

/// A check of one snapshot for dangling references, one-to-one relationships whose ends disagree, and duplicates of unique
/// values. This is the part of ``ObjectStore/verify()`` that all stores share.
///
/// It reads each object once, and each one-to-one end twice. It needs 24 bytes per page, plus 16 bytes per object and unique
/// attribute of one entity at a time. It uses no index, so that a wrong index hides no fault. Unreadable data is left to the
/// store's own checks.
package struct RelationCheck {
    /// The maximum number of findings that a store reports.
    package static let maximumFindings = 200

    private struct UniqueEntry {
        var hash: Int
        var key: ObjectKey
    }

    private struct OneToOne {
        var column: ColumnIndex
        var destination: EntityIndex
        var inverse: ColumnIndex
    }

    private let snapshot: any StoreSnapshot
    /// The numbers of the pages, per entity.
    private let pages: [[PageNumber]]
    /// The occupied slots of each page, per entity.
    private var presence: [[PageNumber: UInt64]] = []
    private let progress: WorkPart
    /// The pages that the two passes have read and will read.
    private var pagesRead = 0
    private let pagesToRead: Int
    private var problems: [String] = []

    private var schema: StoreSchema { snapshot.schema }
    private var isFull: Bool { problems.count >= Self.maximumFindings }

    private init(_ snapshot: any StoreSnapshot, _ progress: WorkPart) throws {
        self.snapshot = snapshot
        self.progress = progress
        pages = try snapshot.schema.entityIndices.map { try snapshot.pageNumbers($0) }
        pagesToRead = 2 * pages.reduce(0) { $0 + $1.count }
    }

    /// Returns the faults, one sentence each.
    package static func problems(
        _ snapshot: any StoreSnapshot, _ progress: WorkPart = Cancellation().part(0...1)
    ) throws -> [String] {
        var check = try Self(snapshot, progress)
        for entity in snapshot.schema.entityIndices { try check.addPresence(of: entity) }
        for entity in snapshot.schema.entityIndices where !check.isFull { try check.check(entity) }
        return Array(check.problems.prefix(maximumFindings))
    }

    /// Returns a sentence about a pair of a link if one of its ends does not exist, or nil.
    package static func missingEnd(
        _ link: LinkSchema, from source: ObjectKey, to destination: ObjectKey, in schema: StoreSchema,
        exists: (_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool
    ) rethrows -> String? {
        let ends = [(link.source, source), (link.destination, destination)]
        guard let missing = try ends.first(where: { try !exists($0.0, $0.1) }) else { return nil }
        func name(_ end: (EntityIndex, ObjectKey)) -> String { "\(schema.entities[end.0].name) \(end.1)" }
        return "\(link.name): links \(name(ends[0])) and \(name(ends[1])), but \(name(missing)) does not exist."
    }

    private mutating func addPresence(of entity: EntityIndex) throws {
        var found: [PageNumber: UInt64] = [:]
        for number in pages[entity] {
            try countPage()
            found[number] = try Self.readable { try snapshot.page(entity, number)?.presence ?? 0 } ?? .max
        }
        presence.append(found)
    }

    private mutating func countPage() throws {
        pagesRead += 1
        try progress.step(pagesRead, of: pagesToRead)
    }

    private func exists(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        let mask = presence[entity][key.page] ?? 0
        return mask >> UInt64(key.slot) & 1 != 0
    }

    private func name(_ entity: EntityIndex, _ key: ObjectKey) -> String { "\(schema.entities[entity].name) \(key)" }

    /// Returns the result of `body`, or nil if the value cannot be read.
    private static func readable<R>(_ body: () throws -> R) throws -> R? {
        do { return try body() } catch let error as StoreError where error.code == .damaged { return nil }
    }

    // MARK: Objects

    private mutating func check(_ entity: EntityIndex) throws {
        let columns = schema.entities[entity].columns
        let references = columns.indices(as: ColumnIndex.self).filter { columns[$0].destination != nil }
        let pairs = oneToOne(entity)
        let unique = uniqueColumns(entity)
        guard !references.isEmpty || !unique.isEmpty else { return }
        let types = unique.map { schema.entities[entity].types(having: $0) }
        var entries = [[UniqueEntry]](repeating: [], count: unique.count)
        for number in pages[entity] where !isFull {
            try countPage()
            guard let page = try Self.readable({ try snapshot.page(entity, number) }) ?? nil else { continue }
            for slot in SlotIterator(presence[entity][number] ?? 0) where !isFull {
                let key = PageAddress.key(page: number, slot: slot)
                for column in references { try checkReference(page, slot: slot, key: key, entity: entity, column: column) }
                for pair in pairs { try checkPair(page, slot: slot, key: key, entity: entity, pair: pair) }
                for (position, columns) in unique.enumerated() {
                    guard let values = try values(page, slot: slot, columns: columns),
                        try isOne(of: types[position], page, slot: slot, entity: entity)
                    else { continue }
                    entries[position].append(UniqueEntry(hash: values.hashValue, key: key))
                }
            }
        }
        for (position, columns) in unique.enumerated() where !isFull {
            try checkUnique(&entries[position], columns: columns, entity: entity)
        }
    }

    private mutating func checkReference(
        _ page: any StorePage, slot: Int, key: ObjectKey, entity: EntityIndex, column: ColumnIndex
    ) throws {
        let definition = schema.entities[entity].columns[column]
        guard let destination = definition.destination,
            let target = try Self.readable({ try page.value(slot, column).referenceKey }) ?? nil, !exists(destination, target)
        else { return }
        problems.append("\(name(entity, key)): \(definition.name) leads to \(name(destination, target)), which does not exist.")
    }

    // MARK: One-to-one relationships

    private func oneToOne(_ entity: EntityIndex) -> [OneToOne] {
        schema.relationships.compactMap { relationship in
            guard relationship.entity == entity, let column = relationship.column, let number = relationship.inverse,
                schema.relationships.indices.contains(number), let inverse = schema.relationships[number].column
            else { return nil }
            return OneToOne(column: column, destination: relationship.destination, inverse: inverse)
        }
    }

    private mutating func checkPair(
        _ page: any StorePage, slot: Int, key: ObjectKey, entity: EntityIndex, pair: OneToOne
    ) throws {
        guard let target = try Self.readable({ try page.value(slot, pair.column).referenceKey }) ?? nil,
            exists(pair.destination, target),
            let back = try Self.readable({ try snapshot.value(pair.destination, key: target, column: pair.inverse) }) ?? nil,
            back != .reference(key)
        else { return }
        let column = schema.entities[entity].columns[pair.column].name
        let inverse = schema.entities[pair.destination].columns[pair.inverse].name
        let end = back.referenceKey.map { "leads to \(name(entity, $0))" } ?? "is nil"
        problems.append(
            "\(name(entity, key)): \(column) leads to \(name(pair.destination, target)), but \(inverse) of that \(end).")
    }

    // MARK: Unique values

    private func uniqueColumns(_ entity: EntityIndex) -> [[ColumnIndex]] {
        let schema = schema.entities[entity]
        return schema.columnIndices.filter { schema.columns[$0].index == .unique }.map { [$0] }
            + schema.indexes.filter { $0.kind == .unique }.map(\.columns)
    }

    /// Returns an object's values in some columns. Returns nil if a value is null, because nulls are distinct, or cannot be
    /// read.
    private func values(_ page: any StorePage, slot: Int, columns: [ColumnIndex]) throws -> [Value]? {
        guard let values = try Self.readable({ try columns.map { try page.value(slot, $0) } }) else { return nil }
        return values.contains(where: \.isNull) ? nil : values
    }

    /// Returns whether an object is of one of some types; nil for all.
    private func isOne(of types: Set<Int64>?, _ page: any StorePage, slot: Int, entity: EntityIndex) throws -> Bool {
        guard let types, let column = schema.entities[entity].typeColumn else { return true }
        guard case .int(let type)? = try Self.readable({ try page.value(slot, column) }) else { return false }
        return types.contains(type)
    }

    /// Reads objects whose values have the same hash again and compares them.
    private mutating func checkUnique(_ entries: inout [UniqueEntry], columns: [ColumnIndex], entity: EntityIndex) throws {
        entries.sort { $0.hash != $1.hash ? $0.hash < $1.hash : $0.key < $1.key }
        let title = columns.map { schema.entities[entity].columns[$0].name }.joined(separator: "+")
        var start = 0
        while start < entries.count, !isFull {
            let end = entries[start...].firstIndex { $0.hash != entries[start].hash } ?? entries.count
            defer { start = end }
            guard end - start > 1 else { continue }
            var first: [[Value]: ObjectKey] = [:]
            for entry in entries[start..<end] where !isFull {
                let values = try Self.readable {
                    try columns.map { try snapshot.value(entity, key: entry.key, column: $0) ?? .null }
                }
                guard let values else { continue }
                guard let other = first[values] else {
                    first[values] = entry.key
                    continue
                }
                problems.append(
                    "\(name(entity, entry.key)): has the value of \(title) that \(name(entity, other)) has, but it is unique.")
            }
        }
    }
}

/// A check that the history has one row per save, ascending and without gaps, up to the newest save.
package enum HistoryOrder {
    /// Returns the faults of a history.
    /// - Parameter rows: The save number under which each row is stored, and the number inside the row, in the store's order.
    package static func problems(_ rows: some Sequence<(number: Generation, written: Generation)>, newest: Generation) -> [String]
    {
        var problems: [String] = []
        var last: Generation?
        for row in rows {
            if let last, row.number.rawValue != last.rawValue &+ 1 {
                problems.append("history: save \(row.number) follows save \(last)")
            }
            if row.number == 0 { problems.append("history: has a row of save 0, which is none") }
            if row.written != row.number {
                problems.append("history: the row of save \(row.number) is of save \(row.written)")
            }
            last = row.number
        }
        if let last, last != newest { problems.append("history: ends with save \(last), but the newest is \(newest)") }
        return problems
    }
}
