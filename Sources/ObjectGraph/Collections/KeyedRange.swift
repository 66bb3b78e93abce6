import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The entries of a collection within a range of keys. Nothing is read until entries are requested.
///
/// ```swift
/// let spring = try drafts["2026-03"..<"2026-06"].entries()
/// let newest = try drafts.range(withPrefix: "2026").last
/// try drafts.all.forEach { name, draft in print(name, draft.title) }
/// ```
public struct KeyedRange<Key, Value: Codable & Sendable> {
    @usableFromInline let collection: KeyedCollection<Key, Value>
    /// The bytes of the lowest key of the range, and the lowest bytes after the range.
    let lower: [UInt8]
    let upper: [UInt8]

    /// The number of entries. O(entries) of an index, without reading values.
    public var count: Int {
        get throws { try collection.context.keyedCount(lower, upper) }
    }
    /// A Boolean value that indicates whether there are no entries.
    public var isEmpty: Bool {
        get throws { try collection.context.keyedObjects(from: lower, to: upper, direction: .ascending, limit: 1).isEmpty }
    }
    /// The entry with the lowest key, or nil.
    public var first: (key: Key, value: Value)? { get throws { try entries(limit: 1).first } }
    /// The entry with the highest key, or nil.
    public var last: (key: Key, value: Value)? { get throws { try entries(.descending, limit: 1).first } }

    /// Returns the keys of the entries in their order, or in descending order. Reads no value, so it also lists values that do not decode.
    @inlinable
    public func keys(_ direction: StoreSort.Direction = .ascending, limit: Int? = nil) throws -> [Key] {
        var reader = reader(direction, limit: limit, batchSize: .max)
        var keys: [Key] = []
        while let bytes = try reader.nextKey() { keys.append(try collection.key(of: bytes)) }
        return keys
    }

    /// Returns the entries in the order of the keys, or in descending order. For many entries, use ``forEach(_:_:)`` or ``cursor(_:)``.
    ///
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    @inlinable
    public func entries(
        _ direction: StoreSort.Direction = .ascending, limit: Int? = nil
    ) throws -> [(key: Key, value: Value)] {
        var reader = reader(direction, limit: limit, batchSize: .max)
        var entries: [(key: Key, value: Value)] = []
        while let entry = try reader.next() {
            let key = try collection.key(of: entry.key)
            entries.append((key, try collection.decoded(entry.value, key)))
        }
        return entries
    }

    /// Calls `body` with each entry, reading some entries at a time.
    ///
    /// `body` may change the collection. Values are as they are when their entry is reached, and removed entries are left out. A key that is
    /// inserted ahead is visited, except among the entries that are already being read, 64 at first, and behind the last entry of the range
    /// once it is being read.
    /// - Throws: The error of `body`; ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    @inlinable
    public func forEach(_ direction: StoreSort.Direction = .ascending, _ body: (Key, Value) throws -> Void) throws {
        var reader = reader(direction)
        while let entry = try reader.next() {
            let key = try collection.key(of: entry.key)
            try body(key, try collection.decoded(entry.value, key))
        }
    }

    /// Returns a cursor over the entries, which reads some entries at a time.
    public func cursor(_ direction: StoreSort.Direction = .ascending) -> KeyedCursor<Key, Value> {
        KeyedCursor(collection: collection, reader: reader(direction))
    }

    /// Removes all entries. Returns their number. To remove many entries without loading their keys into the context, see
    /// ``KeyedRangeReference``.
    @discardableResult
    public func removeAll() throws -> Int { try collection.context.removeKeyed(from: lower, to: upper) }

    @usableFromInline
    func reader(_ direction: StoreSort.Direction, limit: Int? = nil, batchSize: Int = 64) -> KeyedReader {
        KeyedReader(collection.context, from: lower, to: upper, direction: direction, limit: limit, batchSize: batchSize)
    }
}

extension KeyedRange: CustomStringConvertible, CustomReflectable {
    /// The collection of the range. Reads nothing.
    public var description: String { "a range of \(collection)" }

    /// No children. Entries are read on request only.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// A position among the entries of a range. It reads some entries at a time.
///
/// ```swift
/// var cursor = drafts.all.cursor(.descending)
/// while let (name, draft) = try cursor.next(), draft.isNew { print(name) }
/// ```
public struct KeyedCursor<Key, Value: Codable & Sendable> {
    @usableFromInline let collection: KeyedCollection<Key, Value>
    @usableFromInline var reader: KeyedReader

    /// Returns the next entry, or nil at the end. After an error, the next call continues behind the entry.
    ///
    /// Shows the context's state at the time of the call. An entry that was removed meanwhile is left out.
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    @inlinable
    public mutating func next() throws -> (key: Key, value: Value)? {
        guard let entry = try reader.next() else { return nil }
        let key = try collection.key(of: entry.key)
        return (key, try collection.decoded(entry.value, key))
    }
}

extension KeyedCollection where Key: CollectionKey & Comparable {
    /// The entries from the lower bound to below the upper bound.
    public subscript(range: Range<Key>) -> KeyedRange<Key, Value> { self.range(range.lowerBound, .below(range.upperBound)) }
    /// The entries from the lower bound to the upper bound.
    public subscript(range: ClosedRange<Key>) -> KeyedRange<Key, Value> {
        self.range(range.lowerBound, .through(range.upperBound))
    }
    /// The entries from the lower bound.
    public subscript(range: PartialRangeFrom<Key>) -> KeyedRange<Key, Value> { self.range(range.lowerBound, .end) }
    /// The entries below the upper bound.
    public subscript(range: PartialRangeUpTo<Key>) -> KeyedRange<Key, Value> { self.range(nil, .below(range.upperBound)) }
    /// The entries up to the upper bound.
    public subscript(range: PartialRangeThrough<Key>) -> KeyedRange<Key, Value> { self.range(nil, .through(range.upperBound)) }
}

extension KeyedCollection {
    /// The end of a range of keys.
    enum UpperBound {
        case below(Key), through(Key), end
    }

    func range(_ lower: Key?, _ upper: UpperBound) -> KeyedRange<Key, Value> {
        let whole = all
        let end =
            switch upper {
            case .below(let key): [UInt8](bytes(of: key))
            case .through(let key): [UInt8](bytes(of: key)) + [0]
            case .end: whole.upper
            }
        return KeyedRange(collection: self, lower: lower.map { [UInt8](bytes(of: $0)) } ?? whole.lower, upper: end)
    }

    /// Returns the entries from a key to below another key. For keys that are tuples, which have no ranges in Swift.
    public func range(from lower: Key, upTo upper: Key) -> KeyedRange<Key, Value> { range(lower, .below(upper)) }

    private func range(withPrefix append: (inout [UInt8]) -> Void) -> KeyedRange<Key, Value> {
        var bytes = prefix
        append(&bytes)
        return KeyedRange(collection: self, lower: bytes, upper: KeyBytes.end(ofPrefix: bytes) ?? [])
    }

    /// Returns the entries whose keys begin with a text.
    public func range(withPrefix text: String) -> KeyedRange<Key, Value> where Key == String {
        range { text.appendKey(to: &$0, isLast: true) }
    }

    /// Returns the entries whose keys begin with these bytes.
    public func range(withPrefix bytes: Data) -> KeyedRange<Key, Value> where Key == Data {
        range { bytes.appendKey(to: &$0, isLast: true) }
    }

    /// Returns the entries whose keys have this first part.
    public func range<A: CollectionKey, B>(withPrefix first: A) -> KeyedRange<Key, Value> where Key == (A, B) {
        range { first.appendKey(to: &$0, isLast: false) }
    }

    /// Returns the entries whose keys have this first part.
    public func range<A: CollectionKey, B, C>(withPrefix first: A) -> KeyedRange<Key, Value> where Key == (A, B, C) {
        range { first.appendKey(to: &$0, isLast: false) }
    }

    /// Returns the entries whose keys have these first two parts.
    public func range<A: CollectionKey, B: CollectionKey, C>(
        withPrefix first: A, _ second: B
    ) -> KeyedRange<Key, Value> where Key == (A, B, C) {
        range {
            first.appendKey(to: &$0, isLast: false)
            second.appendKey(to: &$0, isLast: false)
        }
    }
}
