import Foundation
import LMDB
import Testing

@Suite struct ErrorTests {
    @Test func anErrorNamesCallReasonAndRemedy() throws {
        let temporary = try TemporaryEnvironment()
        let table = try temporary.open("table", .bytes)
        do {
            try temporary.environment.write { transaction in
                try bytes(String(repeating: "k", count: 512)) { key in
                    try bytes("v") { try transaction.put(table, key: key, value: $0) }
                }
            }
            Issue.record("a key of 512 bytes was taken")
        } catch let error as LMDBError {
            #expect(error.code == .badValueSize)
            #expect(error.description.hasPrefix("mdb_put: MDB_BAD_VALSIZE"))
            #expect(error.description.hasSuffix(error.remedy))
        }
    }

    /// Catches: advice to restore a backup although the file is whole.
    @Test func `an environment that must be opened again is no damaged file`() {
        let error = LMDBError(returnCode: -30795, call: .begin)
        #expect(error.code == .unusableEnvironment)
        #expect(error.description.hasPrefix("mdb_txn_begin: MDB_PANIC"))
        #expect(error.description.hasSuffix(error.remedy) && error.remedy.hasSuffix("open it again."))
    }

    @Test func openingWithOtherFlagsOrTooManyDatabasesIsRefused() throws {
        let temporary = try TemporaryEnvironment(maximumDatabases: 2)
        _ = try temporary.open("one", .bytes)
        _ = try temporary.open("two", .integers)
        #expect(failure { _ = try temporary.open("three", .integers) } == .databasesFull)
    }

    @Test func `a library of an unknown release line is refused`() throws {
        try LMDBLibrary.check()
        try LMDBLibrary.check("0.9")
        for line in ["1.0", "0.10", "0.8", ""] {
            let error = #expect(throws: LMDBError.self) { try LMDBLibrary.check(line) }
            #expect(error?.code == .versionMismatch && error?.description.hasPrefix("mdb_version: ") == true)
            #expect(error?.remedy == "The layout of pages is known for LMDB 0.9 only: link a library of that release line.")
        }
    }

    @Test func `a sub-database of another kind is refused`() throws {
        let temporary = try TemporaryEnvironment()
        _ = try temporary.open("one", .bytes)
        #expect(failure { _ = try temporary.open("one", .integers) } == .incompatible)
        #expect(failure { _ = try temporary.open("one", .bytesToIntegers) } == .incompatible)
    }

    @Test func aFolderThatDoesNotExistIsASystemError() {
        let code = failure {
            _ = try Environment(path: "/nowhere/at/all/data", options: .init(mapSize: 1 << 20))
        }
        #expect(code == .system(2))
    }

    @Test func bytesThatAreNotLMDBAreRefused() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("lmdb-bytes-\(UUID().uuidString)")
        try Data(repeating: 0x5A, count: 8192).write(to: file)
        defer {
            try? FileManager.default.removeItem(at: file)
            try? FileManager.default.removeItem(atPath: file.path + "-lock")
        }
        #expect(failure { _ = try Environment(path: file.path, options: .init(mapSize: 1 << 20)) } == .notLMDB)
    }

    @Test func theMapIsMadeSmallerUntilTheAddressSpaceTakesIt() throws {
        let temporary = try TemporaryEnvironment(mapSize: 1 << 52)
        let size = try temporary.environment.information().mapSize
        #expect(size < 1 << 48 && size >= 1 << 20)
    }

    #if DEBUG
        /// Each call fails once. The error is thrown, nothing is written, and the environment stays usable.
        @Test(arguments: [LMDBCall.begin, .put, .cursorPut, .openCursor, .commit, .openDatabase])
        func anInjectedFaultArrivesAndLeavesNothing(call: LMDBCall) throws {
            let temporary = try TemporaryEnvironment()
            let table = try temporary.open("table", .integers)
            func write() throws {
                try temporary.environment.write { transaction in
                    _ = try transaction.open("table", .integers)
                    try bytes("v") { try transaction.put(table, key: 1, value: $0) }
                    try transaction.withCursor(table) { _ = try $0.reserve(2, byteCount: 1, order: .any) }
                }
            }
            let code = LMDBFaults.withInjector(at: temporary.folder.path, { $0 == call ? 28 : nil }) { failure(write) }
            #expect(code == .diskFull)
            #expect(try ReadTransaction(temporary.environment).statistics(table).entries == 0)
            try write()
            #expect(try ReadTransaction(temporary.environment).statistics(table).entries == 2)
        }
    #endif
}
