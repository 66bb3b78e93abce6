import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The bytes of a string (as UTF-8) or of data as a sequence of parts: `for try await part in try context.stream(track, \.payload)`.
///
/// The stream returns the value that the context had when the stream was created, and keeps that snapshot alive. Later saves do not
/// change it. It is `Sendable`. Its parts are read on the global concurrent executor, not on the context's executor. If the store
/// keeps the value in chunks, as LMDB does with large values, the stream needs memory for one part (64 KiB). For other and unsaved
/// values, it needs memory for the whole value. Iterating twice reads twice.
///
/// ```swift
/// for try await part in try context.stream(track, \.recording) { bytes.append(part) }
/// ```
public struct ValueStream: AsyncSequence, Sendable {
    /// A part of the value, at most 64 KiB.
    public typealias Element = Data

    private let parts: (any ValueParts)?

    init(_ parts: (any ValueParts)?) { self.parts = parts }

    /// The size of the whole value in bytes.
    public var byteCount: Int { parts?.byteCount ?? 0 }

    /// Returns an iterator that begins at the first byte. It reads nothing yet.
    public func makeAsyncIterator() -> Iterator { Iterator(parts: parts) }

    /// An iterator over the parts of a value.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        fileprivate var parts: (any ValueParts)?

        /// Returns the next part, whose indices begin at 0; nil at the end.
        ///
        /// - Throws: `CancellationError`; `StoreError` `.damaged`.
        @concurrent public mutating func next() async throws -> Data? {
            try Task.checkCancellation()
            return try parts?.next()
        }
    }
}

extension ManagedObjectContext {
    /// Returns the bytes of a property as a stream. For nil, the stream is empty. O(log n); the value is read only by iterating.
    ///
    /// - Throws: `StoreError` if the look-up fails.
    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, Data>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    /// Returns the bytes of an optional data property as a stream. For nil, the stream is empty.
    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, Data?>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    /// Returns the UTF-8 bytes of a string property as a stream.
    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, String>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }

    /// Returns the UTF-8 bytes of an optional string property as a stream. For nil, the stream is empty.
    public func stream<M: PersistentModel>(_ object: M, _ keyPath: KeyPath<M, String?>) throws -> ValueStream {
        try object.managedObject.stream(M.name(of: keyPath))
    }
}

extension ManagedObject {
    /// Returns the bytes of a string or data property by name as a stream. For null, the stream is empty. See ``ValueStream``.
    ///
    /// - Precondition: The object is in a context, and has a string or data property with this name.
    public func stream(_ name: String) throws -> ValueStream {
        arrive()
        let context = requiredContext
        guard let column = definition.column(named: name), definition.columns[column].type.isHeap else {
            preconditionFailure("\(definition.name) has no property named \(name) that is a string or data")
        }
        guard isDeletedHere else { return ValueStream(try context.layerStack.view.parts(entity, key: key, column: column)) }
        // An object with an unsaved deletion shows its last values (S054).
        let last = context.read(self, column) ?? context.lastValue(entity, key: key, column: column)
        return ValueStream(last.flatMap { WholeValueParts($0) })
    }
}

extension LayeredView {
    /// Returns the parts of a value, found as in ``value(_:key:column:)``: in the newest layer that has the column set, else in the base.
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        let number = key.page
        let slot = key.slot
        switch try lookup(entity, page: number, slot: slot, column) {
        case .row(let row): return WholeValueParts(row[column])
        case .deleted: return nil
        case .below: return try base.parts(entity, key: key, column: column)
        }
    }
}

extension ColumnType {
    /// Whether values of the type are bytes of any length.
    fileprivate var isHeap: Bool { self == .string || self == .data }
}
