/// A value behind one reference, so that a copy counts one reference instead of one per part. The value is copied when one of several
/// copies is changed.
struct CopyOnWrite<Value: Sendable>: Sendable {
    private final class Storage: @unchecked Sendable {
        // `@unchecked Sendable` is safe because the value is changed only while there is one reference to this object.
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    init(_ value: Value) { storage = Storage(value) }

    var value: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
            yield &storage.value
        }
    }
}
