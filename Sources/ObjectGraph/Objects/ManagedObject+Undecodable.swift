import Logging
internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Stored values that the type of their property cannot decode (S179).
///
/// A read returns the property's fallback, and logs the reason. Assigning the property is recorded, and fails the save, because the
/// assigned value may contain the fallback instead of the stored value.
extension ManagedObject {
    /// Returns the value of a property whose stored value does not convert to its type.
    ///
    /// The record is gone (S022) and zero is no case of an enum, or the file contains a value that the type cannot decode.
    @usableFromInline
    func fallback<T: AttributeValue>(_ column: ColumnIndex, from stored: Value) -> T {
        let reason = state == .registered ? UndecodableReason.text(of: stored, T.self) : nil
        if let reason {
            UndecodableReads.log(self, column: column, reason: reason)
            // Zero may be a case of an enum, or a number. It does not stand for a value that cannot be decoded.
            if let value = T(Value.null) ?? T(definition.defaults[column]) ?? T.fallback { return value }
        }
        if let zero = T(Value.zero(of: T.columnType)) { return zero }
        // The property was required when its object was saved without a value, and has read as empty since then.
        if T.isOptional, !stored.isNull, let empty = T.fallback { return empty }
        let declared = state == .detached ? detachedState?.entity.defaults[column] : definition.defaults[column]
        if let value = declared.flatMap({ T($0) }) ?? T.fallback { return value }
        if let reason {
            preconditionFailure(
                "cannot read \(location(of: column)): its stored value does not decode as \(reason). Correct the type so that it decodes the value, or "
                    + "make the property optional. The stored value is managedObject[\"\(definition.columns[column].name)\"].")
        }
        let name = state == .detached ? "\(column)" : "\(definition.name).\(definition.columns[column].name)"
        preconditionFailure(
            "cannot read \(name): it has no value of type \(T.self). Make it optional, or give it an initial value.")
    }

    /// The object and the property, for messages.
    fileprivate func location(of column: ColumnIndex) -> String {
        "\(definition.name)(id: \(key)).\(definition.columns[column].name)"
    }

    /// Returns the saved value that an assignment replaces. Returns nil for a new object, for a property with an unsaved value, and if
    /// there is no value or an equal one. An object that an undo has brought back is not new: its insertion has the saved values.
    @usableFromInline
    func valueToReplace(_ column: ColumnIndex, by value: Value) -> Value? {
        guard state == .registered else { return nil }
        return withContext { context in
            guard !isDeletedHere, !isAwaking else { return nil }
            let address = ObjectAddress(entity: entity, key: key)
            if !context.tracker.replacements.isEmpty, let old = context.read(self, column) {
                context.tracker.replacements.permit(value, from: old, at: .init(object: address, column: column))
            }
            if let row {
                let mayBeSaved =
                    row.kind == .insert ? context.tracker.updatesOfDeleted.restored.contains(address) : !row.isSet(column)
                if !mayBeSaved { return nil }
            }
            guard let old = context.read(self, column), !old.isNull, old != value else { return nil }
            return old == .zero(of: context.storedModel.entities[entity].columns[column].type) ? nil : old
        }
    }

    /// Records that an assignment replaces a value that cannot be decoded.
    @usableFromInline
    func noteReplacement<T: AttributeValue>(of stored: Value, in column: ColumnIndex, _ type: T.Type) {
        guard let reason = UndecodableReason.text(of: stored, type) else { return }
        let context = requiredContext
        let error = UndecodableAttribute(
            objectID: objectID, entity: definition.name, property: definition.columns[column].name, reason: reason)
        let location = UndecodableReplacements.Location(object: ObjectAddress(entity: entity, key: key), column: column)
        context.tracker.replacements.add(error, of: stored, at: location)
    }

    /// Permits a value to replace one that cannot be decoded, because the program sets it by name. Call this before it is set.
    func permitReplacement(of column: ColumnIndex, by value: Value) {
        guard state == .registered, !isDeletedHere, !isAwaking else { return }
        withContext { context in
            guard !context.tracker.replacements.isEmpty else { return }
            let address = ObjectAddress(entity: entity, key: key)
            context.tracker.replacements.permit(value, at: .init(object: address, column: column))
        }
    }

    /// Allows assignments to a property. See ``PersistentModel/allowOverwriting(_:)``.
    fileprivate func allowOverwriting(_ property: String) {
        guard state == .registered, let column = definition.column(named: property) else { return }
        let location = UndecodableReplacements.Location(object: ObjectAddress(entity: entity, key: key), column: column)
        withContext { $0.tracker.replacements.allow(at: location) }
    }
}

extension PersistentModel {
    /// Allows assignments to a property whose stored value its type cannot decode. The next save then destroys the stored value (S179).
    ///
    /// Otherwise an assignment makes the save fail with ``UndecodableAttribute``, because the program has not seen the stored value. Call this
    /// before or after the assignment, in the same context.
    ///
    /// ```swift
    /// trip.allowOverwriting(\.places)
    /// trip.places = []
    /// ```
    public func allowOverwriting(_ property: PartialKeyPath<Self>) {
        if let name = Self.columnsByKeyPath[property] { managedObject.allowOverwriting(name) }
    }
}

/// The assignments of a context that would destroy stored values that cannot be decoded.
struct UndecodableReplacements {
    struct Location: Hashable {
        var object: ObjectAddress
        var column: ColumnIndex
    }

    struct Entry {
        let stored: Value
        let error: UndecodableAttribute
        /// The values that may replace the stored one. An undo or redo may return to an assigned value, which is none of them.
        fileprivate(set) var permitted: Set<Value> = []
    }

    private(set) var entries: [Location: Entry] = [:]

    /// The properties that the program allows to overwrite until the next save.
    private var allowed: Set<Location> = []
    /// The permissions that the running save ends. A later one is for the next save.
    private var ending: Set<Location> = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ error: UndecodableAttribute, of stored: Value, at location: Location) {
        if !allowed.contains(location) { entries[location] = Entry(stored: stored, error: error) }
    }

    /// Permits a value that the program sets by name. The stored value itself stays one that the program has not seen.
    mutating func permit(_ value: Value, at location: Location) {
        if let entry = entries[location], entry.stored != value { entries[location]?.permitted.insert(value) }
    }

    /// Permits a value that the program assigns in place of a permitted one, which it has seen.
    mutating func permit(_ value: Value, from old: Value, at location: Location) {
        if entries[location]?.permitted.contains(old) == true { permit(value, at: location) }
    }

    mutating func allow(at location: Location) {
        allowed.insert(location)
        ending.remove(location)
        entries[location] = nil
    }

    mutating func remove(at location: Location) { entries[location] = nil }

    /// Call this when the context's own changes are handed over.
    mutating func beginSave() { ending = allowed }

    /// Call this when a save has ended, whatever its result.
    mutating func leaveSave() { ending = [] }

    /// Ends the permissions of before the save. The entries stay: an undone assignment can be redone.
    mutating func endSave() {
        allowed.subtract(ending)
        ending = []
    }
}

extension ManagedObjectContext {
    /// Permits the values that a child has set, which has checked its own assignments.
    func permitReplacements(by layer: Layer) {
        for location in tracker.replacements.entries.keys {
            guard let row = layer.row(location.object.entity, location.object.key), row.isSet(location.column) else { continue }
            tracker.replacements.permit(row[location.column], at: location)
        }
    }

    /// Returns the errors of the assignments that a save would make permanent. Forgets those whose stored value was replaced, but not those
    /// that were undone: they can be redone.
    func refusedReplacements() throws -> [UndecodableAttribute] {
        if tracker.replacements.isEmpty { return [] }
        var errors: [UndecodableAttribute] = []
        let (view, below) = (layerStack.view, viewBelow)
        for (location, entry) in tracker.replacements.entries {
            let (entity, key) = (location.object.entity, location.object.key)
            let stored = try below.value(entity, key: key, column: location.column)
            // An object that an undo has brought back is not below.
            let isRestored = stored == nil && tracker.updatesOfDeleted.restored.contains(location.object)
            guard isRestored || stored == entry.stored else {
                tracker.replacements.remove(at: location)
                continue
            }
            // A deletion is meant to destroy the values.
            guard try view.exists(entity, key), let present = try view.value(entity, key: key, column: location.column) else {
                continue
            }
            if present != entry.stored, !entry.permitted.contains(present) { errors.append(entry.error) }
        }
        return errors.sorted {
            ($0.objectID.entity, $0.objectID.key, $0.property) < ($1.objectID.entity, $1.objectID.key, $1.property)
        }
    }
}

/// The reason why a stored value is not one of a type.
enum UndecodableReason {
    /// Returns the name of the type and the reason. Returns nil if there is no stored value: null, or zero for a missing record.
    static func text<T: AttributeValue>(of stored: Value, _ type: T.Type) -> String? {
        if stored.isNull || stored == .zero(of: T.columnType) { return nil }
        if let type = T.self as? any DecodingAttribute.Type { return type.undecodableReason(of: stored) }
        if let type = T.self as? any CodableAttribute.Type {
            return reason(of: stored, decoding: type) { _ = try AttributeJSON.decode(type, from: $0) }
        }
        return "\(T.self) (\(stored) is no value of it)"
    }

    /// - Parameter type: The type in the source.
    static func reason(of stored: Value, decoding type: Any.Type, _ decode: (Data) throws -> Void) -> String {
        guard case .data(let bytes) = stored else { return "\(type) (\(stored) is no value of it)" }
        do {
            try decode(bytes)
            return "\(type)"
        } catch {
            let cause = UndecodableValue(error)
            return "\(type) (\(cause.field.map { "\($0): " } ?? "")\(cause.reason))"
        }
    }
}

/// An attribute type that wraps the type of a property.
protocol DecodingAttribute {
    static func undecodableReason(of stored: Value) -> String?
}

extension Optional: DecodingAttribute where Wrapped: AttributeValue {
    static func undecodableReason(of stored: Value) -> String? { UndecodableReason.text(of: stored, Wrapped.self) }
}

extension RawAttribute: DecodingAttribute {
    static func undecodableReason(of stored: Value) -> String? { "\(V.self) (\(stored) is no value of it)" }
}

extension EncodedAttribute: DecodingAttribute {
    static func undecodableReason(of stored: Value) -> String? {
        UndecodableReason.reason(of: stored, decoding: V.self) { _ = try AttributeJSON.decode(V.self, from: $0) }
    }
}

/// The log of reads that returned a fallback: one message per property of a store.
private enum UndecodableReads {
    private struct Location: Hashable {
        var store: StoreIdentity
        var entity: EntityIndex
        var column: ColumnIndex
    }

    private static let logged = Mutex<Set<Location>>([])

    static func log(_ object: ManagedObject, column: ColumnIndex, reason: String) {
        let location = Location(store: object.objectID.store, entity: object.entity, column: column)
        guard logged.withLock({ $0.insert(location).inserted }) else { return }
        Logger(label: "strata.models").error(
            """
            cannot decode \(object.location(of: column)): its stored value does not decode as \(reason). Reads return another value, and a save of a new \
            value fails. Correct the type, or replace the value after allowOverwriting(_:). Further such values of the property are not logged.
            """)
    }
}
