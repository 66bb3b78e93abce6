import StoreInterface
import Testing

@Suite struct RelationTests {
    static let owned = Relation.referrers(entity: Sample.item, column: Sample.owned)
    static let tags = Relation.link(Sample.tags, .forward, destination: Sample.owner)
    static let tagged = Relation.link(Sample.tags, .backward, destination: Sample.item)

    @Test(arguments: StoreKind.allCases) func referrersFollowTheReference(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertOwner(64, "a")
            layer.insertOwner(65, "b")
            for key in 64..<68 as Range<ObjectKey> { layer.insertItem(key, changing: [Sample.owned: .reference(64)]) }
        }
        try contract.save { layer in
            layer.updateItem(65, [Sample.owned: .reference(65)])
            layer.updateItem(66, [Sample.owned: .null])
        }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.related(Self.owned, to: 64) == [64, 67])
        #expect(try snapshot.related(Self.owned, to: 65) == [65])
        #expect(try snapshot.related(Self.owned, to: 99) == [])
    }

    @Test(arguments: StoreKind.allCases) func linksAreReadFromBothEnds(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            for key in 64..<67 as Range<ObjectKey> {
                layer.insertOwner(key, "\(key)")
                layer.insertItem(key)
            }
            for (item, owner) in [(64, 66), (64, 65), (66, 65)] as [(ObjectKey, ObjectKey)] {
                layer.setLink(Sample.tags, item, owner, linked: true)
            }
        }
        #expect(try contract.snapshot().related(Self.tags, to: 64) == [65, 66])
        #expect(try contract.snapshot().related(Self.tagged, to: 65) == [64, 66])
        try contract.save { layer in
            layer.setLink(Sample.tags, 64, 65, linked: false)
            layer.setLink(Sample.tags, 65, 64, linked: false)
            layer.setLink(Sample.tags, 66, 65, linked: true)
        }
        #expect(try contract.snapshot().related(Self.tags, to: 64) == [66])
        #expect(try contract.snapshot().related(Self.tagged, to: 65) == [66])
    }

    @Test(arguments: StoreKind.allCases) func deletingAnEndTakesItsLinksAway(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            for key in 64..<67 as Range<ObjectKey> {
                layer.insertOwner(key, "\(key)")
                layer.insertItem(key)
            }
            for item in 64..<67 as Range<ObjectKey> {
                for owner in 64..<67 as Range<ObjectKey> { layer.setLink(Sample.tags, item, owner, linked: true) }
            }
        }
        try contract.save { layer in
            layer.delete(Sample.item, 64)
            layer.delete(Sample.owner, 66)
        }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.related(Self.tags, to: 64) == [])
        #expect(try snapshot.related(Self.tags, to: 65) == [64, 65])
        #expect(try snapshot.related(Self.tagged, to: 64) == [65, 66])
        #expect(try snapshot.related(Self.tagged, to: 66) == [])
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases) func aPairWithAMissingEndIsLeftOut(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertItem(64)
            layer.insertOwner(64, "o")
            layer.insertOwner(65, "deleted by another save")
        }
        try contract.save { $0.delete(Sample.owner, 65) }
        try contract.save { layer in
            layer.setLink(Sample.tags, 64, 65, linked: true)
            layer.setLink(Sample.tags, 70, 64, linked: true)
        }
        #expect(try contract.snapshot().related(Self.tags, to: 64) == [])
        #expect(try contract.snapshot().related(Self.tagged, to: 64) == [])
        #expect(try contract.store.verify() == [])
    }
}
