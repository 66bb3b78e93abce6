import StoreInterface
import StoreModel

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
    let entity: EntityIndex
    let store: StoreIdentity
    /// The sections of the objects, in order; empty if the result was made without sections.
    public let sections: [ResultSection]

    init(_ live: LiveQuery, store: StoreIdentity) {
        list = live.list
        window = live.window
        entity = live.query.entity
        self.store = store
        sections = live.sections?.sections(in: live.window) ?? []
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

extension ResultSnapshot: CustomStringConvertible, CustomReflectable {
    /// The number of objects, and the keys of the first: `3 objects: 12, 7, 9`.
    public var description: String {
        isEmpty
            ? "no objects"
            : "\(count) object\(count == 1 ? "" : "s"): \(KeyText.list(prefix(8).map(\.key)))\(count > 8 ? ", …" : "")"
    }

    /// The ids as children.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: self, displayStyle: .collection) }
}

extension ResultUpdate: CustomStringConvertible {
    /// The difference, and the snapshot after it.
    public var description: String { "\(difference), then \(snapshot)" }
}

extension ResultDifference: CustomStringConvertible {
    /// The positions of the changes: `deleted at 2, inserted at 0, 5, moved 3 to 1`.
    public var description: String {
        func list(_ name: String, _ positions: [Int]) -> String? {
            positions.isEmpty ? nil : "\(name) at \(KeyText.list(positions))"
        }
        let moved =
            moves.isEmpty
            ? nil
            : "moved " + moves.prefix(8).map { "\($0.from) to \($0.to)" }.joined(separator: ", ")
                + (moves.count > 8 ? ", … (\(moves.count) moves)" : "")
        let parts = [list("deleted", deletions), list("inserted", insertions), moved, list("updated", updates)].compactMap(\.self)
        return parts.isEmpty ? "no difference" : parts.joined(separator: ", ")
    }
}

/// One update of a live result: the next snapshot, and its difference from the previous snapshot.
///
/// ```swift
/// for await update in results.updates {
///     remove(update.difference.deletions)
///     insert(update.difference.insertions.map { update.snapshot[$0] })
/// }
/// ```
public struct ResultUpdate: Sendable {
    /// The snapshot after the update.
    public let snapshot: ResultSnapshot
    /// The difference from the previous snapshot.
    public let difference: ResultDifference
    /// The sections before the update; nil if the result has none.
    let previousSections: [ResultSection]?
}
