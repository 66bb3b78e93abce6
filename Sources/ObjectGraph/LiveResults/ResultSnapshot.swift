import StoreInterface

/// The ids that a live result shows at one moment, in order. A value that any thread may keep and read.
///
/// Making and copying one is O(1); so is dropping it, but for the parts that no newer snapshot shares. Reading a position is
/// O(log count), reading all O(count).
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

    /// All ids, in order. O(count), faster than position by position.
    public var ids: [ObjectID] { list.keys(window).map { ObjectID(store: store, entity: entity, key: $0) } }
}

extension ResultSnapshot: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { window.count }

    /// Precondition: the position is in the snapshot.
    public subscript(position: Int) -> ObjectID {
        precondition(position >= 0 && position < window.count, "position \(position) is not in a snapshot of \(window.count)")
        return ObjectID(store: store, entity: entity, key: list.key(at: window.lowerBound + position))
    }
}

/// One step of a live result: the next snapshot, and how it differs from the one before.
public struct ResultUpdate: Sendable {
    public let snapshot: ResultSnapshot
    public let difference: ResultDifference
}
