import TestSupport

@testable import ObjectGraph

/// An observer of a context that an exploration compares with fetches. Everything runs on the context's executor.
protocol ContextWatch: AnyObject, Sendable {
    /// The live result that the watch follows; nil if there is none that can be awaited.
    var controller: FetchedResultsController<ManagedObject>? { get }

    func start(in context: ManagedObjectContext) throws
    /// Begins anew with the present state.
    func restart(in context: ManagedObjectContext) throws
    /// Releases everything that must be released on the context's executor.
    func stop()
    /// Returns how the context differs from what the program was told, in words; nil if all agree.
    func difference(in context: ManagedObjectContext) throws -> String?
}

/// The watches that an exploration gives to each context.
enum WatchKind: Sendable {
    /// Three live results.
    case results
    /// Retained objects, observers of their properties and of a collection, and an observer of notices.
    case objects

    func make(_ random: inout SeededGenerator) -> [any ContextWatch] {
        switch self {
        case .results: (0..<3).map { _ in ResultWatch(Gallery.queries[random.below(Gallery.queries.count)]) }
        case .objects: [ObjectWatch(random: SeededGenerator(seed: random.next()))]
        }
    }
}
