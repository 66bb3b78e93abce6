import StoreInterface
import StoreModel

/// Relationships from both ends.
enum RelationChecks {
    static let all: [Check] = [
        Check(
            "referrers follow the reference",
            obligation: "StoreSnapshot.related returns the keys of the objects whose reference column has the key, ascending.",
            referrersFollowTheReference),
        Check(
            "links are read from both ends",
            obligation:
                "StoreTransaction.apply adds and removes the pairs of a layer; StoreSnapshot.related returns them from both ends.",
            linksAreReadFromBothEnds),
        Check(
            "deleting an end removes its pairs",
            obligation: "StoreTransaction.apply removes the pairs of a deleted object.", deletingAnEndTakesItsLinksAway),
        Check(
            "a pair with a missing end is left out",
            obligation: "StoreTransaction.apply leaves out a pair with an end that does not exist.", aPairWithAMissingEndIsLeftOut
        ),
    ]

    static let owned = Relation.referrers(entity: Sample.item, column: Sample.owned)
    static let tags = Relation.link(Sample.tags, .forward, destination: Sample.owner)
    static let tagged = Relation.link(Sample.tags, .backward, destination: Sample.item)

    static func referrersFollowTheReference(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.insertOwner(64, "a")
            layer.insertOwner(65, "b")
            for key in 64..<68 as Range<ObjectKey> { layer.insertItem(key, changing: [Sample.owned: .reference(64)]) }
        }
        try tested.save { layer in
            layer.updateItem(65, [Sample.owned: .reference(65)])
            layer.updateItem(66, [Sample.owned: .null])
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.related(Self.owned, to: 64), equals: [64, 67])
        try expect(snapshot.related(Self.owned, to: 65), equals: [65])
        try expect(snapshot.related(Self.owned, to: 99), equals: [])
    }

    static func linksAreReadFromBothEnds(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            for key in 64..<67 as Range<ObjectKey> {
                layer.insertOwner(key, "\(key)")
                layer.insertItem(key)
            }
            for (item, owner) in [(64, 66), (64, 65), (66, 65)] as [(ObjectKey, ObjectKey)] {
                layer.setLink(Sample.tags, from: item, to: owner, linked: true)
            }
        }
        try expect(tested.snapshot().related(Self.tags, to: 64), equals: [65, 66])
        try expect(tested.snapshot().related(Self.tagged, to: 65), equals: [64, 66])
        try tested.save { layer in
            layer.setLink(Sample.tags, from: 64, to: 65, linked: false)
            layer.setLink(Sample.tags, from: 65, to: 64, linked: false)
            layer.setLink(Sample.tags, from: 66, to: 65, linked: true)
        }
        try expect(tested.snapshot().related(Self.tags, to: 64), equals: [66])
        try expect(tested.snapshot().related(Self.tagged, to: 65), equals: [66])
    }

    static func deletingAnEndTakesItsLinksAway(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            for key in 64..<67 as Range<ObjectKey> {
                layer.insertOwner(key, "\(key)")
                layer.insertItem(key)
            }
            for item in 64..<67 as Range<ObjectKey> {
                for owner in 64..<67 as Range<ObjectKey> { layer.setLink(Sample.tags, from: item, to: owner, linked: true) }
            }
        }
        try tested.save { layer in
            layer.delete(Sample.item, 64)
            layer.delete(Sample.owner, 66)
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.related(Self.tags, to: 64), equals: [])
        try expect(snapshot.related(Self.tags, to: 65), equals: [64, 65])
        try expect(snapshot.related(Self.tagged, to: 64), equals: [65, 66])
        try expect(snapshot.related(Self.tagged, to: 66), equals: [])
        try expect(tested.store.verify(), equals: [])
    }

    static func aPairWithAMissingEndIsLeftOut(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.insertItem(64)
            layer.insertOwner(64, "o")
            layer.insertOwner(65, "deleted by another save")
        }
        try tested.save { $0.delete(Sample.owner, 65) }
        try tested.save { layer in
            layer.setLink(Sample.tags, from: 64, to: 65, linked: true)
            layer.setLink(Sample.tags, from: 70, to: 64, linked: true)
        }
        try expect(tested.snapshot().related(Self.tags, to: 64), equals: [])
        try expect(tested.snapshot().related(Self.tagged, to: 64), equals: [])
        try expect(tested.store.verify(), equals: [])
    }
}
