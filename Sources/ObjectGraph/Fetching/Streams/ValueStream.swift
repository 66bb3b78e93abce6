import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The bytes of a string (as UTF-8) or of data, part by part: `for try await part in try context.stream(track, \.payload)`.
///
/// It gives the value that the context showed when the stream was made, whatever is saved meanwhile, and keeps that snapshot alive until it
/// goes. It may be sent to another task, and is read where its `next` runs, not on the context's executor. It takes memory for one part
/// (64 KiB) when the store keeps the value in chunks, as LMDB does with large ones; for the value where it is unsaved or the store gives it
/// whole. Iterating twice reads twice.
public struct ValueStream: AsyncSequence, Sendable {
    public typealias Element = Data

    private let parts: (any ValueParts)?

    init(_ parts: (any ValueParts)?) { self.parts = parts }

    /// Of the whole value.
    public var byteCount: Int { parts?.byteCount ?? 0 }

    public func makeAsyncIterator() -> Iterator { Iterator(parts: parts) }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        fileprivate var parts: (any ValueParts)?

        /// The next part, whose indices begin at 0; nil at the end.
        /// - Throws: `CancellationError`; `StoreError` `.damaged`.
        @concurrent public mutating func next() async throws -> Data? {
            try Task.checkCancellation()
            return try parts?.next()
        }
    }
}

extension ManagedObjectContext {
    /// A property's bytes, part by part. nil is an empty stream. O(log n), as reading a small property: nothing of the value is read yet.
    ///
    /// - Throws: `StoreError` of the look-up.
    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, Data>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, Data?>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, String>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, String?>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }
}

extension ManagedObject {
    /// The bytes of a string or data property by its name, part by part; null is an empty stream. See ``ValueStream``.
    ///
    /// A programmer error for a property that is neither, or that there is not, and for an object in no context.
    public func stream(_ name: String) throws -> ValueStream {
        let context = requiredContext
        guard let column = description.column(named: name), description.columns[column].type.isHeap else {
            preconditionFailure("\(description.name) has no property named \(name) that is a string or data")
        }
        return ValueStream(try context.view.parts(entity, key, column))
    }
}

extension LayeredView {
    /// As ``value(_:_:_:)``: the newest layer that has the column set, else the base.
    func parts(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> (any ValueParts)? {
        let number = PageAddress.page(of: key)
        let slot = PageAddress.slot(of: key)
        for layer in layers {
            guard let row = layer.entity(entity)?.page(number)?[slot] else { continue }
            if row.kind == .delete { return nil }
            if row.kind == .insert || row.isSet(column) { return WholeValueParts(row[column]) }
        }
        return try base.parts(entity, key, column)
    }
}

extension ColumnType {
    /// Whether values of the type are bytes of any count.
    fileprivate var isHeap: Bool { self == .string || self == .data }
}
