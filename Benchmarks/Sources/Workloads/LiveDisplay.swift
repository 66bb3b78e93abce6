import Datasets
import Foundation
import ObjectGraph
import StoreInterface

/// Simulates a list on the screen. Follows a live result on main, and reads the objects of its visible rows at every update.
@MainActor
final class LiveDisplay {
    private let results: FetchedResultsController<ManagedObject>
    private let attribute: Attribute
    private let expected = Expectation("the rows of a live result")
    /// The values of the visible rows, kept so that the reads are not optimized away.
    private(set) var shown: [Value] = []
    private static let visibleRows = 20

    init(
        _ container: PersistentContainer, entity: String, sortedBy column: String?, matching condition: Condition = .always
    ) throws {
        guard let column, let attribute = container.model.entity(named: entity)?.attribute(named: column) else {
            throw VerificationError("\(entity) has no attribute to sort by")
        }
        self.attribute = attribute
        results = try FetchedResultsController(
            EntityFetchRequest(entity, matching: condition, sortBy: [AttributeSort(column)]), context: container.mainContext)
        try results.performFetch()
        results.onChange = { [weak self] _ in MainActor.assumeIsolated { self?.draw() } }
        results.onFailure = { [expected] error in expected.fail(error) }
        draw()
    }

    /// Shows the largest entity of the data set that has an attribute to sort by.
    convenience init(_ container: PersistentContainer, showing dataset: Dataset) throws {
        let table = dataset.tables[dataset.shownTable]
        try self.init(container, entity: table.name, sortedBy: table.attributes.first?.name)
    }

    private func draw() {
        let count = results.snapshot.count
        shown.removeAll(keepingCapacity: true)
        for row in 0..<min(count, Self.visibleRows) { shown.append(results.object(at: row)[attribute: attribute]) }
        expected.reached(count)
    }

    /// Waits until the list shows this many rows. Throws ``VerificationError`` if it does not within a minute.
    nonisolated func wait(for count: Int) async throws { try await expected.wait(for: count) }

    func stop() { results.onChange = nil }
}

extension Dataset {
    /// The table that main shows: the largest one that has an attribute to sort by.
    var shownTable: Int {
        tables.indices.filter { !tables[$0].attributes.isEmpty }.max { tables[$0].rowCount < tables[$1].rowCount } ?? largestTable
    }
}
