import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// Behaviour of the stores of this package beyond the contract.
@Suite struct OwnStoreTests {
    @Test(arguments: StoreKind.allCases) func `generations are consecutive from 1`(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        for number in 1...9 as ClosedRange<Generation> {
            #expect(try contract.save { $0.insertItem(ObjectKey(rawValue: 64 + number.rawValue)) } == number)
        }
        #expect(try contract.snapshot().generation == 9)
        #expect(try contract.store.changes(after: 0)?.map(\.generation) == Array(1...9))
        #expect(try contract.snapshot().version(Sample.item, 67) == 3)
    }

    /// In an SQLite file another program may have decreased the key counter: see ``SQLiteForeignChangeTests``.
    @Test(arguments: [StoreKind.memory, .lmdb]) func `an insert over an object replaces it`(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { $0.insertItem(64, name: "old", number: 1) }
        try contract.save { $0.insertItem(64, name: "new") }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.pageValues(Sample.item, 64)?[Sample.name] == .string("new"))
        #expect(try snapshot.lookup(Sample.item, column: Sample.name, value: .string("old")) == [])
        #expect(try snapshot.lookup(Sample.item, column: Sample.number, value: .int(1)) == [])
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.persistent) func `a file of another model is refused`(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        var other = Sample.schema
        other.entities[0].columns[1].type = .string
        let error = #expect(throws: StoreError.self) { try kind.description(in: contract.folder).open(other) }
        #expect(error?.code == .schemaMismatch)
    }

    @Test func `LMDB refuses a value larger than 1 GiB by the column's name`() throws {
        let contract = try ContractStore(.lmdb)
        // The memory stays untouched, because the store reads nothing of it.
        let count = 1 << 30 + 1
        let room = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 8)
        let data = Data(bytesNoCopy: room, count: count, deallocator: .custom { pointer, _ in pointer.deallocate() })
        let row = ColumnType.allCases.map { $0 == .data ? Value.data(data) : .null }
        let error = #expect(throws: StoreError.self) { try contract.save { $0.insert(Sample.everything, key: 64, values: row) } }
        #expect(error?.code == .valueTooLarge)
        #expect(
            error?.message.contains("Everything.Version was set to 1073741825 bytes") ?? false, "\(String(describing: error))")
    }

    @Test(arguments: StoreKind.allCases) func `capabilities agree with what the stores do`(_ kind: StoreKind) throws {
        let store = try ContractStore(kind).store
        let folder = try TemporaryFolder()
        func isSupported(_ body: () throws -> Void) -> Bool {
            do { try body() } catch let error as StoreError { return error.code != .unsupported } catch {}
            return true
        }
        let canBackUp = isSupported { _ = try store.backup(to: folder.url.appendingPathComponent("copy"), existing: .refuse) }
        #expect(canBackUp == store.capabilities.contains(.backup))
        #expect(store.capabilities.contains(.compaction) == (kind == .lmdb))
        #expect(store.capabilities.contains(.layeredDeferral) == [.memory, .lmdb].contains(kind))
        #expect(store.capabilities.contains(.externalSaves) == (kind != .memory))
        #expect(store.capabilities.contains(.history))
    }
}

/// Parts of queries that no store computes by itself.
@Suite struct QueryValueTests {
    @Test func `S133: a sum that does not fit the column's type has no value`() {
        var state = AggregateState()
        state.add(.int(.max), to: .sum(0))
        #expect(state.result(.sum(0), of: .int64) == .int(.max))
        state.add(.int(1), to: .sum(0))
        #expect(state.result(.sum(0), of: .int64) == nil)
        #expect(state.result(.sum(0), of: .uint64) == .uint(1 << 63))
        #expect(AggregateState().result(.sum(0), of: .double) == .double(0))
        #expect(AggregateState().result(.average(0), of: .double) == .null)
    }

    @Test(arguments: [StorePredicate.maximumDepth + 1, 100_000])
    func `S134: a condition that is nested too deep is comparable and says why it throws`(_ levels: Int) throws {
        func nested() -> StorePredicate {
            (1..<levels).reduce(StorePredicate.compare(Sample.number, .equal, to: .int(1))) { part, _ in .not(part) }
        }
        let predicate = nested()
        #expect(predicate.depth == levels && predicate == nested())
        #expect(predicate.hashValue == nested().hashValue && "\(predicate)" == "tooDeep")
        for kind in StoreKind.allCases {
            let snapshot = try ContractStore(kind).snapshot()
            func expect(_ body: () throws -> Void) {
                let error = #expect(throws: StoreError.self, performing: body)
                #expect(error?.code == .unsupported && error?.message.contains("\(levels) levels") == true)
            }
            expect { _ = try snapshot.keys(StoreQuery(entity: Sample.item, predicate: predicate)) }
            expect { _ = try predicate.matches(Sample.item, key: 64, in: snapshot) }
        }
    }
}

/// A store of another package, and the suite itself.
@Suite struct SuiteTests {
    /// Hides the objects of one key, so that checks fail.
    private struct Wrong: Error {}

    @Test func `a violation names the check, both values, the obligation and the seed`() throws {
        let check = try #require(StoreContract.checks.first)
        let violation = #expect(throws: ContractViolation.self) { try check.run(seed: 7) { _ in throw Wrong() } }
        #expect(violation?.check == check.name && violation?.obligation == check.obligation && violation?.seed == 7)
        #expect(violation?.description.contains("found: the error: Wrong()") == true)
        #expect(violation?.description.contains("seed 7") == true)
    }
}
