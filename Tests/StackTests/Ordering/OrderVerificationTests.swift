import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Wrong positions in ordered relationships, and the findings of `verify` (S046).
@Suite struct OrderVerificationTests {
    @Test(arguments: StoreKind.allCases)
    func `S046: verification finds bytes that are no position`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let worker = container.coordinator.newBackgroundContext()
        let book = try await Books.make(["a", "b"], in: worker)
        #expect(try await container.coordinator.verify() == [])
        try await worker.perform { try $0.existingObject(with: book).chapters[1]["position in book"] = .data(Data([0xC1, 0])) }
        try await worker.save()
        let findings = try await container.coordinator.verify()
        #expect(findings.count == 1 && findings.allSatisfy { $0.description.contains("has no valid position in book") })
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S046: verification finds positions that a program without the order left behind`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: try Mixes.model())
        let mix = try await Mixes.make("abc", in: first.coordinator.newBackgroundContext())
        try await first.close()
        try await bed.closed()
        let other = try await bed.container(model: try await Model(storedIn: bed.description))
        let worker = other.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            mix.remove(mix.songs[0], from: "songs")
        }
        try await worker.save()
        try await other.close()
        try await bed.closed()
        let container = try await bed.container(model: try Mixes.model())
        #expect(try await Mixes.stored(mix, in: container) == "bc")
        let findings = try await container.coordinator.verify()
        #expect(findings.count == 1 && findings.allSatisfy { $0.description.contains("are not related") })
        try await container.close()
    }
}
