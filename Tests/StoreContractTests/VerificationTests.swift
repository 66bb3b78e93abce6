import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import MemoryStore
@testable import SQLiteStore

/// Wrong states, written without the checks of saves, and the findings of `verify`.
@Suite struct VerificationTests {
    private static let person: EntityIndex = 0
    private static let passport: EntityIndex = 1

    /// People and passports are one-to-one, and people have many friends.
    private static let schema: StoreSchema = {
        var schema = StoreSchema(
            entities: [
                EntitySchema(
                    name: "Person",
                    columns: [
                        ColumnSchema(name: "email", type: .string, isOptional: true, index: .unique),
                        ColumnSchema(name: "passport", type: .reference, isOptional: true, destination: passport),
                        ColumnSchema(name: "row", type: .int32, isOptional: true),
                        ColumnSchema(name: "seat", type: .double, isOptional: true),
                    ], indexes: [IndexSchema(columns: [2, 3], kind: .unique)]),
                EntitySchema(
                    name: "Passport",
                    columns: [ColumnSchema(name: "owner", type: .reference, isOptional: true, destination: person)]),
            ], links: [LinkSchema(name: "Person.friends", source: person, destination: person)])
        schema.relationships = [
            RelationshipSchema(entity: person, name: "passport", destination: passport, column: 1, inverse: 1),
            RelationshipSchema(entity: passport, name: "owner", destination: person, column: 0, inverse: 0),
        ]
        return schema
    }()

    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    /// Creates person 64 with passport 64, person 65 with passport 65, friends, and more people without relationships.
    private func soundStore(_ kind: StoreKind) throws -> any ObjectStore {
        let store = try kind.description(in: folder).open(Self.schema)
        try ContractStore.save(store) { layer in
            for key in 64..<66 as Range<ObjectKey> {
                layer.insert(
                    Self.person, key: key, values: [.string("\(key)"), .reference(key), .int(1), .double(Double(key.rawValue))])
                layer.insert(Self.passport, key: key, values: [.reference(key)])
            }
            for key in 66..<140 as Range<ObjectKey> {
                layer.insert(Self.person, key: key, values: [.null, .null, .int(7), .null])
            }
            // NaN equals nothing.
            for key in 140..<142 as Range<ObjectKey> {
                layer.insert(Self.person, key: key, values: [.null, .null, .int(7), .double(.nan)])
            }
            layer.setLink(0, from: 64, to: 65, linked: true)
        }
        #expect(try store.verify() == [])
        return store
    }

    private func findings(_ kind: StoreKind, _ build: (Layer) -> Void) throws -> [String] {
        let store = try soundStore(kind)
        try ContractStore.save(store, durability: .deferred, build)
        return try store.verify().map(\.description).sorted()
    }

    private static func update(_ layer: Layer, person key: ObjectKey, _ values: [ColumnIndex: Value]) {
        layer.update(person, key: key, of: 4, values: values)
    }

    @Test(arguments: StoreKind.allCases) func `verify reports a reference that leads to nothing`(_ kind: StoreKind) throws {
        let found = try findings(kind) { Self.update($0, person: 70, [1: .reference(900)]) }
        #expect(found == ["Person 70: passport leads to Passport 900, which does not exist."])
    }

    @Test(arguments: StoreKind.allCases) func `verify reports a reference to a deleted object`(_ kind: StoreKind) throws {
        let found = try findings(kind) { $0.delete(Self.person, 65) }
        #expect(found == ["Passport 65: owner leads to Person 65, which does not exist."])
    }

    @Test(arguments: StoreKind.allCases) func `verify reports one passport of two owners`(_ kind: StoreKind) throws {
        let found = try findings(kind) { Self.update($0, person: 70, [1: .reference(64)]) }
        #expect(found == ["Person 70: passport leads to Passport 64, but owner of that leads to Person 64."])
    }

    @Test(arguments: StoreKind.allCases) func `verify reports half of a one-to-one relationship`(_ kind: StoreKind) throws {
        let found = try findings(kind) { Self.update($0, person: 64, [1: .null]) }
        #expect(found == ["Passport 64: owner leads to Person 64, but passport of that is nil."])
    }

    @Test(arguments: StoreKind.allCases) func `verify reports a unique value of two objects`(_ kind: StoreKind) throws {
        let found = try findings(kind) { Self.update($0, person: 139, [0: .string("65")]) }
        #expect(found == ["Person 139: has the value of email that Person 65 has, but it is unique."])
    }

    @Test(arguments: StoreKind.allCases) func `verify reports unique values in several columns`(_ kind: StoreKind) throws {
        let found = try findings(kind) { Self.update($0, person: 80, [2: .int(1), 3: .double(64)]) }
        #expect(found == ["Person 80: has the value of row+seat that Person 64 has, but it is unique."])
    }

    @Test(arguments: StoreKind.allCases) func `verify stops at 200 findings`(_ kind: StoreKind) throws {
        let found = try findings(kind) { layer in
            for key in 200..<600 as Range<ObjectKey> {
                layer.insert(Self.person, key: key, values: [.string("same"), .null, .null, .null])
            }
        }
        #expect(found.count == 200)
    }

    @Test(arguments: StoreKind.allCases) func `S212: verify reports a save that the history lacks`(_ kind: StoreKind) throws {
        let store = try soundStore(kind)
        try store.write(.durable) { transaction in
            let layer = Layer(schema: store.schema)
            Self.update(layer, person: 70, [2: .int(3)])
            layer.stamp(transaction.generation.advanced(by: 2))
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet(metadata: SaveMetadata()))
        }
        #expect(try store.verify().map(\.description) == ["history: save 3 follows save 1"])
    }

    @Test func `S212: verify of an SQLite file reports what other programs did to it`() throws {
        let scripts = [
            ("DELETE FROM strata_history WHERE generation = 2", "history: ends with save 1, but the newest is 2"),
            ("UPDATE strata_history SET generation = 5 WHERE generation = 2", "history: the row of save 5 is of save 2"),
            ("UPDATE Person SET version = 9 WHERE id = 64", "Person 64: was written by a later save"),
            (
                "INSERT INTO \"Person.friends\" VALUES (64, 999)",
                "Person.friends: links Person 64 and Person 999, but Person 999 does not exist."
            ),
            ("DROP INDEX Person_email", "index on Person.email: is missing"),
            ("DROP INDEX Person_row_seat", "index on Person.row+seat: is missing"),
            (
                "DROP INDEX Person_email; CREATE INDEX Person_email ON Person (email) WHERE email > 'x'",
                "index on Person.email: is missing"
            ),
            ("DROP INDEX \"Person.friends_reverse\"", "index on Person.friends: is missing"),
            (
                "UPDATE strata_keys SET next = 128 WHERE entity = 0",
                "Person 141: its key was never leased: the first such key is 128"
            ),
            (
                "INSERT INTO strata_meta VALUES ('free keys 0', '64-66,130-134')",
                "Person 65: its key is among those that were given back unused"
            ),
            (
                "INSERT INTO Person (id, version) VALUES (-5, 1)",
                "Person: has objects with negative ids, which no store assigns: 1"
            ),
            ("UPDATE Person SET email = CAST(x'ff41' AS TEXT) WHERE id = 70", "Person 70: the value of email is not string"),
        ]
        for (script, expected) in scripts {
            let url = folder.url.appendingPathComponent("store.sqlite")
            for suffix in ["", "-wal", "-shm", "-lock", "-signal"] {
                try? FileManager.default.removeItem(atPath: url.path + suffix)
            }
            let store = try soundStore(.sqlite)
            try ContractStore.save(store) { Self.update($0, person: 70, [2: .int(3)]) }
            let connection = try SQLiteConnection(path: url.path, role: .writer)
            try connection.withLock { try connection.runScript(script) }
            let found = try store.verify().map(\.description)
            #expect(found.contains(expected), "\(script): \(found)")
        }
    }

    @Test func `S212: the memory store reports its own indexes and links`() {
        func problems(_ damage: (inout MemoryState) -> Void) -> [String] {
            var state = MemoryState(schema: Self.schema)
            for key in 64..<66 as Range<ObjectKey> {
                let values: [Value] = [.string("\(key)"), .null, .int(1), .double(Double(key.rawValue))]
                state.put(MemoryRecord(version: 0, values: values), entity: Self.person, key: key)
            }
            state.links[0].set(64, 65, linked: true)
            #expect(state.problems(Self.schema) == [])
            damage(&state)
            return state.problems(Self.schema)
        }
        #expect(problems { $0.indexes[0][0]?[.string("64")] = nil } == ["Person 64: is missing in the index on email"])
        #expect(
            problems { $0.indexes[0][0]?[.string("x")] = [64] }
                == ["index on Person.email: has an entry for Person 64, which has other values"])
        #expect(
            problems { $0.compoundIndexes[0][0].move(64, from: [.null, .null, .int(1), .double(64)], to: nil) }
                == ["Person 64: is missing in the index on row+seat"])
        #expect(
            problems { $0.links[0].backward[65] = nil }
                == ["relationship Person.friends: pair 64, 65 is stored one way only"])
        #expect(
            problems { $0.links[0].forward[64] = nil }
                == ["relationship Person.friends: pair 64, 65 is stored one way only"])
        #expect(
            problems { $0.links[0].set(64, 99, linked: true) }
                == ["Person.friends: links Person 64 and Person 99, but Person 99 does not exist."])
    }

    /// Catches: entries that no look-up finds and no write removes, one more with each save.
    @Test func `indexes of the memory store have no entries of NaN`() {
        let columns = ["x", "y"].map { ColumnSchema(name: $0, type: .double, isOptional: true, index: .indexed) }
        let schema = StoreSchema(entities: [EntitySchema(name: "A", columns: columns, indexes: [IndexSchema(columns: [0, 1])])])
        var state = MemoryState(schema: schema)
        for y in 0..<3 {
            state.put(MemoryRecord(version: 1, values: [.double(.nan), .double(Double(y))]), entity: 0, key: 64)
            #expect(state.indexes[0][0]?.isEmpty == true && state.compoundIndexes[0][0].keys.isEmpty)
            #expect(state.indexes[0][1]?.count == 1)
        }
        state.put(MemoryRecord(version: 1, values: [.double(1), .double(2)]), entity: 0, key: 64)
        #expect(state.indexes[0][0]?.count == 1 && state.compoundIndexes[0][0].keys.count == 1)
        state.remove(0, 64)
        #expect(state.indexes[0].values.allSatisfy(\.isEmpty) && state.compoundIndexes[0][0].keys.isEmpty)
    }
}
