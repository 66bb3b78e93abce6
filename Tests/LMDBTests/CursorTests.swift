import LMDB
import Testing

@Suite struct CursorTests {
    @Test func numberKeysAreInTheOrderOfNumbers() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        let keys: [UInt64] = [300, 2, 1 << 40, 255, 256, .max, 0]
        try temporary.environment.write { transaction in
            for key in keys { try bytes("\(key)") { try transaction.put(table, key: key, value: $0) } }
        }
        let found = try ReadTransaction(temporary.environment).withCursor(table) { cursor throws in
            var found: [UInt64] = []
            while let entry = try cursor.move(.next) { found.append(entry.number) }
            return found
        }
        #expect(found == keys.sorted())
    }

    @Test func seekingFindsTheNextKeyAndFindingOnlyTheSame() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        try temporary.environment.write { transaction in
            for key in [10, 20] as [UInt64] { try bytes("\(key)") { try transaction.put(table, key: key, value: $0) } }
        }
        try ReadTransaction(temporary.environment).withCursor(table) { cursor throws in
            #expect(try cursor.seek(11)?.number == 20)
            #expect(try cursor.seek(20)?.number == 20)
            #expect(try cursor.seek(21) == nil)
            #expect(try cursor.find(11) == nil)
            #expect(try text(cursor.find(10)?.value) == "10")
            #expect(try cursor.move(.last)?.number == 20)
            #expect(try cursor.move(.previous)?.number == 10)
        }
    }

    /// From one value, which LMDB stores differently, to more values than fit on a page.
    @Test(arguments: [1, 2, 3, 600, 5000])
    func allValuesOfAKeyAreRead(count: Int) throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .bytesToIntegers)
        let values = (0..<count).map { UInt64($0 * 3) }
        try temporary.environment.write { transaction in
            try transaction.withCursor(table) { cursor throws in
                for value in values.reversed() { try bytes("key") { try #expect(cursor.add($0, value: value)) } }
                try bytes("key") { try #expect(!cursor.add($0, value: 0)) }
                try bytes("later") { _ = try cursor.add($0, value: 9) }
            }
        }
        try ReadTransaction(temporary.environment).withCursor(table) { cursor throws in
            var found: [UInt64] = []
            let first = try #require(try bytes("key") { try cursor.find($0) })
            #expect(try cursor.valueCount() == count)
            try cursor.appendValues(after: first, to: &found)
            #expect(found == values)
            #expect(try text(cursor.move(.nextKey)?.key) == "later")
            #expect(try bytes("key") { try cursor.has($0, value: 1) } == false)
            #expect(try bytes("key") { try cursor.has($0, value: 0) })
        }
    }

    /// Catches: the values of a skipped key in place of the single value of the next key.
    @Test func theValuesOfAKeyAreItsOwnAfterOthersWerePassedOver() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integersToIntegers)
        try temporary.environment.write { transaction in
            try transaction.withCursor(table) { cursor throws in
                for value in [10, 11, 12] as [UInt64] { try cursor.add(1, value: value) }
                try cursor.add(2, value: 20)
            }
        }
        try ReadTransaction(temporary.environment).withCursor(table) { cursor in
            _ = try cursor.seek(1)
            let next = try #require(try cursor.move(.nextKey))
            var found: [UInt64] = []
            try cursor.appendValues(after: next, to: &found)
            #expect(found == [20])
        }
    }

    /// Catches: an entry that is missing or repeated at the end of a page, at a key with several values, or at a limit.
    @Test(arguments: [1, 3, 40])
    func theValuesOfAStretchAreThoseOfItsKeys(everyHowManyKeysOneHasMore: Int) throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .bytesToIntegers)
        var entries: [(key: String, values: [UInt64])] = []
        for number in 0..<700 {
            let count = number % everyHowManyKeysOneHasMore != 0 ? 1 : number % 5 == 0 ? 300 : 2
            entries.append((key: "key \(1000 + number)", values: (0..<count).map { UInt64(number * 1000 + $0) }))
        }
        let write = { (cursor: Cursor) throws in
            for entry in entries {
                for value in entry.values { try bytes(entry.key) { _ = try cursor.add($0, value: value) } }
            }
        }
        let check = { (cursor: Cursor) throws in
            for (start, end) in [(0, 700), (0, 1), (1, 2), (13, 14), (130, 431), (699, 700)] {
                let expected = entries[start..<end].flatMap(\.values)
                for limit in [1, expected.count - 1, expected.count, .max] where limit > 0 {
                    var found: [UInt64] = []
                    let first = try #require(try bytes(entries[start].key) { try cursor.find($0) })
                    let isAll = try cursor.appendValues(from: first, to: &found, limit: limit) { key in
                        end < 700 && (text(key) ?? "") >= entries[end].key
                    }
                    #expect(isAll == (limit >= expected.count), "\(start)..<\(end), at most \(limit)")
                    if isAll { #expect(found == expected) } else { #expect(expected.starts(with: found)) }
                }
            }
        }
        try temporary.environment.write { transaction in
            try transaction.withCursor(table, write)
            // The pages of a write transaction are outside of the map.
            try transaction.withCursor(table, check)
        }
        try ReadTransaction(temporary.environment).withCursor(table, check)
    }

    @Test func deletingAPairLeavesTheOthers() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integersToIntegers)
        try temporary.environment.write { transaction in
            try transaction.withCursor(table) { cursor in
                for value in 1...3 as ClosedRange<UInt64> { try cursor.add(5, value: value) }
            }
            #expect(try transaction.delete(table, 5, value: 2))
            #expect(try !transaction.delete(table, 5, value: 2))
            #expect(try transaction.statistics(table).entries == 2)
            #expect(try transaction.delete(table, 5))
            #expect(try transaction.statistics(table).entries == 0)
        }
    }

    @Test func reservedRoomIsFilledInPlace() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        try temporary.environment.write { transaction in
            try transaction.withCursor(table) { cursor throws in
                for (key, order) in [(1, Cursor.Order.ascending), (9, .ascending), (4, .any)] as [(UInt64, Cursor.Order)] {
                    let room = try cursor.reserve(key, byteCount: 5000, order: order)
                    #expect(room.count == 5000)
                    room.initializeMemory(as: UInt8.self, repeating: UInt8(key))
                }
            }
        }
        let reader = try ReadTransaction(temporary.environment)
        for key in [1, 4, 9] as [UInt64] {
            let value = try #require(try reader.get(table, key))
            #expect(value.count == 5000 && value.allSatisfy { $0 == UInt8(key) })
        }
    }

    @Test func appendingAKeyThatIsNotTheGreatestIsRefused() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .integers)
        try temporary.environment.write { transaction in
            try transaction.withCursor(table) { cursor throws in
                _ = try cursor.reserve(5, byteCount: 8, order: .ascending)
                #expect(failure { _ = try cursor.reserve(4, byteCount: 8, order: .ascending) } == .keyExists)
            }
        }
    }
}

extension Cursor {
    fileprivate func appendValues(after first: Entry, to numbers: inout [UInt64]) throws(LMDBError) {
        try forEachBlock(of: first) { numbers += $0.numbers }
    }

    fileprivate func appendValues(
        from first: Entry, to numbers: inout [UInt64], limit: Int, until isAfter: (UnsafeRawBufferPointer) -> Bool
    ) throws(LMDBError) -> Bool {
        try forEachBlock(from: first, limit: limit, until: isAfter) { numbers += $0.numbers }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var numbers: [UInt64] {
        stride(from: 0, to: count, by: 8).map { loadUnaligned(fromByteOffset: $0, as: UInt64.self) }
    }
}
