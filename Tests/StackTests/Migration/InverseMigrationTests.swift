import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model may make two relationships inverses of each other, or part them, while their columns and links stay as they are. A file records
/// its inverses, so that no reference is lost or contradicts another (S052, S165).
@Suite struct InverseMigrationTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    /// Creates a model with `A.b` and `B.a` of these cardinalities, which are inverses of each other or not.
    private static func model(
        _ version: Int = 1, b: Cardinality?, a: Cardinality = .toOne, arePaired: Bool,
        renaming former: (name: String, to: String)? = nil
    ) throws -> Model {
        func relation(_ name: String, _ to: String, _ cardinality: Cardinality?, _ inverse: String) -> [PropertyDescription] {
            guard let cardinality else { return [] }
            return [
                .relationship(
                    .init(
                        name: name, destination: to, inverse: arePaired && b != nil ? inverse : nil, cardinality: cardinality,
                        renamedFrom: former?.to == name ? former?.name : nil))
            ]
        }
        func name(_ name: String) -> String { former?.name == name ? former?.to ?? name : name }
        let mark = PropertyDescription.attribute(.init(name: "mark", type: .int32))
        return try Model(
            [
                EntityDescription(name: "A", properties: [mark] + relation(name("b"), "B", b, name("a"))),
                EntityDescription(name: "B", properties: [mark] + relation(name("a"), "A", a, name("b"))),
            ], version: .init(version))
    }

    /// Changes the objects of both entities, by their marks.
    private static func edit(
        _ bed: TestBed, _ model: Model, _ change: @escaping @Sendable ([Int64: ManagedObject]) -> Void
    ) async throws {
        let container = try await bed.container(model: model)
        let context = container.newBatchOperationContext()
        try await context.perform { context in
            var objects: [Int64: ManagedObject] = [:]
            for entity in ["A", "B"] {
                for object in try context.fetch(EntityFetchRequest(entity)) {
                    if case .int(let mark) = object["mark"] { objects[mark] = object }
                }
            }
            for mark: Int64 in [1, 2, 11, 12] where objects[mark] == nil {
                let object = context.insert(mark < 10 ? "A" : "B")
                object["mark"] = .int(mark)
                objects[mark] = object
            }
            change(objects)
        }
        try await context.save(.durable)
        try await container.close()
    }

    private static func refusal(_ bed: TestBed, _ model: Model) async -> String {
        let error = await #expect(throws: StoreError.self) { _ = try await bed.container(model: model) }
        #expect(error?.code == .schemaMismatch)
        return error?.message ?? ""
    }

    @Test(arguments: kinds) func `S052, S165: two relationships become a pair once their ends agree`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let apart = try Self.model(b: .toOne, arePaired: false)
        let pair = try Self.model(b: .toOne, arePaired: true)
        try await Self.edit(bed, apart) { objects in
            objects[1]?.setRelatedObject("b", to: objects[11])
            objects[11]?.setRelatedObject("a", to: objects[2])
        }
        let refusal = await Self.refusal(bed, pair)
        #expect(refusal.contains("A.b (1 reference; B.a is its inverse now, and does not lead back)"), "\(refusal)")
        #expect(refusal.contains("B.a (1 reference; A.b is its inverse now, and does not lead back)"), "\(refusal)")
        try await Self.edit(bed, apart) { objects in objects[11]?.setRelatedObject("a", to: objects[1]) }
        for _ in 0..<2 {
            let container = try await bed.container(model: pair)
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
        // Apart again, the ends may disagree again.
        try await Self.edit(bed, apart) { objects in objects[2]?.setRelatedObject("b", to: objects[12]) }
        let again = await Self.refusal(bed, pair)
        #expect(again.contains("A.b (1 reference; ") && !again.contains("B.a ("), "\(again)")
    }

    @Test(arguments: kinds) func `S165: a to-many relationship does not lose its members with its inverse`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        try await Self.edit(bed, Self.model(b: .toMany, arePaired: true)) { objects in
            objects[1]?.setRelatedObjects("b", to: [objects[11], objects[12]].compactMap(\.self))
        }
        let apart = try Self.model(2, b: .toMany, arePaired: false)
        let refusal = await Self.refusal(bed, apart)
        #expect(refusal.contains("A.b (2 values; B.a has them, and is not its inverse any more)"), "\(refusal)")
        #expect(refusal.contains("allowsDataLoss: [\"A.b\"]"), "\(refusal)")
        // Without the to-many relationship, nothing is lost, and with the same inverse under other names neither.
        try await Self.edit(bed, Self.model(2, b: nil, arePaired: false)) { _ in }
        try await Self.edit(bed, Self.model(3, b: .toMany, arePaired: true)) { objects in
            #expect(objects[1]?.relatedObjects("b").count == 2)
        }
        try await Self.edit(bed, Self.model(4, b: .toMany, arePaired: true, renaming: ("a", to: "owner"))) { objects in
            #expect(objects[1]?.relatedObjects("b").count == 2)
        }
        try await Self.edit(bed, Self.model(5, b: .toMany, arePaired: true, renaming: ("owner", to: "a"))) { _ in }
        try await Self.edit(bed, Self.model(6, b: .toMany, arePaired: true, renaming: ("b", to: "members"))) { objects in
            #expect(objects[1]?.relatedObjects("members").count == 2)
        }
        let later = try Self.model(7, b: .toMany, arePaired: false, renaming: ("b", to: "members"))
        #expect(await Self.refusal(bed, later).contains("A.members (2 values"))
        let container = try await PersistentContainer(model: later, store: bed.description, allowsDataLoss: ["A.members"])
        let owners = try await container.newBatchOperationContext().perform { context in
            let heads = try context.fetch(EntityFetchRequest("A"))
            #expect(heads.allSatisfy { $0.relatedObjects("members").isEmpty })
            return try context.fetch(EntityFetchRequest("B")).compactMap { $0.relatedObject("a") }.count
        }
        #expect(owners == 2)
    }

    @Test(arguments: kinds) func `S165: the far end of a many-to-many relationship does not lose its members with its inverse`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.edit(bed, Self.model(b: .toMany, a: .toMany, arePaired: true)) { objects in
            objects[1]?.setRelatedObjects("b", to: [objects[11], objects[12]].compactMap(\.self))
        }
        let refusal = await Self.refusal(bed, try Self.model(2, b: .toMany, a: .toMany, arePaired: false))
        #expect(refusal.contains("B.a (2 pairs; A.b has them, and is not its inverse any more)"), "\(refusal)")
    }

    @Test(arguments: kinds) func `S165: the file keeps its inverses when a program opens it with the stored model`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.edit(bed, Self.model(b: .toMany, arePaired: true)) { objects in
            objects[11]?.setRelatedObject("a", to: objects[1])
        }
        try await Self.edit(bed, Model(storedIn: bed.description)) { objects in objects[12]?.setRelatedObject("a", to: objects[1])
        }
        #expect(await Self.refusal(bed, try Self.model(b: .toMany, arePaired: false)).contains("A.b (2 values"))
    }

    @Test(arguments: kinds) func `S166: a read-only store is not read with inverses that may contradict its file`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.edit(bed, Self.model(b: .toOne, arePaired: false)) { objects in
            objects[1]?.setRelatedObject("b", to: objects[11])
        }
        let pair = try Self.model(b: .toOne, arePaired: true)
        let store: StoreDescription = kind == .lmdb ? .lmdb(bed.file, readOnly: true) : .sqlite(bed.file, readOnly: true)
        let error = await #expect(throws: StoreError.self) { _ = try await PersistentContainer(model: pair, store: store) }
        #expect(error?.code == .readOnly, "\(String(describing: error))")
        try await Self.edit(bed, Self.model(b: .toOne, arePaired: false)) { objects in
            objects[11]?.setRelatedObject("a", to: objects[1])
        }
        try await Self.edit(bed, pair) { _ in }
        let container = try await PersistentContainer(model: pair, store: store)
        let isRelated = try await container.read {
            try $0.fetch(EntityFetchRequest("A")).contains { $0.relatedObject("b") != nil }
        }
        #expect(isRelated)
    }

    @Test(arguments: kinds) func `S164: a custom stage may part two relationships`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let paired = try Self.model(1, b: .toMany, arePaired: true)
        let apart = try Self.model(2, b: .toMany, arePaired: false)
        try await Self.edit(bed, paired) { objects in
            objects[1]?.setRelatedObjects("b", to: [objects[11], objects[12]].compactMap(\.self))
        }
        let plan = MigrationPlan([
            .custom(
                from: paired, to: apart,
                didMigrate: { context in
                    for one in try context.fetch(EntityFetchRequest("A")) {
                        let members = try context.fetch(EntityFetchRequest("B")).filter { $0.relatedObject("a") === one }
                        one.setRelatedObjects("b", to: members)
                    }
                })
        ])
        let container = try await PersistentContainer(model: apart, store: bed.description, migrationPlan: plan)
        let members = try await container.newBatchOperationContext().perform { context in
            try context.fetch(EntityFetchRequest("A")).map { $0.relatedObjects("b").count }.max()
        }
        #expect(members == 2)
    }

    @Test(arguments: kinds) func `S163, S165: inverses of a version between two others refuse nothing`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let (first, between) = (try Self.model(1, b: .toOne, arePaired: false), try Self.model(2, b: .toOne, arePaired: true))
        try await Self.edit(bed, first) { objects in objects[1]?.setRelatedObject("b", to: objects[11]) }
        let last = try Self.model(3, b: .toOne, arePaired: false)
        let plan = MigrationPlan([.lightweight(from: first, to: between), .lightweight(from: between, to: last)])
        let container = try await PersistentContainer(model: last, store: bed.description, migrationPlan: plan)
        let isRelated = try await container.read {
            try $0.fetch(EntityFetchRequest("A")).contains { $0.relatedObject("b") != nil }
        }
        #expect(isRelated)
    }

    /// Creates a model in which `A.x` and `A.y` are pairs with `B.x` and `B.y`, each with the same name or each with the other.
    private static func crossed(_ version: Int, _ isCrossed: Bool) throws -> Model {
        let entities = ["A", "B"].map { name in
            EntityDescription(
                name: name,
                properties: ["x", "y"].map { end in
                    let inverse = isCrossed ? (end == "x" ? "y" : "x") : end
                    return .relationship(
                        .init(name: end, destination: name == "A" ? "B" : "A", inverse: inverse, cardinality: .toOne))
                })
        }
        return try Model(entities, version: .init(version))
    }

    @Test(arguments: kinds) func `S164, S165: a custom stage may give two relationships each other's inverse`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let (old, new) = (try Self.crossed(1, false), try Self.crossed(2, true))
        let container = try await bed.container(model: old)
        let context = container.newBatchOperationContext()
        await context.perform { $0.insert("A").setRelatedObject("x", to: $0.insert("B")) }
        try await context.save(.durable)
        try await container.close()
        #expect(await Self.refusal(bed, new).contains("B.y is its inverse now"))
        let plan = MigrationPlan([
            .custom(
                from: old, to: new,
                didMigrate: { context in
                    let (one, other) = (
                        try context.fetch(EntityFetchRequest("A"))[0], try context.fetch(EntityFetchRequest("B"))[0]
                    )
                    one.setRelatedObject("x", to: other)
                })
        ])
        let migrated = try await PersistentContainer(model: new, store: bed.description, migrationPlan: plan)
        let isRelated = try await migrated.read { context in
            try context.fetch(EntityFetchRequest("B"))[0].relatedObject("y") === context.fetch(EntityFetchRequest("A"))[0]
        }
        #expect(isRelated)
        #expect(try migrated.coordinator.store.verify() == [])
    }

    /// Catches: a store that is open with the former inverses, and contradicts those which another program has recorded since.
    @Test(arguments: kinds) func `S052, S165: a store that is open with other inverses is refused, or does not save any more`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: Self.model(b: .toOne, arePaired: false))
        let pair = try Self.model(b: .toOne, arePaired: true)
        let context = first.newBatchOperationContext()
        await context.perform { context in
            let (one, other) = (context.insert("A"), context.insert("B"))
            one.setRelatedObject("b", to: other)
            other.setRelatedObject("a", to: one)
        }
        try await context.save(.durable)
        // In one process, containers share a store on LMDB.
        guard kind == .sqlite else {
            #expect(await Self.refusal(bed, pair).contains("open with other inverses"))
            return
        }
        let second = try await bed.container(model: pair)
        await context.perform { $0.insert("A")["mark"] = .int(3) }
        let error = await #expect(throws: StoreError.self) { try await context.save(.durable) }
        #expect(error?.code == .schemaTooNew)
        #expect(try second.coordinator.store.verify() == [])
    }

    @Test func `S165: a file without a record of its inverses counts as agreeing, and gets one`() throws {
        let apart = try Self.model(b: .toOne, arePaired: false).storeSchema
        let pair = try Self.model(b: .toOne, arePaired: true).storeSchema
        #expect(apart.withoutHints == pair.withoutHints)
        let path = try SchemaPath(from: RecordedSchemas(apart.withoutHints), to: pair, path: "file")
        #expect(path.steps.isEmpty && path.losses.isEmpty && path.inverses == InversePairs(of: pair))
        let recorded = RecordedSchemas(apart.withoutHints, inverses: InversePairs(of: apart))
        #expect(try SchemaPath(from: recorded, to: pair, path: "file").losses.count == 2)
        let known = RecordedSchemas(apart.withoutHints, inverses: InversePairs(of: pair))
        #expect(try SchemaPath(from: known, to: pair, path: "file").losses.isEmpty)
        let data = try JSONEncoder().encode(known.inverses)
        #expect(String(decoding: data, as: UTF8.self) == #"[["A","b","B","a"]]"#)
        #expect(try JSONDecoder().decode(InversePairs.self, from: data) == known.inverses)
    }
}
