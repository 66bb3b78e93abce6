import StoreInterface
import StoreModel

/// The rows of one save of an import. The writer's queue converts them to a layer.
///
/// If the writer repeats its transaction, the layer is created again from the same keys.
struct BatchInsertion: ImportChunk {
    let entity: Entity
    /// The columns for which rows have values.
    let columns: [ColumnIndex]
    /// The same columns, with the unique attributes by which rows name destinations.
    private let properties: [BatchColumn]
    /// The positions in rows of destinations that are found or checked in the state that a save follows.
    private let lookups: [Int]
    /// The positions in rows of one-to-one relationships. Of several names of one column, the last one applies.
    private let paired: [Int]
    /// The columns by which existing objects are found; nil if they are not looked up.
    let match: [ColumnIndex]?
    let rule: UpsertRule
    /// The class of the entity, if it may have initial values in columns for which rows have no values.
    private let initialValues: InitialValues?
    var rows: [[Value]] = []
    /// The values of the other columns, per row; empty if the defaults of the entity are the values.
    private var initialRows: [[Value]] = []
    /// Allocated keys, at least as many as rows, ascending within each range.
    var keys: [Range<ObjectKey>] = []
    /// The number of the first row in the whole import, for errors.
    var firstRow = 0

    init(_ entity: Entity, properties: [String], rule: UpsertRule, in model: Model) throws {
        if entity.isAbstract { throw BatchError.abstractEntity(entity.name) }
        self.entity = entity
        self.rule = rule
        self.properties = try properties.map { try BatchColumn($0, of: entity, in: model) }
        columns = self.properties.map(\.column)
        lookups = self.properties.indices.filter { [properties = self.properties] in properties[$0].isResolved }
        paired = self.properties.indices.filter { [properties = self.properties, columns] in
            properties[$0].pair != nil && columns.lastIndex(of: properties[$0].column) == $0
        }
        match = try rule.properties?.map { try BatchColumn($0, of: entity, in: model).column }
        let initial = InitialValues(entity, in: model)
        initialValues = initial.flatMap { [columns] in $0.columns.isSubset(of: columns) ? nil : $0 }
        for column in match ?? [] where !columns.contains(column) {
            throw FetchError.unknownProperty(entity: entity.name, property: "\(entity.columns[column].name) in the rows")
        }
    }

    var entityNumber: EntityIndex { entity.number }
    var count: Int { rows.count }
    var keyCount: Int { rows.count }
    var hiddenObject: ObjectKey? { nil }

    mutating func reserveCapacity(_ count: Int) { rows.reserveCapacity(count) }

    mutating func append(_ row: [Value], number: Int) throws {
        guard row.count == columns.count else {
            throw BatchError.wrongCount(entity: entity.name, row: number, values: row.count, properties: columns.count)
        }
        rows.append(try zip(row, properties).map { try $1.checked($0) })
        if let initialValues { initialRows.append(initialValues.row()) }
    }

    func layer(over state: StoreState, schema: StoreSchema) throws -> Layer {
        let layer = Layer(schema: schema)
        var free = keys.lazy.joined().makeIterator()
        /// Objects that earlier rows of this save inserted or updated, by their values.
        var met: [[Value]: ObjectKey] = [:]
        var moved: Set<[Value]> = []
        let positions = match?.map { column in columns.lastIndex(of: column) ?? 0 }
        let matched = lookups.filter { positions?.contains($0) == true }
        let others = lookups.filter { !matched.contains($0) }
        let after = LayeredView(base: state.base, layers: [layer] + state.view.layers)
        var destinations = Destinations(count: columns.count)
        var ends = ListEnds()
        for (number, var row) in rows.enumerated() {
            try destinations.resolve(&row, at: matched, insertion: self, in: state)
            let values = positions.map { positions in positions.map { row[$0] } }
            var found: ObjectKey?
            // Without values to compare, no object is the same.
            if let values, let match, !values.isEmpty, !values.contains(where: \.isNull) {
                // An object of another entity in the hierarchy may have the values. The save then reports the constraint, if there is one.
                found =
                    try moved.contains(values)
                    ? after.key(of: entity, match, values) : met[values] ?? state.key(of: entity, match, values)
            }
            // A row that is dropped needs no destinations.
            if case .keep = rule, let found {
                if let values { met[values] = found }
                continue
            }
            try destinations.resolve(&row, at: others, insertion: self, in: state)
            if let found {
                if let values { met[values] = found }
                try destinations.forget(found, insertion: self, over: after)
                try relate(found, row: row, in: layer, over: after, moved: &moved)
                try update(found, row: row, in: layer, over: state.view, ends: &ends)
                try destinations.note(row, key: found, insertion: self, over: after)
            } else {
                // There are as many keys as rows.
                guard let key = free.next() else { break }
                if let values { met[values] = key }
                let defaults = initialRows.isEmpty ? entity.defaults : initialRows[number]
                try relate(key, row: row, in: layer, over: after, moved: &moved)
                try insert(key, row: row, defaults: defaults, in: layer, over: state.view, ends: &ends)
                try destinations.note(row, key: key, insertion: self, over: after)
            }
        }
        return layer
    }

    private func insert(
        _ key: ObjectKey, row: [Value], defaults: [Value], in layer: Layer, over view: LayeredView, ends: inout ListEnds
    ) throws {
        let made = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
        for (value, column) in zip(row, columns) { made[column] = value }
        try entity.appendToLists(made, key: key, over: view, ends: &ends)
        // Two names can set one column.
        if made.set.count < made.columnCount { made.fill(with: defaults) }
        layer.put(made, entity: entity.number, key: key)
    }

    private func update(
        _ key: ObjectKey, row: [Value], in layer: Layer, over view: LayeredView, ends: inout ListEnds
    ) throws {
        let known = layer.row(entity.number, key)
        let changed = known ?? Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
        let before = known.map { $0.copy(layer: layer.id) }
        for (value, column) in zip(row, columns) { changed[column] = value }
        try entity.appendToLists(changed, key: key, after: before, over: view, ends: &ends)
        // Also if the layer has the row, whose values its indexes find.
        layer.put(changed, entity: entity.number, key: key)
    }

    /// Writes the other ends of a row's one-to-one relationships, as contexts do (S052). Of several rows with one partner, the last one
    /// has it. Called before the row itself is written.
    ///
    /// - Parameters:
    ///   - view: The state after the rows before this one.
    ///   - moved: Values of matched columns that an object has lost or got because a partner was taken from it or given to it. Rows with
    ///     these values look for their object in `view`.
    private func relate(
        _ key: ObjectKey, row: [Value], in layer: Layer, over view: LayeredView, moved: inout Set<[Value]>
    ) throws {
        func note(_ key: ObjectKey) throws {
            guard let match else { return }
            moved.insert(try match.map { try view.value(entity.number, key: key, column: $0) ?? .null })
        }
        func put(_ value: Value, at end: BatchColumn.Pair, of key: ObjectKey) throws {
            let isMatched = end.entity == entity.number && match?.contains(end.column) == true
            if isMatched { try note(key) }
            let row = layer.row(end.entity, key) ?? Row.make(kind: .update, layer: layer.id, columnCount: end.columnCount)
            row[end.column] = value
            layer.put(row, entity: end.entity, key: key)
            if isMatched { try note(key) }
        }
        for position in paired {
            let property = properties[position]
            guard let pair = property.pair else { continue }
            let old = try view.value(entity.number, key: key, column: property.column)?.referenceKey
            let new = row[position].referenceKey
            if old == new { continue }
            if let old, try view.exists(pair.entity, old) { try put(.null, at: pair, of: old) }
            // The check of the save reports a reference to a missing object.
            guard let new, try view.exists(pair.entity, new) else { continue }
            if let owner = try view.value(pair.entity, key: new, column: pair.column)?.referenceKey {
                try put(.null, at: property.end, of: owner)
            }
            try put(.reference(key), at: pair, of: new)
        }
    }

    /// The destinations that a save has found, per position in the rows.
    private struct Destinations {
        private var known: [[Value: ObjectKey]]
        /// The values that this save has replaced, by which the state still finds an object.
        private var gone: [Set<Value>]

        init(count: Int) {
            known = Array(repeating: [:], count: count)
            gone = Array(repeating: [], count: count)
        }

        /// Forgets the values by which an object is found, before a row replaces them.
        ///
        /// - Parameter view: The state after the rows before that one.
        mutating func forget(_ key: ObjectKey, insertion: BatchInsertion, over view: LayeredView) throws {
            for position in insertion.lookups {
                guard let destination = insertion.properties[position].destination,
                    insertion.columns.contains(destination.column),
                    try Self.mayLead(to: key, destination, insertion: insertion, over: view),
                    let old = try view.value(insertion.entity.number, key: key, column: destination.column), !old.isNull
                else { continue }
                if known[position][old] == key { known[position][old] = nil }
                if known[position][old] == nil { gone[position].insert(old) }
            }
        }

        /// Replaces the values at positions of a row by references.
        mutating func resolve(_ row: inout [Value], at positions: [Int], insertion: BatchInsertion, in state: StoreState) throws {
            for position in positions {
                row[position] = try reference(row[position], position: position, insertion: insertion, in: state)
            }
        }

        private mutating func reference(
            _ value: Value, position: Int, insertion: BatchInsertion, in state: StoreState
        ) throws -> Value {
            if let key = known[position][value] { return .reference(key) }
            let property = insertion.properties[position]
            if gone[position].contains(value), let destination = property.destination {
                throw destination.noDestination(of: property.name, in: insertion.entity, value: value)
            }
            let reference = try property.resolved(value, in: state)
            known[position][value] = reference.referenceKey
            return reference
        }

        /// Records a row of this save, to which later rows of the save may refer.
        ///
        /// - Parameter view: The state after the row.
        mutating func note(_ row: [Value], key: ObjectKey, insertion: BatchInsertion, over view: LayeredView) throws {
            for position in insertion.lookups {
                guard let destination = insertion.properties[position].destination,
                    let source = insertion.columns.lastIndex(of: destination.column),
                    try Self.mayLead(to: key, destination, insertion: insertion, over: view)
                else { continue }
                if !row[source].isNull { known[position][row[source]] = key }
            }
        }

        /// Returns whether an object of a row is one of a destination's entity. A row may update an object of an entity that inherits from
        /// that of the rows.
        private static func mayLead(
            to key: ObjectKey, _ destination: UniqueColumn, insertion: BatchInsertion, over view: LayeredView
        ) throws -> Bool {
            guard destination.entity.number == insertion.entity.number else { return false }
            return try destination.entity.includes(insertion.entity) || view.includes(key, in: destination.entity)
        }
    }
}
