import Foundation
import Strata
import Testing

/// Dictionaries have an order in memory that says nothing. Their stored bytes must not have it.
@Suite struct EqualDictionaryTests {
    @Model final class Diary {
        var counts: [Int64: Int] = [:]
        var moods: [Mood: String]? = nil
        init(counts: [Int64: Int]) { self.counts = counts }
    }

    enum Mood: Int, Codable, CaseIterable { case calm, glad, sad }

    /// Returns an equal dictionary whose hash table has another size, and so another order.
    private static func roomy<Key: Hashable, Value>(_ dictionary: [Key: Value]) -> [Key: Value] {
        var roomy = [Key: Value](minimumCapacity: 4096)
        for (key, value) in dictionary { roomy[key] = value }
        return roomy
    }

    @Test(arguments: TestStore.allCases)
    @MainActor func `S032: an equal dictionary is no change, whatever its keys are`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Diary.self, store: description)
            let context = container.mainContext
            let counts = Dictionary(uniqueKeysWithValues: (0..<50).map { (Int64($0), $0) })
            let moods = Dictionary(uniqueKeysWithValues: Mood.allCases.map { ($0, "\($0)") })
            let diary = Diary(counts: counts)
            diary.moods = moods
            context.insert(diary)
            let tallies = try container.collection("tallies", of: [Int64: Int].self)
            tallies["a"] = counts
            try await context.save()
            for _ in 0..<8 {
                diary.counts = Self.roomy(diary.counts)
                diary.moods = diary.moods.map(Self.roomy)
                try tallies.setValue(Self.roomy(counts), forKey: "a")
            }
            #expect(!diary.hasChanges && !context.hasChanges)
            #expect(diary.counts == counts && diary.moods == moods && tallies["a"] == counts)
            diary.counts[7] = nil
            #expect(diary.hasChanges && diary.counts.count == 49)
            try await container.close()
        }
    }
}
