import StoreInterface
import StoreModel

/// Inserting Swift values, such as decoded JSON, as objects (S139).
///
/// The stored properties of a value set the properties of an object that have the same names. Names are those in Swift, so that coding
/// keys do not matter. Missing properties, and nil for a property that is not optional, give the initial value of the class, which is
/// evaluated per object, or else the default value. A property that the entity does not have is an error.
///
/// A relationship is set by values of the destination's unique attribute: one value if it is to-one, a list if it is to-many. The
/// destinations are objects that the context shows, or objects of the same call.
extension ManagedObjectContext {
    /// Inserts an object per value, in order.
    ///
    /// ```swift
    /// struct Song: Decodable {
    ///     var title: String
    ///     var album: String?  // The unique title of an album.
    /// }
    ///
    /// let songs = try JSONDecoder().decode([Song].self, from: json)
    /// try context.insert(contentsOf: songs, as: Track.self)
    /// ```
    /// Cost: reflection of each value, about a microsecond per property, and one query per relationship. For imports of more objects than
    /// fit into memory, see ``PersistentStoreCoordinator/insert(contentsOf:as:rule:options:progress:)``.
    /// - Throws: ``BatchError``, ``FetchError``. Then nothing is inserted.
    @discardableResult
    public func insert<M: PersistentModel, Values: Sequence>(contentsOf values: Values, as type: M.Type = M.self) throws -> [M]
    where Values.Element: Decodable {
        guard let entity = storedModel.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        return try importObjects(values, entity, unique: nil).map { wrapped($0, as: M.self) }
    }

    /// Inserts an object of an entity per value, in order. See ``insert(contentsOf:as:)``.
    @discardableResult
    public func insert<Values: Sequence>(contentsOf values: Values, into entityName: String) throws -> [ManagedObject]
    where Values.Element: Decodable {
        guard let entity = storedModel.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        return try importObjects(values, entity, unique: nil)
    }

    /// Updates the object with the same value of a unique attribute, per value, or inserts one. Of equal values, the last one wins.
    ///
    /// An updated object keeps its values of properties that the Swift value does not have.
    ///
    /// ```swift
    /// try context.upsert(contentsOf: songs, unique: \Track.isrc)
    /// ```
    /// - Returns: The objects in the order of the values. An object can occur several times.
    /// - Throws: ``BatchError``, ``FetchError``. Then nothing is changed.
    @discardableResult
    public func upsert<M: PersistentModel, V: AttributeValue, Values: Sequence>(
        contentsOf values: Values, unique attribute: KeyPath<M, V>
    ) throws -> [M] where Values.Element: Decodable {
        let unique = try uniqueColumn(attribute)
        return try importObjects(values, unique.entity, unique: unique).map { wrapped($0, as: M.self) }
    }

    /// Updates the object of an entity with the same value of a unique attribute, per value, or inserts one. See
    /// ``upsert(contentsOf:unique:)``.
    @discardableResult
    public func upsert<Values: Sequence>(
        contentsOf values: Values, into entityName: String, unique attribute: String
    ) throws -> [ManagedObject] where Values.Element: Decodable {
        guard let entity = storedModel.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        return try importObjects(values, entity, unique: entity.uniqueColumn(named: attribute))
    }

    // MARK: Steps

    /// Checks everything before the first change.
    private func importObjects(_ values: some Sequence, _ entity: Entity, unique: UniqueColumn?) throws -> [ManagedObject] {
        checkIsolation()
        if entity.isAbstract { throw BatchError.abstractEntity(entity.name) }
        var reader = ImportedFields(entity, in: storedModel)
        // Derived values are left out, because saves compute them.
        let rows = try values.map { try reader.fields(of: $0).filter { !$0.isDerived(in: entity) } }
        let existing =
            try unique.map { unique in try keys(of: Set(rows.compactMap { $0.value(of: unique.column) }), in: unique) } ?? [:]
        let destinations = try findDestinations(of: rows, entity, matching: unique?.column, existing: existing)
        let initial = InitialValues(entity, in: storedModel)
        var objects: [ManagedObject] = []
        objects.reserveCapacity(rows.count)
        var met: [Value: ManagedObject] = [:]
        for row in rows {
            let value = unique.flatMap { row.value(of: $0.column) } ?? .null
            let known = met[value] ?? existing[value].map { self.object(entity.number, $0) }
            let object = known ?? insertNew(entity, initial, setting: row.attributes, relating: row.relationships).object
            if known != nil {
                for (column, value) in row.attributes {
                    object.permitReplacement(of: column, by: value)
                    write(object, column: column, value: value)
                }
            }
            if !value.isNull { met[value] = object }
            objects.append(object)
        }
        for (row, object) in zip(rows, objects) { relate(object, row: row, destinations: destinations, objects: objects) }
        return objects
    }

    /// An object to which a relationship leads: one that the context shows, or the one at a position of the imported values.
    private enum Destination {
        case existing(ObjectKey)
        case imported(Int)
    }

    /// Returns the destinations of each relationship by the values of their unique attribute, which are those after the import.
    ///
    /// - Parameters:
    ///   - match: The column by which rows find their objects; nil if each row is a new object.
    ///   - existing: The objects that the context shows, by their values of that column.
    private func findDestinations(
        of rows: [[ImportedFields.Field]], _ entity: Entity, matching match: ColumnIndex?, existing: [Value: ObjectKey]
    ) throws -> [Int: [Value: Destination]] {
        var wanted: [Int: (name: String, unique: UniqueColumn, values: Set<Value>)] = [:]
        for field in rows.joined() {
            guard case .related(let relationship, let unique) = field.target else { continue }
            wanted[relationship.number, default: (field.name, unique, [])].values.formUnion(field.values.filter { !$0.isNull })
        }
        return try wanted.mapValues { name, unique, values in
            var found = try keys(of: values, in: unique).mapValues { Destination.existing($0) }
            if unique.entity.includes(entity) {
                // Rows with the same value of the matched column have one object, which keeps the last value that they give it. No row
                // refers to a value that a row replaces.
                func matched(_ row: [ImportedFields.Field]) -> Value? {
                    match.flatMap { row.value(of: $0) }.flatMap { $0.isNull ? nil : $0 }
                }
                var last: [Value: Value] = [:]
                for row in rows {
                    if let matched = matched(row), let value = row.value(of: unique.column) { last[matched] = value }
                }
                var replaced: [ObjectKey: Value] = [:]
                for (matched, key) in existing { replaced[key] = last[matched] }
                found = found.filter { value, destination in
                    guard case .existing(let key) = destination, let new = replaced[key] else { return true }
                    return new == value
                }
                for (position, row) in rows.enumerated() {
                    guard let value = row.value(of: unique.column), !value.isNull, found[value] == nil else { continue }
                    if let matched = matched(row), last[matched] != value { continue }
                    found[value] = .imported(position)
                }
            }
            for value in values where found[value] == nil {
                throw unique.noDestination(of: name, in: entity, value: value)
            }
            return found
        }
    }

    private func relate(
        _ object: ManagedObject, row: [ImportedFields.Field], destinations: [Int: [Value: Destination]],
        objects: [ManagedObject]
    ) {
        for field in row {
            guard case .related(let relationship, _) = field.target else { continue }
            let others = field.values.compactMap { value -> ManagedObject? in
                switch destinations[relationship.number]?[value] {
                case .existing(let key): self.object(relationship.destination, key)
                case .imported(let position): objects[position]
                case nil: nil
                }
            }
            switch relationship.kind {
            case .toOne: setToOne(object, relationship, to: others.first)
            case .toMany: setToMany(object, relationship, to: others)
            }
        }
    }
}

extension ImportedFields.Field {
    /// Whether saves compute the property.
    fileprivate func isDerived(in entity: Entity) -> Bool {
        if case .attribute(let column) = target { entity.columns[column].derivation != nil } else { false }
    }
}

extension [ImportedFields.Field] {
    /// Returns the value of a column; nil if the fields have none.
    func value(of column: ColumnIndex) -> Value? {
        for field in self {
            if case .attribute(column) = field.target { return field.values.first }
        }
        return nil
    }

    /// The columns of attributes, with their values.
    var attributes: [(column: ColumnIndex, value: Value)] {
        compactMap { field in
            guard case .attribute(let column) = field.target, let value = field.values.first else { return nil }
            return (column, value)
        }
    }

    /// The names of relationships.
    var relationships: [String] {
        compactMap { if case .related = $0.target { $0.name } else { nil } }
    }
}
