internal import Platform
import StoreInterface
import StoreModel

/// The initial values of the properties of a model class, such as `UUID()` in `var id = UUID()`.
///
/// Swift evaluates them when it creates a model. Imports and upserts therefore create a model per new object of an entity with a class.
struct InitialValues: Sendable {
    private let entity: Entity
    private let type: any PersistentModel.Type
    private let detached: DetachedEntity

    /// Returns nil for an entity without a class.
    init?(_ entity: Entity, in model: Model) {
        guard let type = model.type(of: entity) else { return nil }
        self.entity = entity
        self.type = type
        detached = Self.detachedEntity(of: type)
    }

    /// Creates a model with its initial values, in no context.
    func makeModel() -> any PersistentModel { type.init(managedObject: ManagedObject(detached: detached)) }

    /// Creates a model with its initial values, in which others replace those of some columns of the entity.
    func makeModel(setting values: [(column: ColumnIndex, value: Value)]) -> any PersistentModel {
        let model = makeModel()
        for (column, value) in values {
            let own =
                entity.inheritance.map { place in
                    place.properties.indices().first { place.properties[$0] == column }
                } ?? column
            if let own { model.managedObject.row?[own] = value }
        }
        return model
    }

    /// Evaluates the initial values. Returns a whole row of the entity, with defaults where the class has no initial value.
    func row() -> [Value] {
        var values = entity.defaults
        let model = makeModel()
        forEachValue(of: model) { values[$0] = $1 }
        return values
    }

    /// The columns of the entity that have initial values. The same for all models of a class.
    var columns: Set<ColumnIndex> {
        var columns: Set<ColumnIndex> = []
        let model = makeModel()
        forEachValue(of: model) { column, _ in columns.insert(column) }
        return columns
    }

    /// References to other new objects are not values.
    private func forEachValue(of model: any PersistentModel, _ body: (ColumnIndex, Value) -> Void) {
        let object = model.managedObject
        guard let row = object.row else { return }
        row.set.forEach { own in
            let column = entity.inheritance?.properties[own] ?? own
            if entity.columns[column].destination == nil { body(column, row[own]) }
        }
    }

    // MARK: Descriptions

    private static let known = Mutex<[ObjectIdentifier: DetachedEntity]>([:])

    /// Returns what detached objects of an entity have; nil for an entity without a class.
    static func detachedEntity(of entity: Entity, in model: Model) -> DetachedEntity? {
        model.type(of: entity).map(detachedEntity(of:))
    }

    private static func detachedEntity(of type: any PersistentModel.Type) -> DetachedEntity {
        if let found = known.withLock({ $0[ObjectIdentifier(type)] }) { return found }
        // Outside of the lock, because this runs code of the class.
        let entity = type.hierarchy.count > 1 ? DetachedEntity(subclass: type) : DetachedEntity(type.entityDescription)
        known.withLock { $0[ObjectIdentifier(type)] = entity }
        return entity
    }
}

extension ManagedObjectContext {
    /// Inserts an object with the initial values of its class, or the defaults of an entity without a class. `values` replace those.
    ///
    /// - Parameter relationships: The names of relationships that the caller sets. Their initial objects are not inserted.
    /// - Returns: The object, and the initial objects of its relationships, which were inserted with it.
    func insertNew(
        _ entity: Entity, _ initial: InitialValues?, setting values: [(column: ColumnIndex, value: Value)],
        relating relationships: [String] = []
    ) -> (object: ManagedObject, related: [ManagedObject]) {
        guard let initial else {
            var row = entity.defaults
            for (column, value) in values { row[column] = value }
            return (insert(entity, values: row), [])
        }
        let model = initial.makeModel(setting: values)
        let object = model.managedObject
        object.claim(model)
        var related: [ManagedObject] = []
        if let state = object.detachedState, let graph = state.graph {
            for (number, relationship) in entity.relationships.enumerated() where relationships.contains(relationship.name) {
                state.toOne[number] = nil
                state.toMany[number] = nil
            }
            related = graph.others(than: object)
        }
        insertGraph(of: object, entity)
        return (object, related.filter { $0.state == .registered })
    }
}
