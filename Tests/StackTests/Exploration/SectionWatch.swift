import StoreInterface
import StoreModel
import TestSupport

@testable import ObjectGraph

/// A live result with sections in a background context, compared with the sections of a fetch.
final class SectionWatch: Sendable {
    private let context: BackgroundContext
    private let request: EntityFetchRequest
    private let section: AttributeSort
    private let results: Results

    /// The parts that only the context's executor uses.
    private final class Results: @unchecked Sendable {
        var controller: FetchedResultsController<ManagedObject>?
        var shown: ShownSections?
    }

    init(_ context: BackgroundContext, _ random: inout SeededGenerator) async throws {
        let sections = [
            AttributeSort("third"), AttributeSort("first", .descending), AttributeSort("list.title"),
            AttributeSort("list.title", .descending),
        ]
        let section = sections[random.below(sections.count)]
        let request = EntityFetchRequest(
            "Thing", matching: random.chance(50) ? .always : .compare("second", .greater, to: .int(7)),
            sortBy: [AttributeSort(random.chance(50) ? "second" : "position in list")], limit: random.chance(25) ? 3 : nil,
            offset: random.chance(25) ? 1 : 0)
        let results = Results()
        (self.context, self.request, self.section, self.results) = (context, request, section, results)
        try await context.perform { context throws in
            let controller = try FetchedResultsController(request, sectionedBy: section, context: context)
            controller.minimumInterval = .zero
            try controller.performFetch()
            results.shown = ShownSections(controller.snapshot)
            controller.onChange = { [weak results] in results?.shown?.apply($0) }
            results.controller = controller
        }
    }

    deinit {
        // A controller is released on its context's executor.
        let (context, results) = (context, results)
        Task { await context.perform { _ in results.controller = nil } }
    }

    /// Returns how the live result, or the list that only its differences have changed, differs from a fetch; nil if neither does.
    func difference() async throws -> String? {
        try await context.perform { [request, section, results] _, context throws -> String? in
            context.processPendingChanges()
            await results.controller?.untilIdle()
            guard let snapshot = results.controller?.snapshot else { return "are gone" }
            let groups = try request.sections(by: section, in: context) { thing in
                section.attribute == "list.title" ? thing.relatedObject("list")?["title"] ?? .null : thing[section.attribute]
            }
            let (values, ids) = (groups.map(\.value), groups.map(\.ids))
            let found = snapshot.sections.map { Array(snapshot[$0.range]) }
            if snapshot.sections.map(\.value) == values, found == ids, results.shown?.sections == ids { return nil }
            return """
                by \(section), of \(request): have sections \(snapshot.sections.map(\.value)), \(found.map { $0.map(\.key) }), and by \
                differences \(results.shown?.sections.map { $0.map(\.key) } ?? []); should be \(values), \(ids.map { $0.map(\.key) })
                """
        }
    }
}
