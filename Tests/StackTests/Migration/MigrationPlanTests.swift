import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Models of three versions. A name is split, and a number becomes text.
enum People {
    static func model(_ version: SchemaVersion, _ attributes: [AttributeDescription]) throws -> Model {
        try Model([EntityDescription(name: "Person", properties: attributes.map { .attribute($0) })], version: version)
    }

    static func first(_ version: SchemaVersion = .init(1)) throws -> Model {
        try model(version, [.init(name: "name", type: .string), .init(name: "zip", type: .int32)])
    }

    static func second() throws -> Model {
        try model(
            .init(2),
            [
                .init(name: "name", type: .string), .init(name: "given", type: .string), .init(name: "family", type: .string),
                .init(name: "zip", type: .int32),
            ])
    }

    static func third(_ version: SchemaVersion = .init(3)) throws -> Model {
        try model(
            version,
            [
                .init(name: "given", type: .string), .init(name: "family", type: .string, index: .indexed),
                .init(name: "zip", type: .string),
            ])
    }

    static func plan(_ failure: (@Sendable () throws -> Void)? = nil) throws -> MigrationPlan {
        let zips = Mutex<[ObjectID: Value]>([:])
        let shared = Shared(zips)
        return MigrationPlan([
            .custom(
                from: try first(), to: try second(),
                didMigrate: { context in
                    for person in try context.fetch(EntityFetchRequest("Person")) {
                        guard case .string(let name) = person["name"] else { continue }
                        let parts = name.split(separator: " ")
                        person["given"] = .string(String(parts[0]))
                        person["family"] = .string(String(parts[1]))
                    }
                }),
            .custom(
                from: try second(), to: try third(),
                willMigrate: { context in
                    for person in try context.fetch(EntityFetchRequest("Person")) {
                        shared.zips.withLock { $0[person.objectID] = person["zip"] }
                    }
                },
                didMigrate: { context in
                    try failure?()
                    for person in try context.fetch(EntityFetchRequest("Person")) {
                        guard case .int(let zip)? = shared.zips.withLock({ $0[person.objectID] }) else { continue }
                        person["zip"] = .string("D-\(zip)")
                    }
                }),
        ])
    }

    private final class Shared: Sendable {
        let zips: Mutex<[ObjectID: Value]>
        init(_ zips: consuming Mutex<[ObjectID: Value]>) { self.zips = zips }
    }

    static func fill(_ bed: TestBed, _ count: Int, version: SchemaVersion = .init(1)) async throws {
        let container = try await bed.container(model: try first(version))
        let rows = (0..<count).map { [Value.string("G\($0) F\($0 % 10)"), .int(Int64($0))] }
        try await container.coordinator.insert(into: "Person", ["name", "zip"], rows: rows)
        try await container.close()
    }

    /// Whether the store shows the result of the stages, and not the state before.
    static func isMigrated(_ container: PersistentContainer, _ count: Int) async throws -> Bool {
        try await container.newBatchOperationContext().perform { context in
            let people = try context.fetch(EntityFetchRequest("Person"))
            guard people.count == count else { return false }
            return people.enumerated().allSatisfy { number, person in
                person["given"] == .string("G\(number)") && person["family"] == .string("F\(number % 10)")
                    && person["zip"] == .string("D-\(number)")
            }
        }
    }
}

@Suite struct MigrationPlanTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private static func open(_ bed: TestBed, _ plan: MigrationPlan) async throws -> PersistentContainer {
        try await PersistentContainer(model: try People.third(), store: bed.description, migrationPlan: plan)
    }

    private static func leftovers(_ bed: TestBed) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains(".partial-") }
    }

    /// Catches: a store that cannot be opened with a plan, because the process that created it was killed before it removed the temporary
    /// name.
    @Test(arguments: kinds) func `S066: a store with the temporary name of its creation is opened with a plan`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        try await People.fill(bed, 1)
        let left = bed.folder.appendingPathComponent(".\(bed.file.lastPathComponent).new")
        try FileManager.default.linkItem(at: bed.file, to: left)
        try Data().write(to: bed.folder.appendingPathComponent(".\(bed.file.lastPathComponent).making"))
        _ = try await PersistentContainer(model: try People.first(), store: bed.description, migrationPlan: MigrationPlan([]))
        #expect(!FileManager.default.fileExists(atPath: left.path))
    }

    /// Catches: a migration that copies a restored file without its mark, so that tokens and keys of the other branch are taken for its own.
    @Test(arguments: kinds, [false, true])
    func `S168: a backup that is first opened with custom stages is a new incarnation`(
        _ kind: StoreKind, _ isByHand: Bool
    ) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 10)
        let backup = bed.folder.appendingPathComponent("backup")
        var lost: [HistoryToken] = []
        do {
            let container = try await bed.container(model: try People.first())
            try await container.coordinator.backup(to: backup)
            for number in 10..<15 {
                try await container.newBatchOperationContext().perform(andSave: .durable) { context in
                    context.insert("Person")["name"] = .string("G\(number) F")
                }
                lost.append(container.coordinator.currentHistoryToken)
            }
            try await container.close()
        }
        if isByHand {
            try Data(contentsOf: backup).write(to: bed.file)
        } else {
            try await PersistentContainer.restore(bed.description, from: backup)
        }
        let container = try await Self.open(bed, try People.plan())
        #expect(try await People.isMigrated(container, 10))
        let coordinator = container.coordinator
        #expect(coordinator.store.lineage.copies.map(\.start) == [1])
        for token in lost {
            await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) { try await coordinator.history(.init(after: token)) }
        }
        #expect(try await coordinator.verify() == [])
        try await container.close()
    }

    @Test(arguments: kinds) func S164_customStagesRunInOrderWithProgress(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 500)
        let steps = Mutex<[MigrationProgress]>([])
        let container = try await PersistentContainer(
            model: try People.third(), store: bed.description, migrationPlan: try People.plan(),
            progress: { step in steps.withLock { $0.append(step) } })
        #expect(try await People.isMigrated(container, 500))
        let seen = steps.withLock { $0 }
        #expect(seen.map(\.completed) == seen.map(\.completed).sorted())
        #expect(seen.last?.completed == seen.last?.total)
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
        #expect(try Self.leftovers(bed) == [])
        // A new file needs no migration, and a migrated file needs no second one.
        let fresh = try TestBed(kind)
        _ = try await Self.open(fresh, People.plan())
    }

    /// Catches: a plan that cannot open the files of the program's first release, which gave its container a list of models.
    @Test(arguments: kinds) func `S164: a file without a version counts as the first model that stores the same`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 100, version: SchemaVersion())
        let container = try await Self.open(bed, People.plan())
        #expect(try await People.isMigrated(container, 100))
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        // A file that stores the same as the newest model needs no stage.
        let newest = try TestBed(kind)
        try await newest.container(model: People.third(SchemaVersion())).close()
        try await Self.open(newest, People.plan()).close()
    }

    @Test(arguments: kinds) func `S164: a plan does not depend on the order in which the file's models were listed`(
        _ kind: StoreKind
    ) async throws {
        func entity(_ name: String, _ attribute: String, from old: String? = nil) -> EntityDescription {
            EntityDescription(
                name: name, properties: [.attribute(.init(name: attribute, type: .string, renamedFrom: old))])
        }
        let bed = try TestBed(kind)
        let old = try await bed.container(model: Model([entity("Album", "name"), entity("Track", "name")]))
        try await old.newBatchOperationContext().perform(andSave: .durable) { context in
            for name in ["Album", "Track"] { context.insert(name)["name"] = .string("old \(name)") }
        }
        try await old.close()
        let first = try Model([entity("Track", "name"), entity("Album", "name")], version: .init(1))
        let second = try Model([entity("Track", "title", from: "name"), entity("Album", "name")], version: .init(2))
        let container = try await PersistentContainer(
            model: second, store: bed.description, migrationPlan: MigrationPlan([.lightweight(from: first, to: second)]))
        let names = try await container.newBatchOperationContext().perform { context in
            try [
                context.fetch(EntityFetchRequest("Album")).map { $0["name"] },
                context.fetch(EntityFetchRequest("Track")).map { $0["title"] },
            ]
        }
        #expect(names == [[.string("old Album")], [.string("old Track")]])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    private struct Refusal: Error {}

    @Test(arguments: kinds) func S164_aFailureLeavesTheFileAsItWas(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 100)
        // Its container returns unused keys when it is deallocated.
        try await bed.closed()
        let before = try Data(contentsOf: bed.file)
        await #expect(throws: Refusal.self) { try await Self.open(bed, People.plan { throw Refusal() }) }
        // SQLite moves its log into the file at each close.
        if kind == .lmdb { #expect(try Data(contentsOf: bed.file) == before) }
        #expect(try Self.leftovers(bed) == [])
        let container = try await Self.open(bed, People.plan())
        #expect(try await People.isMigrated(container, 100))
    }

    /// Catches: a copy that replaces a file while another process writes to it.
    @Test func S164_aFileThatIsInUseIsNotMigrated() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: try People.first())
        let error = await #expect(throws: StoreError.self) { try await Self.open(bed, People.plan()) }
        #expect(error?.code == .inUseElsewhere)
        #expect(try Self.leftovers(bed) == [])
        try await container.coordinator.insert(into: "Person", ["name", "zip"], rows: [[.string("A B"), .int(1)]])
    }

    @Test(arguments: kinds) func S164_cancellingEndsAMigrationAndLeavesTheFile(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 100)
        let task = Task {
            try await PersistentContainer(
                model: try People.third(), store: bed.description, migrationPlan: try People.plan(),
                progress: { step in if step.completed == 3 { withUnsafeCurrentTask { $0?.cancel() } } })
        }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        let old = try await bed.container(model: try People.first())
        #expect(try await old.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Person")) } == 100)
    }

    @Test func S164_aFileOfAModelThatThePlanDoesNotKnowIsRefused() async throws {
        let bed = try TestBed(.lmdb)
        _ = try await bed.container(model: try People.model(.init(0, 5), [.init(name: "other", type: .bool)]))
        let error = await #expect(throws: StoreError.self) { try await Self.open(bed, People.plan()) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains("0.5.0") == true)
    }

    /// Catches: a file that is refused for good because of a constraint that its model does not have any more.
    @Test(arguments: kinds)
    func `S164: a constraint that a later lightweight stage takes back refuses no file`(_ kind: StoreKind) async throws {
        func model(_ version: Int) throws -> Model {
            try People.model(.init(version), [.init(name: "name", type: .string, index: version == 2 ? .unique : .none)])
        }
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1))
        try await first.coordinator.insert(into: "Person", ["name"], rows: [[.string("x")], [.string("x")]])
        try await first.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .lightweight(from: try model(1), to: try model(2)), .lightweight(from: try model(2), to: try model(3)),
        ])
        let migrated = try await PersistentContainer(model: try model(3), store: bed.description, migrationPlan: plan)
        #expect(try await migrated.read { try $0.count(EntityFetchRequest("Person")) } == 2)
        try await migrated.close()
        try await bed.closed()
        // The last model's constraint is checked, whichever stage has brought it.
        let kept = MigrationPlan([
            .lightweight(
                from: try model(3), to: try People.model(.init(4), [.init(name: "name", type: .string, index: .unique)])),
            .lightweight(
                from: try People.model(.init(4), [.init(name: "name", type: .string, index: .unique)]),
                to: try People.model(
                    .init(5), [.init(name: "name", type: .string, index: .unique), .init(name: "note", type: .string)])),
        ])
        let error = await #expect(throws: StoreError.self) {
            let last = try People.model(
                .init(5), [.init(name: "name", type: .string, index: .unique), .init(name: "note", type: .string)])
            _ = try await PersistentContainer(model: last, store: bed.description, migrationPlan: kept)
        }
        #expect(error?.message.contains("must be unique") == true)
    }

    /// Catches: a constraint that is checked before the stage's work has set the values.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S164: a custom stage fills a new unique attribute, and a constraint that stays is kept meanwhile`(_ kind: StoreKind)
        async throws
    {
        func model(_ version: Int) throws -> Model {
            let slug = AttributeDescription(name: "slug", type: .string, index: .unique)
            return try People.model(
                .init(version),
                [.init(name: "name", type: .string), .init(name: "number", type: .int64, index: .unique)]
                    + (version == 1 ? [] : [slug]))
        }
        let bed = try TestBed(kind)
        let old = try await bed.container(model: model(1))
        try await old.coordinator.insert(
            into: "Person", ["name", "number"], rows: ["a", "b", "d"].enumerated().map { [.string($1), .int(Int64($0 + 1))] })
        try await old.close()
        try await bed.closed()
        func plan(_ slug: @escaping @Sendable (ManagedObject) -> Value) throws -> MigrationPlan {
            MigrationPlan([
                .custom(
                    from: try model(1), to: try model(2),
                    didMigrate: { context in
                        for person in try context.fetch(EntityFetchRequest("Person")) { person["slug"] = slug(person) }
                        context.mergePolicy = .objectTrump
                        let again = context.insert("Person")
                        again["name"] = "c"
                        again["number"] = 2
                        again["slug"] = "c"
                    })
            ])
        }
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(
                model: try model(2), store: bed.description, migrationPlan: try plan { _ in "same" })
        }
        #expect(
            error?.code == .schemaMismatch && error?.message.contains("slug must be unique") == true,
            "\(String(describing: error))")
        let container = try await PersistentContainer(
            model: try model(2), store: bed.description, migrationPlan: try plan { $0["name"] })
        let slugs = try await container.read { context in
            try context.fetch(EntityFetchRequest("Person", sortBy: [.init("number")])).map { $0["slug"] }
        }
        #expect(slugs == ["a", "c", "d"], "the second object of number 2 takes the place of the first")
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a schema that only the stage uses, taken for the model of an older program because the file had it before.
    @Test(arguments: kinds, [false, true])
    func `S164, S202: a custom stage without versions runs on a file that had a schema of the stage before`(
        _ kind: StoreKind, _ isUnique: Bool
    ) async throws {
        // The stage first removes the attribute that it converts, or gives it a plain index.
        let attributes: [[AttributeDescription]] =
            isUnique
            ? [
                [.init(name: "zip", type: .string, index: .indexed)], [.init(name: "zip", type: .string)],
                [.init(name: "zip", type: .string, index: .unique)],
            ]
            : [
                [], [.init(name: "zip", type: .string, isOptional: true)],
                [.init(name: "zip", type: .int64, isOptional: true)],
            ]
        let name = AttributeDescription(name: "name", type: .string)
        let models = try attributes.map { try People.model(SchemaVersion(), [name] + $0) }
        let bed = try TestBed(kind)
        try await bed.container(model: models[0]).close()
        try await bed.closed()
        let old = try await bed.container(model: models[1])
        try await old.coordinator.insert(into: "Person", ["name", "zip"], rows: [["a", "7"], ["b", "7"]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: models[1], to: models[2],
                didMigrate: { context in
                    let people = try context.fetch(EntityFetchRequest("Person", sortBy: [.init("name")]))
                    for (number, person) in people.enumerated() {
                        person["zip"] = isUnique ? .string("\(number)") : .int(Int64(number))
                    }
                })
        ])
        let changes = try await models[2].changes(opening: bed.description, migrationPlan: plan)
        #expect(changes.refusal == nil, "\(changes)")
        try await bed.closed()
        let container = try await PersistentContainer(model: models[2], store: bed.description, migrationPlan: plan)
        let zips = try await container.read { context in
            try context.fetch(EntityFetchRequest("Person", sortBy: [.init("name")])).map { $0["zip"] }
        }
        let wanted: [Value] = isUnique ? ["0", "1"] : [0, 1]
        #expect(zips == wanted)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) { _ = try await bed.container(model: models[0]) }
        #expect(error?.code == .schemaTooNew, "a program with the first model is older than the file")
    }

    /// Catches: a model that is taken for an older program's, because a custom stage had opened the file with an equal one.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S164, S202: a stage without a version may lead to the schema with which the custom stage before it began`(
        _ kind: StoreKind
    ) async throws {
        let models = try [IndexKind.none, .unique, .indexed].map { index in
            try People.model(SchemaVersion(), [.init(name: "name", type: .string, index: index)])
        }
        let bed = try TestBed(kind)
        let old = try await bed.container(model: models[0])
        try await old.coordinator.insert(into: "Person", ["name"], rows: [["a"], ["b"]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(from: models[0], to: models[1], didMigrate: { _ in }), .lightweight(from: models[1], to: models[2]),
        ])
        let changes = try await models[2].changes(opening: bed.description, migrationPlan: plan)
        #expect(changes.refusal == nil, "\(changes)")
        try await bed.closed()
        let container = try await PersistentContainer(model: models[2], store: bed.description, migrationPlan: plan)
        #expect(try await container.read { try $0.count(EntityFetchRequest("Person")) } == 2)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// The file records the schema on the way, so that models of such a plan need versions.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S164: a later model without a version is older if a custom stage began with its schema`(_ kind: StoreKind) async throws
    {
        let models = try [IndexKind.none, .unique, .indexed].map { index in
            try People.model(SchemaVersion(), [.init(name: "name", type: .string, index: index)])
        }
        let bed = try TestBed(kind)
        try await bed.container(model: models[0]).close()
        try await bed.closed()
        let plan = MigrationPlan([.custom(from: models[0], to: models[1], didMigrate: { _ in })])
        try await PersistentContainer(model: models[1], store: bed.description, migrationPlan: plan).close()
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) { _ = try await bed.container(model: models[2]) }
        #expect(error?.code == .schemaTooNew)
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S164: a custom stage fills an attribute that becomes required`(_ kind: StoreKind) async throws {
        func model(_ version: Int) throws -> Model {
            try People.model(
                .init(version),
                [.init(name: "name", type: .string), .init(name: "note", type: .string, isOptional: version == 1)])
        }
        let bed = try TestBed(kind)
        let old = try await bed.container(model: model(1))
        try await old.coordinator.insert(into: "Person", ["name"], rows: [[.string("a")], [.string("b")]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: try model(1), to: try model(2),
                willMigrate: { context in
                    for person in try context.fetch(EntityFetchRequest("Person", matching: .equal("name", "a"))) {
                        person["note"] = "none"
                    }
                })
        ])
        let container = try await PersistentContainer(model: try model(2), store: bed.description, migrationPlan: plan)
        let notes = try await container.read { context in
            try context.fetch(EntityFetchRequest("Person", sortBy: [.init("name")])).map { $0["note"] }
        }
        #expect(notes == ["none", ""])
        try await container.close()
    }

    /// Catches: a constraint that counts as kept, although the nulls of before get one value until the stage's work replaces it.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [false, true])
    func `S164: a custom stage fills a unique attribute that becomes required`(_ kind: StoreKind, _ isCompound: Bool) async throws
    {
        func model(_ version: Int) throws -> Model {
            try Model(
                [
                    EntityDescription(
                        name: "Person",
                        properties: [
                            .attribute(.init(name: "name", type: .string)), .attribute(.init(name: "kind", type: .int64)),
                            .attribute(
                                .init(
                                    name: "slug", type: .string, isOptional: version == 1, index: isCompound ? .none : .unique)),
                        ], indexes: isCompound ? [.unique("kind", "slug")] : [])
                ], version: .init(version))
        }
        let bed = try TestBed(kind)
        let old = try await bed.container(model: model(1))
        try await old.coordinator.insert(into: "Person", ["name"], rows: [[.string("a")], [.string("b")]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: try model(1), to: try model(2),
                didMigrate: { context in
                    for person in try context.fetch(EntityFetchRequest("Person")) { person["slug"] = person["name"] }
                })
        ])
        let container = try await PersistentContainer(model: try model(2), store: bed.description, migrationPlan: plan)
        let slugs = try await container.read { context in
            try context.fetch(EntityFetchRequest("Person", sortBy: [.init("name")])).map { $0["slug"] }
        }
        #expect(slugs == ["a", "b"])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a custom stage that drops the values of an attribute, because another attribute with its new name had another type.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S165: a chain of renames that a custom stage cannot make is refused, and the file stays`(_ kind: StoreKind) async throws
    {
        let first = try People.model(.init(1), [.init(name: "a", type: .int32), .init(name: "b", type: .string)])
        let second = try People.model(
            .init(2),
            [.init(name: "b", type: .int32, renamedFrom: "a"), .init(name: "c", type: .string, renamedFrom: "b")])
        let bed = try TestBed(kind)
        let old = try await bed.container(model: first)
        try await old.coordinator.insert(into: "Person", ["a", "b"], rows: [[7, "x"]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([.custom(from: first, to: second)])
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: second, store: bed.description, migrationPlan: plan)
        }
        #expect(error?.code == .schemaMismatch, "\(String(describing: error))")
        let same = try await bed.container(model: first)
        #expect(try await same.read { try $0.fetch(EntityFetchRequest("Person")).map { [$0["a"], $0["b"]] } } == [[7, "x"]])
    }

    /// Catches: an error that recommends a custom stage to a custom stage, because it leaves out one of two names that are exchanged.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S165: a custom stage that exchanges two names and converts one value is refused with what to do`(
        _ kind: StoreKind
    ) async throws {
        func model(_ version: Int, _ types: [ColumnType], isExchanged: Bool) throws -> Model {
            try People.model(
                .init(version),
                [
                    .init(name: "a", type: types[0], renamedFrom: isExchanged ? "b" : nil),
                    .init(name: "b", type: types[1], renamedFrom: isExchanged ? "a" : nil),
                ])
        }
        let first = try model(1, [.int64, .string], isExchanged: false)
        let atOnce = try model(2, [.int64, .int64], isExchanged: true)
        let bed = try TestBed(kind)
        let old = try await bed.container(model: first)
        try await old.coordinator.insert(into: "Person", ["a", "b"], rows: [[7, "8"]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([.custom(from: first, to: atOnce)])
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: atOnce, store: bed.description, migrationPlan: plan)
        }
        let text = error?.message ?? ""
        #expect(text.contains("Person.a and Person.b exchange their names") && text.contains("in one version"), "\(text)")
        let refusal = try await atOnce.changes(opening: bed.description, migrationPlan: plan).refusal
        #expect(refusal?.message == error?.message)
        try await bed.closed()
        // The remedy that the error names.
        let second = try model(2, [.string, .int64], isExchanged: true)
        let third = try model(3, [.int64, .int64], isExchanged: true)
        let steps = MigrationPlan([
            .lightweight(from: first, to: second),
            .custom(
                from: second, to: third,
                willMigrate: { context in
                    let found = try context.count(EntityFetchRequest("Person", matching: .equal("a", "8")))
                    #expect(found == 1)
                }),
        ])
        let container = try await PersistentContainer(model: third, store: bed.description, migrationPlan: steps)
        #expect(try await container.read { try $0.fetch(EntityFetchRequest("Person")).map { $0["b"] } } == [7])
        #expect(try container.coordinator.store.verify() == [])
    }
}
