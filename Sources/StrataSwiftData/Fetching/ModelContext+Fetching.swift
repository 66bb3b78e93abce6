import ObjectGraph

extension ModelContext {
    /// Returns the objects of a description.
    ///
    /// A predicate or a sort that the store cannot answer is evaluated in memory, over all objects that the rest selects. The first time,
    /// this is logged.
    /// - Throws: ``SwiftDataError``, or the store's error.
    public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
        try answer(descriptor, inStore: { try context.fetch($0) }, inMemory: { $0 })
    }

    /// Returns the number of objects of a description.
    public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
        var descriptor = descriptor
        descriptor.sortBy = []
        return try answer(descriptor, inStore: { try context.count($0) }, inMemory: \.count)
    }

    /// Returns the identifiers of the objects of a description. Creates objects only of a class with subclasses, whose objects are named by
    /// their own classes.
    public func fetchIdentifiers<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [PersistentIdentifier] {
        try answer(
            descriptor,
            inStore: { request in
                if context.model.subentities.contains(where: { $0.superentityName == T.entityName }) {
                    return try context.fetch(request).map(\.persistentModelID)
                }
                return try context.fetchIDs(request).map { PersistentIdentifier($0, entityName: T.entityName) }
            },
            inMemory: { $0.map(\.persistentModelID) })
    }

    /// Returns the identifiers of the objects of a description as a collection.
    ///
    /// - Parameters:
    ///   - descriptor: The description.
    ///   - batchSize: Ignored: an identifier takes 24 bytes.
    public func fetchIdentifiers<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, batchSize: Int
    ) throws -> FetchResultsCollection<PersistentIdentifier> {
        FetchResultsCollection(try fetchIdentifiers(descriptor))
    }

    /// Returns the objects of a description as a collection that creates them batch by batch.
    public func fetch<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, batchSize: Int
    ) throws -> FetchResultsCollection<T> {
        try answer(
            descriptor,
            inStore: { request in
                var request = request
                request.fetchBatchSize = batchSize
                return FetchResultsCollection(try context.fetchInBatches(request))
            }, inMemory: { FetchResultsCollection($0) })
    }

    /// Calls a closure with each object of a description. Objects of a batch are released before the next, unless they have changes.
    ///
    /// - Parameters:
    ///   - fetch: The description.
    ///   - batchSize: The number of objects per batch.
    ///   - allowEscapingMutations: Ignored: objects with changes stay in the context until they are saved.
    ///   - block: The closure.
    public func enumerate<T: PersistentModel>(
        _ fetch: FetchDescriptor<T>, batchSize: Int = 5000, allowEscapingMutations: Bool = false, block: (T) throws -> Void
    ) throws {
        for model in try self.fetch(fetch, batchSize: batchSize) { try block(model) }
    }

    /// Answers a description: in the store, or with the objects of a larger request if the store cannot evaluate the predicate or sort.
    private func answer<T: PersistentModel, R>(
        _ descriptor: FetchDescriptor<T>, inStore: (FetchRequest<T>) throws -> R, inMemory: ([T]) throws -> R
    ) throws -> R {
        context.catchUpWithSaves()
        let sorts = descriptor.sortBy.map(\.storeSort)
        let sorted = sorts.allSatisfy { $0 != nil } ? sorts.compactMap(\.self) : nil
        do {
            if sorted != nil { return try inStore(descriptor.request(isFiltered: true, sorted: sorted)) }
            let paths = descriptor.sortBy.filter { $0.storeSort == nil }.compactMap(\.keyPath)
            Log.once(
                "sort \(String(reflecting: T.self)) \(paths)",
                "a sort of \(T.entityName) is made in memory: it is not by a stored property, or not in the order of what is stored"
            )
            return try inMemory(evaluated(descriptor, descriptor.request(isFiltered: true, sorted: nil)) { _ in true })
        } catch let error as FetchError {
            guard let predicate = descriptor.predicate, let part = error.unansweredPart else { throw error }
            Log.once(
                "predicate \(String(reflecting: T.self)) \(predicate.form)",
                "a predicate of \(T.entityName) is evaluated in memory, for each object: the store cannot evaluate \(part)")
            return try inMemory(
                evaluated(descriptor, descriptor.request(isFiltered: false, sorted: sorted)) { model in
                    do { return try predicate.evaluate(model) } catch {
                        throw SwiftDataError.unsupportedPredicate.saying(
                            "cannot evaluate a predicate of \(T.entityName): \(error). Filter the objects in Swift.")
                    }
                })
        }
    }

    /// Returns a new context of the same store.
    private func reader() -> ModelContext? {
        if !isMigrating { return ModelContext(container) }
        return context.persistentStoreCoordinator.map {
            ModelContext(migrating: $0.makeConfinedContext(name: "\(context.name) reader"))
        }
    }

    /// Returns the objects of a description, selected from those of a larger request and sorted in memory.
    private func evaluated<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, _ request: FetchRequest<T>, where isIncluded: (T) throws -> Bool
    ) throws -> [T] {
        guard !descriptor.includePendingChanges, hasChanges, let other = reader() else {
            return descriptor.finish(try context.fetch(request).filter(isIncluded))
        }
        // Objects of this context have unsaved values. Those of another context that reads the same state are as they were saved. A context
        // with unsaved changes does not show newer saves, so the newest state may have objects that this context has not.
        other.context.read(from: context.snapshot)
        return try withExtendedLifetime(other) {
            try other.evaluated(descriptor, request, where: isIncluded).compactMap {
                context.model(for: $0.managedObject.objectID) as? T
            }
        }
    }
}

extension FetchError {
    /// The part of a predicate that the store cannot evaluate; nil for another error.
    fileprivate var unansweredPart: String? {
        switch self {
        case .unsupportedPredicate(let part): part
        case .unknownProperty(_, let property): "a property \(property)"
        default: nil
        }
    }
}

extension FetchError {
    /// Whether the predicate can be evaluated in memory instead.
    var isAnsweredInMemory: Bool { unansweredPart != nil }
}

extension Predicate {
    /// The types of the predicate's parts, and its key paths, without the captured values.
    fileprivate var form: String {
        var paths: [String] = []
        var waiting: [any PredicateExpression] = [expression]
        while let part = waiting.popLast() {
            for (_, value) in Mirror(reflecting: part).children {
                if let path = value as? AnyKeyPath { paths.append("\(path)") }
                if let inner = value as? any PredicateExpression { waiting.append(inner) }
            }
        }
        return "\(String(reflecting: type(of: expression))) \(paths)"
    }
}

extension FetchDescriptor {
    /// Returns the objects in order, without those that offset and limit leave out.
    fileprivate func finish(_ objects: [T]) -> [T] {
        let isInStoreOrder = sortBy.allSatisfy { $0.storeSort != nil }
        let sorted = isInStoreOrder ? objects : sorted(objects)
        return Array(sorted.dropFirst(max(0, fetchOffset ?? 0)).prefix(fetchLimit.map { max(0, $0) } ?? .max))
    }

    /// Sorts by the descriptors. Objects with equal values keep their order.
    private func sorted(_ objects: [T]) -> [T] {
        // Computed once per object.
        let keys = sortBy.map { descriptor in descriptor.keys(of: objects) }
        let order = objects.indices.sorted { a, b in
            for (descriptor, keys) in zip(sortBy, keys) {
                let result = descriptor.order(a, b, of: objects, keys: keys)
                if result != .orderedSame { return result == .orderedAscending }
            }
            return a < b
        }
        return order.map { objects[$0] }
    }
}
