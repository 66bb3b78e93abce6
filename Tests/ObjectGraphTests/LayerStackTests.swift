import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct LayerStackTests {
    /// A change of one object. nil deletes it.
    private typealias Changes = [ObjectKey: Int64?]

    /// The same steps in a plain model: the layers as dictionaries, oldest first, and how many a save has taken.
    private struct PlainStack {
        var layers: [Changes] = [[:]]
        var taken = 0

        var newest: Changes { layers.reduce(into: [:]) { all, layer in all.merge(layer) { $1 } } }

        mutating func seal() { if !layers[layers.count - 1].isEmpty { layers.append([:]) } }

        mutating func dropChanges() { layers.replaceSubrange(taken..., with: [[:]]) }

        mutating func unseal() {
            let open = layers[taken...].reduce(into: Changes()) { all, layer in all.merge(layer) { $1 } }
            layers.replaceSubrange(taken..., with: [open])
        }

        mutating func removeTaken() {
            layers.removeFirst(taken)
            taken = 0
        }
    }

    private static func makeStack() -> LayerStack {
        let base = PlainSnapshot(PlainState(schema: RandomViews.schema), generation: 1)
        return LayerStack(
            .init(state: StoreState(base: base, sequence: .zero), inherited: []), LayerTemplate(RandomViews.schema))
    }

    private static func put(_ value: Int64?, _ key: ObjectKey, in stack: LayerStack) {
        let kind: RowKind = value == nil ? .delete : .update
        let row = Row.make(
            kind: kind, layer: stack.topID, columnCount: RandomViews.schema.entities[RandomViews.track].columns.count)
        if let value { row[1] = .int(value) }
        stack.top.put(row, entity: RandomViews.track, key: key)
    }

    private static func shown(_ stack: LayerStack, _ keys: Range<ObjectKey>) -> Changes {
        var shown: Changes = [:]
        for key in keys {
            guard let row = stack.view.layers.lazy.compactMap({ $0.row(RandomViews.track, key) }).first else { continue }
            if row.kind == .delete { shown[key] = .some(nil) } else if case .int(let value) = row[1] { shown[key] = value }
        }
        return shown
    }

    /// Catches: layers that are lost, kept twice or put in the wrong order when saves, rollbacks and foldings meet.
    @Test func changesAreThoseOfAPlainModelAfterRandomSteps() {
        for round in 0..<100 {
            var numbers = SeededGenerator(seed: Seed.value &+ UInt64(round))
            var (stack, model) = (Self.makeStack(), PlainStack())
            let keys: Range<ObjectKey> = 1..<9
            for step in 0..<200 {
                let (before, revision) = (model.newest, stack.revision)
                switch Int.random(in: 0..<12, using: &numbers) {
                case 0..<5:
                    let key = ObjectKey.random(in: keys, using: &numbers)
                    let value = numbers.chance(1, in: 4) ? nil : Int64.random(in: 0..<100, using: &numbers)
                    // A context does not update a deleted object.
                    if value != nil, case .some(.none) = before[key] { continue }
                    Self.put(value, key, in: stack)
                    model.layers[model.layers.count - 1][key] = .some(value)
                    continue  // The top is no part of what children see until it is sealed.
                case 5:
                    let hadChanges = !model.layers[model.layers.count - 1].isEmpty
                    let sealed = stack.seal()
                    #expect(sealed == hadChanges)
                    model.seal()
                case 6 where model.taken == 0:
                    _ = stack.seal()
                    model.seal()
                    stack.beginSave()
                    model.taken = model.layers.count - 1
                case 7:
                    let count = stack.removeTaken().count
                    #expect(count == model.taken)
                    model.removeTaken()
                case 8:
                    stack.endSave()
                    model.taken = 0
                case 9:
                    let count = stack.dropChanges().count
                    #expect(count == model.layers.count - model.taken)
                    model.dropChanges()
                case 10:
                    let unsealed = stack.unseal()
                    #expect(unsealed == (model.layers.count - 1 > model.taken))
                    model.unseal()
                default:
                    continue
                }
                #expect(Self.shown(stack, keys) == model.newest, "seed \(Seed.value), round \(round), step \(step)")
                #expect(stack.hasTakenLayers == (model.taken > 0))
                let below = stack.belowTop()
                #expect(below.ids == stack.sealed.map(\.id), "seed \(Seed.value), round \(round), step \(step)")
                #expect(below.layers.map(\.id) == below.ids.reversed(), "a child reads the newest layer first")
                if model.newest != before {
                    #expect(stack.revision > revision, "seed \(Seed.value), round \(round), step \(step)")
                }
            }
        }
    }

    /// Catches: a folding that brings back layers which a rollback removed while it ran.
    @Test func aFoldingIsDroppedWhenItsLayersAreGone() {
        var stack = Self.makeStack()
        var layers: [Layer]?
        var key: ObjectKey = 1
        while layers == nil {
            Self.put(1, key, in: stack)
            key = key.advanced(by: 1)
            _ = stack.seal()
            layers = stack.beginFolding()
        }
        let again = stack.beginFolding()
        #expect(again == nil, "one folding at a time")
        let folded = Layer.folding(layers ?? [], schema: RandomViews.schema)
        folded.seal()
        _ = stack.dropChanges()
        let isReplaced = stack.endFolding(layers ?? [], into: folded, mayReplace: true)
        #expect(!isReplaced)
        #expect(Self.shown(stack, 1..<key).isEmpty)
    }

    @Test func aFoldingReplacesItsLayersAndKeepsNewerOnes() {
        var stack = Self.makeStack()
        var layers: [Layer]?
        var key: ObjectKey = 1
        while layers == nil {
            Self.put(Int64(key.rawValue), key, in: stack)
            key = key.advanced(by: 1)
            _ = stack.seal()
            layers = stack.beginFolding()
        }
        Self.put(0, 1, in: stack)
        _ = stack.seal()
        let folded = Layer.folding(layers ?? [], schema: RandomViews.schema)
        folded.seal()
        let before = (Self.shown(stack, 1..<key), stack.sealed.count)
        _ = stack.belowTop()
        let isReplaced = stack.endFolding(layers ?? [], into: folded, mayReplace: true)
        #expect(isReplaced)
        #expect(Self.shown(stack, 1..<key) == before.0)
        #expect(stack.sealed.count == before.1 - (layers?.count ?? 0) + 1)
        let below = stack.belowTop()
        #expect(below.ids == stack.sealed.map(\.id), "children read the folded layer")
    }

    @Test func onlyAResetEndsTheSavesOfEarlierChildren() {
        var stack = Self.makeStack()
        Self.put(1, 1, in: stack)
        _ = stack.dropChanges()
        let afterRollback = stack.resetGeneration
        stack.reset()
        #expect(afterRollback == 0)
        #expect(stack.resetGeneration == 1)
    }

    /// Catches: a child that reads the layers of the state before its parent moved, or its grandparent's layers above its parent's.
    @Test func childrenReadTheLayersOfThePresentState() {
        var stack = Self.makeStack()
        Self.put(1, 1, in: stack)
        _ = stack.seal()
        let own = stack.sealed.map(\.id)
        for count in [2, 0, 3] {
            let inherited = (0..<count).map { _ in Layer(schema: RandomViews.schema) }
            inherited.forEach { $0.seal() }
            stack.baseState.inherited = inherited
            stack.didMove(showsTheSame: count == 0)
            let below = stack.belowTop()
            #expect(below.layers.map(\.id) == own + inherited.map(\.id))
            #expect(below.ids == own)
        }
        _ = stack.dropChanges()
        let afterRollback = stack.belowTop()
        #expect(afterRollback.layers.count == 3 && afterRollback.ids.isEmpty)
    }

    /// Catches: adding n objects to one list reads the list n times; a list that was read before the state moved, or that is another
    /// object's, answers.
    @Test func aListIsReadOnceToRelateManyObjectsToIt() throws {
        func state(_ tracks: some Sequence<ObjectKey>, of label: ObjectKey) -> PlainSnapshot {
            var state = PlainState(schema: RandomViews.schema)
            for track in tracks {
                state.objects[RandomViews.track][track] = .init(values: [.null, .int(0), .null, .null], version: 1)
                state.links[0].insert(.init(source: track, destination: label))
            }
            return PlainSnapshot(state, generation: 1)
        }
        let first = state(stride(from: 1, to: 1_000, by: 2), of: 7)
        var stack = LayerStack(
            .init(state: StoreState(base: first, sequence: .zero), inherited: []), LayerTemplate(RandomViews.schema))
        for track: ObjectKey in 0...1_000 {
            let isRelated = try stack.isRelatedInBase(RandomViews.tracksOfLabel, to: 7, track)
            #expect(isRelated == (track.rawValue % 2 == 1))
        }
        #expect(first.listsRead == 1)
        let ofAnother = try stack.isRelatedInBase(RandomViews.tracksOfLabel, to: 8, 1)
        #expect(!ofAnother && first.listsRead == 2)

        let second = state([2, 4], of: 8)
        stack.baseState = .init(state: StoreState(base: second, sequence: .zero), inherited: [])
        stack.didMove(showsTheSame: false)
        let afterwards = try stack.isRelatedInBase(RandomViews.tracksOfLabel, to: 8, 4)
        #expect(afterwards && second.listsRead == 1)
    }
}
