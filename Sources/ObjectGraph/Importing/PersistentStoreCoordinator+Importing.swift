import StoreInterface
import StoreModel

/// Imports of rows in the store, without creating objects (S137).
///
/// A cancelled task stops its import between two saves, also while the store is suspended: each save is whole or absent. Rows of
/// earlier saves stay, and the error ``BatchError/importStopped(savedRows:error:)`` has their number. With no row saved, the import
/// throws `CancellationError`.
extension PersistentStoreCoordinator {
    /// Imports rows with one value per named property. Other properties of new objects get the initial values of the class, evaluated per
    /// row when the import reads it, or else their default values. Initial values of relationships are not used.
    ///
    /// Each save contains ``BatchOptions/rowsPerSave`` rows. The next rows are read from the sequence while a save is written, off the
    /// caller's executor. Rows may come in any order. References are set by key, as in `batchUpdate`, or by a unique attribute of the
    /// destination: with the property `"album.title"`, rows have titles of albums. These exist already, or are earlier rows of the import.
    /// With ``UpsertRule/update(on:)``, a row updates the object that has the same values. Of several such rows, the last one wins.
    ///
    /// - Parameters:
    ///   - entityName: The entity of the rows.
    ///   - properties: The names of the properties, in the order of a row's values.
    ///   - rows: The rows, which the import iterates once.
    ///   - rule: Whether rows may update objects.
    ///   - options: Durability, rows per save, author, and the contents of the result.
    ///   - progress: A closure called after each save, on any thread.
    /// - Throws: ``FetchError``, ``BatchError``: `importStopped` contains the number of rows that were saved before the error.
    @discardableResult
    public func insert<Rows: Sequence & Sendable>(
        into entityName: String, _ properties: [String], rows: Rows, rule: UpsertRule = .insert,
        options: BatchOptions = BatchOptions(), progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Rows.Element == [Value] {
        var report = BatchReport(rows, progress)
        var rows = rows.makeIterator()
        return try await importRows(
            entity(named: entityName), properties: properties, rule: rule, options: options, report: &report
        ) { rows.next() }
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
        options: BatchOptions = BatchOptions(), progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Rows.Element == [Value] {
        var report = BatchReport(rows, progress)
        var rows = rows.makeIterator()
        return try await importRows(
            entity(named: entityName), properties: properties, rule: rule, options: options, report: &report
        ) { rows.next() }
    }

    /// Imports Swift values, such as decoded JSON, as objects of a model type. Their stored properties set the properties of the same
    /// names, as in ``ManagedObjectContext/insert(contentsOf:as:)``. To-many relationships are refused with
    /// ``BatchError/toManyRelationship(entity:property:)``.
    ///
    /// The first value decides which properties are imported. nil for a property that is not optional gives its initial value. A rule that
    /// updates objects sets them to it too; ``ManagedObjectContext/upsert(contentsOf:unique:)`` keeps what they have.
    ///
    /// ```swift
    /// try await coordinator.insert(contentsOf: songs, as: Track.self, rule: .update(on: ["isrc"]))
    /// ```
    /// - Parameters:
    ///   - values: The values, which the import iterates once.
    ///   - type: The model type of the objects.
    ///   - rule: Whether values may update objects.
    ///   - options: Durability, rows per save, author, and the contents of the result.
    ///   - progress: A closure called after each save, on any thread.
    /// - Throws: ``FetchError``, ``BatchError``: `importStopped` contains the number of rows that were saved before the error.
    @discardableResult
    public func insert<M: PersistentModel, Values: Sequence & Sendable>(
        contentsOf values: Values, as type: M.Type, rule: UpsertRule = .insert, options: BatchOptions = BatchOptions(),
        progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Values.Element: Decodable {
        guard let entity = model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        return try await importValues(values, entity: entity, rule: rule, options: options, progress)
    }

    /// Imports Swift values as objects of an entity by name. See ``insert(contentsOf:as:rule:options:progress:)``.
    @discardableResult
    public func insert<Values: Sequence & Sendable>(
        contentsOf values: Values, into entityName: String, rule: UpsertRule = .insert,
        options: BatchOptions = BatchOptions(), progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Values.Element: Decodable {
        try await importValues(values, entity: entity(named: entityName), rule: rule, options: options, progress)
    }

    // MARK: Steps

    private func entity(named name: String) throws -> Entity {
        guard let entity = model.entity(named: name) else { throw FetchError.unknownEntity(name) }
        return entity
    }

    private func importValues<Values: Sequence & Sendable>(
        _ values: Values, entity: Entity, rule: UpsertRule, options: BatchOptions,
        _ progress: @escaping @Sendable (BatchProgress) -> Void
    ) async throws -> BatchResult {
        var reader = ImportedRows(entity, in: model)
        var report = BatchReport(values, progress)
        var values = values.makeIterator()
        guard let first = values.next() else { return BatchResult(entity: entity.number, store: store.identity) }
        var next: [Value]? = try reader.firstRow(of: first)
        return try await importRows(entity, properties: reader.properties, rule: rule, options: options, report: &report) {
            defer { next = nil }
            return try next ?? values.next().map { try reader.row(of: $0) }
        }
    }

    /// Imports rows, which are read on the caller's executor.
    private func importRows(
        _ entity: Entity, properties: [String], rule: UpsertRule, options: BatchOptions, report: inout BatchReport,
        isolation: isolated (any Actor)? = #isolation, nextRow: () throws -> [Value]?
    ) async throws -> BatchResult {
        try await instruments.span("strata.batch.insert", attributes: ["strata.entity": "\(entity.name)"]) {
            // Makes the closure run on the caller's executor. Without it, the rows would be read on another one.
            _ = isolation
            return try await saveRows(
                BatchInsertion(entity, properties: properties, rule: rule, in: model), options: options, report: &report,
                nextRow: nextRow)
        }
    }

    /// Saves rows, which are read on the caller's executor, some per save.
    ///
    /// - Parameters:
    ///   - empty: A save without rows, of which each save begins as a copy.
    ///   - options: Durability, rows per save and author.
    ///   - report: The report of the saved rows.
    ///   - nextRow: A closure that returns the next row, or nil at the end.
    nonisolated(nonsending) func saveRows<Chunk: ImportChunk>(
        _ empty: Chunk, options: BatchOptions, report: inout BatchReport, nextRow: () throws -> Chunk.Element?
    ) async throws -> BatchResult {
        var result = BatchResult(entity: empty.entityNumber, store: store.identity)
        var number = 0
        // Only one save runs at a time. Of two submitted together, the second could pass the first, or follow a save that failed.
        var running: (task: Task<ChangeSet, any Error>, rows: Int)?
        do {
            while true {
                var chunk = empty
                chunk.reserveCapacity(min(options.rowsPerSave, 1 << 16))
                while chunk.count < max(options.rowsPerSave, 1), let row = try nextRow() {
                    try Task.checkCancellation()
                    try chunk.append(row, number: number)
                    number += 1
                }
                if let before = running {
                    running = nil
                    result.add(try await finish(before, &report), hiding: empty.hiddenObject)
                }
                if chunk.count == 0 { return result }
                try Task.checkCancellation()
                try await writer.suspension.enterUnlessCancelled(for: self)
                running = (task: save(chunk, options), rows: chunk.count)
            }
        } catch let latest {
            var error = latest
            // Wait for a save that runs while a row is invalid, because the error must contain the number of saved rows. If that save fails,
            // its error came first.
            if let last = running {
                do { _ = try await finish(last, &report) } catch let earlier { error = earlier }
            }
            if report.savedRows == 0 { throw error }
            throw BatchError.importStopped(savedRows: report.savedRows, error: error)
        }
    }

    /// Waits for a save, and counts its rows. They also count if the save is visible and not on disk: importing them again would repeat them.
    private nonisolated(nonsending) func finish(
        _ save: (task: Task<ChangeSet, any Error>, rows: Int), _ report: inout BatchReport
    ) async throws -> ChangeSet {
        do {
            let changes = try await save.task.value
            report.add(save.rows)
            return changes
        } catch let error as StoreError where error.code == .notOnDisk {
            report.add(save.rows)
            throw error
        }
    }
}

/// The rows that an import has saved, reported to its caller.
struct BatchReport {
    private(set) var savedRows = 0
    private let totalRows: Int?
    private let progress: @Sendable (BatchProgress) -> Void

    init<Rows: Sequence>(_ rows: Rows, _ progress: @escaping @Sendable (BatchProgress) -> Void) {
        // Counting a lazy collection without random access would run the program's closures, which the import runs once.
        let isCounted = rows is any RandomAccessCollection || !(rows is any LazySequenceProtocol)
        totalRows = isCounted ? (rows as? any Collection)?.count : nil
        self.progress = progress
    }

    mutating func add(_ rows: Int) {
        savedRows += rows
        progress(BatchProgress(savedRows: savedRows, totalRows: totalRows))
    }
}

/// Converts Swift values to rows that have the properties of the first value.
private struct ImportedRows {
    private(set) var properties: [String] = []
    private var fields: ImportedFields
    private var positions: [String: Int] = [:]
    /// The columns of attributes, by position in rows.
    private var columns: [Int: ColumnIndex] = [:]
    private let initialValues: InitialValues?

    init(_ entity: Entity, in model: Model) {
        fields = ImportedFields(entity, in: model)
        initialValues = InitialValues(entity, in: model)
    }

    mutating func firstRow(of value: Any) throws -> [Value] {
        for name in ImportedFields.names(of: value) {
            switch try fields.target(name) {
            case .attribute(let column):
                columns[properties.count] = column
                properties.append(name)
            case .related(let relationship, let unique):
                guard case .toOne = relationship.kind else {
                    throw BatchError.toManyRelationship(entity: fields.entity.name, property: name)
                }
                properties.append("\(name).\(unique.definition.name)")
            }
            positions[name] = properties.count - 1
        }
        return try row(of: value)
    }

    mutating func row(of value: Any) throws -> [Value] {
        var row: [Value] = Array(repeating: .null, count: properties.count)
        let found = try fields.fields(of: value)
        if found.count < row.count {
            let values = initialValues?.row() ?? fields.entity.defaults
            for (position, column) in columns { row[position] = values[column] }
        }
        for field in found {
            guard let position = positions[field.name] else {
                throw FetchError.unknownProperty(entity: fields.entity.name, property: "\(field.name) in the first value")
            }
            row[position] = field.values.first ?? .null
        }
        return row
    }
}
