internal import Platform
import StoreInterface
import StoreModel
import Tracing

/// Batch operations: changes of many objects in the store, without creating objects in a context (S137).
///
/// Each save of a batch goes through the store's writer, in order with other saves, and sees the saves before it.
/// It is checked like any save (values, rules of the properties that it writes, unique constraints, delete rules) and recorded in the history. Contexts merge it like any save.
/// Lifecycle hooks are not called. Batches run off the calling executor.
extension PersistentStoreCoordinator {
    /// Sets properties of all objects that a request selects, in one atomic save.
    ///
    /// References are set by key (`.reference(id.key)`), or by a unique attribute (`["album.title": "Live"]`), and must refer to existing
    /// objects. A one-to-one relationship changes at both ends, and the request must select at most one object, unless the value is null.
    /// Needs about 150 bytes of memory per object until it is saved.
    ///
    /// - Throws: ``FetchError``, ``BatchError``, ``SaveError``, `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchUpdate(
        _ request: EntityFetchRequest, set values: [String: Value], options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchUpdate(
            request.storeQuery(in: requestScope), entity: model.entity(named: request.entityName), values: values,
            options: options)
    }

    /// Sets properties of all objects that a request selects, in one atomic save.
    ///
    /// References are set by key (`.reference(id.key)`) and must refer to existing objects. A one-to-one relationship changes at both
    /// ends, and the request must select at most one object, unless the value is null.
    /// Needs about 150 bytes of memory per object until it is saved.
    ///
    /// - Throws: ``FetchError``, ``BatchError``, ``SaveError``, `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchUpdate<M: PersistentModel>(
        _ request: FetchRequest<M>, set values: [String: Value], options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchUpdate(
            request.storeQuery(in: requestScope), entity: model.entity(for: M.self), values: values, options: options)
    }

    /// Deletes all objects that a request selects, following delete rules, in one atomic save.
    ///
    /// - Throws: ``FetchError``, ``SaveError/deleteDenied(object:relationship:blocking:)``, `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchDelete(
        _ request: EntityFetchRequest, options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchDelete(request.storeQuery(in: requestScope), options)
    }

    /// Deletes all objects that a request selects, following delete rules, in one atomic save.
    ///
    /// - Throws: ``FetchError``, ``SaveError/deleteDenied(object:relationship:blocking:)``, `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchDelete<M: PersistentModel>(
        _ request: FetchRequest<M>, options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchDelete(request.storeQuery(in: requestScope), options)
    }

    /// Deletes all entries of a collection in a range of keys, in one atomic save. The range comes from ``KeyedRange/reference``.
    ///
    /// Removes the entries that the file has when the deletion's turn comes, and creates nothing in a context. Unsaved changes of contexts
    /// stay, and conflict with the deletion when they are saved (S192). Reads the keys and no values. O(entries). An empty range changes
    /// nothing.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the file has other types than the range;
    ///   ``CollectionError/unavailable(collection:)``; `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchDelete(
        _ range: KeyedRangeReference, options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        guard let entity = capabilities.keyedValues else { throw CollectionError.unavailable(collection: range.name) }
        let schema = contextModel.storeSchema
        return try await result("strata.batch.delete", entity: entity, name: range.name, options: options) { state in
            try range.deletions(of: entity, over: state.view, schema: schema)
        }
    }

    // MARK: Through the writer

    /// Saves rows of an import, in a task that the cancellation of the import does not end.
    ///
    /// - Precondition: The caller has entered the writer's suspension for the save, which leaves it.
    func save(_ chunk: some ImportChunk, _ options: BatchOptions) -> Task<ChangeSet, any Error> {
        Task {
            defer { writer.suspension.leave() }
            var chunk = chunk
            // On the writer's queue, because this may wait for the disk.
            chunk.keys = try await writer.onQueue { [entity = chunk.entityNumber, count = chunk.keyCount] writer in
                writer.takeKeys(entity, atLeast: count)
            }
            let schema = contextModel.storeSchema
            do {
                let outcome = try await submit(options) { [chunk] state in try chunk.layer(over: state, schema: schema) }
                giveBack(chunk, outcome.change(of: chunk.entityNumber)?.insertedKeys.count ?? 0)
                return outcome
            } catch {
                // After an error of the store, the rows may be in the file nevertheless.
                if !(error is StoreError) { giveBack(chunk, 0) }
                throw error
            }
        }
    }

    /// Returns unused keys. Keys are used in order, so the unused keys are the last.
    private func giveBack(_ chunk: some ImportChunk, _ used: Int) {
        var used = used
        let rests = chunk.keys.map { range in
            let taken = min(used, range.count)
            used -= taken
            return range.dropFirst(taken)
        }
        // The range that was given back last is handed out first.
        for rest in rests.reversed() { writer.keys.giveBack(rest, chunk.entityNumber) }
    }

    private func batchUpdate(
        _ query: StoreQuery, entity: Entity?, values: [String: Value], options: BatchOptions
    ) async throws -> BatchResult {
        let entity = entity ?? contextModel.entities[query.entity]
        // In an order, because two names can set one relationship: the path to a unique attribute comes after the name, and applies.
        let changes = try values.sorted { $0.key < $1.key }.map { name, value in
            let property = try BatchColumn(name, of: entity, in: model)
            guard entity.columns[property.column].derivation == nil else {
                throw BatchError.derived(entity: entity.name, property: name)
            }
            return (property: property, value: try property.checked(value))
        }
        let schema = contextModel.storeSchema
        return try await result("strata.batch.update", entity: query.entity, options: options) { state in
            let layer = Layer(schema: schema)
            let columns = try changes.map { (column: $0.property.column, value: try $0.property.resolved($0.value, in: state)) }
            let keys = try state.view.keys(query)
            for (position, change) in changes.enumerated() where keys.count > 1 && change.property.isPair && !change.value.isNull
            {
                let column = change.property.column
                // Of two names of one relationship, the last one applies.
                if columns.lastIndex(where: { $0.column == column }) != position { continue }
                let name = entity.columns[column].name
                throw BatchError.sharedPartner(entity: entity.name, property: name, objects: keys.count)
            }
            var ends = ListEnds()
            for key in keys {
                let row = Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
                for change in columns { row[change.column] = change.value }
                try entity.appendToLists(row, key: key, over: state.view, ends: &ends)
                layer.put(row, entity: entity.number, key: key)
            }
            return layer
        }
    }

    private func batchDelete(_ query: StoreQuery, _ options: BatchOptions) async throws -> BatchResult {
        try await result("strata.batch.delete", entity: query.entity, options: options, deletions(query))
    }

    /// Deletes objects as ``batchDelete(_:options:)-(EntityFetchRequest,_)`` does, and blocks until other contexts can see it.
    @discardableResult
    package func batchDeleteNow(_ request: EntityFetchRequest, options: BatchOptions = BatchOptions()) throws -> BatchResult {
        try batchDeleteNow(request.storeQuery(in: requestScope), options)
    }

    /// Deletes objects as ``batchDelete(_:options:)-(FetchRequest<M>,_)`` does, and blocks until other contexts can see it.
    @discardableResult
    package func batchDeleteNow<M: PersistentModel>(
        _ request: FetchRequest<M>, options: BatchOptions = BatchOptions()
    ) throws -> BatchResult {
        try batchDeleteNow(request.storeQuery(in: requestScope), options)
    }

    private func batchDeleteNow(_ query: StoreQuery, _ options: BatchOptions) throws -> BatchResult {
        try checkOpen()
        return try writer.suspension.whileOpen(store) {
            var result = BatchResult(entity: query.entity, store: store.identity)
            result.add(
                try instruments.spanNow("strata.batch.delete", attributes: spanAttributes(query.entity)) {
                    try writer.submitAndWait(request(options, deletions(query)), from: .batch).changes
                })
            return result
        }
    }

    /// Returns a closure that makes the layer of a batch deletion. The check of every save follows the delete rules.
    private func deletions(_ query: StoreQuery) -> @Sendable (StoreState) throws -> Layer {
        let schema = contextModel.storeSchema
        let columnCount = contextModel.entities[query.entity].columns.count
        return { state in
            let layer = Layer(schema: schema)
            for key in try state.view.keys(query) {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: columnCount), entity: query.entity, key: key)
            }
            return layer
        }
    }

    /// - Parameters:
    ///   - span: The name of the span.
    ///   - entity: The entity whose objects the result counts.
    ///   - name: The name of the entity in the span; nil for its own name.
    ///   - options: Durability and author.
    ///   - make: A closure that creates the layer.
    private func result(
        _ span: String, entity: EntityIndex, name: String? = nil, options: BatchOptions,
        _ make: @escaping @Sendable (StoreState) throws -> Layer
    ) async throws -> BatchResult {
        try await writer.suspension.enter(for: self)
        defer { writer.suspension.leave() }
        var result = BatchResult(entity: entity, store: store.identity)
        result.add(
            try await instruments.span(span, attributes: spanAttributes(entity, name: name)) {
                try await submit(options, make)
            })
        return result
    }

    private func submit(
        _ options: BatchOptions, _ make: @escaping @Sendable (StoreState) throws -> Layer
    ) async throws -> ChangeSet {
        try checkOpen()
        let request = request(options, make)
        // No context is the source, so all contexts are notified, and other coordinators on the file too.
        let changes: ChangeSet = try await withCompletion { completion in
            writer.submit(request, from: .batch) { completion($0.map(\.changes)) }
        }
        if options.durability == .durable { try await writer.repeatFailedSync() }
        return changes
    }

    /// Returns a save of a batch, with its report, which begins now.
    private func request(_ options: BatchOptions, _ make: @escaping @Sendable (StoreState) throws -> Layer) -> SaveRequest {
        var request = SaveRequest(
            layers: [], base: writer.state, policy: .error, durability: options.durability,
            metadata: SaveMetadata(author: options.author, contextName: "batch"), preserved: capabilities.preserved,
            rules: capabilities.rules, validation: capabilities.validation, make: make)
        request.trace = instruments.map { SaveTrace($0, metadata: request.metadata, durability: request.durability) }
        return request
    }

    private func spanAttributes(_ entity: EntityIndex, name: String? = nil) -> KeyValuePairs<String, SpanAttribute> {
        ["strata.entity": "\(name ?? contextModel.entities[entity].name)"]
    }
}

extension StoreWriter {
    /// Returns at least this number of unused keys.
    fileprivate func takeKeys(_ entity: EntityIndex, atLeast count: Int) -> [Range<ObjectKey>] {
        var ranges: [Range<ObjectKey>] = []
        var total = 0
        while total < count {
            let range = takeKeys(entity)
            ranges.append(range)
            total += range.count
        }
        return ranges
    }
}
