import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Stores that are opened in a process whose standard streams are closed.
@Suite(.timeLimit(.minutes(10))) struct StandardStreamTests {
    /// Eight bytes: more would damage the locks in the lock file, and the process that prints them would wait for ever.
    private static let output = "output!\n"

    /// Opens a store while the standard streams are closed, prints to each of them, and saves.
    static func saveWithoutStreams(_ kind: StoreKind, folder: String) async throws {
        let bed = TestBed(kind, in: URL(fileURLWithPath: folder))
        for stream in STDIN_FILENO...STDERR_FILENO { close(stream) }
        // On this thread, so that Dispatch opens no descriptor before the store does.
        let container = try PersistentContainer(openingSynchronously: Music.model, store: bed.description)
        let bytes = Array(output.utf8)
        for stream in STDIN_FILENO...STDERR_FILENO { _ = write(stream, bytes, bytes.count) }
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        try await container.close()
    }

    /// Catches: a file of the store that has the number of a closed stream.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `the files of a store get nothing of the output of a program whose standard streams are closed`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        await #expect(processExitsWith: .success) { [folder = bed.folder.path as String, kind = kind.rawValue as String] in
            guard let kind = StoreKind(rawValue: kind) else { exit(2) }
            try await StandardStreamTests.saveWithoutStreams(kind, folder: folder)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path)
        #expect(names.contains(bed.file.lastPathComponent))
        for name in names {
            let bytes = try Data(contentsOf: bed.folder.appendingPathComponent(name))
            #expect(bytes.range(of: Data(Self.output.utf8)) == nil, "\(name)")
        }
        let container = try await bed.container()
        #expect(try await container.read { try $0.trackTitles() } == ["a"])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }
}
