import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// The sections of a list that is changed by differences only.
struct ShownSections {
    var sections: [[ObjectID]]

    init(_ snapshot: ResultSnapshot) { sections = snapshot.sections.map { Array(snapshot[$0.range]) } }

    /// Applies a difference as the documentation describes it for observers.
    mutating func apply(_ update: ResultUpdate) {
        guard let difference = update.sectionDifference else {
            Issue.record("the update has no difference by sections")
            return
        }
        for place in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) {
            sections[place.section].remove(at: place.item)
        }
        for section in difference.deletedSections.reversed() {
            #expect(sections[section].isEmpty, "a section is deleted before its objects")
            sections.remove(at: section)
        }
        for section in difference.insertedSections { sections.insert([], at: section) }
        for place in (difference.insertions + difference.moves.map(\.to)).sorted() {
            let position = update.snapshot.sections[place.section].range.lowerBound + place.item
            guard place.item <= sections[place.section].count else {
                Issue.record("\(difference) inserts at \(place)")
                return
            }
            sections[place.section].insert(update.snapshot[position], at: place.item)
        }
    }
}

extension EntityFetchRequest {
    /// Returns the values and objects of the sections that a fetch has.
    ///
    /// - Parameter value: Returns the value that gives an object its section.
    func sections(
        by section: AttributeSort, in context: ManagedObjectContext, _ value: (ManagedObject) -> Value
    ) throws -> [(value: Value, ids: [ObjectID])] {
        var sorted = self
        sorted.sortBy.insert(section, at: 0)
        var groups: [(value: Value, ids: [ObjectID])] = []
        for object in try context.fetch(sorted) {
            let value = value(object)
            if let last = groups.last, last.value == value {
                groups[groups.count - 1].ids.append(object.objectID)
            } else {
                groups.append((value, [object.objectID]))
            }
        }
        return groups
    }
}
