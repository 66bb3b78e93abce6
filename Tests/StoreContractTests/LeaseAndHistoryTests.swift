import Dispatch
import Platform
import StoreInterface
import Testing

@Suite struct LeaseAndHistoryTests {
    @Test(arguments: StoreKind.allCases) func S002_leasesAreWholePagesAndNeverOverlap(_ kind: StoreKind) throws {
        var contract = try ContractStore(kind)
        let second = try contract.openAgain()
        var ranges: [Range<ObjectKey>] = []
        for pages in [1, 3, 16] {
            for store in [contract.store, second] {
                ranges.append(try store.write(.durable) { try $0.allocateKeys(Sample.item, pages: pages) })
            }
        }
        if StoreKind.persistent.contains(kind) { contract.store = try contract.openAgain() }
        ranges.append(try contract.store.write(.durable) { try $0.allocateKeys(Sample.item, pages: 2) })
        #expect(ranges.allSatisfy { $0.lowerBound >= 64 && $0.lowerBound % 64 == 0 && $0.count % 64 == 0 })
        #expect(ranges.map { $0.count / 64 } == [1, 1, 3, 3, 16, 16, 2])
        for (first, second) in zip(ranges, ranges.dropFirst()) { #expect(first.upperBound <= second.lowerBound) }
        let other = try contract.store.write(.durable) { try $0.allocateKeys(Sample.owner, pages: 1) }
        #expect(other.lowerBound == 64)
    }

    @Test(arguments: StoreKind.persistent) func S094_twoStoresOnOneFileTakeTurns(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let stores = [contract.store, try contract.openAgain()]
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { part in
            do {
                for round in 0..<40 {
                    try ContractStore.save(stores[part]) { $0.insertItem(ObjectKey(64 + round * 2 + part), number: Int64(part)) }
                }
            } catch { failures.withLock { $0.append("\(error)") } }
        }
        #expect(failures.withLock { $0 } == [])
        for store in stores {
            let snapshot = try store.snapshot()
            #expect(snapshot.generation == 80)
            #expect(try snapshot.count(StoreQuery(entity: Sample.item)) == 80)
        }
        #expect(stores[0].identity == stores[1].identity)
        #expect(try stores[0].changes(after: 0)?.map(\.generation) == Array(1...80))
    }

    @Test(arguments: StoreKind.allCases) func theHistoryGivesTheSavesAfterAGeneration(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save(author: "first") { layer in
            layer.insertOwner(64, "o")
            layer.insertItem(64)
            layer.setLink(Sample.tags, 64, 64, linked: true)
        }
        try contract.save(author: "second") { $0.updateItem(64, [Sample.number: .int(1)]) }
        try contract.save(author: "third") { $0.delete(Sample.item, 64) }
        let changes = try #require(try contract.store.changes(after: 1))
        #expect(changes.map(\.author) == ["second", "third"])
        #expect(changes.map(\.generation) == [2, 3])
        #expect(changes[0].change(of: Sample.item)?.updatedKeys == [64])
        #expect(changes[0].change(of: Sample.item)?.pages.first?.columns.contains(Sample.number) == true)
        #expect(changes[1].change(of: Sample.item)?.deletedKeys == [64])
        let first = try #require(try contract.store.changes(after: 0)?.first)
        #expect(first.links == [.init(link: Sample.tags, sources: [64], destinations: [64])])
        #expect(try contract.store.changes(after: 3) == [])
    }

    @Test(arguments: StoreKind.persistent) func savesSurviveReopening(_ kind: StoreKind) throws {
        var contract = try ContractStore(kind)
        let identity = contract.store.identity
        try contract.save(.durable) { $0.insertItem(64, name: "durable") }
        try contract.save(.deferred) { $0.insertItem(65, name: "deferred") }
        try contract.store.write(.durable) { _ in }
        contract.store = try contract.openAgain()
        let snapshot = try contract.snapshot()
        #expect(contract.store.identity == identity)
        #expect(snapshot.generation == 2)
        #expect(try snapshot.value(Sample.item, 64, Sample.name) == .string("durable"))
        #expect(try snapshot.value(Sample.item, 65, Sample.name) == .string("deferred"))
        #expect(try contract.store.changes(after: 1)?.count == 1)
        #expect(try contract.store.fileBytes() > 0)
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.persistent) func anotherModelIsRefused(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        var other = Sample.schema
        other.entities[0].columns[1].type = .string
        let error = #expect(throws: StoreError.self) { try kind.description(in: contract.folder).open(other) }
        #expect(error?.code == .schemaMismatch)
    }
}
