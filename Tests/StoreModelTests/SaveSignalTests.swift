import Foundation
import StoreContract
import StoreFiles
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Announcements of saves between processes after the signal file is removed, replaced or moved.
@Suite struct SaveSignalTests {
    enum Change: CaseIterable { case none, removed, replaced, movedAway }

    @Test(arguments: Change.allCases)
    func `S161: saves are announced also after the signal file was removed or replaced`(_ change: Change) async throws {
        let temporary = try TemporaryFolder()
        let folder = temporary.url
        defer { withExtendedLifetime(temporary) {} }
        let file = folder.appendingPathComponent("store").path
        let signal = URL(fileURLWithPath: file + "-signal")
        // A signal is created beside an existing file only.
        try Data([0]).write(to: URL(fileURLWithPath: file))
        // One signal object each, as in two processes.
        let (sender, receiver) = (SaveSignal(besideFile: file), SaveSignal(besideFile: file))
        let heard = Mutex(0)
        let watch = try receiver.watch { heard.withLock { $0 += 1 } }
        sender.send(1)
        try await until("the first save is heard") { heard.withLock { $0 } > 0 }
        for round in 0..<3 {
            switch change {
            case .none: break
            case .removed: try FileManager.default.removeItem(at: signal)
            case .replaced:
                let other = folder.appendingPathComponent("other")
                try Data([1]).write(to: other)
                _ = rename(other.path, signal.path)
            case .movedAway:
                try FileManager.default.moveItem(at: signal, to: folder.appendingPathComponent("away\(round)"))
            }
            // The removal itself may be reported as a save. The test requires only that later saves are reported.
            for generation in 2...4 as ClosedRange<Generation> {
                try await until("save \(generation) of round \(round) is heard") {
                    let before = heard.withLock { $0 }
                    sender.send(generation)
                    for _ in 0..<50 where heard.withLock({ $0 }) == before { try await Task.sleep(for: .milliseconds(2)) }
                    return heard.withLock { $0 } > before
                }
            }
        }
        withExtendedLifetime(watch) {}
    }

    /// Catches: a read-only watch that begins before the first writer, or that is lost while the file is missing.
    @Test func `S161: a read-only watch hears saves although it creates no file`() async throws {
        let temporary = try TemporaryFolder()
        let folder = temporary.url
        defer { withExtendedLifetime(temporary) {} }
        let file = folder.appendingPathComponent("store").path
        let signal = file + "-signal"
        try Data([0]).write(to: URL(fileURLWithPath: file))
        let (sender, receiver) = (SaveSignal(besideFile: file), SaveSignal(besideFile: file))
        let heard = Mutex(0)
        let watch = try receiver.watch(isReadOnly: true) { heard.withLock { $0 += 1 } }
        #expect(!FileManager.default.fileExists(atPath: signal))
        for round in 0..<3 {
            for generation in 1...3 as ClosedRange<Generation> {
                let before = heard.withLock { $0 }
                sender.send(generation)
                try await until("save \(generation) of round \(round) is heard") { heard.withLock { $0 } > before }
            }
            let before = heard.withLock { $0 }
            try FileManager.default.removeItem(atPath: signal)
            try await until("the removal is noticed") { heard.withLock { $0 } > before }
            #expect(!FileManager.default.fileExists(atPath: signal))
        }
        withExtendedLifetime(watch) {}
    }

    /// Catches: a signal file that stays when a store is removed while it is open.
    @Test func `no signal file is created beside a store that was removed`() async throws {
        let temporary = try TemporaryFolder()
        defer { withExtendedLifetime(temporary) {} }
        let file = temporary.url.appendingPathComponent("store").path
        try Data([0]).write(to: URL(fileURLWithPath: file))
        let signal = SaveSignal(besideFile: file)
        let heard = Mutex(0)
        let watch = try signal.watch { heard.withLock { $0 += 1 } }
        for name in [file, file + "-signal"] { try FileManager.default.removeItem(atPath: name) }
        try await until("the removal is noticed") { heard.withLock { $0 } > 0 }
        signal.send(1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.url.path) == [])
        let error = #expect(throws: StoreError.self) { _ = try signal.watch {} }
        #expect(error?.code == .fileReplaced)
        withExtendedLifetime(watch) {}
    }
}
