import Logging
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Values under keys of your own, in the order of the keys, as one context sees them (S190).
///
/// A collection needs no model. The file records the types of its keys and values at the first write. Reads include the context's unsaved
/// changes. Changes are saved, rolled back and merged with the context's objects: one save commits both.
///
/// ```swift
/// let drafts = try container.collection("drafts", of: Draft.self)
/// drafts["spring"] = Draft(title: "Spring")
/// drafts["winter"] = nil
/// for (name, draft) in try drafts["a"..<"n"].entries() { print(name, draft.title) }
/// try await container.mainContext.save()
/// ```
/// Use a collection where its context is used. A look-up costs one search of an index, one read of a page, and the decoding. Data,
/// strings, numbers, dates and UUIDs are stored as their bytes, and other values as JSON.
///
/// Two contexts that write one key conflict: see ``ManagedObjectContext/mergePolicy``. The conflict's `properties` have one entry, `value`.
public struct KeyedCollection<Key, Value: Codable & Sendable> {
    /// The name of the collection in its file.
    public let name: String
    /// The context in which the collection is read and written.
    public let context: ManagedObjectContext
    @usableFromInline let keyCoding: KeyCoding<Key>
    @usableFromInline let valueCoding = CollectionValueCoding<Value>()
    /// A name that the type of values had before; nil if it had no other.
    private let formerTypeName: String?
    /// The bytes with which all keys of the collection begin.
    @usableFromInline let prefix: [UInt8]

    @usableFromInline
    init(
        _ name: String, _ keyCoding: KeyCoding<Key>, renamedFrom formerTypeName: String? = nil, in context: ManagedObjectContext
    ) throws {
        guard !name.isEmpty, !name.utf8.contains(0) else { throw CollectionError.invalidName(name) }
        self.name = name
        self.context = context
        self.keyCoding = keyCoding
        self.formerTypeName = formerTypeName
        prefix = Array(name.utf8) + [0]
        try context.checkCollection(name, types)
    }

    var types: CollectionTypes {
        CollectionTypes(key: keyCoding.typeName, value: valueCoding.typeName, formerValue: formerTypeName)
    }

    /// Returns the same collection in another context.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if that context sees other types; the store's error.
    public func `in`(_ context: ManagedObjectContext) throws -> KeyedCollection {
        try KeyedCollection(name, keyCoding, renamedFrom: formerTypeName, in: context)
    }

    // MARK: Values

    /// The value under a key, or nil.
    ///
    /// Setting nil removes the key. This neither throws nor stops the program: a value that cannot be read is nil here, with a message in
    /// the log, and a value that cannot be stored makes the next `save` throw. To handle errors in place, use ``value(forKey:)`` and
    /// ``setValue(_:forKey:)``.
    public subscript(key: Key) -> Value? {
        get {
            do {
                return try value(forKey: key)
            } catch {
                Self.logger.error("\(error)")
                return nil
            }
        }
        nonmutating set {
            do { try setValue(newValue, forKey: key) } catch { context.tracker.keyed.refused[bytes(of: key)] = error }
        }
        nonmutating _modify {
            var value: Value?
            var failure: (any Error)?
            do { value = try self.value(forKey: key) } catch { failure = error }
            let wasNil = value == nil
            // Also runs if the access throws.
            defer {
                if wasNil, value == nil {
                    // An optional chain through nil ends here too. It must not remove a value that cannot be read.
                    if let failure { Self.logger.error("\(failure)") }
                } else if let failure {
                    refuse(failure, key)
                } else {
                    self[key] = value
                }
            }
            yield &value
        }
    }

    /// Makes the next save throw, because a change is based on a value that cannot be read.
    private func refuse(_ error: any Error, _ key: Key) {
        Self.logger.error("\(error)")
        context.tracker.keyed.refused[bytes(of: key)] = error
    }

    /// The value under a key, or a default if there is none: `counts[word, default: 0] += 1`.
    ///
    /// A changed value is set as by the other subscript. If the stored value cannot be read, it is not overwritten by a change of the
    /// default: the next `save` throws the error, until the key is set or removed, or the context is rolled back.
    public subscript(key: Key, default defaultValue: @autoclosure () -> Value) -> Value {
        get { self[key] ?? defaultValue() }
        nonmutating set { self[key] = newValue }
        nonmutating _modify {
            var value: Value
            var failure: (any Error)?
            do {
                value = try self.value(forKey: key) ?? defaultValue()
            } catch {
                value = defaultValue()
                failure = error
            }
            // Also runs if the access throws.
            defer { if let failure { refuse(failure, key) } else { self[key] = value } }
            yield &value
        }
    }

    /// Returns the value under a key, or nil if there is none.
    ///
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    public func value(forKey key: Key) throws -> Value? {
        try bytes(forKey: key).map { try decoded($0, key) }
    }

    /// Returns the stored bytes of a value, also of one that does not decode; nil if there is none.
    public func bytes(forKey key: Key) throws -> Data? {
        try context.keyedBytes(bufferedBytes(of: key))
    }

    /// Calls `body` with the stored bytes of a value. Returns nil without a call if there is none.
    ///
    /// The bytes of `Data`, `String` and numbers are the value itself. They are valid only during the call, in which the collection may be
    /// changed. On LMDB, a small value that is in the file is not copied.
    @inlinable
    public func withBytes<R>(forKey key: Key, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        var result: R?
        _ = try context.useKeyedBytes(bufferedBytes(of: key)) { result = try body($0) }
        return result
    }

    /// Returns the stored bytes of a value as a stream, which reads a large value in parts; nil if there is none. One look-up; the value
    /// is read by iterating.
    ///
    /// The stream has the value of now, whatever is saved meanwhile. See ``ValueStream``.
    public func stream(forKey key: Key) throws -> ValueStream? {
        try context.keyedParts(bytes(of: key)).map { ValueStream($0) }
    }

    /// Sets the value under a key. nil removes the key. Setting an equal value changes nothing.
    ///
    /// - Throws: ``CollectionError/unencodable(collection:key:reason:)``, ``CollectionError/otherTypes(collection:stored:requested:)``,
    ///   ``CollectionError/unavailable(collection:)``; the store's error. Then nothing has changed.
    public func setValue(_ value: Value?, forKey key: Key) throws {
        let place = bytes(of: key)
        guard let value else {
            try context.removeKeyed(place)
            return
        }
        let bytes: Data
        do {
            bytes = try valueCoding.encode(value)
        } catch {
            throw CollectionError.unencodable(collection: name, key: text(of: key), reason: "\(error)")
        }
        try context.putKeyed(place, value: bytes, of: name, types: types)
    }

    /// Removes a key and its value. Returns whether there was one.
    @discardableResult
    public func removeValue(forKey key: Key) throws -> Bool { try context.removeKeyed(bytes(of: key)) }

    /// Returns whether the key has a value, without reading the value.
    public func contains(_ key: Key) throws -> Bool { try context.keyedObject(bytes(of: key)) != nil }

    // MARK: All entries

    /// All entries, in the order of the keys.
    public var all: KeyedRange<Key, Value> {
        KeyedRange(collection: self, lower: prefix, upper: KeyBytes.end(ofPrefix: prefix) ?? [])
    }

    /// All keys, in their order. Reads no value, so it also lists values that do not decode.
    public var keys: [Key] { get throws { try all.keys() } }
    /// All values, in the order of their keys. To read some at a time, use `forEach` of ``all``.
    ///
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    public var values: [Value] { get throws { try all.entries().map(\.value) } }

    /// Removes all entries. Returns their number. To remove many entries without loading their keys into the context, see
    /// ``KeyedRangeReference``.
    @discardableResult
    public func removeAll() throws -> Int { try all.removeAll() }

    /// The number of entries. O(entries) of an index, without reading values.
    public var count: Int { get throws { try all.count } }
    /// A Boolean value that indicates whether there are no entries.
    public var isEmpty: Bool { get throws { try all.isEmpty } }
    /// The entry with the lowest key, or nil.
    public var first: (key: Key, value: Value)? { get throws { try all.first } }
    /// The entry with the highest key, or nil.
    public var last: (key: Key, value: Value)? { get throws { try all.last } }

    // MARK: Bytes

    static var logger: Logger { Logger(label: "strata.collections") }

    func bytes(of key: Key) -> Data { Data(keyBytes(of: key)) }

    /// Returns the bytes of a key in memory of the context, to which a look-up returns it.
    @usableFromInline
    func bufferedBytes(of key: Key) -> [UInt8] {
        var bytes = context.takeKeyBuffer(beginningWith: prefix)
        keyCoding.append(key, &bytes)
        return bytes
    }

    func keyBytes(of key: Key) -> [UInt8] {
        var bytes: [UInt8] = []
        // Most keys fit. Without this, the array is allocated twice.
        bytes.reserveCapacity(prefix.count + 64)
        bytes += prefix
        keyCoding.append(key, &bytes)
        return bytes
    }

    @usableFromInline
    func text(of key: Key) -> String { keyCoding.text(of: key) }

    /// Reads a key from its stored bytes.
    @inlinable
    func key(of bytes: ArraySlice<UInt8>) throws -> Key {
        // A damaged file may have a key that is shorter than the prefix, although an index led to it.
        guard let key = keyCoding.read(bytes.dropFirst(prefix.count)) else {
            throw CollectionError.unreadableKey(collection: name)
        }
        return key
    }

    @inlinable
    func decoded(_ bytes: Data, _ key: Key) throws -> Value {
        do throws(UndecodableValue) {
            return try valueCoding.decode(bytes)
        } catch {
            throw CollectionError.undecodable(collection: name, key: text(of: key), field: error.field, reason: error.reason)
        }
    }
}

extension KeyedCollection: CustomStringConvertible, CustomReflectable {
    /// The name and the types: `collection drafts: values of type Draft under keys of type String`. Reads nothing.
    public var description: String { "collection \(name): \(types)" }

    /// No children. Entries are read on request only.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// The types of a collection, as the file records them.
struct CollectionTypes: Codable, CustomStringConvertible {
    var key: String
    var value: String
    /// A name that the type of values had before, which is not recorded.
    var formerValue: String?

    private enum CodingKeys: CodingKey { case key, value }

    var description: String { "values of type \(value) under keys of type \(key)" }
}
