import StoreInterface
import StoreModel

/// The changes that one author made since a state, in relation to those of others: which objects, columns and pairs, but no values.
struct AuthorChanges {
    /// The changes of one object.
    struct ObjectChanges {
        /// The columns that the author changed.
        var own = ColumnSet()
        /// The columns that others changed before the author did. The values that the author found are not known.
        var before = ColumnSet()
        /// The columns that others changed after the author did.
        var after = ColumnSet()
        /// The columns that others updated after a change of the author, also if the author has changed them again since.
        var contested = ColumnSet()
        /// Whether the last insertion or deletion of the object was by the author; nil if it was neither inserted nor deleted.
        var isLifeOwn: Bool?

        fileprivate mutating func note(_ columns: ColumnSet, isOwn: Bool, isUpdate: Bool) {
            columns.forEach { column in
                if isOwn {
                    own.insert(column)
                    after.remove(column)
                } else if own.contains(column) {
                    after.insert(column)
                    if isUpdate { contested.insert(column) }
                } else {
                    before.insert(column)
                }
            }
        }
    }

    /// The objects at both ends of a link whose partners changed in one save.
    struct Ends {
        var sources: Set<ObjectKey>
        var destinations: Set<ObjectKey>
    }

    private(set) var objects: [ObjectAddress: ObjectChanges] = [:]
    private(set) var ownLinks: [LinkIndex: [Ends]] = [:]
    private(set) var otherLinks: [LinkIndex: [Ends]] = [:]

    /// - Parameters:
    ///   - saves: The saves since the state, oldest first.
    ///   - later: Later saves whose authors are not known. They count as made by others, also if the author is "".
    ///   - derived: The derived columns of each entity, which no author changes; empty if there are none.
    init(of author: String, in saves: [ChangeSet], later: [ChangeSet], derived: [ColumnSet]) {
        let touched = Set(saves.filter { $0.author == author }.flatMap(Self.addresses))
        for (save, isOwn) in saves.map({ ($0, $0.author == author) }) + later.map({ ($0, false) }) {
            for change in save.entities {
                let ignored = derived.isEmpty ? ColumnSet() : derived[change.entity]
                for page in change.pages { note(page, entity: change.entity, touched: touched, isOwn: isOwn, ignoring: ignored) }
            }
            for link in save.links {
                let ends = Ends(sources: Set(link.sources), destinations: Set(link.destinations))
                if isOwn {
                    ownLinks[link.link, default: []].append(ends)
                } else {
                    otherLinks[link.link, default: []].append(ends)
                }
            }
        }
    }

    private mutating func note(
        _ page: ChangeSet.PageChange, entity: EntityIndex, touched: Set<ObjectAddress>, isOwn: Bool, ignoring ignored: ColumnSet
    ) {
        let all = ColumnSet(first: EntitySchema.maximumColumns)
        for slot in SlotIterator(page.inserted | page.updated | page.deleted) {
            let address = ObjectAddress(entity: entity, key: PageAddress.key(page: page.number, slot: slot))
            guard touched.contains(address) else { continue }
            let isUpdate = page.updated >> UInt64(slot) & 1 != 0
            var changes = objects[address] ?? ObjectChanges()
            var columns = isUpdate ? page.columns(of: slot) : all
            ignored.forEach { columns.remove($0) }
            changes.note(columns, isOwn: isOwn, isUpdate: isUpdate)
            if !isUpdate { changes.isLifeOwn = isOwn }
            objects[address] = changes
        }
    }

    private static func addresses(_ save: ChangeSet) -> [ObjectAddress] {
        save.entities.flatMap { change in
            (change.insertedKeys + change.updatedKeys + change.deletedKeys).map { ObjectAddress(entity: change.entity, key: $0) }
        }
    }

    /// Returns whether a pair may have been changed by the author, and by others.
    func touches(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey) -> (own: Bool, others: Bool) {
        func contains(_ ends: [Ends]?) -> Bool {
            ends?.contains { $0.sources.contains(source) && $0.destinations.contains(destination) } ?? false
        }
        return (contains(ownLinks[link]), contains(otherLinks[link]))
    }
}
