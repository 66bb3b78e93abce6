import LMDB
import Testing

@Suite struct TransactionTests {
    @Test func aThrownErrorLeavesNothing() throws {
        struct Stop: Error {}
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .bytes)
        #expect(throws: Stop.self) {
            try temporary.environment.write { transaction in
                try bytes("key") { key in try bytes("value") { try transaction.put(table, key: key, value: $0) } }
                throw Stop()
            }
        }
        #expect(try bytes("key") { try ReadTransaction(temporary.environment).get(table, $0) } == nil)
    }

    @Test func aReaderKeepsItsStateWhileOthersWrite() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        try temporary.environment.write { transaction in try bytes("old") { try transaction.put(table, key: 7, value: $0) } }
        let reader = try ReadTransaction(temporary.environment)
        let seen = try reader.get(table, 7)
        for round in 0..<50 {
            try temporary.environment.write { transaction in
                try bytes("new \(round)") { try transaction.put(table, key: 7, value: $0) }
            }
        }
        #expect(text(seen) == "old")
        #expect(text(try reader.get(table, 7)) == "old")
        #expect(text(try ReadTransaction(temporary.environment).get(table, 7)) == "new 49")
    }

    @Test func readerSlotsAreReusedNotUsedUp() throws {
        let temporary = try TemporaryEnvironment(maximumReaders: 4)
        for _ in 0..<100 { _ = try ReadTransaction(temporary.environment) }
        #expect(temporary.environment.liveReaders == 0)
        #expect(try temporary.environment.information().usedReaderSlots == 1)
    }

    @Test func moreReadersThanSlotsAreRefusedUntilOneEnds() throws {
        let temporary = try TemporaryEnvironment(maximumReaders: 4)
        var readers: [ReadTransaction] = []
        var refusal: LMDBError.Code?
        while refusal == nil, readers.count < 1000 {
            refusal = failure { readers.append(try ReadTransaction(temporary.environment)) }
        }
        #expect(refusal == .readersFull)
        readers.removeLast()
        readers.append(try ReadTransaction(temporary.environment))
        #expect(temporary.environment.liveReaders == readers.count)
    }

    @Test func aMapGrowsOnlyWhileNoReaderLivesInIt() throws {
        let temporary = try TemporaryEnvironment(mapSize: 1 << 20)
        let table = try temporary.open("table", .integers)
        func fill() throws {
            try temporary.environment.write { transaction in
                for key in 0..<1000 as Range<UInt64> {
                    try bytes(String(repeating: "x", count: 3000)) { try transaction.put(table, key: key, value: $0) }
                }
            }
        }
        #expect(failure(fill) == .mapFull)
        do {
            let reader = try ReadTransaction(temporary.environment)
            #expect(try temporary.environment.resizeMap(to: 1 << 24) == false)
            withExtendedLifetime(reader) {}
        }
        #expect(try temporary.environment.resizeMap(to: 1 << 24))
        #expect(failure(fill) == nil)
        #expect(try ReadTransaction(temporary.environment).statistics(table).entries == 1000)
    }

    @Test func handlesOpenedForReadingStayValid() throws {
        let temporary = try TemporaryEnvironment()
        _ = try temporary.open("table", .integers)
        let table = try temporary.environment.openDatabases { try $0.open("table", .integers) }
        let missing = try temporary.environment.openDatabases { try $0.open("none", .integers) }
        #expect(missing == nil)
        let found = try #require(table)
        try temporary.environment.write { transaction in try bytes("v") { try transaction.put(found, key: 1, value: $0) } }
        #expect(text(try ReadTransaction(temporary.environment).get(found, 1)) == "v")
    }

    @Test func manyThreadsReadOneTransaction() async throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        try temporary.environment.write { transaction in
            for key in 0..<500 as Range<UInt64> { try bytes("value \(key)") { try transaction.put(table, key: key, value: $0) } }
        }
        let reader = try ReadTransaction(temporary.environment)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for start in 0..<8 as Range<UInt64> {
                group.addTask {
                    (0..<2000 as Range<UInt64>).count { step in
                        let key = (start * 61 + step) % 500
                        return text(try? reader.get(table, key)) != "value \(key)"
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}
