/// The objects that a save, a push or a merge changed: the payload of notifications, history rows and merges.
///
/// A change set is compact: the changes to a page's 64 objects are three masks. Reading the keys of an entity is O(keys).
///
/// ```swift
/// for entity in notice.changes.entities {
///     print(model.entities[entity.entity].name, entity.insertedKeys, entity.updatedKeys, entity.deletedKeys)
/// }
/// ```
public struct ChangeSet: Sendable, Hashable, Codable {
    /// The changed objects of one page, as masks of slots.
    public struct PageChange: Sendable, Hashable, Codable {
        /// The number of the page, which with a slot makes an object's key; see ``PageAddress``.
        public var number: PageNumber
        /// The slots of the inserted objects, one bit per slot.
        public var inserted: UInt64
        /// The slots of the updated objects, one bit per slot.
        public var updated: UInt64
        /// The slots of the deleted objects, one bit per slot.
        public var deleted: UInt64
        /// The columns changed by the updates of the page.
        public var columns: ColumnSet
        /// The objects per set of changed columns. Empty if each updated object changed all of ``columns``, and in unions.
        public var groups: [ColumnGroup]

        /// Creates the changes of a page. A slot must not be in more than one mask.
        public init(
            number: PageNumber, inserted: UInt64, updated: UInt64, deleted: UInt64, columns: ColumnSet,
            groups: [ColumnGroup] = []
        ) {
            self.number = number
            self.inserted = inserted
            self.updated = updated
            self.deleted = deleted
            self.columns = columns
            self.groups = groups
        }

        /// Returns the columns that the update of one object changed.
        public func columns(of slot: Int) -> ColumnSet {
            groups.first { $0.slots >> UInt64(slot) & 1 != 0 }?.columns ?? columns
        }
    }

    /// Objects of a page whose updates changed the same columns.
    public struct ColumnGroup: Sendable, Hashable, Codable {
        /// The slots of the objects, one bit per slot.
        public var slots: UInt64
        /// The columns that the update of each of these objects changed.
        public var columns: ColumnSet

        /// Creates a group of objects whose updates changed the same columns.
        public init(slots: UInt64, columns: ColumnSet) {
            self.slots = slots
            self.columns = columns
        }
    }

    /// The changed objects of one entity.
    public struct EntityChange: Sendable, Hashable, Codable {
        /// The entity.
        public var entity: EntityIndex
        /// The changed pages, ascending by number.
        public var pages: [PageChange]

        /// Creates the changes of an entity. `pages` must be ascending by number.
        public init(entity: EntityIndex, pages: [PageChange]) {
            self.entity = entity
            self.pages = pages
        }

        /// The keys of the inserted objects, ascending. O(keys).
        public var insertedKeys: [ObjectKey] { keys(\.inserted) }
        /// The keys of the updated objects, ascending. O(keys).
        public var updatedKeys: [ObjectKey] { keys(\.updated) }
        /// The keys of the deleted objects, ascending. O(keys).
        public var deletedKeys: [ObjectKey] { keys(\.deleted) }

        private func keys(_ mask: KeyPath<PageChange, UInt64>) -> [ObjectKey] {
            pages.flatMap { page in
                SlotIterator(page[keyPath: mask]).map { PageAddress.key(page: page.number, slot: $0) }
            }
        }
    }

    /// The objects at each end of a link whose partners changed.
    public struct LinkChange: Sendable, Hashable, Codable {
        /// The link.
        public var link: LinkIndex
        /// The keys of the objects at the source end whose partners changed.
        public var sources: [ObjectKey]
        /// The keys of the objects at the destination end whose partners changed.
        public var destinations: [ObjectKey]

        /// Creates the changes of a link.
        public init(link: LinkIndex, sources: [ObjectKey], destinations: [ObjectKey]) {
            self.link = link
            self.sources = sources
            self.destinations = destinations
        }
    }

    private struct Parts: Sendable, Hashable, Codable {
        var generation: Generation
        var entities: [EntityChange]
        var links: [LinkChange]
        var tombstones: [Tombstone]
        var metadata: SaveMetadata

        // The names in the histories of SQLite files.
        private enum CodingKeys: String, CodingKey {
            case generation, entities, links, tombstones
            case metadata = "origin"
        }
    }

    /// The parts lie behind one reference and are copied on write: contexts on several threads hand each change set on, and a copy counts one
    /// reference instead of one per part.
    private var storage: Storage

    private final class Storage: @unchecked Sendable {
        // `@unchecked Sendable` is safe because the parts are changed only while one change set refers to this object.
        var parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    private var parts: Parts {
        _read { yield storage.parts }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
            yield &storage.parts
        }
    }

    /// The save's number; 0 for a push to a parent.
    public var generation: Generation {
        get { parts.generation }
        set { parts.generation = newValue }
    }
    /// The changes per entity, in the order of the schema. Entities without changes are left out.
    public var entities: [EntityChange] {
        get { parts.entities }
        _modify { yield &parts.entities }
    }
    /// The changes per link, in the order of the schema. Links without changes are left out.
    public var links: [LinkChange] {
        get { parts.links }
        _modify { yield &parts.links }
    }
    /// The tombstones of deleted objects whose model preserves values on deletion, ascending by entity and key.
    public var tombstones: [Tombstone] {
        get { parts.tombstones }
        _modify { yield &parts.tombstones }
    }
    /// The author, time and process of the save.
    public var metadata: SaveMetadata {
        get { parts.metadata }
        _modify { yield &parts.metadata }
    }
    /// The author of the save; empty if there was none.
    public var author: String { metadata.author }

    private static let empty = ChangeSet(generation: 0)

    /// Creates a change set without changes. O(1), without an allocation.
    public init() { self = Self.empty }

    /// Creates a change set. Entities, links and tombstones must be ascending.
    public init(
        generation: Generation = 0, entities: [EntityChange] = [], links: [LinkChange] = [], tombstones: [Tombstone] = [],
        metadata: SaveMetadata = SaveMetadata()
    ) {
        storage = Storage(
            Parts(generation: generation, entities: entities, links: links, tombstones: tombstones, metadata: metadata))
    }

    /// Decodes a change set, as the history of an SQLite file contains it.
    public init(from decoder: any Decoder) throws { storage = Storage(try Parts(from: decoder)) }

    /// Encodes the change set for the history of an SQLite file.
    public func encode(to encoder: any Encoder) throws { try parts.encode(to: encoder) }

    /// Returns whether two change sets have equal parts.
    public static func == (a: Self, b: Self) -> Bool { a.parts == b.parts }

    /// Hashes the parts.
    public func hash(into hasher: inout Hasher) { parts.hash(into: &hasher) }

    /// A Boolean value that indicates whether no object and no link changed.
    public var isEmpty: Bool { entities.isEmpty && links.isEmpty }

    /// Returns the changes of an entity, or nil if none of its objects changed. O(changed entities).
    public func change(of entity: EntityIndex) -> EntityChange? { entities.first { $0.entity == entity } }
}

extension Layer {
    /// Returns the change set of the layer. O(pages + rows updated).
    public func changeSet(metadata: SaveMetadata = SaveMetadata()) -> ChangeSet {
        var set = ChangeSet(generation: version.generation ?? 0, metadata: metadata)
        for index in entityIndices {
            guard let changes = entity(index) else { continue }
            let pages = changes.sortedPageNumbers.compactMap { pageNumber -> ChangeSet.PageChange? in
                guard let page = changes.page(pageNumber) else { return nil }
                let (columns, groups) = page.updatedColumns()
                return .init(
                    number: pageNumber, inserted: page.inserted, updated: page.updated, deleted: page.deleted,
                    columns: columns, groups: groups)
            }
            set.entities.append(.init(entity: index, pages: pages))
        }
        for (index, link) in links.enumerated(as: LinkIndex.self) where !link.isEmpty {
            set.links.append(
                .init(link: index, sources: link.forward.keys.sorted(), destinations: link.backward.keys.sorted()))
        }
        return set
    }
}

extension LayerPage {
    /// Returns the columns that updates of the page changed, and groups of objects if their columns differ.
    fileprivate func updatedColumns() -> (ColumnSet, [ChangeSet.ColumnGroup]) {
        var all = ColumnSet()
        var first: ColumnSet?
        var differ = false
        for slot in SlotIterator(updated) {
            guard let set = self[slot]?.set else { continue }
            all.formUnion(set)
            if first != set { differ = first != nil || differ }
            first = first ?? set
        }
        guard differ else { return (all, []) }
        var groups: [ChangeSet.ColumnGroup] = []
        for slot in SlotIterator(updated) {
            guard let set = self[slot]?.set else { continue }
            let bit: UInt64 = 1 << UInt64(slot)
            if let known = groups.firstIndex(where: { $0.columns == set }) {
                groups[known].slots |= bit
            } else {
                groups.append(.init(slots: bit, columns: set))
            }
        }
        return (all, groups)
    }
}

extension ChangeSet {
    /// Returns the combined changes of several saves, oldest first. The generation is the newest.
    public static func union(_ sets: [ChangeSet]) -> ChangeSet {
        guard let last = sets.last else { return ChangeSet() }
        if sets.count == 1 { return last }
        var pages: [EntityIndex: [PageChange]] = [:]
        var links: [LinkIndex: [LinkChange]] = [:]
        for set in sets {
            for change in set.entities { pages[change.entity, default: []] += change.pages }
            for change in set.links { links[change.link, default: []].append(change) }
        }
        var union = ChangeSet(
            generation: last.generation,
            tombstones: sets.flatMap(\.tombstones).sorted { ($0.entity, $0.key) < ($1.entity, $1.key) },
            metadata: last.metadata)
        union.entities = pages.sorted { $0.key < $1.key }.map { EntityChange(entity: $0, pages: PageChange.united($1)) }
        union.links = links.sorted { $0.key < $1.key }.map { LinkChange(uniting: $1) }
        return union
    }
}

extension ChangeSet.LinkChange {
    /// - Parameter changes: Changes of one link; at least one.
    fileprivate init(uniting changes: [ChangeSet.LinkChange]) {
        self.init(
            link: changes[0].link, sources: [ObjectKey](uniting: changes.map(\.sources)),
            destinations: [ObjectKey](uniting: changes.map(\.destinations)))
    }
}

extension ChangeSet.PageChange {
    /// Returns each page once, ascending. Precondition: of the changes to one page, the older change comes first.
    fileprivate static func united(_ changes: [ChangeSet.PageChange]) -> [ChangeSet.PageChange] {
        // Imports continue where they ended, so that sorting is usually unnecessary.
        var places: [Int] = Array(changes.indices)
        if zip(changes, changes.dropFirst()).contains(where: { $0.number > $1.number }) {
            places.sort { (changes[$0].number, $0) < (changes[$1].number, $1) }
        }
        var united: [ChangeSet.PageChange] = []
        united.reserveCapacity(changes.count)
        for place in places {
            if united.last?.number == changes[place].number {
                united[united.count - 1].add(changes[place])
            } else {
                united.append(changes[place])
            }
        }
        return united
    }

    /// Adds the changes of a newer save. An inserted object that is then updated stays inserted; an object that is then
    /// deleted is deleted.
    fileprivate mutating func add(_ newer: ChangeSet.PageChange) {
        inserted = (inserted | newer.inserted) & ~newer.deleted
        updated = (updated | newer.updated) & ~newer.deleted & ~inserted
        deleted = (deleted & ~newer.inserted & ~newer.updated) | newer.deleted
        columns.formUnion(newer.columns)
        groups = []
    }
}
