import StoreInterface
import Testing

/// Indexes over several columns, which every save must update.
@Suite struct CompoundIndexTests {
    @Test(arguments: StoreKind.allCases) func S135_lookingUpSeveralColumnsFindsWhatAScanFinds(_ kind: StoreKind) throws {
        var random = SeededRandom("compound look-ups on \(kind)")
        let contract = try ContractStore(kind)
        try contract.save { Population.fill($0, items: 64..<256, owners: 64..<80, &random) }
        try contract.save { layer in
            for key in ObjectKey(64)..<256 where random.chance(40) {
                if random.chance(30) {
                    layer.delete(Sample.item, key)
                    continue
                }
                let column = random.pick([Sample.name, Sample.number, Sample.note, Sample.second, Sample.ratio])
                layer.updateItem(key, [column: Population.value(column, items: 64..<256, owners: 64..<80, &random)])
            }
        }
        let snapshot = try contract.snapshot()
        for columns in [[Sample.name, Sample.number], [Sample.flag, Sample.second, Sample.note], [Sample.owned, Sample.ratio]] {
            for _ in 0..<60 {
                let values = columns.map { column -> Value in
                    if random.chance(15), Sample.schema.entities[Sample.item].columns[column].isOptional { return .null }
                    return Population.value(column, items: 64..<256, owners: 64..<80, &random)
                }
                let expected = try snapshot.all(Sample.item).filter { key in
                    try zip(columns, values).allSatisfy { try snapshot.value(Sample.item, key, $0) == $1 }
                }
                #expect(try snapshot.lookup(Sample.item, columns: columns, values: values) == expected, "\(values)")
            }
        }
        // Verification also reports references to objects that the test deleted.
        #expect(try contract.store.verify().filter { $0.description.contains("index") } == [])
    }

    @Test(arguments: StoreKind.allCases) func valuesThatEndWhereTheNextBeginsAreToldApart(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let long = String(repeating: "x", count: 700)
        let names = ["", "a", "a\0", "a\0\0", "ab", long, long + "y", String(long.dropLast(195)), String(long.dropLast(200))]
        try contract.save { layer in
            for (position, name) in names.enumerated() { layer.insertItem(64 + ObjectKey(position), name: name, number: 7) }
        }
        let snapshot = try contract.snapshot()
        for (position, name) in names.enumerated() {
            let found = try snapshot.lookup(
                Sample.item, columns: [Sample.name, Sample.number], values: [.string(name), .int(7)])
            #expect(found == [64 + ObjectKey(position)])
        }
        try contract.save { $0.updateItem(69, [Sample.number: .int(8)]) }
        #expect(
            try contract.snapshot().lookup(
                Sample.item, columns: [Sample.name, Sample.number], values: [.string(long), .int(8)]) == [69])
        #expect(try contract.store.verify() == [])
    }
}
