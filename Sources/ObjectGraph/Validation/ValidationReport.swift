import StoreInterface
import StoreModel

/// The stored objects that break rules of their properties.
///
/// A save validates only the objects that it changes. Rules are no part of the file, so objects that were saved before a rule was added or
/// tightened stay as they are. A report finds them: after opening a file, or in a stage of a migration.
///
/// ```swift
/// let report = try await container.coordinator.validationReport()
/// if !report.isValid { print(report) }
/// ```
public struct ValidationReport: Sendable {
    /// The number of objects of entities with rules, all of which were checked.
    public internal(set) var checkedCount = 0
    /// The number of objects that break a rule.
    public internal(set) var invalidCount = 0
    /// The first violations, by entity and object.
    public private(set) var violations: [RuleViolation] = []
    /// The number of violations, including those that are not listed.
    public private(set) var violationCount = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// A Boolean value that indicates whether every object follows the rules.
    public var isValid: Bool { violationCount == 0 }

    /// Throws the violations as the error of a save.
    ///
    /// - Throws: ``SaveError/validation(_:)`` unless the report is valid.
    public func requireValid() throws {
        if isValid { return }
        var errors = ValidationErrors()
        for violation in violations { errors.append(violation) }
        errors.countUnlisted(violationCount - violations.count)
        throw SaveError.validation(errors)
    }

    mutating func append(_ violation: RuleViolation) {
        violationCount += 1
        if violations.count < limit { violations.append(violation) }
    }
}

extension ValidationReport: CustomStringConvertible {
    /// The numbers of objects, and the listed violations, as one line.
    public var description: String {
        let head = "\(invalidCount) of \(checkedCount) objects break rules"
        if isValid { return head }
        let more = violationCount > violations.count ? ["and \(violationCount - violations.count) more"] : []
        return "\(head): " + (violations.map(\.description) + more).joined(separator: "; ")
    }
}

extension ManagedObjectContext {
    /// Checks the rules of all objects that the context shows, with its unsaved changes. Hooks are not called.
    ///
    /// Reads every object of the entities with rules, page by page, and blocks the context's executor. In a migration, call it in the
    /// closure `didMigrate` of a custom stage to repair objects or to refuse the migration:
    ///
    /// ```swift
    /// let stage = MigrationStage.custom(
    ///     from: models.v1, to: models.v2,
    ///     didMigrate: { context in
    ///         for violation in try context.validationReport().violations where violation.property == "title" {
    ///             guard let id = violation.objectID else { continue }
    ///             try context.existingObject(with: id)["title"] = "untitled"
    ///         }
    ///         try context.validationReport().requireValid()
    ///     })
    /// ```
    /// - Parameter limit: The number of violations to list. The report counts all of them.
    public func validationReport(limit: Int = 100) throws -> ValidationReport {
        checkIsolation()
        prepareRequest()
        return try using {
            try ValidationRules.report(capabilities.validation, in: layerStack.view, store: storeIdentity, limit: limit) {}
        }
    }
}

extension PersistentStoreCoordinator {
    /// Checks the rules of all stored objects on a background queue, in one snapshot of the newest saves. Hooks are not called.
    ///
    /// Reads every object of the entities with rules, page by page. Reads and saves continue. Cancelling the task stops the check.
    ///
    /// - Parameter limit: The number of violations to list. The report counts all of them.
    /// - Throws: `StoreError` if the store cannot be read, `CancellationError`.
    public func validationReport(limit: Int = 100) async throws -> ValidationReport {
        try checkOpen()
        let snapshot = try snapshot(owner: "a validation report")
        let (rules, store) = (capabilities.validation, store.identity)
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await offExecutor {
                try ValidationRules.report(rules, in: snapshot.state.view, store: store, limit: limit, cancellation.check)
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}

extension ValidationRules {
    /// - Parameter willCheckPage: Called before each page. An error that it throws ends the check.
    fileprivate static func report(
        _ rules: ValidationRules?, in view: LayeredView, store: StoreIdentity, limit: Int, _ willCheckPage: () throws -> Void
    ) throws -> ValidationReport {
        var report = ValidationReport(limit: limit)
        guard let rules else { return report }
        var reader = PagedReader(view)
        for (entity, entityRules) in rules.entities.enumerated(as: EntityIndex.self) {
            guard let entityRules else { continue }
            for number in try view.pageNumbers(entity) {
                try willCheckPage()
                for slot in 0..<PageAddress.slots {
                    let key = PageAddress.key(page: number, slot: slot)
                    guard try view.exists(entity, key) else { continue }
                    let before = report.violationCount
                    let id = ObjectID(store: store, entity: entity, key: key)
                    try check(entityRules.columns, row: nil, other: { try reader.value(entity, key: key, column: $0) }) {
                        rule, value in
                        let violation = rule.violation(value, entity: entityRules.entity, id: id)
                        if let violation { report.append(violation) }
                    }
                    try rules.checkCounts(of: entity, key: key, in: view, store: store) { report.append($0) }
                    report.checkedCount += 1
                    if report.violationCount > before { report.invalidCount += 1 }
                }
            }
        }
        return report
    }
}

extension LayeredView {
    /// Returns the numbers of the pages that may have an object of the entity, ascending.
    fileprivate func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] {
        let numbers = try base.pageNumbers(entity)
        guard touches(entity: entity) else { return numbers }
        return layers.reduce(into: Set(numbers)) { $0.formUnion(($1.entity(entity)?.pages ?? [:]).keys) }.sorted()
    }
}
