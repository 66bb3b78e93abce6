#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// One save in the history: its author, its time, and the changed objects (S160).
///
/// ```swift
/// for transaction in try await container.coordinator.history() {
///     print(transaction.date, transaction.author ?? "unknown")
/// }
/// ```
public struct HistoryTransaction: Sendable, Identifiable {
    /// The changes, in the form in which contexts merge them: `context.mergeChanges(from: transaction.changeSet)`.
    public let changeSet: ChangeSet
    private let model: Model
    private let store: StoreIdentity
    /// The lists whose order the save has changed.
    private let reordered: ChangedLists

    init(_ changeSet: ChangeSet, model: Model, in store: any ObjectStore, reordered: ChangedLists = [:]) {
        self.changeSet = changeSet
        self.model = model
        self.reordered = reordered
        self.store = store.identity
        token = HistoryToken(store, changeSet.generation)
    }

    /// The number of the save in its store.
    public var id: Generation { changeSet.generation }
    /// The position after this save.
    public let token: HistoryToken
    /// The time of the save, by the clock of the machine that saved.
    public var date: Date { changeSet.metadata.date }
    /// The `transactionAuthor` of the saving context.
    public var author: String? { changeSet.metadata.author.isEmpty ? nil : changeSet.metadata.author }
    /// The name of the saving context.
    public var contextName: String? { changeSet.metadata.contextName.isEmpty ? nil : changeSet.metadata.contextName }
    /// The id of the process that saved.
    public var processID: Int32 { changeSet.metadata.processID }

    /// The changed objects, by entity, then by key. Computed at each access, in O(changed objects).
    ///
    /// If a save moves members of an ordered many-to-many relationship, the object that has the list is listed as updated. A move is not
    /// listed if a later save has removed the member from the list.
    public var changes: [HistoryChange] {
        let links = linkChanges()
        let tombstones = Dictionary(
            changeSet.tombstones.map { (ObjectAddress(entity: $0.entity, key: $0.key), $0) }, uniquingKeysWith: { _, new in new })
        var found: [HistoryChange] = []
        for entity in model.entities where !OrderEntity.contains(entity) {
            var rest = links[entity.number] ?? [:]
            for page in changeSet.change(of: entity.number)?.pages ?? [] {
                for slot in SlotIterator(page.inserted | page.updated | page.deleted) {
                    let key = PageAddress.key(page: page.number, slot: slot)
                    let related = rest.removeValue(forKey: key) ?? []
                    found.append(
                        change(
                            entity, page: page, slot: slot, related: related,
                            tombstone: tombstones[ObjectAddress(entity: entity.number, key: key)]))
                }
            }
            for (key, names) in rest {
                found.append(
                    HistoryChange(
                        objectID: ObjectID(store: store, entity: entity.number, key: key), entityName: entity.name,
                        kind: .update, updatedProperties: names, tombstone: [:]))
            }
        }
        return found.sorted { ($0.objectID.entity, $0.objectID.key) < ($1.objectID.entity, $1.objectID.key) }
    }

    private func change(
        _ entity: Entity, page: ChangeSet.PageChange, slot: Int, related: Set<String>, tombstone: Tombstone?
    ) -> HistoryChange {
        let bit: UInt64 = 1 << UInt64(slot)
        let id = ObjectID(store: store, entity: entity.number, key: PageAddress.key(page: page.number, slot: slot))
        var change = HistoryChange(
            objectID: id, entityName: entity.name, kind: .insert, updatedProperties: [], tombstone: [:])
        if page.deleted & bit != 0 {
            change.kind = .delete
            for preserved in tombstone?.values ?? [] where entity.columnIndices.contains(preserved.column) {
                change.tombstone[entity.columns[preserved.column].name] = preserved.value
            }
        } else if page.updated & bit != 0 {
            change.kind = .update
            change.updatedProperties = related
            page.columns(of: slot).forEach { column in
                if entity.columnIndices.contains(column) { change.updatedProperties.insert(entity.columns[column].name) }
            }
        }
        return change
    }

    /// Returns the many-to-many relationships whose pairs or order changed, by entity and key.
    private func linkChanges() -> ChangedLists {
        var found = reordered
        changeSet.forEachChangedList(of: model) { entity, key, name in
            found[entity, default: [:]][key, default: []].insert(name)
        }
        return found
    }
}

/// The change of one object by a save.
///
/// ```swift
/// for change in transaction.changes where change.kind == .delete {
///     print(change.objectID, change.tombstone["isrc"] ?? .null)
/// }
/// ```
public struct HistoryChange: Sendable, Hashable {
    /// The kind of a change.
    public enum Kind: String, Sendable, Hashable { case insert, update, delete }

    /// The id of the object.
    public var objectID: ObjectID
    /// The name of the object's entity.
    public var entityName: String
    /// The kind of the change.
    public var kind: Kind
    /// The attributes and relationships that an update changed. A to-many relationship with a to-one inverse is listed at the inverse's
    /// object.
    public var updatedProperties: Set<String>
    /// The values of the attributes that the model preserves, if the object was deleted; otherwise empty.
    public var tombstone: [String: Value]
}

extension HistoryTransaction: CustomStringConvertible {
    /// The save, its time, author and context, and the changed objects. Of many objects, the first are shown.
    public var description: String {
        let changes = changes
        let shown = changes.prefix(8).map(\.description).joined(separator: ", ")
        let source = [author.map { "by \($0)" }, contextName.map { "in \($0)" }].compactMap(\.self).map { " " + $0 }.joined()
        let rest = changes.count > 8 ? ", … (\(changes.count) objects)" : ""
        return "save \(id) at \(changeSet.metadata.timeText)\(source): \(changes.isEmpty ? "no changes" : shown + rest)"
    }
}

extension HistoryChange: CustomStringConvertible {
    /// The change, the object, and the changed properties: `updated Track(id: 12): plays, title`.
    public var description: String {
        let object = "\(entityName)(id: \(objectID.key))"
        switch kind {
        case .insert: return "inserted \(object)"
        case .update:
            return "updated \(object)"
                + (updatedProperties.isEmpty ? "" : ": " + updatedProperties.sorted().joined(separator: ", "))
        case .delete:
            if let removedEntry { return "deleted \(object): an entry of \(removedEntry.collection)" }
            let values = tombstone.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            return "deleted \(object)" + (values.isEmpty ? "" : ": " + values.joined(separator: ", "))
        }
    }
}
