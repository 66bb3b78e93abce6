/// Iterates over the entries of a range, some of which it reads at a time: `for (name, draft) in drafts { … }`.
///
/// An iteration cannot throw. It leaves out values that do not decode, and ends if the store cannot be read, each with a message in the
/// log. To handle errors in place, use ``KeyedRange/forEach(_:_:)`` or a ``KeyedCursor``.
///
/// ```swift
/// for (name, draft) in drafts where draft.isNew { print(name) }
/// ```
public struct KeyedIterator<Key, Value: Codable & Sendable>: IteratorProtocol {
    private var cursor: KeyedCursor<Key, Value>

    init(_ range: KeyedRange<Key, Value>) { cursor = range.cursor() }

    /// Returns the next entry, or nil at the end.
    public mutating func next() -> (key: Key, value: Value)? {
        while true {
            do {
                return try cursor.next()
            } catch {
                KeyedCollection<Key, Value>.logger.error("\(error)")
                // Only these are errors of one entry.
                switch error as? CollectionError {
                case .undecodable, .unreadableKey: continue
                default: return nil
                }
            }
        }
    }
}

extension KeyedRange: Sequence {
    /// Returns an iterator over the entries in the order of their keys.
    public func makeIterator() -> KeyedIterator<Key, Value> { KeyedIterator(self) }
}

extension KeyedCollection: Sequence {
    /// Returns an iterator over all entries in the order of their keys.
    public func makeIterator() -> KeyedIterator<Key, Value> { KeyedIterator(all) }
}
