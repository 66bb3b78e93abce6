import StoreInterface
import StoreModel

/// Opening keyed collections.
extension ManagedObjectContext {
    /// Returns a collection of values under keys, as this context sees it (S190).
    ///
    /// A collection exists in the file from the save of its first value on. Opening one reads its types: one look-up.
    ///
    /// ```swift
    /// let scores = try context.collection("scores", of: Int.self, key: UUID.self)
    /// ```
    /// A file records the names of types without their modules. Two types of one name are the same type to it: a value of the other type
    /// that does not decode throws when it is read (S194).
    /// - Parameters:
    ///   - name: The name of the collection in the file. Names with other bytes are other names, also if they look alike.
    ///   - type: The type of the values.
    ///   - key: The type of the keys.
    ///   - formerTypeName: A name that the type of the values had before, as Swift prints it: `Draft`, `Optional<Draft>`, `Array<Int>`. The
    ///     first write records the new name, and conflicts with the first write of another context that renames. Values stay as they are,
    ///     so the new type must decode them.
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the file has other types under this name;
    ///   ``CollectionError/invalidName(_:)``; the store's error.
    @inlinable
    public func collection<Key: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: Key.Type = String.self, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<Key, Value> {
        try KeyedCollection(name, KeyCoding(), renamedFrom: formerTypeName, in: self)
    }

    /// Returns a collection whose keys have two parts: `key: (String, Int).self`. They are ordered by the first part, then by the second.
    @inlinable
    public func collection<A: CollectionKey, B: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B).Type, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<(A, B), Value> {
        try KeyedCollection(name, KeyCoding(A.self, B.self), renamedFrom: formerTypeName, in: self)
    }

    /// Returns a collection whose keys have three parts, which are ordered by the first part, then by the second and the third.
    @inlinable
    public func collection<A: CollectionKey, B: CollectionKey, C: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B, C).Type, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<(A, B, C), Value> {
        try KeyedCollection(name, KeyCoding(A.self, B.self, and: C.self), renamedFrom: formerTypeName, in: self)
    }
}

extension PersistentContainer {
    /// Returns a collection of values under keys in the main context (S190).
    ///
    /// ```swift
    /// let drafts = try container.collection("drafts", of: Draft.self)
    /// drafts["spring"] = Draft(title: "Spring")
    /// try await container.mainContext.save()
    /// ```
    /// In other contexts, use `ManagedObjectContext.collection(_:of:key:renamedFrom:)`. A container for collections alone needs no types:
    /// `try await PersistentContainer(store: .lmdb(file))`.
    /// - Throws: The errors of `ManagedObjectContext.collection(_:of:key:renamedFrom:)`.
    @inlinable
    @MainActor public func collection<Key: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: Key.Type = String.self, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<Key, Value> {
        try mainContext.collection(name, of: type, key: key, renamedFrom: formerTypeName)
    }

    /// Returns a collection in the main context whose keys have two parts.
    @inlinable
    @MainActor public func collection<A: CollectionKey, B: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B).Type, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<(A, B), Value> {
        try mainContext.collection(name, of: type, key: key, renamedFrom: formerTypeName)
    }

    /// Returns a collection in the main context whose keys have three parts.
    @inlinable
    @MainActor public func collection<A: CollectionKey, B: CollectionKey, C: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B, C).Type, renamedFrom formerTypeName: String? = nil
    ) throws -> KeyedCollection<(A, B, C), Value> {
        try mainContext.collection(name, of: type, key: key, renamedFrom: formerTypeName)
    }
}
