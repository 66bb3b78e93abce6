import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reading and writing keyed values by their bytes. Each is an object of a hidden entity without an instance, so that saves, merges,
/// conflicts and the history treat it like any object.
extension ManagedObjectContext {
    var keyedEntity: EntityIndex? { capabilities.keyedValues }

    // MARK: Reading

    /// Returns the object with a key, or nil.
    func keyedObject(_ key: Data) throws -> ObjectKey? {
        checkIsolation()
        try checkOpen()
        guard let entity = keyedEntity else { return nil }
        // The value may be found in a deferred save in memory, and later reads must show the same state.
        if layerStack.baseState.state.pendingSaves > 0 { layerStack.baseState.state.takeBase() }
        return try layerStack.view.keyedObject(entity, key)
    }

    /// Returns the key and the value of an object, or nil if it does not exist.
    func keyedEntry(_ object: ObjectKey) throws -> (key: Data, value: Data)? {
        checkIsolation()
        return try using { try storedEntry(object) }
    }

    private func storedEntry(_ object: ObjectKey) throws -> (key: Data, value: Data)? {
        guard let entity = keyedEntity else { return nil }
        if layerStack.hasLayers, layerStack.view.row(entity, object) != nil {
            return try exists(entity, object) ? (keyedKey(object), keyedValue(object)) : nil
        }
        let slot = object.slot
        guard let page = try layerStack.pages.page(entity, object.page, in: layerStack.view.base),
            let key = try page.presentValue(slot, KeyedColumn.key), let value = try page.presentValue(slot, KeyedColumn.value)
        else { return nil }
        return (key.keyedBytes, value.keyedBytes)
    }

    /// Returns an array that contains a prefix and has room for a key. Its memory is that of the last look-up: allocating some would cost
    /// a tenth of a look-up.
    @usableFromInline
    func takeKeyBuffer(beginningWith prefix: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        swap(&bytes, &layerStack.keyBuffer)
        bytes.removeAll(keepingCapacity: true)
        // Most keys fit. Without this, the array is allocated twice.
        if bytes.capacity == 0 { bytes.reserveCapacity(prefix.count + 64) }
        bytes += prefix
        return bytes
    }

    /// Keeps the memory of a key that was looked up for the next one, unless it is large.
    private func returnKeyBuffer(_ key: inout [UInt8]) {
        if key.count <= 1 << 10 { swap(&key, &layerStack.keyBuffer) }
    }

    /// Returns the value under a key, or nil.
    func keyedBytes(_ key: consuming [UInt8]) throws -> Data? {
        let uses = try beginUse()
        defer {
            uses?.end()
            returnKeyBuffer(&key)
        }
        switch try storedPlace(of: key) {
        case .absent: return nil
        case .slot(let slot, let page): if let value = try page.presentValue(slot, KeyedColumn.value) { return value.keyedBytes }
        case .undecided: break
        }
        return try keyedObject(Data(copy key)).map(keyedValue)
    }

    /// Calls `body` with the value under a key, which is valid only during the call, and not copied if the store has it in one piece.
    /// Returns false without a call if there is none.
    @usableFromInline
    func useKeyedBytes(_ key: consuming [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        let uses = try beginUse()
        defer {
            uses?.end()
            returnKeyBuffer(&key)
        }
        switch try storedPlace(of: key) {
        case .absent: return false
        case .slot(let slot, let page): if try page.withData(slot, column: KeyedColumn.value, body) { return true }
        case .undecided: break
        }
        guard let value = try keyedObject(Data(copy key)).map(keyedValue) else { return false }
        try value.withUnsafeBytes(body)
        return true
    }

    /// Where the store has the value of a key.
    private enum StoredPlace {
        case slot(Int, any StorePage)
        case absent
        /// The layers of the context decide.
        case undecided
    }

    @inline(__always)
    private func storedPlace(of key: [UInt8]) throws -> StoredPlace {
        checkIsolation()
        try checkOpen()
        guard let entity = keyedEntity else { return .absent }
        if layerStack.baseState.state.pendingSaves > 0 || layerStack.hasLayers && layerStack.view.touches(entity: entity) {
            return .undecided
        }
        // Read once, because counting references to a snapshot costs much of a look-up.
        let base = layerStack.view.base
        let object = try key.withUnsafeBytes { try base.holder(entity, column: KeyedColumn.key, of: $0) }
        guard let object else { return .absent }
        let page = try layerStack.pages.page(entity, object.page, in: base)
        return page.map { .slot(object.slot, $0) } ?? .undecided
    }

    /// Returns the parts of the value under a key, or nil.
    func keyedParts(_ key: Data) throws -> (any ValueParts)? {
        try using {
            guard let entity = keyedEntity, let object = try keyedObject(key) else { return nil }
            return try layerStack.view.parts(entity, key: object, column: KeyedColumn.value)
        }
    }

    /// Whether the state that the context reads has no unsaved or deferred change of a keyed value, and does not change while it is the
    /// same view. The store alone then answers every read.
    var readsKeyedValuesFromStore: Bool {
        guard layerStack.view.base.isFixed, let entity = keyedEntity else { return false }
        return !layerStack.hasLayers || !layerStack.view.touches(entity: entity)
    }

    /// Returns the value of an object, or nil if it does not exist. Precondition: no layer changes it.
    func storedKeyedValue(_ object: ObjectKey) throws -> Data? {
        guard let entity = keyedEntity else { return nil }
        return try layerStack.pages.page(entity, object.page, in: layerStack.view.base)?
            .presentValue(object.slot, KeyedColumn.value)?.keyedBytes
    }

    func keyedKey(_ object: ObjectKey) throws -> Data { try column(KeyedColumn.key, of: object) }
    func keyedValue(_ object: ObjectKey) throws -> Data { try column(KeyedColumn.value, of: object) }

    private func column(_ column: ColumnIndex, of object: ObjectKey) throws -> Data {
        guard let entity = keyedEntity else { return Data() }
        let (number, slot) = (object.page, object.slot)
        if layerStack.hasLayers {
            switch try layerStack.view.lookup(entity, page: number, slot: slot, column) {
            case .row(let row): return row[column].keyedBytes
            case .deleted: return Data()
            case .below: break
            }
        }
        return try layerStack.pages.page(entity, number, in: layerStack.view.base)?.presentValue(slot, column)?.keyedBytes
            ?? Data()
    }

    /// Returns the objects whose keys are in a range, in the order of the keys.
    func keyedObjects(
        from lower: [UInt8], to upper: [UInt8], direction: StoreSort.Direction, limit: Int?
    ) throws -> [ObjectKey] {
        checkIsolation()
        try checkOpen()
        guard let query = keyedQuery(from: lower, to: upper, direction, limit: limit) else { return [] }
        return try answer(query) { try $0.keys(query.storeQuery) }
    }

    /// Returns the objects whose keys are in a range, with the keys, in their order. Precondition: ``readsKeyedValuesFromStore``, asked
    /// after `checkIsolation()`, which may move the context and therefore is not called here.
    func storedKeys(
        from lower: [UInt8], to upper: [UInt8], direction: StoreSort.Direction, limit: Int?
    ) throws -> OrderedData {
        try checkOpen()
        guard let query = keyedQuery(from: lower, to: upper, direction, limit: limit) else { return OrderedData() }
        return try answer(query) { try $0.base.orderedData(query) }
    }

    func keyedCount(_ lower: [UInt8], _ upper: [UInt8]) throws -> Int {
        checkIsolation()
        try checkOpen()
        guard let query = keyedQuery(from: lower, to: upper, .ascending, limit: nil) else { return 0 }
        return try answer(query) { try $0.count(query.storeQuery) }
    }

    /// Runs the query of a range on the context's view, and reports and logs it under the name of the collection. The range with the
    /// types of all collections has no such name.
    private func answer<R>(_ query: OrderedDataQuery, _ ask: (LayeredView) throws -> R) throws -> R {
        let name = { KeyedColumn.collection(ofKey: Data(query.lower)) ?? "collections" }
        return try reporting(query.storeQuery, of: name(), in: layerStack.view, ask)
    }

    func keyedQuery(
        from lower: [UInt8], to upper: [UInt8], _ direction: StoreSort.Direction, limit: Int?
    ) -> OrderedDataQuery? {
        guard let entity = keyedEntity, lower.lexicographicallyPrecedes(upper) else { return nil }
        return OrderedDataQuery(
            entity: entity, column: KeyedColumn.key, lower: lower, upper: upper, direction: direction, limit: limit)
    }

    // MARK: Writing

    /// Sets the value under a key. The first write records the types of the collection.
    func putKeyed(_ key: Data, value: Data, of collection: String, types: CollectionTypes) throws {
        checkIsolation()
        try checkOpen()
        guard let entity = keyedEntity else { throw CollectionError.unavailable(collection: collection) }
        try record(collection, types)
        try put(entity, key: key, value: value)
        tracker.keyed.forgetErrors(of: key)
    }

    func put(_ entity: EntityIndex, key: Data, value: Data) throws {
        if let object = try layerStack.view.keyedObject(entity, key) {
            guard try keyedValue(object) != value else { return }
            return setKeyed(entity, object: object, key: key, value: value, row: makeWritableRow(entity, object))
        }
        dropHiddenUpdates(of: CollectionOfOne(.data(key)))
        if try revive(entity, key: key, value: value) { return }
        let object = try removedObject(entity, key, value: value) ?? nextKey(entity)
        let row = Row.make(kind: .insert, layer: layerStack.topID, columnCount: 2)
        row.fill(with: [.data(key), .data(value)])
        layerStack.top.put(row, entity: entity, key: object)
        tracker.log.noteInsertion(entity, object)
    }

    /// Each changed row has the key, so that the change can be applied to another object that has got the same key meanwhile.
    private func setKeyed(_ entity: EntityIndex, object: ObjectKey, key: Data, value: Data, row: Row) {
        if !row.isSet(KeyedColumn.key) {
            row[KeyedColumn.key] = .data(key)
            layerStack.top.didSet(KeyedColumn.key, of: row, entity: entity, key: object)
        }
        row[KeyedColumn.value] = .data(value)
        layerStack.top.didSet(KeyedColumn.value, of: row, entity: entity, key: object)
        if !tracker.updatesOfDeleted.isEmpty { tracker.updatesOfDeleted.note(entity, key: object, column: KeyedColumn.value) }
        tracker.log.note(entity, object)
        if let known = registry.object(entity, object) {
            known.row = row
            registry.retain(known)
        }
    }

    /// Updates the object whose deletion is unsaved, so that deleting a key and setting it again is one change of one object.
    private func revive(_ entity: EntityIndex, key: Data, value: Data) throws -> Bool {
        guard layerStack.top.mayDelete else { return false }
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst()))
        guard let object = try below.keyedObject(entity, key), registry.object(entity, object) == nil,
            let deletion = layerStack.top.row(entity, object), deletion.kind == .delete
        else { return false }
        let isSame = try below.value(entity, key: object, column: KeyedColumn.value) == .data(value)
        // A collection that begins anew with other types has a new record. The old one would look like a record with a renamed type.
        if !isSame, key.first == 0 { return false }
        tracker.log.note(entity, object)
        if isSame {
            layerStack.top.remove(entity: entity, key: object)
            return true
        }
        let row = Row.make(kind: .update, layer: layerStack.topID, columnCount: 2)
        row[KeyedColumn.key] = .data(key)
        row[KeyedColumn.value] = .data(value)
        layerStack.top.put(row, entity: entity, key: object)
        return true
    }

    /// Returns the object with a key whose unsaved deletion is in a sealed layer that no save has taken; nil if there is none. Inserted again,
    /// it is one change of one object.
    private func removedObject(_ entity: EntityIndex, _ key: Data, value: Data) throws -> ObjectKey? {
        if layerStack.sealed.isEmpty { return nil }
        let own = layerStack.notInFlight
        guard own.contains(where: \.mayDelete) else { return nil }
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst(own.count)))
        guard let object = try below.keyedObject(entity, key), registry.object(entity, object) == nil,
            layerStack.pendingKind(entity, object, inFlight: false) == .delete
        else { return nil }
        // See ``revive(_:key:value:)``.
        if key.first == 0, try below.value(entity, key: object, column: KeyedColumn.value) != .data(value) { return nil }
        return object
    }

    /// Removes a key. Returns whether it had a value.
    @discardableResult
    func removeKeyed(_ key: Data) throws -> Bool {
        tracker.keyed.forgetErrors(of: key)
        guard let object = try keyedObject(key) else {
            dropHiddenUpdates(of: CollectionOfOne(.data(key)))
            return false
        }
        try removeKeyed(object, key)
        return true
    }

    func removeKeyed(_ object: ObjectKey, _ key: Data) throws {
        checkIsolation()
        try checkOpen()
        guard let entity = keyedEntity else { return }
        if let known = registry.object(entity, object) { return delete(known) }
        guard let row = putTombstone(entity, object), !row.isSet(KeyedColumn.key) else { return }
        row[KeyedColumn.key] = .data(key)
    }

    /// Removes the keys of a range. Returns their number.
    func removeKeyed(from lower: [UInt8], to upper: [UInt8]) throws -> Int {
        checkIsolation()
        tracker.keyed.forgetErrors(from: lower, to: upper)
        // All keys are read first: the removals change the state.
        guard readsKeyedValuesFromStore else {
            let objects = try keyedObjects(from: lower, to: upper, direction: .ascending, limit: nil)
            for object in objects { try removeKeyed(object, keyedKey(object)) }
            dropHiddenUpdates(
                of: tracker.updatesOfDeleted.keyed.keys.filter { key in
                    guard case .data(let bytes) = key else { return false }
                    return !bytes.lexicographicallyPrecedes(lower) && bytes.lexicographicallyPrecedes(upper)
                })
            return objects.count
        }
        let found = try storedKeys(from: lower, to: upper, direction: .ascending, limit: nil)
        for (position, object) in found.keys.enumerated() { try removeKeyed(object, Data(found.data(at: position))) }
        return found.keys.count
    }

    // MARK: Types

    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the collection has other types in this context.
    func checkCollection(_ name: String, _ types: CollectionTypes) throws {
        guard let bytes = try keyedBytes(Array(KeyedColumn.typesKey(name))) else { return }
        try types.check(bytes, name)
    }

    func record(_ name: String, _ types: CollectionTypes) throws {
        guard let entity = keyedEntity, tracker.keyed.recorded[CollectionName(name)]?.areTypes(of: types) != true else { return }
        let key = KeyedColumn.typesKey(name)
        if let bytes = try keyedBytes(Array(key)) {
            if try types.check(bytes, name) == .renamed {
                // An undo of the write must not take back the name, under which others read and write the collection meanwhile.
                try withoutUndo { try put(entity, key: key, value: types.bytes()) }
            }
        } else {
            try put(entity, key: key, value: try types.bytes())
        }
        tracker.keyed.recorded[CollectionName(name)] = types
        tracker.keyed.records[CollectionName(name)] = try layerStack.view.keyedObject(entity, key)
    }
}

extension CollectionTypes {
    init?(bytes: Data) {
        guard let types = try? JSONDecoder().decode(CollectionTypes.self, from: bytes) else { return nil }
        self = types
    }

    func bytes() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(self)
    }

    /// Returns whether values are stored alike by both.
    func areTypes(of other: CollectionTypes) -> Bool { value == other.value && key == other.key }

    /// The relation of recorded types to those with which a collection is opened.
    enum Match { case same, renamed }

    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the recorded types are not these.
    @discardableResult
    func check(_ recorded: Data, _ name: String) throws -> Match {
        let stored = CollectionTypes(bytes: recorded)
        if let stored, stored.key == key {
            if stored.value == value { return .same }
            if stored.value == formerValue { return .renamed }
        }
        throw CollectionError.otherTypes(
            collection: name, stored: stored.map { "\($0)" } ?? "types that cannot be read", requested: "\(self)")
    }
}

extension Value {
    /// The bytes of a key or of a keyed value.
    fileprivate var keyedBytes: Data {
        if case .data(let data) = self { data } else { Data() }
    }
}
