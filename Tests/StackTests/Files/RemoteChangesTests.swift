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
        try await another.close()
        for await _ in early {}
        for await _ in another.coordinator.remoteChanges {}
    }
}
