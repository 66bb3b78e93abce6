import StoreInterface
import StoreModel

/// A property that a batch sets: a column, or a reference that is found by a unique attribute of its destination.
struct BatchColumn: Sendable {
    /// The name of the property, or its path to the unique attribute.
    let name: String
    let column: ColumnIndex
    /// The unique attribute by which the destination is found; nil for a value of the column itself.
    let destination: UniqueColumn?
    /// The other end, if the column is one end of a one-to-one relationship (S052). An update leaves that end to the check of its save. An
    /// import writes it, because its rows may take a partner from each other.
    let pair: Pair?
    var isPair: Bool { pair != nil }
    /// This end.
    var end: Pair { Pair(column, of: entity) }
    private let entity: Entity
    /// The entity to whose objects the column refers; nil for an attribute.
    private let far: Entity?

    /// Whether a value depends on the state that the save follows: it names a destination, or it is a reference of which the save would
    /// not find out that it leads to an object of another entity in the hierarchy.
    var isResolved: Bool { destination != nil || far?.selection != nil }

    /// The column at one end of a one-to-one relationship.
    struct Pair: Sendable {
        let entity: EntityIndex
        let column: ColumnIndex
        /// The number of columns of that entity.
        let columnCount: Int

        fileprivate init(_ column: ColumnIndex, of entity: Entity) {
            (self.entity, self.column, columnCount) = (entity.number, column, entity.columns.count)
        }

        /// The other end of a relationship; nil if it is not one-to-one.
        fileprivate init?(_ relationship: Relationship, in model: Model) {
            let far = model.entities[relationship.destination]
            guard let inverse = relationship.inverse, case .toOne(let column) = far.relationships[inverse].kind else {
                return nil
            }
            (entity, self.column, columnCount) = (relationship.destination, column, far.columns.count)
        }
    }

    /// Finds a property by its name. `"album.title"` is the relationship `album`, set by the unique attribute `title` of albums.
    init(_ name: String, of entity: Entity, in model: Model) throws {
        // Names may contain dots.
        let names = entity.names(onPath: name, in: model)
        guard let column = entity.column(named: names[0]) else {
            throw FetchError.unknownProperty(entity: entity.name, property: names[0])
        }
        pair = entity.relationship(named: names[0]).flatMap { Pair($0, in: model) }
        self.name = name
        self.column = column
        self.entity = entity
        far = entity.relationship(named: names[0]).map(model.destination)
        if names.count == 1 {
            destination = nil
        } else {
            guard let far else { throw FetchError.unknownProperty(entity: entity.name, property: name) }
            destination = try far.uniqueColumn(named: names.dropFirst().joined(separator: "."))
        }
    }

    /// Returns the value as it is stored in the column, or in the unique attribute of the destination.
    func checked(_ value: Value) throws -> Value {
        if destination != nil, value.isNull { return value }
        let definition = destination?.definition ?? entity.columns[column]
        guard definition.accepts(value), definition.type.keepsFinite(value) else {
            throw BatchError.wrongValue(entity: entity.name, property: name, value: value)
        }
        return definition.type.stored(value)
    }

    /// Returns the value of the column: a reference to the destination that has a value of the unique attribute, or the value itself.
    ///
    /// The save checks that references lead to objects, and this that they are objects of the relationship's entity.
    func resolved(_ value: Value, in state: StoreState) throws -> Value {
        if value.isNull { return value }
        guard let destination else {
            if let far, let key = value.referenceKey, try state.view.exists(far.number, key),
                try !state.view.includes(key, in: far)
            {
                throw BatchError.wrongValue(entity: entity.name, property: name, value: value)
            }
            return value
        }
        guard let key = try state.key(of: destination.entity, [destination.column], [value]) else {
            throw destination.noDestination(of: name, in: entity, value: value)
        }
        return .reference(key)
    }
}

extension StoreState {
    /// Returns an object of an entity with these values of columns. Uses an index over the columns if there is one.
    func key(of entity: Entity, _ columns: [ColumnIndex], _ values: [Value]) throws -> ObjectKey? {
        if deferred.isEmpty {
            return try base.lookup(entity.number, columns: columns, values: values).first { try view.includes($0, in: entity) }
        }
        return try view.key(of: entity, columns, values)
    }
}

extension LayeredView {
    /// Returns an object of an entity with these values of columns.
    func key(of entity: Entity, _ columns: [ColumnIndex], _ values: [Value]) throws -> ObjectKey? {
        let parts =
            zip(columns, values).map { StorePredicate.compare($0, .equal, to: $1) } + [entity.selection].compactMap(\.self)
        return try keys(StoreQuery(entity: entity.number, predicate: .and(parts), limit: 1)).first
    }

    /// Returns whether an object of the store's entity is one of an entity in its hierarchy.
    func includes(_ key: ObjectKey, in entity: Entity) throws -> Bool {
        guard let inheritance = entity.inheritance, !inheritance.isHead else { return true }
        return try value(entity.number, key: key, column: inheritance.typeColumn).map(inheritance.types.contains) ?? false
    }
}
