import StoreInterface
import StoreModel

/// Reading and writing properties through the layers.
extension ManagedObjectContext {
    /// Returns the value of a column from the newest layer that has one, else from the snapshot. Returns nil if the object does not
    /// exist.
    @inline(__always)
    func read(_ object: ManagedObject, _ column: ColumnIndex) -> Value? {
        if let row = object.row, row.isSet(column) { return row[column] }
        return readBelow(object.entity, key: object.key, column: column)
    }

    /// Returns a value looked up by key. A damaged page stops the program with the store's own message.
    ///
    /// Property reads cannot throw, and continuing with a wrong value would be worse. `verify` finds damage without stopping.
    func readBelow(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? {
        let number = key.page
        let slot = key.slot
        if layerStack.hasLayers {
            // An update of a deleted object shows its values until the next save settles it.
            switch layerStack.view.layers.lookup(entity, page: number, slot: slot, column) {
            case .row(let row): return row[column]
            case .deleted: return nil
            case .below: break
            }
        }
        do {
            return try layerStack.pages.page(entity, number, in: layerStack.view.base)?.presentValue(slot, column)
        } catch {
            preconditionFailure("reading \(storedModel.entities[entity].name) \(key) failed: \(error)")
        }
    }

    /// Returns the value to read for a property whose record is gone (S022).
    func inaccessible(_ object: ManagedObject, _ column: ColumnIndex) -> Value {
        if object.isDeletedHere, let last = lastValue(object.entity, key: object.key, column: column) { return last }
        if !object.isDeletedHere {
            precondition(
                shouldDeleteInaccessibleFaults || phase.closure != nil || configuration.coordinator.isClosed,
                "faultCannotBeFulfilled: the record of \(object.objectID) is gone")
            // Not if the store cannot be read since it was suspended: a later use may find it readable.
            object.isDeletedHere = phase.closure != nil || configuration.coordinator.isClosed || isBaseReadable
        }
        return storedModel.entities[object.entity].columns[column].isOptional ? .null : zeroValue(object.entity, column)
    }

    /// Whether the store can be read. It cannot after closing, nor if its file was replaced during a suspension, for instance.
    var isBaseReadable: Bool {
        let base = layerStack.baseState.state.base
        return !(base is ClosedSnapshot) && (base as? RevocableSnapshot)?.isReadable ?? true
    }

    /// Returns the last value of a column of an object that has an unsaved deletion here (S054); nil for any other object.
    func lastValue(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? {
        guard newestOwnRow(entity, key)?.kind == .delete else { return nil }
        let count = layerStack.sealed.count + 1
        for layer in layerStack.view.layers.prefix(count) {
            guard let row = layer.row(entity, key) else { continue }
            if row.isSet(column) { return row[column] }
            if row.kind == .insert { return .null }
        }
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst(count)))
        return trapOnStoreError { try below.value(entity, key: key, column: column) }
    }

    private func zeroValue(_ entity: EntityIndex, _ column: ColumnIndex) -> Value {
        let type = storedModel.entities[entity].columns[column].type
        return Value.zero(of: type)
    }

    /// Sets a column. An equal value is not a change, nor is NaN in place of NaN (S032).
    func write(_ object: ManagedObject, column: ColumnIndex, value: Value) {
        if object.isDeletedHere { return }
        if object.observation != nil { return writeObserved(object, column: column, value: value) }
        store(object, column: column, value: value)
    }

    /// Sets a column and notifies observers before and after, if the value differs.
    private func writeObserved(_ object: ManagedObject, column: ColumnIndex, value: Value) {
        guard let old = read(object, column), !Value.areSame(old, value) else { return }
        changingObserved {
            observed.willChange(object, .column(column))
            // An observer may have deleted the object, or rolled its insertion back.
            if isHere(object), !object.isDeletedHere { store(object, column: column, value: value) }
        }
    }

    @inline(__always)
    private func store(_ object: ManagedObject, column: ColumnIndex, value: Value) {
        if let row = object.row, row.layer == layerStack.topID, row.isSet(column) {
            guard row.change(column, to: value) else { return }
            if layerStack.top.mustKeepIndexes { layerStack.top.didSet(column, of: row, entity: object.entity, key: object.key) }
            if !tracker.updatesOfDeleted.isEmpty { tracker.updatesOfDeleted.note(object.entity, key: object.key, column: column) }
            tracker.log.note(object.entity, object.key)
            return
        }
        if !differsInSize(object.entity, key: object.key, column: column, value: value) {
            guard let old = read(object, column), !Value.areSame(old, value) else { return }
        }
        let row = writableRow(object)
        row[column] = value
        layerStack.top.didSet(column, of: row, entity: object.entity, key: object.key)
        if !tracker.updatesOfDeleted.isEmpty { tracker.updatesOfDeleted.note(object.entity, key: object.key, column: column) }
        tracker.log.note(object.entity, object.key)
    }

    /// Sets a column of an object that may be unregistered, without creating an instance.
    func write(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex, value: Value) {
        if let known = registry.object(entity, key) { return write(known, column: column, value: value) }
        if !differsInSize(entity, key: key, column: column, value: value) {
            guard let old = readBelow(entity, key: key, column: column), !Value.areSame(old, value) else { return }
        }
        let row = makeWritableRow(entity, key)
        row[column] = value
        layerStack.top.didSet(column, of: row, entity: entity, key: key)
        if !tracker.updatesOfDeleted.isEmpty { tracker.updatesOfDeleted.note(entity, key: key, column: column) }
        tracker.log.note(entity, key)
    }

    /// Returns whether a large value differs in byte count from the stored value, which then need not be read for comparison.
    @inline(__always)
    private func differsInSize(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex, value: Value) -> Bool {
        switch value {
        case .data(let data) where data.count > 4096: differsInSize(entity, key: key, column: column, byteCount: data.count)
        case .string(let text) where text.utf8.count > 4096:
            differsInSize(entity, key: key, column: column, byteCount: text.utf8.count)
        default: false
        }
    }

    @inline(never)
    private func differsInSize(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex, byteCount: Int) -> Bool {
        // If this read fails, the read that follows reports the error.
        guard let parts = try? layerStack.view.parts(entity, key: key, column: column) else { return false }
        return parts.byteCount != byteCount
    }

    private func writableRow(_ object: ManagedObject) -> Row {
        if let row = object.row, row.layer == layerStack.topID { return row }
        let row = makeWritableRow(object.entity, object.key)
        object.row = row
        registry.retain(object)
        return row
    }
}

extension ManagedObjectContext {
    /// Returns the top layer's own row for an object, after creating it if necessary.
    func makeWritableRow(_ entity: EntityIndex, _ key: ObjectKey) -> Row {
        let row: Row
        if let own = layerStack.top.row(entity, key) {
            if own.layer == layerStack.top.id { return own }
            row = own.copy(layer: layerStack.top.id)
        } else {
            row = Row.make(kind: .update, layer: layerStack.top.id, columnCount: storedModel.entities[entity].columns.count)
        }
        layerStack.top.put(row, entity: entity, key: key)
        return row
    }
}
