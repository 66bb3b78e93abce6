import HashTreeCollections
import StoreInterface
import StoreModel

extension MemoryState {
    /// Returns the faults of versions, indexes, links and the history, one sentence each. O(objects).
    func problems(_ schema: StoreSchema) -> [String] {
        var problems: [String] = []
        for entity in schema.entityIndices { problems += objectProblems(entity, schema.entities[entity]) }
        for link in schema.linkIndices { problems += linkProblems(link, schema) }
        let rows = history.lazy.map { (number: $0.generation, written: $0.generation) }
        return problems + HistoryOrder.problems(rows, newest: generation)
    }

    private func objectProblems(_ entity: EntityIndex, _ schema: EntitySchema) -> [String] {
        var problems: [String] = []
        for (key, record) in records[entity] {
            if record.version > generation { problems.append("\(schema.name) \(key): was written by a later save") }
            let page = presence[entity][key.page] ?? 0
            if page >> UInt64(key.slot) & 1 == 0 {
                problems.append("\(schema.name) \(key): is missing in its page")
            }
        }
        for (column, index) in indexes[entity] {
            problems += indexProblems(entity, schema: schema, columns: [column], entries: index.lazy.map { ([$0.key], $0.value) })
            { values in
                index[values[0]]
            }
        }
        for index in compoundIndexes[entity] {
            problems += indexProblems(
                entity, schema: schema, columns: index.columns, entries: index.keys.lazy.map { ($0.key, $0.value) }
            ) {
                values in
                index.keys[values]
            }
        }
        return problems
    }

    /// Returns the faults of one index. Skips values with a NaN: it equals nothing, so no index finds it.
    private func indexProblems(
        _ entity: EntityIndex, schema: EntitySchema, columns: [ColumnIndex],
        entries: some Sequence<([Value], TreeSet<ObjectKey>)>,
        find: ([Value]) -> TreeSet<ObjectKey>?
    ) -> [String] {
        let name = columns.map { schema.columns[$0].name }.joined(separator: "+")
        var problems: [String] = []
        for (key, record) in records[entity] {
            let values = columns.map { record.values[$0] }
            guard Self.isFindable(values), find(values)?.contains(key) != true else { continue }
            problems.append("\(schema.name) \(key): is missing in the index on \(name)")
        }
        for (values, keys) in entries where Self.isFindable(values) {
            for key in keys where columns.map({ records[entity][key]?.values[$0] }) != values {
                problems.append("index on \(schema.name).\(name): has an entry for \(schema.name) \(key), which has other values")
            }
        }
        return problems
    }

    static func isFindable(_ values: [Value]) -> Bool { values.allSatisfy { $0 == $0 } }

    private func linkProblems(_ number: LinkIndex, _ schema: StoreSchema) -> [String] {
        let link = schema.links[number]
        var problems: [String] = []
        func check(_ near: TreeDictionary<ObjectKey, TreeSet<ObjectKey>>, isForward: Bool) {
            let far = isForward ? links[number].backward : links[number].forward
            for (key, others) in near {
                for other in others {
                    let (source, destination) = isForward ? (key, other) : (other, key)
                    if far[other]?.contains(key) != true {
                        problems.append("relationship \(link.name): pair \(source), \(destination) is stored one way only")
                    } else if !isForward {
                        // The pair was checked from the other end.
                        continue
                    }
                    let missing = RelationCheck.missingEnd(link, from: source, to: destination, in: schema) {
                        records[$0][$1] != nil
                    }
                    if let missing { problems.append(missing) }
                }
            }
        }
        check(links[number].forward, isForward: true)
        check(links[number].backward, isForward: false)
        return problems
    }
}
