import StoreModel
import TestSupport

@testable import ObjectGraph

/// A live result of a ``Gallery``, and lists that are changed only by its differences. Everything but `init` runs on the context's
/// executor.
///
/// Unchecked, because it is used on that executor only.
final class ResultWatch: ContextWatch, @unchecked Sendable {
    private let request: EntityFetchRequest
    private let section: AttributeSort?
    private(set) var controller: FetchedResultsController<ManagedObject>?
    /// The list that only the differences have changed since the last start.
    private var shown: [ObjectID] = []
    private var sections: ShownSections?
    /// The objects that a difference named since the last comparison, and the values at that comparison.
    private var touched: Set<ObjectID> = []
    private var values: [ObjectID: [Value]] = [:]
    private var problem: String?

    init(_ query: Gallery.Query) { (request, section) = query }

    func start(in context: ManagedObjectContext) throws {
        let controller =
            if let section {
                try FetchedResultsController(request, sectionedBy: section, context: context)
            } else {
                try FetchedResultsController(request, context: context)
            }
        controller.minimumInterval = .zero
        controller.onChange = { [weak self] in self?.apply($0) }
        controller.onFailure = { [weak self] in self?.problem = "failed: \($0)" }
        self.controller = controller
        try restart(in: context)
    }

    func restart(in context: ManagedObjectContext) throws {
        guard let controller else { return }
        try controller.performFetch()
        shown = controller.snapshot.ids
        if section != nil { sections = ShownSections(controller.snapshot) }
        values = Self.values(of: shown, in: context)
        touched = []
    }

    func stop() { controller = nil }

    private func apply(_ update: ResultUpdate) {
        let (before, difference) = (shown, update.difference)
        if difference.isEmpty { problem = "an update without a difference" }
        for place in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) {
            guard place < shown.count else { return problem = "\(difference) removes from \(shown.count) objects" }
            shown.remove(at: place)
        }
        for place in (difference.insertions + difference.moves.map(\.to)).sorted() {
            guard place <= shown.count else { return problem = "\(difference) inserts into \(shown.count) objects" }
            shown.insert(update.snapshot[place], at: place)
        }
        for move in difference.moves where before[move.from] != update.snapshot[move.to] {
            problem = "\(difference) moves one object and names another"
        }
        touched.formUnion((difference.insertions + difference.moves.map(\.to) + difference.updates).map { update.snapshot[$0] })
        if shown != update.snapshot.ids {
            problem = """
                \(difference) leads from \(before.map(\.key)) to \(shown.map(\.key)), not to \(update.snapshot.ids.map(\.key))
                """
        }
        if section != nil { sections?.apply(update) }
    }

    private static func values(of ids: [ObjectID], in context: ManagedObjectContext) -> [ObjectID: [Value]] {
        var found: [ObjectID: [Value]] = [:]
        for id in ids {
            let object = context.object(with: id)
            found[id] = Gallery.columns[object.entityName, default: []].map { object[$0] }
        }
        return found
    }

    /// Returns how the live result differs from a fetch, or how its differences do not tell what has changed; nil if all agree.
    func difference(in context: ManagedObjectContext) throws -> String? {
        guard let controller else { return nil }
        context.processPendingChanges()
        controller.settle()
        let name = "\(request)\(section.map { " by \($0)" } ?? "")"
        if let problem { return "\(name): \(problem)" }
        var sorted = request
        if let section { sorted.sortBy.insert(section, at: 0) }
        let wanted = try context.fetch(sorted).map(\.objectID)
        let found = controller.snapshot.ids
        guard found == wanted, shown == wanted else {
            return "\(name): has \(found.map(\.key)), by differences \(shown.map(\.key)); a fetch has \(wanted.map(\.key))"
        }
        if let section, let difference = try difference(ofSections: section, controller.snapshot, in: context) {
            return "\(name): \(difference)"
        }
        let now = Self.values(of: wanted, in: context)
        for (id, new) in now {
            guard let old = values[id], old != new, !touched.contains(id) else { continue }
            return "\(name): no update of \(id.key), \(old) to \(new)"
        }
        (values, touched) = (now, [])
        return nil
    }

    private func difference(
        ofSections section: AttributeSort, _ snapshot: ResultSnapshot, in context: ManagedObjectContext
    ) throws -> String? {
        let path = section.attribute.split(separator: ".").map(String.init)
        let groups = try request.sections(by: section, in: context) { object in
            var last: ManagedObject? = object
            for name in path.dropLast() {
                // A reference to an object that is gone is not nil before its save, but it leads to no values.
                last = last?.relatedObject(name).flatMap { try? context.existingObject(with: $0.objectID) }
            }
            return last?[path[path.count - 1]] ?? .null
        }
        let found = snapshot.sections.map { Array(snapshot[$0.range]) }
        let ids = groups.map(\.ids)
        if snapshot.sections.map(\.value) == groups.map(\.value), found == ids, sections?.sections == ids { return nil }
        return """
            sections \(snapshot.sections.map(\.value)) of \(found.map { $0.map(\.key) }), by differences \
            \(sections?.sections.map { $0.map(\.key) } ?? []); a fetch has \(groups.map(\.value)) of \(ids.map { $0.map(\.key) })
            """
    }
}
