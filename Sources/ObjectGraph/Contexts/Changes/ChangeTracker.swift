import StoreInterface
import StoreModel

/// The record of a context's changes, besides their values in the layers.
struct ChangeTracker {
    /// The objects that changed since observers were last notified.
    var log = ChangeLog()
    /// The updated objects that another context has deleted.
    var updatesOfDeleted = UpdatesOfDeletedObjects()
    /// Objects that the next save checks for conflicts although they are unchanged.
    var watched: Set<ObjectID> = []
    /// The objects with unsaved changes that other saves changed while the store was suspended, with the columns that those changed. The
    /// next save checks them for conflicts, although the context shows the newest values.
    var changedWhileSuspended: [ObjectAddress: ColumnSet] = [:]
    /// The addresses of unsaved objects that had a provisional id before their insertion, by its key.
    var provisional: [ObjectKey: ObjectAddress] = [:]
    /// The recorded changes; nil while undo is off.
    var undo: UndoHistory?
    /// The changes of keyed collections.
    var keyed = KeyedChanges()
    /// The assignments that would destroy stored values that cannot be decoded.
    var replacements = UndecodableReplacements()
    /// The ends of ordered relationships to which objects were appended.
    var listEnds = ListEnds()
    /// The allocated keys that new objects have not used yet, by entity.
    var keys: [Range<ObjectKey>]

    /// Takes all unused keys, so that the caller returns them to the allocator.
    mutating func takeKeys() -> [(entity: Int, keys: Range<ObjectKey>)] {
        let rest = keys.enumerated().filter { !$0.element.isEmpty }.map { (entity: $0.offset, keys: $0.element) }
        keys = Array(repeating: 0..<0, count: keys.count)
        return rest
    }
}
