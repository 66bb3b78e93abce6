import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The columns of the hidden entity of keyed values.
enum KeyedColumn {
    static let key: ColumnIndex = 0
    static let value: ColumnIndex = 1

    /// Returns the key of the record with the types of a collection. No collection has an empty name.
    static func typesKey(_ collection: String) -> Data { Data([0] + Array(collection.utf8)) }

    /// Returns the collection whose types a row records; nil if the row is an entry.
    static func collection(of row: Row) -> String? {
        guard case .data(let bytes) = row[key], bytes.first == 0 else { return nil }
        return String(decoding: bytes.dropFirst(), as: UTF8.self)
    }

    /// Returns a key as people read it: `drafts["spring"]`, `log["ann", 3]`, or the bytes in hexadecimal digits if their type is not known, or
    /// is one that only the program can read.
    /// The key of a record of types is read as the name of its collection.
    ///
    /// - Parameter keyType: The name of the type of the collection's keys; nil if it is not known.
    static func text(_ bytes: Data, keyType: String?) -> String {
        if bytes.first == 0 { return String(decoding: bytes.dropFirst(), as: UTF8.self) }
        let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let name = String(validating: parts[0], as: UTF8.self) else { return "\(bytes.count) bytes" }
        let collection = keyType.flatMap { try? StoredCollection(name: name, keyType: $0, valueType: "") }
        return "\(name)[\(collection?.text(ofKey: parts[1]) ?? "0x\(parts[1].digits)")]"
    }
}

/// The name of a collection as a key of dictionaries and sets.
///
/// Two names are equal if their bytes are, as in the stores. Texts are also equal if they only look alike, such as a letter with an
/// accent as one character and as two.
struct CollectionName: Hashable, Comparable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
    static func < (a: Self, b: Self) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }

    // Texts with equal bytes have equal hashes.
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// The collections that a context has written, and the values that it could not store.
struct KeyedChanges {
    /// The types of the collections that this context has checked or recorded since its last rollback.
    var recorded: [CollectionName: CollectionTypes] = [:]
    /// The objects that hold the records of these types.
    var records: [CollectionName: ObjectKey] = [:]
    /// The errors of values that could not be stored, by key. The next save throws one of them.
    var refused: [Data: any Error] = [:]

    /// The errors of unsaved entries whose types another context has replaced, by key. The next save throws one of them if its entry is
    /// still unsaved.
    var replaced: [Data: any Error] = [:]

    /// Forgets the errors of a key that is set or removed.
    mutating func forgetErrors(of key: Data) {
        refused[key] = nil
        if !replaced.isEmpty { replaced[key] = nil }
    }

    /// Forgets the errors of a range of keys.
    mutating func forgetErrors(from lower: [UInt8], to upper: [UInt8]) {
        if refused.isEmpty, replaced.isEmpty { return }
        func isOutside(_ key: Data) -> Bool {
            key.lexicographicallyPrecedes(lower) || !key.lexicographicallyPrecedes(upper)
        }
        refused = refused.filter { isOutside($0.key) }
        replaced = replaced.filter { isOutside($0.key) }
    }

    func check() throws {
        if let error = refused.min(by: { $0.key.lexicographicallyPrecedes($1.key) })?.value { throw error }
    }
}

extension LayeredView {
    /// Returns the object that holds a key; nil if there is none. One look-up per layer, and one in the index.
    func keyedObject(_ entity: EntityIndex, _ key: Data) throws -> ObjectKey? {
        let wanted = Value.data(key)
        for layer in layers {
            for object in layer.candidates(entity: entity, column: KeyedColumn.key, value: wanted)
            where try exists(entity, object) && value(entity, key: object, column: KeyedColumn.key) == wanted { return object }
        }
        // The objects that the base finds exist there, and the key of an object never changes, so that only a deletion hides one.
        return try base.lookup(entity, column: KeyedColumn.key, value: wanted).first { existsInLayers(entity, $0) ?? true }
    }
}
