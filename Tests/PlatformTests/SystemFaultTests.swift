import Foundation
import Platform
import StoreContract
import StoreFiles
import StoreInterface
import StoreModel
import Testing

/// Failures of the operating system, injected by path.
@Suite struct SystemFaultTests {
    private let temporary: TemporaryFolder
    private var folder: URL { temporary.url }

    init() throws { temporary = try TemporaryFolder() }

    private func failing<R>(_ call: SystemCall, with error: SystemError, _ body: () throws -> R) rethrows -> R {
        let path = folder.path
        return try SystemFaults.withInjector({ $0 == call && $1.hasPrefix(path) ? error.number : nil }, body)
    }

    @Test func aFailedCallThrowsItsErrorNumber() throws {
        let error = #expect(throws: SystemError.self) { try OpenFile(folder.appendingPathComponent("none").path, access: .read) }
        #expect(error == .notFound)
        #expect(error?.isDiskFull == false)
    }

    @Test func anInjectedFailureReachesOtherThreads() async throws {
        let path = folder.appendingPathComponent("file").path
        let injected = try await withCheckedThrowingContinuation { (done: CheckedContinuation<SystemError?, any Error>) in
            failing(.open, with: .diskFull) {
                let ended = DispatchSemaphore(value: 0)
                DispatchQueue.global().async {
                    do throws(SystemError) {
                        try OpenFile(path, access: .write, options: [.create]).close()
                        done.resume(returning: nil)
                    } catch {
                        done.resume(returning: error)
                    }
                    ended.signal()
                }
                ended.wait()
            }
        }
        #expect(injected == .diskFull)
        // The injector has ended.
        try OpenFile(path, access: .write, options: [.create]).close()
    }

    /// A file gets its name only after its bytes are on disk.
    @Test(arguments: [SystemCall.sync, .rename])
    func aFileWhoseFinishFailsGetsNoName(call: SystemCall) throws {
        let url = folder.appendingPathComponent("copy")
        let partial = try PartialFile(for: url, existing: .replace)
        defer { partial.discard() }
        let error = failing(call, with: .diskFull) { #expect(throws: StoreError.self) { try partial.finish() } }
        #expect(error?.code == .full)
        #expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test func aFileSystemWithoutHardLinksRenames() throws {
        let url = folder.appendingPathComponent("copy")
        let partial = try PartialFile(for: url, existing: .refuse)
        try failing(.link, with: .accessDenied) { try partial.finish() }
        #expect(FileManager.default.fileExists(atPath: url.path))
    }

    @Test func aByteThatAnotherOpenFileHasLockedIsSeen() throws {
        let path = folder.appendingPathComponent("locked").path
        let (first, second) = (
            try OpenFile(path, access: .readAndWrite, options: [.create]), try OpenFile(path, access: .readAndWrite)
        )
        defer {
            first.close()
            second.close()
        }
        #if os(Linux)
            #expect(try first.tryLock(byte: 8, .exclusive, owner: .openFile))
            #expect(try !second.tryLock(byte: 8, .shared, owner: .openFile))
            #expect(try second.isLockedElsewhere(byte: 8, owner: .openFile))
            #expect(try second.tryLock(byte: 9, .exclusive, owner: .openFile))
            first.unlock(byte: 8, owner: .openFile)
            #expect(try second.tryLock(byte: 8, .shared, owner: .openFile))
        #endif
        #expect(try first.status().identity == FileStatus(path).identity)
    }
}
