internal import Platform

/// A set of changes to objects that lies over a snapshot, or over other layers: what a context has not saved, what a child
/// hands to its parent, what the writer gets, what is saved but not yet on disk.
///
/// A layer is written by one owner, then sealed; from then on it is immutable and may be shared between threads.
/// `@unchecked Sendable` is right because of that rule: `seal()` comes before the first hand-over, and hand-overs go through
/// a lock or an executor.
public final class Layer: @unchecked Sendable {
    /// Unique in the process.
    public let id: UInt64
    /// The newest save that the layer holds; unsaved until a writer has accepted it.
    public private(set) var version = RowVersion.unsaved
    @exclusivity(unchecked) public private(set) var isSealed = false
    /// How many rows were put into the layer, counting those put again: a measure of what folding it costs.
    @exclusivity(unchecked) public private(set) var weight = 0
    /// Whether a row of the layer may be a deletion; false is certain.
    @exclusivity(unchecked) public private(set) var mayDelete = false
    public private(set) var links: [LinkLayer]
    @exclusivity(unchecked) private var entities: [EntityLayer?]
    private let indexes = Mutex<[IndexKey: [Value: [ObjectKey]]]>([:])
    /// Whether the owner asked for an index before sealing, so that writing must keep it up. The owner's alone.
    @exclusivity(unchecked) public private(set) var mustKeepIndexes = false

    private struct IndexKey: Hashable {
        var entity: Int
        var column: Int
    }

    private static let nextID = Atomic<UInt64>(1)

    public init(schema: StoreSchema) {
        id = Self.nextID.add(1, ordering: .relaxed).oldValue
        entities = Array(repeating: nil, count: schema.entities.count)
        links = Array(repeating: LinkLayer(), count: schema.links.count)
    }

    /// A writable copy of a sealed layer: pages and rows are shared until written. O(entities).
    public init(copying other: Layer) {
        precondition(other.isSealed, "only a sealed layer may be shared")
        let id = Self.nextID.add(1, ordering: .relaxed).oldValue
        self.id = id
        entities = other.entities.map { $0.map { EntityLayer(sharing: $0, owner: id) } }
        links = other.links
        mayDelete = other.mayDelete
        weight = other.weight
    }

    public var isEmpty: Bool {
        entities.allSatisfy { $0?.isEmpty ?? true } && links.allSatisfy(\.isEmpty)
    }

    public var entityCount: Int { entities.count }

    public func seal() { isSealed = true }

    /// The changes to one entity; nil when there are none.
    @inline(__always)
    public func entity(_ number: Int) -> EntityLayer? {
        guard let found = entities[number], !found.isEmpty else { return nil }
        return found
    }

    public func row(_ entity: Int, _ key: ObjectKey) -> Row? { entities[entity]?.row(key) }

    // MARK: Writing, by the owner, before sealing

    /// Puts a row in place of what the layer had for the key.
    public func put(_ row: Row, entity: Int, key: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        if row.kind == .delete { mayDelete = true }
        weight += 1
        if let found = entities[entity] {
            found.put(row, for: key)
        } else {
            let made = EntityLayer(owner: id)
            entities[entity] = made
            made.put(row, for: key)
        }
        extendIndexes(row, entity: entity, key: key)
    }

    /// Forgets what the layer says of an object.
    public func remove(entity: Int, key: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        entities[entity]?.remove(key)
    }

    public func setLink(_ link: Int, _ source: ObjectKey, _ destination: ObjectKey, linked: Bool) {
        precondition(!isSealed, "a sealed layer is immutable")
        weight += 1
        links[link].set(source, destination, linked: linked)
    }

    public func forgetLink(_ link: Int, _ source: ObjectKey, _ destination: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        links[link].forget(source, destination)
    }

    /// Called by the owner after it changed a column of a row that the layer already holds.
    public func didSet(_ column: Int, of row: Row, entity: Int, key: ObjectKey) {
        guard mustKeepIndexes else { return }
        indexes.withLock { indexes in
            let place = IndexKey(entity: entity, column: column)
            guard indexes[place] != nil else { return }
            indexes[place]![row[column], default: []].append(key)
        }
    }

    /// Gives every row, and the layer itself, the version of the save that they belong to. The writer's, before publication.
    public func stamp(_ version: RowVersion) {
        self.version = version
        for case let entity? in entities {
            for page in entity.pages.values {
                for slot in SlotIterator(page.touched) { page[slot]?.version = version }
            }
        }
    }

    /// For a layer that is written at once, without a writer that accepts it before.
    public func stamp(_ generation: Generation) { stamp(.committed(generation)) }

    /// The generation that the layer is stamped with; 0 for any other version.
    public var generation: Generation { version.generation ?? 0 }

    /// Sets the newest save of a folded layer, whose rows keep the versions of older ones.
    public func setVersion(_ version: RowVersion) { self.version = version }

    /// Takes the whole pages of a sealed newer layer for an entity as far as this layer has none there; the other pages' numbers.
    func share(_ changes: EntityLayer, entity: Int, mayDelete: Bool) -> [UInt64] {
        precondition(!isSealed && !mustKeepIndexes, "only a new layer takes whole pages")
        let own: EntityLayer
        if let found = entities[entity] {
            own = found
        } else {
            own = EntityLayer(owner: id)
            entities[entity] = own
        }
        if mayDelete { self.mayDelete = true }
        var rest: [UInt64] = []
        for (number, page) in changes.pages {
            if own.share(page, number) {
                self.weight += page.touched.nonzeroBitCount
            } else {
                rest.append(number)
            }
        }
        return rest
    }

    // MARK: Looking up by value

    /// The keys whose row in this layer has had `value` in `column`: a superset, to be checked against the row.
    ///
    /// The first call for a column costs O(rows of the entity); later ones O(1).
    public func candidates(entity: Int, column: Int, value: Value) -> [ObjectKey] {
        guard self.entity(entity) != nil else { return [] }
        if !isSealed { mustKeepIndexes = true }
        return indexes.withLock { indexes in
            let place = IndexKey(entity: entity, column: column)
            if indexes[place] == nil { indexes[place] = makeIndex(entity: entity, column: column) }
            return indexes[place]![value] ?? []
        }
    }

    private func makeIndex(entity: Int, column: Int) -> [Value: [ObjectKey]] {
        var index: [Value: [ObjectKey]] = [:]
        for (number, page) in entities[entity]?.pages ?? [:] {
            for slot in SlotIterator(page.inserted | page.updated) {
                guard let row = page[slot], row.isSet(column) else { continue }
                index[row[column], default: []].append(PageAddress.key(page: number, slot: slot))
            }
        }
        return index
    }

    private func extendIndexes(_ row: Row, entity: Int, key: ObjectKey) {
        guard mustKeepIndexes else { return }
        indexes.withLock { indexes in
            for place in indexes.keys where place.entity == entity && row.isSet(place.column) {
                indexes[place]![row[place.column], default: []].append(key)
            }
        }
    }
}
