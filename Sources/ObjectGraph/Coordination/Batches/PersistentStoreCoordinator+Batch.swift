import StoreInterface

/// Batch operations: changes of many objects in the store, without creating objects in a context (S137).
///
/// Each save of a batch goes through the store's writer, in order with other saves, and sees the saves before it.
/// It is checked like any save (values, unique constraints, delete rules) and recorded in the history. Contexts merge it like any save.
/// Lifecycle hooks are not called. Batches run off the calling executor.
extension PersistentStoreCoordinator {
    /// Sets properties of all objects that a request selects, in one atomic save.
    ///
    /// References are set by key (`.reference(id.key)`) and must refer to existing objects. One-to-one relationships are refused,
    /// because their other end would not change. Needs about 150 bytes of memory per object until it is saved.
    ///
    /// - Throws: ``FetchError``, ``BatchError``, ``SaveError``, `StoreError`. Then nothing is written.
    @discardableResult
    public func batchUpdate(
        _ request: EntityFetchRequest, set values: [String: Value], options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchUpdate(request.storeQuery(in: requestScope), values, options)
    }

    /// Sets properties of all objects that a request selects, in one atomic save.
    ///
    /// References are set by key (`.reference(id.key)`) and must refer to existing objects. One-to-one relationships are refused.
    /// Needs about 150 bytes of memory per object until it is saved.
    ///
    /// - Throws: ``FetchError``, ``BatchError``, ``SaveError``, `StoreError`. Then nothing is written.
    @discardableResult
    public func batchUpdate<M: PersistentModel>(
        _ request: FetchRequest<M>, set values: [String: Value], options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchUpdate(request.storeQuery(in: requestScope), values, options)
    }

    /// Deletes all objects that a request selects, following delete rules, in one atomic save.
    ///
    /// - Throws: ``FetchError``, ``SaveError/deleteDenied(object:relationship:blocking:)``, `StoreError`. Then nothing is written.
    @discardableResult
    public func batchDelete(
        _ request: EntityFetchRequest, options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchDelete(request.storeQuery(in: requestScope), options)
    }

    /// Deletes all objects that a request selects, following delete rules, in one atomic save.
    ///
    /// - Throws: ``FetchError``, ``SaveError/deleteDenied(object:relationship:blocking:)``, `StoreError`. Then nothing is written.
    @discardableResult
    public func batchDelete<M: PersistentModel>(
        _ request: FetchRequest<M>, options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        try await batchDelete(request.storeQuery(in: requestScope), options)
    }

    /// Imports rows with one value per named property. Other properties get their default values.
    ///
    /// Each save contains ``BatchOptions/rowsPerSave`` rows. The next rows are read from the sequence while a save is written, off the
    /// caller's executor. Rows may come in any order. References are set by key, as in `batchUpdate`.
    /// With ``UpsertRule/update(on:)``, a row updates the object that has the same values. Of several such rows, the last one wins.
    ///
    /// - Throws: ``FetchError``, ``BatchError``: `importStopped` contains the number of rows that were saved before the error.
    @discardableResult
    public func insert<Rows: Sequence & Sendable>(
        into entityName: String, _ properties: [String], rows: Rows, rule: UpsertRule = .insert,
        options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult where Rows.Element == [Value] {
        try await importRows(into: entityName, properties, rows: rows, rule: rule, options: options)
    }

    /// Imports rows that must not leave the caller's isolation, such as a lazy sequence whose closure belongs to the main actor.
    ///
    /// The rows are read on the caller's executor, between the saves. Otherwise this equals the import of `Sendable` rows.
    /// To keep the main actor free, pass `Sendable` rows, or call this method from a background task.
    ///
    /// - Throws: ``FetchError``, ``BatchError``: `importStopped` contains the number of rows that were saved before the error.
    @_disfavoredOverload @discardableResult
    public nonisolated(nonsending) func insert<Rows: Sequence>(
        into entityName: String, _ properties: [String], rows: Rows, rule: UpsertRule = .insert,
        options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult where Rows.Element == [Value] {
        try await importRows(into: entityName, properties, rows: rows, rule: rule, options: options)
    }

    /// Imports rows, which are read on the caller's executor.
    private nonisolated(nonsending) func importRows<Rows: Sequence>(
        into entityName: String, _ properties: [String], rows: Rows, rule: UpsertRule, options: BatchOptions
    ) async throws -> BatchResult where Rows.Element == [Value] {
        guard let entity = model.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        let empty = try BatchInsertion(entity, properties: properties, rule: rule, in: model)
        var result = BatchResult(entity: entity.number, store: store.identity)
        var saved = 0
        var number = 0
        // Only one save runs at a time. Of two submitted together, the second could pass the first, or follow a save that failed.
        var running: (task: Task<ChangeSet, any Error>, rows: Int)?
        do {
            var rows = rows.makeIterator()
            while true {
                var chunk = empty
                chunk.rows.reserveCapacity(min(options.rowsPerSave, 1 << 16))
                while chunk.rows.count < max(options.rowsPerSave, 1), let row = rows.next() {
                    try Task.checkCancellation()
                    try chunk.append(row, number: number)
                    number += 1
                }
                if let before = running {
                    running = nil
                    result.add(try await before.task.value)
                    saved += before.rows
                }
                if chunk.rows.isEmpty { return result }
                running = (task: save(chunk, options), rows: chunk.rows.count)
            }
        } catch {
            // Wait for a save that runs while a row is invalid, because the error must contain the number of saved rows.
            if let last = running, (try? await last.task.value) != nil { saved += last.rows }
            if saved == 0 { throw error }
            throw BatchError.importStopped(savedRows: saved, error: error)
        }
    }

    // MARK: Through the writer

    private func save(_ chunk: BatchInsertion, _ options: BatchOptions) -> Task<ChangeSet, any Error> {
        Task {
            var chunk = chunk
            // On the writer's queue, because this may wait for the disk.
            chunk.keys = try await writer.onQueue { [entity = chunk.entity.number, count = chunk.rows.count] writer in
                writer.takeKeys(entity, atLeast: count)
            }
            let schema = contextModel.storeSchema
            let outcome = try await submit(options) { [chunk] state in try chunk.layer(over: state, schema: schema) }
            let used = outcome.change(of: chunk.entity.number)?.insertedKeys.count ?? 0
            giveBack(chunk, used)
            return outcome
        }
    }

    /// Returns unused keys. Keys are used in order, so the unused keys are the last.
    private func giveBack(_ chunk: BatchInsertion, _ used: Int) {
        var used = used
        for range in chunk.keys {
            let taken = min(used, range.count)
            used -= taken
            writer.keys.giveBack(range.dropFirst(taken), chunk.entity.number)
        }
    }

    private func batchUpdate(
        _ query: StoreQuery, _ values: [String: Value], _ options: BatchOptions
    ) async throws -> BatchResult {
        let entity = contextModel.entities[query.entity]
        var columns: [Int: Value] = [:]
        for (name, value) in values {
            let column = try entity.batchColumn(named: name, in: model)
            guard entity.columns[column].accepts(value) else {
                throw BatchError.wrongValue(entity: entity.name, property: name, value: value)
            }
            columns[column] = entity.columns[column].type.stored(value)
        }
        let schema = contextModel.storeSchema
        return try await result(query.entity, options) { [columns] state in
            let layer = Layer(schema: schema)
            for key in try state.view.keys(query) {
                let row = Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
                for (column, value) in columns { row[column] = value }
                layer.put(row, entity: entity.number, key: key)
            }
            return layer
        }
    }

    private func batchDelete(_ query: StoreQuery, _ options: BatchOptions) async throws -> BatchResult {
        let schema = contextModel.storeSchema
        let columnCount = contextModel.entities[query.entity].columns.count
        // The check of every save follows the delete rules.
        return try await result(query.entity, options) { state in
            let layer = Layer(schema: schema)
            for key in try state.view.keys(query) {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: columnCount), entity: query.entity, key: key)
            }
            return layer
        }
    }

    private func result(
        _ entity: Int, _ options: BatchOptions, _ make: @escaping @Sendable (StoreState) throws -> Layer
    ) async throws -> BatchResult {
        var result = BatchResult(entity: entity, store: store.identity)
        result.add(try await submit(options, make))
        return result
    }

    private func submit(
        _ options: BatchOptions, _ make: @escaping @Sendable (StoreState) throws -> Layer
    ) async throws -> ChangeSet {
        let request = SaveRequest(
            layers: [], base: writer.state, watched: [], policy: .error, durability: options.durability,
            origin: SaveOrigin(author: options.author, contextName: "batch"), preserved: traits.preserved,
            rules: traits.rules, make: make)
        try checkOpen()
        return try await withCheckedThrowingContinuation { continuation in
            // No context is the origin, so all contexts are notified, and other coordinators on the file too.
            writer.submit(request, origin: .max) { result in continuation.resume(with: result.map(\.changes)) }
        }
    }
}

extension StoreWriter {
    /// Returns at least this number of unused keys.
    fileprivate func takeKeys(_ entity: Int, atLeast count: Int) -> [Range<ObjectKey>] {
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
