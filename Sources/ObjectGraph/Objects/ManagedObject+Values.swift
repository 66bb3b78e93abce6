import StoreInterface
import StoreModel

/// Access by number, for the accessors that the `@Model` macro generates. Numbers are positions in declaration order, as plain
/// integers, because the macro writes them as literals and computes with them.
///
/// The generic parts are inlined, so that the model's module converts values itself and calls no unspecialized code.
extension ManagedObject {
    /// Returns the value of a column as a Swift type. Decodes only this property (S020).
    @inlinable @inline(__always)
    public func get<T: AttributeValue>(_ column: Int, as type: T.Type = T.self) -> T {
        let column = ColumnIndex(rawValue: column)
        let value = rawValue(column)
        if let typed = T(value) { return typed }
        return fallback(column, from: value)
    }

    /// Sets a column. An equal value is not a change (S032). Destroying a stored value that cannot be decoded fails the save (S179).
    @inlinable @inline(__always)
    public func set<T: AttributeValue>(_ column: Int, to value: T) {
        let column = ColumnIndex(rawValue: column)
        let stored = value.storeValue
        if !T.acceptsEveryValue, let old = valueToReplace(column, by: stored), T(old) == nil {
            noteReplacement(of: old, in: column, T.self)
        }
        setRawValue(column, to: stored)
    }

    /// Sets the first value of a column of a detached object. Does nothing to an object in a context: Swift also runs initial
    /// values when a model is created for an existing object.
    @inlinable @inline(__always)
    public func initialize<T: AttributeValue>(_ column: Int, to value: T) {
        initializeRawValue(ColumnIndex(rawValue: column), to: value.storeValue)
    }

    @usableFromInline
    func initializeRawValue(_ column: ColumnIndex, to value: Value) {
        guard state == .detached else {
            // The object was inserted while its initializer runs, because it was related to an object of a context.
            if isBeingInitialized { setRawValue(column, to: value) }
            return
        }
        row?[column] = value
    }

    @usableFromInline
    func rawValue(_ column: ColumnIndex) -> Value {
        guard state == .registered else { return detachedValue(column) }
        withContext { $0.catchUp() }
        if !readsDirectly { prepareRead(column) }
        return withContext { $0.read(self, column) ?? $0.inaccessible(self, column) }
    }

    /// Runs the hook of a first read, and records the read for observers.
    @inline(never)
    private func prepareRead(_ column: ColumnIndex) {
        if !hasAwoken, withContext({ $0.awakes(self) }) {
            // The hook may release the context.
            let context = requiredContext
            context.awakeFromFetch(self)
        }
        if withContext({ $0.observed.isOn }) { willRead(.column(column)) } else { readsDirectly = true }
    }

    @usableFromInline
    func setRawValue(_ column: ColumnIndex, to value: Value) {
        if state == .detached {
            if observation != nil, detachedValue(column) == value { return }
            changeDetached(.column(column)) { row?[column] = value }
            return
        }
        // The hook `awakeFromFetch` does not change its own object (S021). The ends of other objects' relationships follow these.
        if isAwaking { return }
        withContext { $0.write(self, column: column, value: value) }
    }

    private func detachedValue(_ column: ColumnIndex) -> Value {
        guard let row, let detachedState else { return requiredContextValue(column) }
        willRead(.column(column))
        return row.isSet(column) ? row[column] : detachedState.entity.defaults[column]
    }

    /// Stops the program, because the object is used after its context was reset or released (S008).
    private func requiredContextValue(_ column: ColumnIndex) -> Value {
        _ = requiredContext
        return .null
    }
}

/// Access by name, for models that are known only at run time.
extension ManagedObject {
    /// The name of the object's entity.
    public var entityName: String { definition.name }

    /// The object's entity, with the properties that the object has.
    var definition: Entity { requiredContext.definition(of: self) }

    /// The value of an attribute, or of a to-one relationship as a reference.
    ///
    /// Setting a reference also updates the inverse relationship.
    ///
    /// - Precondition: The entity has a property with this name. To set it, it is not derived (S200).
    public subscript(name: String) -> Value {
        get { shownValue(column(name)) }
        set { setStoredValue(column(name), to: newValue) }
    }

    /// The value of an attribute by its description, for loops in which a look-up by name is too slow.
    public subscript(attribute attribute: Attribute) -> Value {
        get { shownValue(attribute.column) }
        set { setStoredValue(attribute.column, to: newValue) }
    }

    /// Returns null for a reference to a missing object (S053).
    private func shownValue(_ column: ColumnIndex) -> Value {
        withContext { $0.admitArrivals() }
        let value = rawValue(column)
        guard case .reference = value, state == .registered else { return value }
        return withContext { $0.shown(value, object: self, column: column) }
    }

    /// Sets a value so that it reads the same before and after a save: a float column keeps only `Float` precision. A reference is
    /// set through its relationship.
    private func setStoredValue(_ column: ColumnIndex, to value: Value) {
        // A copy of the column's description would cost as much as the look-up of the row.
        guard state == .registered, !definition.plainColumns.contains(column) else { return setNamedValue(column, to: value) }
        let schema = definition.columns[column]
        precondition(
            schema.derivation == nil,
            "cannot set \(entityName).\(schema.name): saves derive it from other values. Change those values instead.")
        if schema.destination != nil {
            withContext { $0.admitArrivals() }
            return withContext { $0.setReference(self, column, to: value) }
        }
        guard case .double = value else { return setNamedValue(column, to: value) }
        setNamedValue(column, to: schema.type.stored(value))
    }

    private func setNamedValue(_ column: ColumnIndex, to value: Value) {
        permitReplacement(of: column, by: value)
        setRawValue(column, to: value)
    }

    private func column(_ name: String) -> ColumnIndex {
        guard let column = withContext({ $0.definition(of: self).column(named: name) }) else {
            preconditionFailure("\(definition.name) has no attribute or to-one relationship named \(name)")
        }
        return column
    }

    /// The properties with unsaved new values, by name (S030). Transient properties are never included (S033), and neither are positions
    /// in ordered relationships.
    public var changedValues: [String: Value] {
        guard state == .registered, !isDeletedHere else { return [:] }
        let context = requiredContext
        context.admitArrivals()
        var values: [String: Value] = [:]
        var declared = ColumnSet(definition.declaredColumns)
        // The row of an object that is deleted elsewhere has its other values, too.
        if let own = context.tracker.updatesOfDeleted.changed[ObjectAddress(entity: entity, key: key)] {
            declared = declared.intersection(own)
        }
        for layer in context.layerStack.view.layers.prefix(context.layerStack.sealed.count + 1).reversed() {
            guard let row = layer.row(entity, key) else { continue }
            row.set.forEach { if declared.contains($0) { values[definition.columns[$0].name] = row[$0] } }
        }
        return values
    }

    /// Returns the values before the unsaved changes. Empty for an object that was never saved (S030).
    ///
    /// - Parameter names: The properties to return; nil for all.
    public func committedValues(for names: [String]? = nil) -> [String: Value] {
        guard state == .registered else { return [:] }
        let context = requiredContext
        let below = LayeredView(
            base: context.layerStack.view.base,
            layers: Array(context.layerStack.view.layers.dropFirst(context.layerStack.sealed.count + 1)))
        var values: [String: Value] = [:]
        for column in definition.declaredColumns {
            let schema = definition.columns[column]
            guard names?.contains(schema.name) ?? true else { continue }
            values[schema.name] = context.trapOnStoreError { try below.value(entity, key: key, column: column) }
        }
        return values
    }
}
