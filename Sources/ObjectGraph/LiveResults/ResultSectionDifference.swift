import StoreInterface
import StoreModel

/// The difference between two snapshots of a live result with sections.
///
/// To get the next sections, start with the previous ones. Remove the objects at `deletions` and at the sources of `moves`, then the
/// sections at `deletedSections`, which are empty now. These are places in the previous snapshot. Then insert the sections at
/// `insertedSections`, and the objects at `insertions` and at the targets of `moves`. These are places in the next snapshot. An object
/// whose section changes is moved, even if its position in the whole result stays.
///
/// ```swift
/// guard let difference = update.sectionDifference else { return }
/// for place in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) {
///     sections[place.section].remove(at: place.item)
/// }
/// for section in difference.deletedSections.reversed() { sections.remove(at: section) }
/// for section in difference.insertedSections { sections.insert([], at: section) }
/// for place in (difference.insertions + difference.moves.map(\.to)).sorted() {
///     let position = update.snapshot.sections[place.section].range.lowerBound + place.item
///     sections[place.section].insert(update.snapshot[position], at: place.item)
/// }
/// ```
public struct ResultSectionDifference: Sendable, Hashable {
    /// A move of one object.
    public struct Move: Sendable, Hashable {
        /// The place in the previous snapshot.
        public var from: SectionPosition
        /// The place in the next snapshot.
        public var to: SectionPosition

        /// Creates a move.
        public init(from: SectionPosition, to: SectionPosition) {
            self.from = from
            self.to = to
        }
    }

    /// The numbers of deleted sections in the previous snapshot, ascending.
    public private(set) var deletedSections: [Int] = []
    /// The numbers of inserted sections in the next snapshot, ascending.
    public private(set) var insertedSections: [Int] = []
    /// The places of deleted objects in the previous snapshot, ascending.
    public private(set) var deletions: [SectionPosition] = []
    /// The places of inserted objects in the next snapshot, ascending.
    public private(set) var insertions: [SectionPosition] = []
    /// The moved objects, ascending by target. A move implies that the object changed.
    public private(set) var moves: [Move] = []
    /// The places in the next snapshot of changed objects that did not move, ascending.
    public private(set) var updates: [SectionPosition] = []

    /// Computes the difference in O(changes · log sections + sections).
    ///
    /// - Parameters:
    ///   - difference: The difference by positions. An object whose section changed is in it.
    ///   - old: The sections before.
    ///   - new: The sections after.
    ///   - sort: The sort of the sections.
    init(
        _ difference: ResultDifference, from old: [ResultSection], to new: [ResultSection], _ sort: StoreSort
    ) {
        deletions = difference.deletions.map(old.place)
        insertions = difference.insertions.map(new.place)
        moves = difference.moves.map { Move(from: old.place(of: $0.from), to: new.place(of: $0.to)) }
        for (from, to) in zip(difference.previousPositions(of: difference.updates), difference.updates) {
            let (before, after) = (old.place(of: from), new.place(of: to))
            if old[before.section].value.order(new[after.section].value) == 0 {
                updates.append(after)
            } else {
                moves.append(Move(from: before, to: after))
            }
        }
        moves.sort { $0.to < $1.to }
        compareSections(old, with: new, by: sort)
    }

    private mutating func compareSections(_ old: [ResultSection], with new: [ResultSection], by sort: StoreSort) {
        var (before, after) = (0, 0)
        while before < old.count || after < new.count {
            let order: Int
            if before < old.count, after < new.count {
                order = sort.orderOfConverted(old[before].value, new[after].value)
            } else {
                order = before < old.count ? -1 : 1
            }
            if order < 0 { deletedSections.append(before) }
            if order > 0 { insertedSections.append(after) }
            if order <= 0 { before += 1 }
            if order >= 0 { after += 1 }
        }
    }
}

extension ResultDifference {
    /// Returns the previous positions of objects that are neither inserted nor moved. O(differences).
    ///
    /// - Parameter positions: Positions in the next snapshot, ascending.
    func previousPositions(of positions: [Int]) -> [Int] {
        let arrived = (insertions + moves.map(\.to)).sorted()
        let left = (deletions + moves.map(\.from)).sorted()
        var (arrivals, departures) = (0, 0)
        return positions.map { position in
            while arrivals < arrived.count, arrived[arrivals] < position { arrivals += 1 }
            // The number of objects before it that are in both snapshots and do not move.
            let rank = position - arrivals
            while departures < left.count, left[departures] - departures <= rank { departures += 1 }
            return rank + departures
        }
    }

    /// Adds objects whose section changed to ``updates``, although their rows are as before. O(result).
    mutating func noteChangedSections(from old: [ResultSection], to new: [ResultSection], count: Int) {
        let arrived = Set(insertions + moves.map(\.to))
        let known = Set(updates)
        let kept = (0..<count).filter { !arrived.contains($0) && !known.contains($0) }
        let changed = zip(previousPositions(of: kept), kept).filter { from, to in
            old[old.place(of: from).section].value.order(new[new.place(of: to).section].value) != 0
        }
        guard !changed.isEmpty else { return }
        updates = (updates + changed.map(\.1)).sorted()
    }
}

extension ResultUpdate {
    /// The difference by sections; nil if the result has none. Computed in O(differences · log sections + sections).
    public var sectionDifference: ResultSectionDifference? {
        guard let previousSections, let sort = snapshot.list.order.sort.first else { return nil }
        return ResultSectionDifference(difference, from: previousSections, to: snapshot.sections, sort)
    }
}
