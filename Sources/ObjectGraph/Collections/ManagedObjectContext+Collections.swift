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
    /// - Parameters:
    ///   - name: The name of the collection in the file.
    ///   - type: The type of the values.
    ///   - key: The type of the keys.
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the file has other types under this name;
    ///   ``CollectionError/invalidName(_:)``; the store's error.
    public func collection<Key: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: Key.Type = String.self
    ) throws -> KeyedCollection<Key, Value> {
        try KeyedCollection(name, KeyCoding(), in: self)
    }

    /// Returns a collection whose keys have two parts: `key: (String, Int).self`. They are ordered by the first part, then by the second.
    public func collection<A: CollectionKey, B: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B).Type
    ) throws -> KeyedCollection<(A, B), Value> {
        try KeyedCollection(name, KeyCoding(A.self, B.self), in: self)
    }

    /// Returns a collection whose keys have three parts, which are ordered by the first part, then by the second and the third.
    public func collection<A: CollectionKey, B: CollectionKey, C: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B, C).Type
    ) throws -> KeyedCollection<(A, B, C), Value> {
        try KeyedCollection(name, KeyCoding(A.self, B.self, and: C.self), in: self)
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
    /// In other contexts, use `ManagedObjectContext.collection(_:of:key:)`. A container for collections alone needs no types:
    /// `try await PersistentContainer(store: .lmdb(file))`.
    /// - Throws: The errors of `ManagedObjectContext.collection(_:of:key:)`.
    @MainActor public func collection<Key: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: Key.Type = String.self
    ) throws -> KeyedCollection<Key, Value> { try mainContext.collection(name, of: type, key: key) }

    /// Returns a collection in the main context whose keys have two parts.
    @MainActor public func collection<A: CollectionKey, B: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B).Type
    ) throws -> KeyedCollection<(A, B), Value> { try mainContext.collection(name, of: type, key: key) }

    /// Returns a collection in the main context whose keys have three parts.
    @MainActor public func collection<A: CollectionKey, B: CollectionKey, C: CollectionKey, Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, key: (A, B, C).Type
    ) throws -> KeyedCollection<(A, B, C), Value> { try mainContext.collection(name, of: type, key: key) }
}
