import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Sequences of saves of other processes, of containers that are closed.
@Suite(.timeLimit(.minutes(10))) struct RemoteChangesTests {
    /// Catches: a sequence that never ends, because the listeners of the store were ended before it was made.
    @Test(arguments: StoreKind.allCases)
    func `a sequence of remote changes that is made after closing ends at once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let another = try await bed.container()
        let early = container.coordinator.remoteChanges
        try await container.close()
        for await _ in container.coordinator.remoteChanges {}
        // The other container keeps the store open.
        for await _ in early {}
        try await another.close()
        for await _ in another.coordinator.remoteChanges {}
    }

    /// Catches: a loop that waits forever, because nothing is left that could end its sequence.
    @Test(arguments: StoreKind.allCases)
    func `a sequence of remote changes ends with its container`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let changes = try await bed.container().coordinator.remoteChanges
        for await _ in changes {}
    }
}
