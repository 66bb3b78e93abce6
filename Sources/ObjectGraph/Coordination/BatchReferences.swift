import StoreInterface

extension Entity {
    /// The column of a property that batches may set.
    ///
    /// One end of a one-to-one relationship is refused: the other end is a column of another row, which a batch does not write.
    func batchColumn(named name: String, in model: Model) throws -> Int {
        guard let column = column(named: name) else { throw FetchError.unknownProperty(entity: self.name, property: name) }
        if let relationship = relationship(named: name), let inverse = relationship.inverse,
            case .toOne = model.entities[relationship.destination].relationships[inverse].kind
        {
            throw BatchError.oneToOne(entity: self.name, property: name)
        }
        return column
    }
}

/// Checks that the references of a batch lead to objects; each one once.
struct BatchReferences {
    private let entity: Entity
    private let state: StoreState
    private var known: [Int: Set<ObjectKey>] = [:]

    init(_ entity: Entity, _ state: StoreState) {
        self.entity = entity
        self.state = state
    }

    /// - Throws: ``BatchError/missingObject(entity:property:key:)``.
    mutating func check(_ value: Value, _ column: Int) throws {
        guard let destination = entity.columns[column].destination, let key = value.referenceKey,
            known[destination, default: []].insert(key).inserted
        else { return }
        guard try state.view.exists(destination, key) else {
            throw BatchError.missingObject(entity: entity.name, property: entity.columns[column].name, key: key)
        }
    }
}
