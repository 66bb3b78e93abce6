import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The dry run, the opening, and a plain model agree about random changes of a model (S202, S163, S165).
@Suite struct ModelChangeRandomTests {
    private struct Attribute: Equatable {
        var type: ColumnType
        var isOptional: Bool
    }

    private typealias Attributes = [String: Attribute]

    private static func model(_ attributes: Attributes) throws -> Model {
        try Model([
            EntityDescription(
                name: "Thing",
                properties: attributes.sorted { $0.key < $1.key }.map {
                    .attribute(.init(name: $0.key, type: $0.value.type, isOptional: $0.value.isOptional))
                })
        ])
    }

    private static func value(_ attribute: Attribute, _ random: inout SeededGenerator) -> Value {
        if attribute.isOptional, random.chance(40) { return .null }
        return attribute.type == .string ? .string("s\(random.below(100))") : .int(Int64(random.below(100)))
    }

    /// Adds, removes, widens, narrows or frees one attribute.
    private static func change(_ attributes: inout Attributes, _ random: inout SeededGenerator) {
        let name = "a\(random.below(6))"
        guard let old = attributes[name] else {
            attributes[name] = Attribute(type: [.int32, .int64, .string][random.below(3)], isOptional: true)
            return
        }
        switch random.below(4) {
        case 0 where attributes.count > 1: attributes[name] = nil
        case 1: attributes[name]?.type = old.type == .int32 ? .int64 : .int32
        default: attributes[name]?.isOptional.toggle()
        }
    }

    /// Catches: a dry run that promises an opening that fails, refuses one that works, or a migration that loses or mixes up values.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S202, S163: opening does what the dry run says, and keeps every value that it names no loss of`(_ kind: StoreKind)
        async throws
    {
        var random = SeededGenerator(test: #function)
        let bed = try TestBed(kind)
        let store: StoreDescription = kind == .lmdb ? .lmdb(bed.file) : .sqlite(bed.file)
        var attributes: Attributes = ["a0": Attribute(type: .int32, isOptional: false)]
        var rows: [ObjectID: [String: Value]] = [:]
        for step in 0..<Rounds.of(25, long: 400) {
            var next = attributes
            Self.change(&next, &random)
            let allowed: Set<String> = random.chance(50) ? Set((0..<6).map { "Thing.a\($0)" }) : []
            let dryRun = try await Self.model(next).changes(opening: store, allowsDataLoss: allowed)
            let comment: Comment = "step \(step), seed \(random.seed): \(dryRun)"
            let opened: PersistentContainer
            do {
                opened = try await PersistentContainer(model: try Self.model(next), store: store, allowsDataLoss: allowed)
                #expect(dryRun.refusal == nil, comment)
                for (id, row) in rows { rows[id] = row.filter { next[$0.key] != nil } }
                attributes = next
            } catch let error as StoreError {
                #expect(dryRun.refusal?.code == error.code, comment)
                opened = try await PersistentContainer(model: try Self.model(attributes), store: store)
            }
            let worker = opened.coordinator.newBackgroundContext()
            let (present, known) = (attributes, rows)
            let found = try await worker.perform { context in
                Dictionary(
                    uniqueKeysWithValues: try context.fetch(EntityFetchRequest("Thing")).map { thing in
                        (thing.objectID, present.keys.reduce(into: [String: Value]()) { $0[$1] = thing[$1] })
                    })
            }
            #expect(Set(found.keys) == Set(known.keys), comment)
            for (id, row) in found { for (name, value) in row { #expect(value == known[id]?[name] ?? .null, comment) } }
            // In the order of the names, so that a seed repeats its run.
            let values = Dictionary(
                uniqueKeysWithValues: present.sorted { $0.key < $1.key }.map { ($0.key, Self.value($0.value, &random)) })
            let id = await worker.perform { context in
                let thing = context.insert("Thing")
                for (name, value) in values { thing[name] = value }
                return thing.objectID
            }
            try await worker.save()
            rows[id] = values
            #expect(try opened.coordinator.store.verify() == [], comment)
            try await opened.close()
            #expect(try await Self.model(attributes).changes(opening: store).isEmpty, comment)
        }
    }
}
