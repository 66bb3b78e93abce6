import MemoryStore
import StoreInterface
import StoreModel
import Testing

@testable import ObjectGraph

@Suite struct SaveGateTests {
    @Test func waitingSavesStartOneByOneInTheirOrder() {
        var gate = SaveGate()
        var began = [gate.enterIfIdle()]
        var started: [Int] = []
        for number in 1...3 {
            began.append(gate.enterIfIdle())
            gate.wait { started.append(number) }
        }
        #expect(began == [true, false, false, false])
        for number in 1...3 {
            gate.leave()?()
            #expect(started == Array(1...number))
            #expect(gate.isSaving)
        }
        let next = gate.leave()
        #expect(next == nil)
        #expect(!gate.isSaving)
    }

    @Test func movesCountFromTheHandOverOfASaveToItsEnd() {
        var gate = SaveGate()
        let began = gate.enterIfIdle()
        gate.noteMove()
        let before = gate.hasMoved
        gate.handOver()
        let handedOver = gate.hasMoved
        gate.noteMove()
        let during = gate.hasMoved
        gate.leave()?()
        let after = gate.hasMoved
        gate.noteMove()
        #expect([began, before, handedOver, during, after, gate.hasMoved] == [true, false, false, true, false, false])
    }

    @Test func savesOfChildrenFormOneGroupUntilItIsTaken() throws {
        var gate = SaveGate()
        let isFirst = [gate.add(try Self.push()), gate.add(try Self.push())]
        let groups = [gate.takeGroup().count, gate.takeGroup().count]
        let isFirstOfNext = gate.add(try Self.push())
        #expect(isFirst == [true, false])
        #expect(groups == [2, 0])
        #expect(isFirstOfNext)
    }

    private static func push() throws -> WaitingPush {
        let store = MemoryStore(schema: StoreSchema(entities: [], links: []))
        let layer = Layer(schema: store.schema)
        let changes = ChildChanges(
            layer: layer, changes: layer.changeSet(metadata: SaveMetadata()), parentViewRevision: 0, parentResetGeneration: 0,
            state: StoreState(base: try store.snapshot(), sequence: .zero), metadata: SaveMetadata())
        return WaitingPush(push: changes, durability: .deferred) { _ in }
    }
}
