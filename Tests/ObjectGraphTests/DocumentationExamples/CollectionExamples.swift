import Foundation
import LMDBStore
import ObjectGraph
import Observation
import StoreInterface
import StoreModel

/// The examples in the documentation comments of keyed collections, compiled. The architecture tests compare both.
@MainActor private enum CollectionExamples {
    struct Draft: Codable, Sendable {
        var title: String
        var isNew = true
    }

    // Sources/ObjectGraph/Collections/CollectionKey.swift
    struct Day: CollectionKey {
        var number: Int32
        static var keyTypeName: String { "Day" }
        func appendKey(to bytes: inout [UInt8], isLast: Bool) { number.appendKey(to: &bytes, isLast: isLast) }
        init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
            guard let number = Int32(readingKey: &bytes, isLast: isLast) else { return nil }
            self.number = number
        }
    }
    // end

    static func writing(_ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Collections/KeyedCollection.swift
        let drafts = try container.collection("drafts", of: Draft.self)
        drafts["spring"] = Draft(title: "Spring")
        drafts["winter"] = nil
        for (name, draft) in try drafts["a"..<"n"].entries() { print(name, draft.title) }
        try await container.mainContext.save()
        // end
    }

    static func opening(_ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Collections/ManagedObjectContext+Collections.swift
        let drafts = try container.collection("drafts", of: Draft.self)
        drafts["spring"] = Draft(title: "Spring")
        try await container.mainContext.save()
        // end
        let context = container.mainContext
        // Sources/ObjectGraph/Collections/ManagedObjectContext+Collections.swift
        let scores = try context.collection("scores", of: Int.self, key: UUID.self)
        // end
        print(scores)
    }

    static func ranges(_ drafts: KeyedCollection<String, Draft>) throws {
        // Sources/ObjectGraph/Collections/KeyedRange.swift
        let spring = try drafts["2026-03"..<"2026-06"].entries()
        let newest = try drafts.range(withPrefix: "2026").last
        try drafts.all.forEach { name, draft in print(name, draft.title) }
        // end
        print(spring, newest as Any)
        // Sources/ObjectGraph/Collections/KeyedRange.swift
        var cursor = drafts.all.cursor(.descending)
        while let (name, draft) = try cursor.next(), draft.isNew { print(name) }
        // end
    }

    static func following(
        _ drafts: KeyedCollection<String, Draft>, show: @escaping (Int) -> Void, scheduleRedraw: @escaping @Sendable () -> Void,
        apply: (ResultDifference) -> Void
    ) async throws {
        // Sources/ObjectGraph/LiveResults/KeyedResults.swift
        let spring = try KeyedResults(drafts.range(withPrefix: "2026-03"))
        for (name, draft) in spring { print(name, draft?.title ?? "unreadable") }
        withObservationTracking {
            show(spring.count)
        } onChange: {
            scheduleRedraw()
        }
        for await difference in spring.differences { apply(difference) }
        // end
    }

    static func deleting(_ drafts: KeyedCollection<String, Draft>, _ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Coordination/Batches/KeyedReferences.swift
        let old = drafts["2024"..<"2025"].reference
        let result = try await container.coordinator.batchDelete(old)
        print("\(result.deletedCount) drafts were deleted")
        // end
    }

    static func importing(_ titles: [String], _ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Coordination/Batches/KeyedReferences.swift
        let drafts = try container.collection("drafts", of: Draft.self).reference
        let entries = titles.map { (key: $0, value: Draft(title: $0)) }
        try await container.coordinator.insert(into: drafts, entries: entries)
        // end
    }

    static func errors(_ drafts: KeyedCollection<String, Draft>) throws {
        // Sources/ObjectGraph/Collections/CollectionError.swift
        do {
            let draft = try drafts.value(forKey: "spring")
            print(draft?.title ?? "no draft")
        } catch CollectionError.undecodable(_, let key, let field, _) {
            print("the field \(field ?? "?") of \(key) cannot be read; its bytes:", try drafts.bytes(forKey: "spring") ?? Data())
        }
        // end
    }

    static func storing(_ context: ManagedObjectContext) throws {
        // Sources/ObjectGraph/Collections/StoredCollection.swift
        for collection in try context.storedCollections() {
            print(collection.name, collection.keyType, collection.valueType, try context.storedCount(of: collection))
            for entry in try context.storedEntries(of: collection, limit: 10) {
                print(collection.texts(ofKey: entry.key) ?? ["?"], collection.text(ofValue: entry.value) ?? "?")
            }
        }
        // end
    }
}
