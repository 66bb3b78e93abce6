import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Rules that are added or tightened: saved objects stay as they are, and a report names those that break the rules (S061).
@Suite struct ValidationReportTests {
    private static func fill(_ container: PersistentContainer) async throws {
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            for number in 0..<200 {
                // Every second title is too long for the rule, and every tenth album has no tracks.
                context.makeAlbum(number.isMultiple(of: 2) ? "short" : "a long title \(number)", tracks: number % 10)
            }
        }
        try await worker.save()
    }

    /// Among 10 albums, 5 titles are too long, and the numbers of tracks 0 and 4 to 9 break the rule. One album breaks no rule.
    private static let violations = 100 + 200 / 10 * 7
    private static let invalid = 200 / 10 * (5 + 4)

    @Test(arguments: StoreKind.allCases)
    func `S061: opening with tighter rules changes nothing, and a report names the objects that break them`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let lax = try await bed.container(model: Shelf.lax)
        try await Self.fill(lax)
        #expect(try await lax.coordinator.validationReport().checkedCount == 0, "the model has no rules")
        let container = try await bed.container(model: Shelf.model)
        let report = try await container.coordinator.validationReport()
        #expect(report.checkedCount == 200)
        #expect(report.violationCount == Self.violations)
        #expect(report.invalidCount == Self.invalid)
        #expect(report.violations.count == 100)
        #expect(!report.isValid)
        #expect("\(report)".hasPrefix("\(Self.invalid) of 200 objects break rules: Album(id:"))
        #expect("\(report)".hasSuffix("and \(Self.violations - 100) more"))
        let error = #expect(throws: SaveError.self) { try report.requireValid() }
        guard case .validation(let errors)? = error else { return }
        #expect(errors.count == 100 && errors.totalCount == Self.violations)
        let full = try await container.coordinator.validationReport(limit: .max)
        #expect(full.violations.count == Self.violations)
        // A context's report has its unsaved changes.
        let worker = container.newBatchOperationContext()
        try await worker.perform { context in
            for case let id? in full.violations.map(\.objectID) { context.object(with: id)["title"] = "ok" }
            let left = try context.validationReport(limit: .max)
            #expect(Set(left.violations.map(\.property)) == ["tracks"])
            for case let id? in Set(left.violations.map(\.objectID)) { context.delete(context.object(with: id)) }
            try context.validationReport().requireValid()
        }
        try await worker.save()
        #expect(try await container.coordinator.validationReport().checkedCount == 200 / 10 * 3)
        try await lax.close()
        try await container.close()
    }

    private static let files: [StoreKind] = [.lmdb, .sqlite]

    private struct Stages {
        var old = Shelf.make(title: [], hasRules: false, version: .init(1))
        var new = Shelf.make(title: [.length(1...8)], hasRules: false, version: .init(2))

        func open(_ bed: TestBed, _ work: @escaping MigrationStage.Work) async throws -> PersistentContainer {
            try await PersistentContainer(
                model: new, store: bed.description,
                migrationPlan: MigrationPlan([.custom(from: old, to: new, didMigrate: work)]))
        }
    }

    @Test(arguments: files)
    func `S061, S164: a migration reports the objects that break a tighter rule, and repairs or refuses them`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let stages = Stages()
        do {
            let container = try await bed.container(model: stages.old)
            try await Self.fill(container)
            try await container.close()
        }
        try await bed.closed()
        let error = await failure {
            _ = try await stages.open(bed) { try $0.validationReport().requireValid() }
        }
        guard case .validation(let errors)? = error as? SaveError else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(errors.totalCount == 100)
        #expect(errors.ruleViolations.allSatisfy { $0.property == "title" })
        // The file still has its old model.
        do {
            let container = try await bed.container(model: stages.old)
            let count = try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Album")) }
            #expect(count == 200)
            try await container.close()
        }
        try await bed.closed()
        // A repair that breaks the rule again is refused by the save of the stage.
        let wrong = await failure {
            _ = try await stages.open(bed) { context in
                for case let id? in try context.validationReport(limit: 1).violations.map(\.objectID) {
                    context.object(with: id)["title"] = ""
                }
            }
        }
        #expect(Broken.all(in: wrong)?.map(\.property) == ["title"], "\(String(describing: wrong))")
        try await bed.closed()
        let container = try await stages.open(bed) { context in
            for case let id? in try context.validationReport(limit: .max).violations.map(\.objectID) {
                context.object(with: id)["title"] = "cut"
            }
            try context.validationReport().requireValid()
        }
        let report = try await container.coordinator.validationReport()
        #expect(report.isValid && report.checkedCount == 200)
        try await container.close()
    }
}
