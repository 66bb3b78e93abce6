import StoreInterface
import StoreModel

/// A property that a batch sets: a column, or a reference that is found by a unique attribute of its destination.
struct BatchColumn: Sendable {
    /// The name of the property, or its path to the unique attribute.
    let name: String
    let column: Int
    /// The unique attribute by which the destination is found; nil for a value of the column itself.
    let destination: UniqueColumn?
    private let entity: Entity

    /// Finds a property by its name. `"album.title"` is the relationship `album`, set by the unique attribute `title` of albums.
    ///
    /// One end of a one-to-one relationship is refused, because its other end is a column of another row, which a batch does not write.
    init(_ name: String, of entity: Entity, in model: Model) throws {
        let names = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let column = entity.column(named: names[0]) else {
            throw FetchError.unknownProperty(entity: entity.name, property: names[0])
        }
        if let relationship = entity.relationship(named: names[0]), let inverse = relationship.inverse,
            case .toOne = model.entities[relationship.destination].relationships[inverse].kind
        {
            throw BatchError.oneToOne(entity: entity.name, property: names[0])
        }
        self.name = name
        self.column = column
        self.entity = entity
        if names.count == 1 {
            destination = nil
        } else {
            guard let relationship = entity.relationship(named: names[0]) else {
                throw FetchError.unknownProperty(entity: entity.name, property: name)
            }
            destination = try model.destination(of: relationship).uniqueColumn(named: names[1])
        }
    }

    /// Returns the value as it is stored in the column, or in the unique attribute of the destination.
    func checked(_ value: Value) throws -> Value {
        if destination != nil, value.isNull { return value }
        let definition = destination?.definition ?? entity.columns[column]
        guard definition.accepts(value) else { throw BatchError.wrongValue(entity: entity.name, property: name, value: value) }
        return definition.type.stored(value)
    }

    /// Returns the value of the column: a reference to the destination that has a value of the unique attribute.
    func resolved(_ value: Value, in state: StoreState) throws -> Value {
        guard let destination, !value.isNull else { return value }
        guard let key = try state.key(of: destination.entity.number, [destination.column], [value]) else {
            throw BatchError.noDestination(
                entity: entity.name, property: name, destination: destination.entity.name,
                attribute: destination.definition.name, value: value)
        }
        return .reference(key)
    }
}

extension StoreState {
    /// Returns an object with these values of columns. Uses an index over the columns if there is one.
    func key(of entity: Int, _ columns: [Int], _ values: [Value]) throws -> ObjectKey? {
        if deferred.isEmpty { return try base.lookup(entity, columns: columns, values: values).first }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, to: $1) }
        return try view.keys(StoreQuery(entity: entity, predicate: .and(parts), limit: 1)).first
    }
}
