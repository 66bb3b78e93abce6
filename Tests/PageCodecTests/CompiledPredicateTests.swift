import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct CompiledPredicateTests {
    @Test func masksAreWhatTheReferenceSemanticsSay() throws {
        var random = SeededGenerator(test: "predicates")
        for _ in 0..<120 {
            let schema = random.schema(columns: random.below(6) + 1)
            let layout = try PageLayout(schema, schemaNumber: 1)
            var reference = PageReference(schema)
            guard let changes = reference.change(&random, generation: 1), !reference.objects.isEmpty else { continue }
            let bytes = try merge([], changes, layout)
            for _ in 0..<60 {
                let predicate = random.predicate(schema, depth: 3)
                let compiled = CompiledPredicate(predicate)
                let mask = try bytes.withUnsafeBytes {
                    try compiled.mask(of: ObjectPage($0, layout: layout, check: .header), number: 5)
                }
                for slot in 0..<64 {
                    let expected =
                        try reference.objects[slot] != nil
                        && predicate.matches(0, key: PageAddress.key(page: 5, slot: slot), in: reference)
                    let found = mask >> UInt64(slot) & 1 != 0
                    if compiled.isExact {
                        #expect(found == expected, "seed \(random.seed): \(predicate), slot \(slot)")
                    } else {
                        #expect(found || !expected, "seed \(random.seed): \(predicate), slot \(slot)")
                    }
                }
            }
        }
    }

    @Test func aRelationshipUnderNotLeavesItsObjectsInTheMask() throws {
        let schema = EntitySchema(name: "Thing", columns: [ColumnSchema(name: "c", type: .int8)])
        let layout = try PageLayout(schema, schemaNumber: 1)
        let layer = Layer(schema: StoreSchema(entities: [schema]))
        for slot in 0..<4 {
            let row = Row.make(kind: .insert, layer: layer.id, columnCount: 1)
            row[0] = .int(Int64(slot))
            layer.put(row, entity: 0, key: PageAddress.key(page: 2, slot: slot))
        }
        let changes = try #require(layer.entity(0)?.page(2))
        let bytes = try merge([], changes, layout)
        let related = StorePredicate.toMany(.referrers(entity: 0, column: 0), .any, where: .constant(true))
        let predicate = StorePredicate.and([.not(related), .compare(0, .greater, to: .int(1))])
        let compiled = CompiledPredicate(predicate)
        #expect(!compiled.isExact)
        let mask = try bytes.withUnsafeBytes {
            try compiled.mask(of: ObjectPage($0, layout: layout, check: .full), number: 2)
        }
        #expect(mask == 0b1100)
    }
}

extension SeededGenerator {
    mutating func predicate(_ schema: EntitySchema, depth: Int) -> StorePredicate {
        let column = ColumnIndex(rawValue: below(schema.columns.count))
        let other = ColumnIndex(rawValue: below(schema.columns.count))
        let comparisons: [StorePredicate.Comparison] = [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]
        let comparison = comparisons[below(6)]
        // Mostly a value of the column, sometimes null or a value of another storage class.
        var constant = value(schema.columns[chance(85) ? column : other])
        if chance(5) { constant = .null }
        if chance(8) { constant = .int(Int64(below(4))) }
        switch below(depth > 0 ? 12 : 7) {
        case 0, 1, 2: return .compare(column, comparison, to: constant)
        case 3: return .compareColumns(column, comparison, to: other)
        case 4:
            let values = Set((0..<below(12)).map { _ in value(schema.columns[chance(85) ? column : other]) })
            return .isIn(column, values)
        case 5:
            let texts = schema.columnIndices.filter { schema.columns[$0].type == .string }
            let kinds: [StorePredicate.StringMatch] = [.equals, .contains, .hasPrefix, .hasSuffix]
            return .string(
                texts.randomElement(using: &self) ?? column, kinds[below(4)], pattern: text(),
                sensitivity: chance(50) ? .sensitive : .insensitive)
        case 6:
            return .keys(
                Set(
                    (0..<below(40)).map { _ in PageAddress.key(page: PageNumber(rawValue: UInt64(below(2) + 5)), slot: below(64))
                    }))
        case 7, 8: return .and((0..<below(4)).map { _ in predicate(schema, depth: depth - 1) })
        case 9, 10: return .or((0..<below(4)).map { _ in predicate(schema, depth: depth - 1) })
        default:
            if chance(70) { return .not(predicate(schema, depth: depth - 1)) }
            return .toMany(.referrers(entity: 0, column: 0), .all, where: .constant(false))
        }
    }
}
