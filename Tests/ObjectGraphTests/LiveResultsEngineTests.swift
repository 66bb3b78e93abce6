import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The engine without contexts: random layers over a random base. Each step is compared with a plain model.
struct LiveResultsEngineTests {
    /// Catches: a wrong position, a lost or repeated object, a false move, or a condition that is not evaluated again.
    @Test func S142_applyingEachDifferenceGivesTheNextSnapshot() throws {
        let seed = SeededGenerator(test: #function).seed
        for round in 0..<Rounds.of(25, long: 2_000) {
            try follow(seed: seed &+ UInt64(round), knowsChanges: round % 5 != 0, steps: 12)
        }
    }

    private func follow(seed: UInt64, knowsChanges: Bool, steps: Int) throws {
        var views = RandomViews(seed: seed)
        var query = views.randomQuery()
        if query.sort.isEmpty { query.sort = [StoreSort(column: 0)] }
        var live = try LiveQuery(query, in: views.view)
        var shown = live.list.keys(live.window)
        #expect(try shown == views.model.keys(query))
        for step in 0..<steps {
            let before = views.model
            var changes: [ChangeSet] = []
            // Bursts are coalesced, so one step may bring several layers.
            for _ in 0..<(1 + step % 3) {
                changes.append(views.addLayer(changes: Int.random(in: 0...12, using: &views.numbers)).changeSet())
            }
            var view = views.view
            if !knowsChanges, step % 2 == 0 {
                // With another base the layers say nothing about the differences. The engine must compare everything.
                view = LayeredView(base: PlainSnapshot(views.base.state, generation: 1), layers: view.layers)
            }
            let difference = try live.advance(to: view, changes: knowsChanges ? changes : nil)
            let next = live.list.keys(live.window)
            #expect(try next == views.model.keys(query), "seed \(seed), \(query)")
            #expect(difference.applied(to: shown, takingFrom: next) == next, "seed \(seed), \(difference)")
            try expectMinimal(difference, from: shown, to: next, before: before, after: views.model, entity: query.entity)
            shown = next
        }
    }

    /// Checks that every changed object is listed, that deletions and insertions are exact, and that updates are not moves.
    private func expectMinimal(
        _ difference: ResultDifference, from old: [ObjectKey], to new: [ObjectKey], before: PlainState, after: PlainState,
        entity: EntityIndex
    ) throws {
        #expect(difference.deletions.map { old[$0] } == old.filter { !new.contains($0) })
        #expect(difference.insertions.map { new[$0] } == new.filter { !old.contains($0) })
        let named = Set(difference.updates.map { new[$0] } + difference.moves.map { new[$0.to] })
        for key in new where old.contains(key) {
            let differs = zip(before.objects[entity][key]?.values ?? [], after.objects[entity][key]?.values ?? [])
                .contains { $0.order($1) != 0 }
            if differs { #expect(named.contains(key)) }
        }
        #expect(difference.moves.allSatisfy { old[$0.from] == new[$0.to] })
        #expect(difference.insertions == difference.insertions.sorted())
        #expect(difference.updates == difference.updates.sorted())
    }

    @Test func S143_irrelevantChangesGiveAnEmptyDifference() throws {
        var views = RandomViews(seed: 3)
        let query = StoreQuery(
            entity: RandomViews.track, predicate: .compare(1, .greater, to: .int(1_000)), sort: [.init(column: 0)])
        var live = try LiveQuery(query, in: views.view)
        let changes = views.addLayer(changes: 40).changeSet()
        #expect(try live.advance(to: views.view, changes: [changes]).isEmpty)
    }

    /// Catches: shifted positions that are reported as moves.
    @Test func S140_shiftsAreNotMovesAndAMoveImpliesItsUpdate() throws {
        var state = PlainState(schema: RandomViews.schema)
        for key in 1...6 as ClosedRange<ObjectKey> {
            state.objects[1][key] = .init(values: [.string("t\(key)"), .int(Int64(key.rawValue) * 10), .null, .null], version: 1)
        }
        let base = PlainSnapshot(state, generation: 1)
        var live = try LiveQuery(StoreQuery(entity: 1, sort: [.init(column: 1)]), in: LayeredView(base: base))
        let layer = Layer(schema: RandomViews.schema)
        func set(_ key: ObjectKey, _ plays: Int64) {
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 4)
            row[1] = .int(plays)
            layer.put(row, entity: 1, key: key)
        }
        // The second object grows but keeps its position. The sixth moves to the front and shifts all others.
        set(2, 25)
        set(6, 5)
        layer.seal()
        let difference = try live.advance(
            to: LayeredView(base: base, layers: [layer]), changes: [layer.changeSet()])
        #expect(difference == ResultDifference(moves: [.init(from: 5, to: 0)], updates: [2]))
    }

    /// Catches: an unchanged object that counts as moved, because the changed one beside it stays in a longest order too.
    @Test func `S140: the object that has changed moves, not its unchanged neighbour`() {
        let difference = ResultDifference(from: [1, 2, 3], to: [1, 3, 2]) { $0 == 2 }
        #expect(difference == ResultDifference(moves: [.init(from: 1, to: 2)]))
        let other = ResultDifference(from: [1, 2, 3], to: [1, 3, 2]) { $0 == 3 }
        #expect(other == ResultDifference(moves: [.init(from: 2, to: 1)]))
        // A changed object that keeps its place among the others is updated.
        let kept = ResultDifference(from: [1, 2, 3], to: [3, 1, 2]) { $0 != 1 }
        #expect(kept == ResultDifference(moves: [.init(from: 2, to: 0)], updates: [2]))
    }

    /// Catches: a difference of whole lists that names an object twice or not at all, or moves an unchanged object that keeps its order.
    @Test func `S140, S142: the difference of two lists gives the next one, and unchanged objects in order stay`() {
        var numbers = SeededGenerator(test: #function)
        let keys = (1...12).map { ObjectKey(rawValue: $0) }
        for round in 0..<Rounds.of(200, long: 50_000) {
            let old = keys.filter { _ in numbers.chance(70) }.shuffled(using: &numbers)
            let changed = Set(old.filter { _ in numbers.chance(round % 2 == 0 ? 20 : 60) })
            var new = old.filter { _ in numbers.chance(80) }
            let isInOrder = round % 3 != 0
            if isInOrder {
                let moving = new.filter(changed.contains)
                new.removeAll(where: changed.contains)
                for key in moving { new.insert(key, at: numbers.below(new.count + 1)) }
            } else {
                new.shuffle(using: &numbers)
            }
            for key in keys where !old.contains(key) && numbers.chance(40) { new.insert(key, at: numbers.below(new.count + 1)) }
            let difference = ResultDifference(from: old, to: new, isUpdated: changed.contains)
            let place = "round \(round): \(old) to \(new), changed \(changed): \(difference)"
            #expect(difference.applied(to: old, takingFrom: new) == new, "\(place)")
            #expect(difference.deletions.map { old[$0] } == old.filter { !new.contains($0) }, "\(place)")
            #expect(difference.insertions.map { new[$0] } == new.filter { !old.contains($0) }, "\(place)")
            #expect(difference.moves.allSatisfy { old[$0.from] == new[$0.to] }, "\(place)")
            let (moved, updated) = (difference.moves.map { new[$0.to] }, difference.updates.map { new[$0] })
            #expect(Set(moved).count == moved.count && Set(moved).isDisjoint(with: updated), "\(place)")
            #expect(Set(updated).isSubset(of: changed), "\(place)")
            #expect(Set(new).intersection(changed).isSubset(of: moved + updated), "\(place)")
            if isInOrder { #expect(Set(moved).isSubset(of: changed), "\(place)") }
        }
    }
}

extension ResultDifference {
    /// Applies a difference as the documentation describes it for observers.
    func applied<ID>(to old: [ID], takingFrom next: [ID]) -> [ID] {
        var result = old
        for position in (deletions + moves.map(\.from)).sorted(by: >) { result.remove(at: position) }
        for position in (insertions + moves.map(\.to)).sorted() {
            guard position <= result.count else { return [] }
            result.insert(next[position], at: position)
        }
        return result
    }
}
