import StoreInterface

/// The ids of a live result at one moment, in order. A value that any thread may keep and read.
///
/// Creating and copying a snapshot is O(1). Releasing one frees only parts that no newer snapshot shares. Reading one position is
/// O(log count), and reading all O(count).
///
/// ```swift
/// let first = results.snapshot.first.map { context.object(Track.self, with: $0) }
/// ```
public struct ResultSnapshot: Sendable {
    let list: ResultList
    let window: Range<Int>
    let entity: Int
    let store: StoreIdentity

    init(_ live: LiveQuery, store: StoreIdentity) {
        list = live.list
        window = live.window
        entity = live.query.entity
        self.store = store
    }

    /// All ids, in order. O(count), faster than reading each position.
    public var ids: [ObjectID] { list.keys(window).map { ObjectID(store: store, entity: entity, key: $0) } }
}

extension ResultSnapshot: RandomAccessCollection {
    /// The position of the first id, always 0.
    public var startIndex: Int { 0 }
    /// The position after the last id, which is the number of ids.
    public var endIndex: Int { window.count }

    /// The id at a position.
    ///
    /// - Precondition: The position is in the snapshot.
    public subscript(position: Int) -> ObjectID {
        precondition(position >= 0 && position < window.count, "position \(position) is not in a snapshot of \(window.count)")
        return ObjectID(store: store, entity: entity, key: list.key(at: window.lowerBound + position))
    }
}

/// One update of a live result: the next snapshot, and its difference from the previous snapshot.
public struct ResultUpdate: Sendable {
    /// The snapshot after the update.
    public let snapshot: ResultSnapshot
    /// The difference from the previous snapshot.
    public let difference: ResultDifference
}
