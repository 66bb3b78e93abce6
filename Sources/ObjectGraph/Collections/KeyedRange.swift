import StoreInterface

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
    let collection: KeyedCollection<Key, Value>
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
    public func keys(_ direction: StoreSort.Direction = .ascending, limit: Int? = nil) throws -> [Key] {
        try collection.context.keyedObjects(from: lower, to: upper, direction: direction, limit: limit).map { object in
            try key(of: try collection.context.keyedKey(object))
        }
    }

    /// Returns the entries in the order of the keys, or in descending order. For many entries, use ``forEach(_:_:)`` or ``cursor(_:)``.
    ///
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    public func entries(
        _ direction: StoreSort.Direction = .ascending, limit: Int? = nil
    ) throws -> [(key: Key, value: Value)] {
        try collection.context.keyedObjects(from: lower, to: upper, direction: direction, limit: limit).compactMap(entry)
    }

    /// Calls `body` with each entry, reading some entries at a time.
    ///
    /// `body` may change the collection. Keys inserted ahead are visited.
    /// - Throws: The error of `body`; ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    public func forEach(_ direction: StoreSort.Direction = .ascending, _ body: (Key, Value) throws -> Void) throws {
        var cursor = cursor(direction)
        while let (key, value) = try cursor.next() { try body(key, value) }
    }

    /// Returns a cursor over the entries, which reads some entries at a time.
    public func cursor(_ direction: StoreSort.Direction = .ascending) -> KeyedCursor<Key, Value> {
        KeyedCursor(range: self, direction: direction)
    }

    /// Removes all entries. Returns their number.
    @discardableResult
    public func removeAll() throws -> Int {
        let objects = try collection.context.keyedObjects(from: lower, to: upper, direction: .ascending, limit: nil)
        for object in objects { try collection.context.removeKeyed(object, try collection.context.keyedKey(object)) }
        return objects.count
    }

    // MARK: Entries

    /// Returns the entry of an object, or nil if it does not exist any more.
    func entry(_ object: ObjectKey) throws -> (key: Key, value: Value)? {
        guard let stored = try collection.context.keyedEntry(object) else { return nil }
        let key = try key(of: stored.key)
        return (key, try collection.decoded(stored.value, collection.text(of: key)))
    }

    private func key(of bytes: Data) throws -> Key {
        // A damaged file may have a key that is shorter than the prefix, although an index led to it.
        let key = bytes.withUnsafeBytes { collection.keys.read([UInt8]($0).dropFirst(collection.prefix.count)) }
        guard let key else {
            throw CollectionError.unreadableKey(collection: collection.name)
        }
        return key
    }
}

/// A position among the entries of a range. It reads some entries at a time.
///
/// ```swift
/// var cursor = drafts.all.cursor(.descending)
/// while let (name, draft) = try cursor.next(), draft.isNew { print(name) }
/// ```
public struct KeyedCursor<Key, Value: Codable & Sendable> {
    private let collection: KeyedCollection<Key, Value>
    private let direction: StoreSort.Direction
    private var lower: [UInt8]
    private var upper: [UInt8]
    /// The next entries, in reverse.
    private var batch: [ObjectKey] = []
    private var batchSize = 64
    private var isAtEnd = false

    init(range: KeyedRange<Key, Value>, direction: StoreSort.Direction) {
        collection = range.collection
        self.direction = direction
        lower = range.lower
        upper = range.upper
    }

    /// Returns the next entry, or nil at the end. After an error, the next call continues behind the entry.
    ///
    /// Shows the context's state at the time of the call. An entry that was removed meanwhile is left out.
    /// - Throws: ``CollectionError/undecodable(collection:key:field:reason:)``; the store's error.
    public mutating func next() throws -> (key: Key, value: Value)? {
        let context = collection.context
        while true {
            if batch.isEmpty {
                if isAtEnd { return nil }
                batch = try context.keyedObjects(from: lower, to: upper, direction: direction, limit: batchSize).reversed()
                isAtEnd = batch.count < batchSize
                batchSize = min(batchSize * 4, 16384)
                guard let last = batch.first else { return nil }
                let bytes = [UInt8](try context.keyedKey(last))
                if direction == .ascending { lower = bytes + [0] } else { upper = bytes }
            }
            guard let object = batch.popLast() else { continue }
            if let entry = try KeyedRange(collection: collection, lower: lower, upper: upper).entry(object) { return entry }
        }
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
