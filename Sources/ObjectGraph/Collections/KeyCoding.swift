/// The conversion of the keys of a collection to bytes and back.
///
/// It can be inlined, as all code that runs once per entry of a range: in the program, the compiler knows the type of the keys, and need not
/// look its properties up for each of them.
@usableFromInline
struct KeyCoding<Key>: Sendable {
    @usableFromInline let typeName: String
    /// Appends a key to the prefix of the collection.
    @usableFromInline let append: @Sendable (Key, inout [UInt8]) -> Void
    /// Reads a whole key. Returns nil for bytes that are no key.
    @usableFromInline let read: @Sendable (ArraySlice<UInt8>) -> Key?

    /// Returns a key as text, for errors.
    func text(of key: Key) -> String {
        if let text = key as? String { return "\"\(text)\"" }
        return "\(key)"
    }
}

extension KeyCoding where Key: CollectionKey {
    @inlinable
    init() {
        typeName = Key.keyTypeName
        append = { $0.appendKey(to: &$1, isLast: true) }
        read = { bytes in
            var rest = bytes
            guard let key = Key(readingKey: &rest, isLast: true), rest.isEmpty else { return nil }
            return key
        }
    }
}

extension KeyCoding {
    @inlinable
    init<A: CollectionKey, B: CollectionKey>(_: A.Type, _: B.Type) where Key == (A, B) {
        typeName = "(\(A.keyTypeName), \(B.keyTypeName))"
        append = { key, bytes in
            key.0.appendKey(to: &bytes, isLast: false)
            key.1.appendKey(to: &bytes, isLast: true)
        }
        read = { bytes in
            var rest = bytes
            guard let first = A(readingKey: &rest, isLast: false), let second = B(readingKey: &rest, isLast: true), rest.isEmpty
            else { return nil }
            return (first, second)
        }
    }

    @inlinable
    init<A: CollectionKey, B: CollectionKey, C: CollectionKey>(_: A.Type, _: B.Type, and _: C.Type) where Key == (A, B, C) {
        typeName = "(\(A.keyTypeName), \(B.keyTypeName), \(C.keyTypeName))"
        append = { key, bytes in
            key.0.appendKey(to: &bytes, isLast: false)
            key.1.appendKey(to: &bytes, isLast: false)
            key.2.appendKey(to: &bytes, isLast: true)
        }
        read = { bytes in
            var rest = bytes
            guard let first = A(readingKey: &rest, isLast: false), let second = B(readingKey: &rest, isLast: false),
                let third = C(readingKey: &rest, isLast: true), rest.isEmpty
            else { return nil }
            return (first, second, third)
        }
    }
}
