import ObjectGraph
import Observation

/// The objects of a description, which follow the changes of a context, of other contexts and of other processes.
///
/// Reading ``results`` shows the changes so far. `withObservationTracking` reports later changes. Create and use an observer on
/// the actor that uses its context: the main actor or another one. An observer that is not created on an actor reports the changes of other
/// contexts only when its context is used.
///
/// `SectionTitle` is `Never` in an observer without sections.
///
/// ```swift
/// let observer = try ResultsObserver<Trip, Never>(
///     filterBy: #Predicate { $0.start > now }, sortBy: [SortDescriptor(\.start)], modelContext: context)
/// withObservationTracking {
///     show(observer.results)
/// } onChange: {
///     scheduleRedraw()
/// }
/// ```
public final class ResultsObserver<Element: PersistentModel, SectionTitle: Hashable>: Observable {
    /// The context of the objects.
    public let modelContext: ModelContext
    private let live: Results<Element>
    private let title: ((Element) -> SectionTitle)?
    private var observations: [ObservationToken] = []
    /// The number of times that the changes were not shown, because the store was suspended.
    private(set) var postponements = 0

    /// Fetches the objects, and follows the context from then on.
    ///
    /// - Throws: ``SwiftDataError`` if the store cannot evaluate the predicate or a sort, or the store's error.
    private init(
        _ descriptor: FetchDescriptor<Element>, sections: (sort: SortDescriptor<Element>, title: (Element) -> SectionTitle)?,
        context: ModelContext, isolation: (any Actor)?
    ) throws {
        var descriptor = descriptor
        if let sections {
            guard sections.sort.storeSort != nil else {
                throw SwiftDataError.unsupportedSortDescriptor.saying(
                    "cannot observe \(Element.entityName) in sections: their title is no stored property of the model. "
                        + "Make sections by a stored property of \(Element.entityName).")
            }
            descriptor.sortBy.insert(sections.sort, at: 0)
        }
        let sorts = descriptor.sortBy.compactMap(\.storeSort)
        guard sorts.count == descriptor.sortBy.count else {
            throw SwiftDataError.unsupportedSortDescriptor.saying(
                "cannot observe \(Element.entityName): the store cannot make a sort by a computed property, by a property of a "
                    + "related object, or by a type whose stored values have another order. "
                    + "Sort by other stored properties of \(Element.entityName), or fetch the objects and sort them in Swift.")
        }
        modelContext = context
        title = sections?.title
        var request = descriptor.request(isFiltered: true, sorted: sorts)
        // An observer shows unsaved changes in any case.
        request.includesPendingChanges = true
        do {
            live = try Results(request, context: context.context)
        } catch let error as FetchError where error.isAnsweredInMemory {
            throw SwiftDataError.unsupportedPredicate.saying(
                "cannot observe \(Element.entityName): \(error). Use a predicate that the store can evaluate.")
        }
        guard !context.isMigrating else { return }
        let container = context.container.storage.container
        try container.followOtherProcesses()
        let wakeup = IsolatedWakeup(in: isolation) { [weak self] in self?.update() ?? true }
        guard let waiting = context.context.observeWaitingWork({ wakeup.wake() }) else { return }
        observations = [waiting, container.coordinator.observeSaves { wakeup.wake() }]
    }

    /// Shows the changes so far, and tells those who observe the results. Returns false if the store is suspended.
    private func update() -> Bool {
        let isShown: Void? = modelContext.container.storage.container.coordinator.unlessSuspended {
            modelContext.context.catchUpWithSaves()
            _ = live.snapshot
        }
        if isShown == nil { postponements += 1 }
        return isShown != nil
    }

    /// The objects. Reading one position takes O(log count).
    public var results: FetchResultsCollection<Element> {
        modelContext.context.catchUpWithSaves()
        let (snapshot, context) = (live.snapshot, modelContext.context)
        return FetchResultsCollection(count: snapshot.count) { position in
            context.object(Element.self, with: snapshot[position])
        }
    }

    /// The objects in sections; nil in an observer without sections. O(count), because the title of each object is read.
    public var sections: SectionedResults<Element, SectionTitle>? { title.map { SectionedResults(Array(results), by: $0) } }
}

@available(*, unavailable)
extension ResultsObserver: Sendable {}

extension ResultsObserver where SectionTitle == Never {
    /// Creates an observer of the objects of a description in a context.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sections: nil, context: modelContext, isolation: isolation)
    }

    /// Creates an observer of the objects of a description in a new context of a container.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sections: nil, context: ModelContext(modelContainer), isolation: isolation)
    }

    /// Creates an observer of the objects in a context that satisfy a condition, in an order.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: nil, context: modelContext, isolation: isolation
        )
    }

    /// Creates an observer of the objects that satisfy a condition, in an order and in a new context of a container.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: nil, context: ModelContext(modelContainer),
            isolation: isolation)
    }
}

extension ResultsObserver where SectionTitle == String {
    /// Creates an observer of the objects of a description in a context, in sections. The property of the titles is the first sort.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), sectionBy: KeyPath<Element, String>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sections: Self.sections(sectionBy), context: modelContext, isolation: isolation)
    }

    /// Creates an observer of the objects of a description in a context, in sections. Objects without a title have the title "".
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), sectionBy: KeyPath<Element, String?>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, sections: Self.sections(sectionBy), context: modelContext, isolation: isolation)
    }

    /// Creates an observer of the objects of a description in a new context of a container, in sections.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), sectionBy: KeyPath<Element, String>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            fetchDescriptor, sections: Self.sections(sectionBy), context: ModelContext(modelContainer), isolation: isolation)
    }

    /// Creates an observer of the objects of a description in a new context of a container, in sections. Objects without a title have the
    /// title "".
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor(), sectionBy: KeyPath<Element, String?>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            fetchDescriptor, sections: Self.sections(sectionBy), context: ModelContext(modelContainer), isolation: isolation)
    }

    /// Creates an observer of the objects in a context that satisfy a condition, in sections.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, sectionBy: KeyPath<Element, String>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: Self.sections(sectionBy), context: modelContext,
            isolation: isolation)
    }

    /// Creates an observer of the objects in a context that satisfy a condition, in sections. Objects without a title have the title "".
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, sectionBy: KeyPath<Element, String?>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: Self.sections(sectionBy), context: modelContext,
            isolation: isolation)
    }

    /// Creates an observer of the objects that satisfy a condition, in sections and in a new context of a container.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, sectionBy: KeyPath<Element, String>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: Self.sections(sectionBy),
            context: ModelContext(modelContainer),
            isolation: isolation)
    }

    /// Creates an observer of the objects that satisfy a condition, in sections and in a new context of a container. Objects without a title
    /// have the title "".
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, sectionBy: KeyPath<Element, String?>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), sections: Self.sections(sectionBy),
            context: ModelContext(modelContainer),
            isolation: isolation)
    }

    private typealias Sections = (sort: SortDescriptor<Element>, title: (Element) -> String)

    // Key paths of properties capture nothing, so they may be sent.

    private static func sections(_ path: KeyPath<Element, String>) -> Sections {
        (SortDescriptor(unsafeBitCast(path, to: (KeyPath<Element, String> & Sendable).self)), { $0[keyPath: path] })
    }

    private static func sections(_ path: KeyPath<Element, String?>) -> Sections {
        (SortDescriptor(unsafeBitCast(path, to: (KeyPath<Element, String?> & Sendable).self)), { $0[keyPath: path] ?? "" })
    }
}
