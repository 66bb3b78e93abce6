import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// One-to-one relationships in batches: the check of the save writes the other end (S052, S137).
@Suite struct BatchPairTests {
    /// Returns each owner with its passport, and each passport with its owner, as they are saved.
    private static func pairs(_ container: PersistentContainer) async throws -> [String] {
        try await container.coordinator.newBackgroundContext().perform { context throws in
            let owners = try context.fetch(FetchRequest<Owner>(sortBy: [.init(\.name)]))
            let passports = try context.fetch(FetchRequest<Passport>(sortBy: [.init(\.code)]))
            let withPassports = owners.map { owner in "\(owner.name)-\(owner.passport?.code ?? "")" }
            return withPassports + passports.map { passport in "\(passport.code)-\(passport.owner?.name ?? "")" }
        }
    }

    private static func container(_ bed: TestBed) async throws -> PersistentContainer {
        let container = try await bed.container(model: Model([Owner.self, Passport.self]))
        try await container.coordinator.insert(into: "Owner", ["name"], rows: [["a"], ["b"], ["c"]])
        try await container.coordinator.insert(into: "Passport", ["code"], rows: [["p"], ["q"]])
        return container
    }

    /// Catches: a batch that sets one end only, and former partners that keep their references.
    @Test(arguments: StoreKind.allCases)
    func `S052, S137: an update of one object sets both ends of a one-to-one relationship`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let coordinator = container.coordinator
        let a = FetchRequest<Owner>(where: #Predicate { $0.name == "a" })
        let b = FetchRequest<Owner>(where: #Predicate { $0.name == "b" })
        try await coordinator.batchUpdate(a, .set(\.passport, \.code, to: "p"))
        #expect(try await Self.pairs(container) == ["a-p", "b-", "c-", "p-a", "q-"])
        // The passport leaves its owner.
        try await coordinator.batchUpdate(b, .set(\.passport, \.code, to: "p"))
        #expect(try await Self.pairs(container) == ["a-", "b-p", "c-", "p-b", "q-"])
        // The owner leaves the passport.
        try await coordinator.batchUpdate(b, .set(\.passport, \.code, to: "q"))
        #expect(try await Self.pairs(container) == ["a-", "b-q", "c-", "p-", "q-b"])
        // Both leave their partners, and the other end is set.
        try await coordinator.batchUpdate(a, .set(\.passport, \.code, to: "p"))
        let q = FetchRequest<Passport>(where: #Predicate { $0.code == "q" })
        try await coordinator.batchUpdate(q, .set(\.owner, \.name, to: "a"))
        #expect(try await Self.pairs(container) == ["a-q", "b-", "c-", "p-", "q-a"])
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a passport that the first of several objects gets without a word about the others.
    @Test(arguments: StoreKind.allCases)
    func `S052, S137: an update of several objects can only clear a one-to-one relationship`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let coordinator = container.coordinator
        let all = FetchRequest<Owner>()
        let error = await #expect(throws: BatchError.self) {
            try await coordinator.batchUpdate(all, .set(\.passport, \.code, to: "p"))
        }
        #expect(error?.description.hasPrefix("cannot set Owner.passport of 3 objects to the same object") == true)
        #expect(error?.description.contains("\n") == false)
        for (name, code) in [("a", "p"), ("b", "q")] {
            try await coordinator.batchUpdate(
                EntityFetchRequest("Owner", matching: .equal("name", .string(name))), set: ["passport.code": .string(code)])
        }
        #expect(try await Self.pairs(container) == ["a-p", "b-q", "c-", "p-a", "q-b"])
        try await coordinator.batchUpdate(all, set: ["passport": .null])
        #expect(try await Self.pairs(container) == ["a-", "b-", "c-", "p-", "q-"])
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: an update that is refused because of a partner that another name of the relationship replaces by null.
    @Test(arguments: StoreKind.allCases)
    func `S052, S137: of two names of a one-to-one relationship, the value that applies decides about several objects`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let coordinator = container.coordinator
        let a = EntityFetchRequest("Owner", matching: .equal("name", "a"))
        try await coordinator.batchUpdate(a, set: ["passport.code": "p"])
        let key = try await container.coordinator.newBackgroundContext().perform { context throws in
            try #require(try context.fetch(FetchRequest<Passport>()).first { $0.code == "q" }).managedObject.objectID.key
        }
        let all = EntityFetchRequest("Owner")
        try await coordinator.batchUpdate(all, set: ["passport": .reference(key), "passport.code": .null])
        #expect(try await Self.pairs(container) == ["a-", "b-", "c-", "p-", "q-"])
        await #expect(throws: BatchError.self) {
            try await coordinator.batchUpdate(all, set: ["passport": .null, "passport.code": "p"])
        }
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a row that finds an object by a partner which an earlier row of the same save has taken away.
    @Test(arguments: StoreKind.allCases, [1, 100])
    func `S052, S137: a row finds objects by the partners that they have after the rows before it`(
        _ kind: StoreKind, _ rowsPerSave: Int
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model([Wearer.self, Medal.self]))
        let coordinator = container.coordinator
        var options = BatchOptions()
        options.rowsPerSave = rowsPerSave
        try await coordinator.insert(into: "Medal", ["code"], rows: [["p"], ["q"]])
        try await coordinator.insert(into: "Wearer", ["name", "note", "medal.code"], rows: [["a", "first", "p"]])
        let rows: [[Value]] = [
            ["b", "second", "p"], ["a", "third", "p"], ["a", "fourth", "p"], ["a", "fifth", "q"], ["b", "sixth", "q"],
            ["a", "seventh", "q"],
        ]
        try await coordinator.insert(
            into: "Wearer", ["name", "note", "medal.code"], rows: rows, rule: .update(on: ["name", "medal"]), options: options)
        @Sendable func wearers() async throws -> [String] {
            try await container.newBatchOperationContext().perform { context throws in
                try context.fetch(FetchRequest<Wearer>()).map { "\($0.name) \($0.note) \($0.medal?.code ?? "")" }.sorted()
            }
        }
        #expect(try await wearers() == ["a fifth ", "a first ", "a fourth p", "a seventh q", "b second ", "b sixth "])
        let kept: [[Value]] = [["c", "eighth", "q"], ["a", "ninth", "q"], ["a", "tenth", "q"]]
        try await coordinator.insert(
            into: "Wearer", ["name", "note", "medal.code"], rows: kept, rule: .keep(on: ["name", "medal"]), options: options)
        #expect(
            try await wearers() == [
                "a fifth ", "a first ", "a fourth p", "a ninth q", "a seventh ", "b second ", "b sixth ", "c eighth ",
            ])
        #expect(try coordinator.store.verify() == [])
    }
}

/// A model with a one-to-one relationship by which imports find objects, together with a name that is not unique.
private final class Wearer: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }
    var note: String { managedObject.get(1) }
    var medal: Medal? { managedObject.toOne(0, 2) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Wearer",
        properties: [
            .attribute(AttributeDescription("name", of: \Wearer.name)),
            .attribute(AttributeDescription("note", of: \Wearer.note)),
            .relationship(RelationshipDescription(name: "medal", destination: "Medal", inverse: "wearer", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Wearer.name: "name", \Wearer.note: "note", \Wearer.medal: "medal",
    ]
}

private final class Medal: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var code: String { managedObject.get(0) }
    var wearer: Wearer? { managedObject.toOne(0, 1) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Medal",
        properties: [
            .attribute(AttributeDescription("code", of: \Medal.code, index: .unique)),
            .relationship(RelationshipDescription(name: "wearer", destination: "Wearer", inverse: "medal", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Medal.code: "code", \Medal.wearer: "wearer",
    ]
}

/// A model with a one-to-one relationship whose ends have unique values.
private final class Owner: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }
    var passport: Passport? { managedObject.toOne(0, 1) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Owner",
        properties: [
            .attribute(AttributeDescription("name", of: \Owner.name, index: .unique)),
            .relationship(
                RelationshipDescription(name: "passport", destination: "Passport", inverse: "owner", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Owner.name: "name", \Owner.passport: "passport",
    ]
}

private final class Passport: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var code: String { managedObject.get(0) }
    var owner: Owner? { managedObject.toOne(0, 1) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Passport",
        properties: [
            .attribute(AttributeDescription("code", of: \Passport.code, index: .unique)),
            .relationship(RelationshipDescription(name: "owner", destination: "Owner", inverse: "passport", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Passport.code: "code", \Passport.owner: "owner",
    ]
}
