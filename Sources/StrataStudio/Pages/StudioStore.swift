import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// The store of a page, and how its values are written.
struct StudioStore: Sendable {
    let container: PersistentContainer
    let file: String
    let language: StudioLanguage
    let options: Studio.Options

    var coordinator: PersistentStoreCoordinator { container.coordinator }
    var model: Model { container.model }

    /// Returns an entity by its name.
    func entity(_ name: String?) throws -> Entity {
        guard let name, let entity = model.entity(named: name) else {
            throw PageError(.notFound, "the store has no entity \(name ?? "without a name"). Choose one of the schema")
        }
        return entity
    }

    /// Returns the entity and the key of an object, such as `Track 12`; the id itself for an object of another store.
    func text(_ id: ObjectID) -> String {
        guard id.store == coordinator.storeIdentity, let entity = entity(numbered: id.entity) else { return id.description }
        return "\(entity.name) \(id.key)"
    }

    /// Returns the entity with a number. If others inherit from it, it is the one at the head of the hierarchy; nil for the hidden entities
    /// of orders and keyed values, which follow those of the model.
    func entity(numbered number: EntityIndex) -> Entity? {
        guard model.entities.indices(as: EntityIndex.self).contains(number) else { return nil }
        return model.entity(named: model.entities[number].name)
    }

    /// The entities of the hierarchy of an entity, the head first; or the entity alone.
    func hierarchy(of number: EntityIndex) -> [Entity] {
        let inheriting = model.subentities.filter { $0.number == number }
        return (entity(numbered: number).map { [$0] } ?? []) + inheriting
    }

    /// Returns the entity that declares a relationship of the entity with this number.
    func entity(declaring relationship: String, numbered number: EntityIndex) -> Entity? {
        hierarchy(of: number).first { entity in
            entity.relationship(named: relationship) != nil
                && entity.superentityName.flatMap(model.entity)?.relationship(named: relationship) == nil
        }
    }

    /// Returns the relationship at the other end of a relationship; nil if it has no name.
    func inverse(of relationship: Relationship) -> Relationship? {
        relationship.inverse.map { model.entities[relationship.destination].relationships[$0] }
    }

    /// Returns the entity to whose objects a relationship leads: the one that declares the inverse.
    func destination(of relationship: Relationship) -> Entity {
        let head = model.entities[relationship.destination]
        let declaring = inverse(of: relationship).flatMap { entity(declaring: $0.name, numbered: head.number) }
        return declaring ?? entity(numbered: head.number) ?? head
    }

    /// Returns the entity of an object, which inherits from the one that was asked for or is that one.
    ///
    /// - Throws: An error if there is no such object.
    func entity(of id: ObjectID, asked entity: Entity, in context: ManagedObjectContext) throws -> Entity {
        let found = try hierarchy(of: entity.number).filter { entity in
            try context.count(EntityFetchRequest(entity.name, matching: .ids([id]))) == 1
        }
        let deepest = found.first { entity in !found.contains { $0.superentityName == entity.name } }
        guard let deepest, found.contains(where: { $0.name == entity.name }) else {
            throw PageError(.notFound, "the store has no \(entity.name) with the key \(id.key): it was deleted, or never saved")
        }
        return deepest
    }

    /// The columns of an entity's attributes and to-one relationships.
    func columns(of entity: Entity) -> [ColumnSchema] { entity.declaredColumns.map { entity.columns[$0] } }

    /// Returns the key that a text names.
    func key(_ text: String?) throws -> ObjectKey {
        guard let text, let key = ObjectKey(text) else {
            throw PageError(.badRequest, "\(text ?? ""): no key of an object. Write a whole number")
        }
        return key
    }

    func id(_ entity: Entity, _ key: ObjectKey) -> ObjectID {
        ObjectID(store: coordinator.storeIdentity, entity: entity.number, key: key)
    }

    /// Returns the condition of a filter's text.
    func condition(_ text: String?, _ entity: Entity) throws -> Condition {
        do { return try language.condition(text ?? "", entity, model) } catch {
            throw PageError(.badRequest, language.sentence(error))
        }
    }

    /// Returns the sort of a text such as `title,-plays`.
    func sort(_ text: String?) throws -> [AttributeSort] {
        do { return try language.sort(text ?? "") } catch { throw PageError(.badRequest, language.sentence(error)) }
    }

    /// Reads one state.
    func read<T: Sendable>(_ snapshot: Snapshot, _ body: @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        let context = coordinator.newBackgroundContext(name: "studio", reading: snapshot)
        return try await context.perform { try body($0) }
    }

    /// Reads the newest state.
    func read<T: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        try await read(coordinator.snapshot(owner: "studio"), body)
    }

    /// The attribute that stands for an object where only one is shown: a name or title, or else the first text.
    func label(of entity: Entity) -> String? {
        let texts = entity.attributes.filter { $0.type == .string }
        return (texts.first { ["name", "title"].contains($0.name.lowercased()) } ?? texts.first)?.name
    }

    // MARK: Values

    /// Returns a value as the page shows it. Long texts are cut, and data is shown by its length.
    func cell(_ value: Value, _ type: ColumnType, limit: Int) -> Cell {
        switch value {
        case .null: return Cell()
        case .data(let data): return Cell(text: "\(data.count) bytes")
        default:
            var cell = Cell(text: language.text(value, type))
            if let text = cell.text, let end = text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex),
                end < text.endIndex
            {
                cell.text = String(text[..<end])
                cell.length = text.count
            }
            if case .reference(let key) = value { cell.key = "\(key)" }
            return cell
        }
    }
}

/// A value as the page shows it. Numbers are texts, because a script's numbers are less exact.
struct Cell: Encodable, Sendable {
    /// nil for null.
    var text: String?
    /// The number of characters of the whole text, if it is cut.
    var length: Int?
    /// The key of the object to which a reference leads.
    var key: String?
    /// The text that stands for that object.
    var label: String?
}

extension ColumnSchema {
    /// The type, and for a reference the entity to which it leads.
    func typeText(in model: Model) -> String { destination.map { model.entities[$0].name } ?? type.rawValue }
}
