internal import Platform

/// A set of changes to objects over a snapshot, or over other layers.
///
/// A layer contains the unsaved changes of a context, a child's push to its parent, the input of the writer, or a save that
/// is not yet on disk.
///
/// One owner writes a layer and then seals it. From then on it is immutable and may be shared between threads.
/// `@unchecked Sendable` is right because of that rule: `seal()` precedes the first hand-over, and hand-overs go through a
/// lock or an executor.
public final class Layer: @unchecked Sendable {
    /// Unique in the process.
    public let id: UInt64
    /// The newest save in the layer; unsaved until a writer has accepted it.
    public private(set) var version = RowVersion.unsaved
    /// A Boolean value that indicates whether the layer is immutable and may be shared between threads.
    @exclusivity(unchecked) public private(set) var isSealed = false
    // Other modules would check each access of a stored property at run time, even if it is marked as unchecked. They read such a
    // property through an inlined one.
    @usableFromInline @exclusivity(unchecked) var rowCount = 0
    @usableFromInline @exclusivity(unchecked) var hasDeletion = false
    /// A Boolean value that indicates whether a pair may be as in the state below, because one of the folded layers has changed it and a
    /// newer one has changed it back; false is certain.
    @exclusivity(unchecked) package private(set) var mayRepeatPairs = false
    /// The number of rows put into the layer, counting repeated puts: a measure of the cost of folding it.
    @inlinable package var weight: Int { rowCount }
    /// A Boolean value that indicates whether a row of the layer may be a deletion; false is certain.
    @inlinable public var mayDelete: Bool { hasDeletion }
    /// The changes of the links, by position of the link.
    @exclusivity(unchecked) public private(set) var links: [LinkLayer]
    @exclusivity(unchecked) private var entities: [EntityLayer?]
    private let indexes = Mutex<[IndexKey: [Value: [ObjectKey]]]>([:])
    /// A Boolean value that indicates whether the owner requested an index before sealing, so that writes must maintain it.
    /// For the owner only.
    @exclusivity(unchecked) package private(set) var mustKeepIndexes = false

    private struct IndexKey: Hashable {
        var entity: EntityIndex
        var column: ColumnIndex
    }

    private static let nextID = Atomic<UInt64>(1)

    /// Creates an empty, writable layer with a new ``id``. O(entities + links).
    package init(schema: StoreSchema) {
        id = Self.nextID.add(1, ordering: .relaxed).oldValue
        entities = Array(repeating: nil, count: schema.entities.count)
        links = Array(repeating: LinkLayer(), count: schema.links.count)
    }

    /// Creates a writable copy of a sealed layer. Pages and rows are shared until written. O(entities), and O(1) for a layer that was never
    /// written.
    package init(copying other: Layer) {
        precondition(other.isSealed, "only a sealed layer may be shared")
        let id = Self.nextID.add(1, ordering: .relaxed).oldValue
        self.id = id
        // An entity's changes are made with the first row that is counted.
        entities = other.rowCount == 0 ? other.entities : other.entities.map { $0.map { EntityLayer(sharing: $0, owner: id) } }
        links = other.links
        hasDeletion = other.hasDeletion
        mayRepeatPairs = other.mayRepeatPairs
        rowCount = other.rowCount
    }

    /// A Boolean value that indicates whether the layer changes no object and no link. O(entities + links).
    public var isEmpty: Bool {
        entities.allSatisfy { $0?.isEmpty ?? true } && links.allSatisfy(\.isEmpty)
    }

    /// The positions of all entities of the schema, including entities without changes.
    public var entityIndices: Range<EntityIndex> { entities.indices() }

    /// Makes the layer immutable, so that threads can share it. A sealed layer, which threads may be reading, is not written.
    package func seal() {
        if !isSealed { isSealed = true }
    }

    /// Returns the changes to one entity, or nil if there are none.
    @inline(__always)
    public func entity(_ number: EntityIndex) -> EntityLayer? {
        guard let found = entities[number], !found.isEmpty else { return nil }
        return found
    }

    /// Returns the layer's row of an object, or nil if the layer does not change the object. O(1).
    public func row(_ entity: EntityIndex, _ key: ObjectKey) -> Row? { row(entity, page: key.page, slot: key.slot) }

    /// Returns the layer's row of the object in a slot of a page, or nil if the layer does not change the object. O(1).
    ///
    /// Does not count references to the entity's changes, which took an eighth of the time of an update. That is right because the layer
    /// keeps them alive, and the owner changes nothing meanwhile.
    package func row(_ entity: EntityIndex, page number: PageNumber, slot: Int) -> Row? {
        precondition(entities.indices.contains(entity.rawValue), "no such entity")
        return entities.withUnsafeBytes { bytes in
            let place = entity.rawValue * MemoryLayout<EntityLayer?>.stride
            return bytes.load(fromByteOffset: place, as: Unmanaged<EntityLayer>?.self)?._withUnsafeGuaranteedRef {
                $0.row(page: number, slot: slot)
            } ?? nil
        }
    }

    // MARK: Writing, by the owner, before sealing

    /// Replaces the layer's row of the key.
    package func put(_ row: Row, entity: EntityIndex, key: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        if row.kind == .delete { hasDeletion = true }
        rowCount += 1
        if let found = entities[entity] {
            found.put(row, for: key)
        } else {
            let made = EntityLayer(owner: id)
            entities[entity] = made
            made.put(row, for: key)
        }
        extendIndexes(row, entity: entity, key: key)
    }

    /// Removes the layer's changes to an object.
    package func remove(entity: EntityIndex, key: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        entities[entity]?.remove(key)
    }

    /// Records that a pair of a link was added or removed.
    package func setLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) {
        precondition(!isSealed, "a sealed layer is immutable")
        rowCount += 1
        links[link].set(source, destination, linked: linked)
    }

    /// Records a newer change of a pair, of which this layer may have an older one.
    func mergeLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) {
        if links[link].forward[source]?[destination] == !linked { mayRepeatPairs = true }
        setLink(link, from: source, to: destination, linked: linked)
    }

    func noteRepeatedPairs() { mayRepeatPairs = true }

    /// Removes this layer's change of a pair.
    package func forgetLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey) {
        precondition(!isSealed, "a sealed layer is immutable")
        links[link].forget(source, destination)
    }

    /// Updates the indexes after the owner has changed a column of a row in this layer.
    package func didSet(_ column: ColumnIndex, of row: Row, entity: EntityIndex, key: ObjectKey) {
        guard mustKeepIndexes else { return }
        indexes.withLock { indexes in
            let place = IndexKey(entity: entity, column: column)
            guard indexes[place] != nil else { return }
            Self.add(key, having: row[column], to: &indexes[place]!)
        }
    }

    /// Stamps every row, and the layer itself, with the version of their save. Called by the writer before publication.
    package func stamp(_ version: RowVersion) {
        self.version = version
        for case let entity? in entities {
            for page in entity.pages.values { page.forEachRow(in: page.touched) { row, _ in row.version = version } }
        }
    }

    /// Whether a writer has stamped a row of the layer before. O(rows).
    package var isStamped: Bool {
        entities.contains { entity in
            entity?.pages.values.contains { page in
                SlotIterator(page.touched).contains { page[$0]?.version.sequence != nil }
            } ?? false
        }
    }

    /// Stamps a layer that is written at once, without a writer that accepts it first.
    package func stamp(_ generation: Generation) { stamp(.committed(generation)) }

    /// The generation that the layer is stamped with; 0 for any other version.
    public var generation: Generation { version.generation ?? 0 }

    /// Sets the newest save of a folded layer, whose rows keep the versions of older saves.
    package func setVersion(_ version: RowVersion) { self.version = version }

    /// Shares the pages of a sealed newer layer for which this layer has no page of its own. Returns the numbers of the other
    /// pages.
    func share(_ changes: EntityLayer, entity: EntityIndex, mayDelete: Bool) -> [PageNumber] {
        precondition(!isSealed && !mustKeepIndexes, "only a new layer takes whole pages")
        let own: EntityLayer
        if let found = entities[entity] {
            own = found
        } else {
            own = EntityLayer(owner: id)
            entities[entity] = own
        }
        if mayDelete { hasDeletion = true }
        var rest: [PageNumber] = []
        for (number, page) in changes.pages {
            if own.share(page, number) {
                self.rowCount += page.touched.nonzeroBitCount
            } else {
                rest.append(number)
            }
        }
        return rest
    }

    // MARK: Looking up by value

    /// Returns the keys whose row in this layer has had `value` in `column`. The result is a superset: check it against the
    /// rows.
    ///
    /// The first call for a column costs O(rows of the entity). Later calls cost O(1).
    package func candidates(entity: EntityIndex, column: ColumnIndex, value: Value) -> [ObjectKey] {
        guard self.entity(entity) != nil else { return [] }
        if !isSealed { mustKeepIndexes = true }
        return indexes.withLock { indexes in
            let place = IndexKey(entity: entity, column: column)
            if indexes[place] == nil { indexes[place] = makeIndex(entity: entity, column: column) }
            return indexes[place]![value] ?? []
        }
    }

    private func makeIndex(entity: EntityIndex, column: ColumnIndex) -> [Value: [ObjectKey]] {
        var index: [Value: [ObjectKey]] = [:]
        for (number, page) in entities[entity]?.pages ?? [:] {
            for slot in SlotIterator(page.inserted | page.updated) {
                guard let row = page[slot], row.isSet(column) else { continue }
                Self.add(PageAddress.key(page: number, slot: slot), having: row[column], to: &index)
            }
        }
        return index
    }

    /// Adds an object to an index. Leaves out NaN, which no look-up finds, because a dictionary would compare each NaN with all others.
    private static func add(_ key: ObjectKey, having value: Value, to index: inout [Value: [ObjectKey]]) {
        if case .double(let number) = value, number.isNaN { return }
        index[value, default: []].append(key)
    }

    private func extendIndexes(_ row: Row, entity: EntityIndex, key: ObjectKey) {
        guard mustKeepIndexes else { return }
        indexes.withLock { indexes in
            // A loop over the keys themselves would share the indexes, and each change would copy one.
            for place in indexes.keys.filter({ $0.entity == entity && row.isSet($0.column) }) {
                Self.add(key, having: row[place.column], to: &indexes[place]!)
            }
        }
    }
}
