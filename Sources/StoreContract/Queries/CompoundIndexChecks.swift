import StoreInterface
import StoreModel

/// Look-ups by several columns at once.
enum CompoundIndexChecks {
    static let all: [Check] = [
        Check(
            "S135: a look-up by several columns finds what a scan finds",
            obligation: "StoreSnapshot.lookup(_:columns:values:) returns the keys of all objects with these values, ascending.",
            lookingUpSeveralColumnsFindsWhatAScanFinds),
        Check(
            "values that end where the next begin are told apart",
            obligation: "StoreSnapshot.lookup(_:columns:values:) compares column by column.",
            valuesThatEndWhereTheNextBeginsAreToldApart),
    ]

    static func lookingUpSeveralColumnsFindsWhatAScanFinds(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        try tested.save { Population.fill($0, items: 64..<256, owners: 64..<80, &random) }
        try tested.save { layer in
            for key in ObjectKey(64)..<256 where random.chance(40) {
                if random.chance(30) {
                    layer.delete(Sample.item, key)
                    continue
                }
                let column = random.pick([Sample.name, Sample.number, Sample.note, Sample.second, Sample.ratio])
                layer.updateItem(key, [column: Population.value(column, items: 64..<256, owners: 64..<80, &random)])
            }
        }
        let snapshot = try tested.snapshot()
        for columns in [[Sample.name, Sample.number], [Sample.flag, Sample.second, Sample.note], [Sample.owned, Sample.ratio]] {
            for _ in 0..<60 {
                let values = columns.map { column -> Value in
                    if random.chance(15), Sample.schema.entities[Sample.item].columns[column].isOptional { return .null }
                    return Population.value(column, items: 64..<256, owners: 64..<80, &random)
                }
                let expected = try snapshot.all(Sample.item).filter { key in
                    try zip(columns, values).allSatisfy { try snapshot.value(Sample.item, key: key, column: $0) == $1 }
                }
                try expect(snapshot.lookup(Sample.item, columns: columns, values: values), equals: expected, "\(values)")
            }
        }
        // References to deleted objects are findings too.
        try tested.expectRelationFindingsOnly()
    }

    static func valuesThatEndWhereTheNextBeginsAreToldApart(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let long = String(repeating: "x", count: 700)
        let names = ["", "a", "a\0", "a\0\0", "ab", long, long + "y", String(long.dropLast(195)), String(long.dropLast(200))]
        try tested.save { layer in
            for (position, name) in names.enumerated() { layer.insertItem(ObjectKey(64 + position), name: name, number: 7) }
        }
        let snapshot = try tested.snapshot()
        for (position, name) in names.enumerated() {
            let found = try snapshot.lookup(
                Sample.item, columns: [Sample.name, Sample.number], values: [.string(name), .int(7)])
            try expect(found, equals: [ObjectKey(64 + position)])
        }
        try tested.save { $0.updateItem(69, [Sample.number: .int(8)]) }
        try expect(
            tested.snapshot().lookup(
                Sample.item, columns: [Sample.name, Sample.number], values: [.string(long), .int(8)]), equals: [69])
        try expect(tested.store.verify(), equals: [])
    }
}
