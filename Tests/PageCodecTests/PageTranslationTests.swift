import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A page written under one schema is read, filtered and merged under a later schema, and compared with a reference.
@Suite struct PageTranslationTests {
    @Test func S163_pagesOfAnOlderSchemaReadAnswerAndMergeAsTheReferenceSays() throws {
        var random = SeededGenerator(test: "translation")
        for _ in 0..<150 {
            let old = random.schema(columns: random.below(7) + 1)
            var before = PageReference(old)
            guard let first = before.change(&random, generation: 1), !before.objects.isEmpty else { continue }
            let bytes = try merge([], first, try PageLayout(old, schemaNumber: 2))
            let (new, sources) = random.evolution(of: old)
            let layout = try PageLayout(
                new, schemaNumber: 3, older: [.init(schemaNumber: 2, entity: old, sources: sources)])
            var after = PageReference(new)
            after.objects = before.objects.mapValues { object in
                (zip(sources, new.columns).map { Self.value($0, $1, object.values) }, object.version)
            }
            try bytes.withUnsafeBytes { bytes in
                let page = try ObjectPage(bytes, layout: layout, check: .full)
                let difference = try after.difference(page)
                #expect(difference == nil, "seed \(random.seed)")
                for _ in 0..<20 {
                    let predicate = random.predicate(new, depth: 2)
                    let compiled = CompiledPredicate(predicate)
                    guard compiled.isExact else { continue }
                    let mask = try compiled.mask(of: page, number: 5)
                    for slot in SlotIterator(page.presence) {
                        let expected = try predicate.matches(0, key: PageAddress.key(page: 5, slot: slot), in: after)
                        #expect(mask >> UInt64(slot) & 1 != 0 ? expected : !expected, "seed \(random.seed): \(predicate)")
                    }
                }
            }
            guard let second = after.change(&random, generation: 10), !after.objects.isEmpty else { continue }
            let merged = try merge(bytes, second, layout)
            try merged.withUnsafeBytes {
                let page = try ObjectPage($0, layout: layout, check: .full)
                #expect(page.schemaNumber == 3)
                let difference = try after.difference(page)
                #expect(difference == nil, "seed \(random.seed), merged")
            }
        }
    }

    private static func value(_ source: ColumnSource, _ column: ColumnSchema, _ values: [Value]) -> Value {
        switch source {
        case .constant(let value): value
        case .stored(let number): column.type.widened(values[number])
        case .filled(let number, let fill): values[number].isNull ? fill : column.type.widened(values[number])
        }
    }
}

extension SeededGenerator {
    /// Returns a later schema, with columns kept, dropped, widened and filled, in another order and with new columns among
    /// them.
    mutating func evolution(of old: EntitySchema) -> (EntitySchema, [ColumnSource]) {
        var columns: [(ColumnSchema, ColumnSource)] = []
        for (number, column) in old.columns.enumerated(as: ColumnIndex.self) where chance(85) {
            var column = column
            let wider = ColumnType.allCases.filter { column.type.widens(to: $0) }
            if chance(40), let type = wider.randomElement(using: &self) { column.type = type }
            var source = ColumnSource.stored(number)
            if column.isOptional, column.type != .reference, chance(30) {
                column.isOptional = false
                source = .filled(number, value(column))
            } else if chance(30) {
                column.isOptional = true
            }
            columns.append((column, source))
        }
        for number in 0..<below(3) {
            let type = ColumnType.allCases.randomElement(using: &self)!  // Never empty.
            let column = ColumnSchema(
                name: "new\(number)", type: type, isOptional: chance(50), destination: type == .reference ? 0 : nil)
            columns.insert((column, .constant(value(column))), at: below(columns.count + 1))
        }
        if columns.isEmpty {
            columns = [(ColumnSchema(name: "only", type: .int8), .constant(.int(7)))]
        }
        if chance(50) { columns.shuffle(using: &self) }
        return (EntitySchema(name: "Thing", columns: columns.map(\.0)), columns.map(\.1))
    }
}
