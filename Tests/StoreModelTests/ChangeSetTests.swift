import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ChangeSetTests {
    private static func random(_ generation: Generation, _ random: inout SeededGenerator) -> ChangeSet {
        var set = ChangeSet(generation: generation)
        for entity in [0, 2] as [EntityIndex] where Bool.random(using: &random) {
            let numbers = Set((0..<Int.random(in: 1...6, using: &random)).map { _ in UInt64.random(in: 1...12, using: &random) })
            let pages = numbers.sorted().map { number in
                let (a, b) = (random.next(), random.next())
                return ChangeSet.PageChange(
                    number: PageNumber(rawValue: number), inserted: a & b, updated: a & ~b, deleted: ~a & b,
                    columns: ColumnSet(first: Int(number)))
            }
            set.entities.append(.init(entity: entity, pages: pages))
        }
        for link in [1, 3] as [LinkIndex] where Bool.random(using: &random) {
            let keys = { (random: inout SeededGenerator) in
                Set((0..<5).map { _ in ObjectKey.random(in: 64..<80, using: &random) }).sorted()
            }
            set.links.append(.init(link: link, sources: keys(&random), destinations: keys(&random)))
        }
        return set
    }

    /// Catches: a change of one change set that shows in a copy of it, or in every empty change set.
    @Test func aCopyDoesNotChangeWithTheOriginal() {
        print("aCopyDoesNotChange: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        let empty = ChangeSet()
        for _ in 0..<200 {
            let original = Self.random(1, &random)
            var parts = (original.generation, original.entities, original.links, original.tombstones, original.metadata)
            var changed = Bool.random(using: &random) ? original : ChangeSet()
            if changed != original { parts = (0, [], [], [], SaveMetadata()) }
            let before = changed
            switch Int.random(in: 0..<5, using: &random) {
            case 0: changed.generation = 7
            case 1: changed.entities.append(.init(entity: 5, pages: []))
            case 2: changed.links.append(.init(link: 5, sources: [1], destinations: [2]))
            case 3: changed.tombstones.append(Tombstone(entity: 0, key: 1, values: []))
            default: changed.metadata.author = "Ada"
            }
            #expect(changed != before)
            #expect(before.generation == parts.0 && before.entities == parts.1 && before.links == parts.2)
            #expect(before.tombstones == parts.3 && before.metadata == parts.4)
            #expect(ChangeSet() == empty && empty.isEmpty && empty.tombstones.isEmpty && empty.author.isEmpty)
        }
    }

    /// Catches: a page listed twice, an older save that wins, or a lost end of a link.
    @Test func theUnionOfSavesIsWhatTheyDidToEachObjectInTheirOrder() throws {
        print("theUnionOfSaves: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        for _ in 0..<200 {
            let sets = (1...Int.random(in: 2...6, using: &random)).map { Self.random(Generation(rawValue: UInt64($0)), &random) }
            let union = ChangeSet.union(sets)
            #expect(union.generation == sets.last?.generation)
            for entity in [0, 2] as [EntityIndex] {
                var kinds: [ObjectKey: RowKind] = [:]
                for set in sets {
                    guard let change = set.change(of: entity) else { continue }
                    for key in change.insertedKeys { kinds[key] = .insert }
                    for key in change.updatedKeys where kinds[key] != .insert { kinds[key] = .update }
                    for key in change.deletedKeys { kinds[key] = .delete }
                }
                let found = union.change(of: entity)
                for (kind, keys) in [
                    (RowKind.insert, found?.insertedKeys), (.update, found?.updatedKeys), (.delete, found?.deletedKeys),
                ] {
                    #expect(keys ?? [] == kinds.filter { $0.value == kind }.keys.sorted())
                }
                let numbers = found?.pages.map(\.number) ?? []
                #expect(numbers == Set(numbers).sorted())
            }
            for link in [1, 3] as [LinkIndex] {
                let changes = sets.flatMap(\.links).filter { $0.link == link }
                let found = union.links.first { $0.link == link }
                #expect(found?.sources ?? [] == Set(changes.flatMap(\.sources)).sorted())
                #expect(found?.destinations ?? [] == Set(changes.flatMap(\.destinations)).sorted())
            }
        }
    }
}
