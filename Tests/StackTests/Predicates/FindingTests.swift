import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The short forms of requests, and batches typed by key path.
@Suite struct FindingTests {
    @Test(arguments: StoreKind.allCases)
    func `S139: an object is found by a unique value, saved or not`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        await root.perform { context in
            for code in ["a", "b"] { context.insert("Errand")["code"] = .string(code) }
        }
        try await root.save()
        let kept = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            #expect(try context.find(unique: \Errand.code, "a")?.code == "a")
            #expect(try context.find(unique: \Errand.code, "c") == nil)
            // Objects without a code have no code in common.
            context.insert("Errand")
            #expect(try context.find(unique: \Errand.code, nil) == nil)
            let new = context.insert("Errand")
            new["code"] = .string("c")
            #expect(try context.find(unique: \Errand.code, "c")?.managedObject === new)
            #expect(try context.delete(where: #Predicate<Errand> { $0.code == "a" }) == 1)
            #expect(try context.find(unique: \Errand.code, "a") == nil)
            #expect(throws: FetchError.notUnique(entity: "Errand", property: "title")) {
                try context.find(unique: \Errand.title, "a")
            }
            #expect(throws: FetchError.self) { try context.find(unique: \Errand.shoutedTitle, "a!") }
        }
        try await Errands.deleteAll(root)
        try await kept.perform { context throws in
            #expect(try context.find(unique: \Errand.code, "a")?.code == "a")
            #expect(try context.find(unique: \Errand.code, "c") == nil)
            #expect(try context.count(where: #Predicate<Errand> { $0.code != nil }) == 2)
            #expect(try context.first(where: #Predicate<Errand> { $0.code == "b" })?.code == "b")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: a batch sets attributes and to-one relationships by key path`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        let (person, errand) = await root.perform { context in
            for number in 0..<10 { context.insert("Errand")["days"] = .int(Int64(number)) }
            let person = context.insert("Person")
            return (person.objectID, context.insert("Errand").objectID)
        }
        try await root.save()
        let odd = #Predicate<Errand> { $0.days % 2 == 1 }
        let result = try await container.coordinator.batchUpdate(
            FetchRequest(where: odd), .set(\.owner, to: person), .set(\.kind, to: .shop), .set(\.note, to: "odd"))
        #expect(result.updatedCount == 5)
        let reader = await container.newBackgroundContext()
        try await reader.perform { context throws in
            let changed = try context.fetch(FetchRequest<Errand>(where: #Predicate { $0.owner != nil }, sortBy: [.init(\.days)]))
            #expect(changed.map(\.days) == [1, 3, 5, 7, 9])
            #expect(changed.allSatisfy { $0.kind == .shop && $0.note == "odd" && $0.owner?.id == person })
        }
        try await container.coordinator.batchUpdate(FetchRequest<Errand>(where: odd), .set(\.owner, to: nil))
        let other = await container.newBackgroundContext()
        try await other.perform { context throws in
            #expect(try context.count(where: #Predicate<Errand> { $0.owner != nil }) == 0)
        }
        await #expect(throws: BatchError.self) {
            try await container.coordinator.batchUpdate(FetchRequest<Errand>(), .set(\.owner, to: errand))
        }
    }

    /// Catches: a comparison by which Swift takes two spellings of one character for equal, beside one by code points.
    @Test(arguments: StoreKind.allCases)
    func `S134: lists within Codable attributes compare their strings by code point`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        await root.perform { $0.insert("Errand")["place"] = ErrandPlace(names: ["e\u{301}", "b"]).storeValue }
        try await root.save()
        try await root.perform { context throws in
            for (text, count) in [("\u{e9}", 0), ("e\u{301}", 1)] {
                let words = [text]
                #expect(try context.count(where: #Predicate<Errand> { $0.place.names.contains(text) }) == count)
                #expect(try context.count(where: #Predicate<Errand> { $0.place.names.contains(words) }) == count)
                #expect(try context.count(where: #Predicate<Errand> { $0.place.names.starts(with: words) }) == count)
            }
        }
    }
}
