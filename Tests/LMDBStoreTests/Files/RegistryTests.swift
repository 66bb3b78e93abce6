import Dispatch
import Foundation
import Platform
import StoreInterface
import StoreModel
import Synchronization
import Testing

@testable import LMDBStore

/// Operations on one file do not block users of another file.
@Suite struct RegistryTests {
    @Test func whileOneFileIsCopiedAnotherIsOpenedUsedAndClosed() throws {
        let (copied, used, new) = (try Scratch(), try Scratch(), try Scratch())
        _ = try copied.store().insertTracks(1)
        _ = try used.store().insertTracks(1)
        let dropped = try new.store()
        let done = DispatchSemaphore(value: 0)
        try EnvironmentRegistry.exclusively(path: copied.url.path) {
            let thread = DispatchQueue(label: "other")
            thread.async {
                withExtendedLifetime(dropped) {}
                for _ in 0..<3 { _ = try? used.store().insertTracks(1) }
                _ = try? Scratch().store().insertTracks(1)
                done.signal()
            }
            #expect(done.wait(timeout: .now() + 600) == .success)
        }
        #expect(try used.store().snapshot().count(StoreQuery(entity: Samples.track)) == 4)
    }

    /// Catches: a new file that is taken for the removed file of a suspended store, because the system has given it the number of that file.
    @Test func `a file with the number of a removed one is not the store that had that`() throws {
        let (removed, copied) = (try Scratch(), try Scratch())
        _ = try copied.store().insertTracks(2)
        let bytes = try Data(contentsOf: copied.url)
        let suspended = try removed.store()
        _ = try suspended.insertTracks(1)
        let number = try FileIdentity.of(path: removed.url.path)
        try suspended.suspend()
        try FileManager.default.removeItem(at: removed.url)
        for other in 0..<5 {
            // A file system may give the number to the next file of the folder. Another process could have made it.
            let url = removed.folder.appendingPathComponent("other \(other)")
            try bytes.write(to: url)
            let hasNumber = try FileIdentity.of(path: url.path) == number
            let store = try LMDBStore.open(url, schema: Samples.schema)
            #expect(store !== suspended && store.identity != suspended.identity)
            #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 2)
            if hasNumber { break }
        }
        let error = #expect(throws: StoreError.self) { try suspended.snapshot() }
        #expect(error?.code == .fileReplaced)
    }

    /// Catches: a new file that can be opened once only, and a former file that is opened again under the lock file of the new one.
    @Test func `S167: a file takes the name of a suspended one, which stays closed while the new one is open`() throws {
        let scratch = try Scratch()
        let away = scratch.folder.appendingPathComponent("away")
        let suspended = try scratch.store()
        try suspended.insertTracks(1)
        try suspended.suspend()
        try FileManager.default.moveItem(at: scratch.url, to: away)
        let new = try scratch.store()
        try new.insertTracks(2)
        let again = try scratch.store()
        #expect(again === new && new !== suspended)
        for isBack in [false, true] {
            if isBack {
                try FileManager.default.removeItem(at: scratch.url)
                try FileManager.default.moveItem(at: away, to: scratch.url)
            }
            let error = #expect(throws: StoreError.self) { try suspended.snapshot() }
            #expect(error?.code == .fileReplaced)
            #expect(try new.snapshot().count(StoreQuery(entity: Samples.track)) == 2)
        }
        try new.shutDown()
        #expect(try suspended.snapshot().count(StoreQuery(entity: Samples.track)) == 1)
    }

    @Test func whoOpensAFileThatIsWorkedOnWaits() throws {
        let scratch = try Scratch()
        _ = try scratch.store().insertTracks(1)
        let path = scratch.url.path
        let file = try #require(try FileIdentity.of(path: path))
        let done = DispatchSemaphore(value: 0)
        let looks = Atomic(0)
        let isOpening = Atomic(false)
        let hasEnded = Atomic(false)
        let didWait = Atomic(false)
        let countLooks: SystemFaults.Injector = { call, asked in
            if call == .status, asked == path { looks.wrappingAdd(1, ordering: .acquiringAndReleasing) }
            return nil
        }
        try EnvironmentRegistry.exclusively(path: path) {
            SystemFaults.withInjector(countLooks) {
                DispatchQueue(label: "other").async {
                    _ = try? EnvironmentRegistry.store(path: path, schema: Samples.schema) { _ in
                        didWait.store(hasEnded.load(ordering: .acquiring), ordering: .releasing)
                        isOpening.store(true, ordering: .releasing)
                        throw StoreError(.cannotOpen, "the test opens the file below")
                    }
                    _ = try? scratch.store().insertTracks(1)
                    done.signal()
                }
                // The thread looks at the file again only while it waits: each use of the registry wakes those who wait.
                while looks.load(ordering: .acquiring) < 2, !isOpening.load(ordering: .acquiring) {
                    _ = EnvironmentRegistry.isOpen(file)
                    CurrentThread.sleep(microseconds: 100)
                }
            }
            hasEnded.store(true, ordering: .releasing)
        }
        #expect(done.wait(timeout: .now() + 600) == .success)
        let waited = didWait.load(ordering: .acquiring)
        #expect(waited)
        #expect(try scratch.store().snapshot().count(StoreQuery(entity: Samples.track)) == 2)
    }

    @Test func manyThreadsThatOpenAndDropOneFileAlwaysHaveOneStore() throws {
        let scratch = try Scratch()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<20 { do { try scratch.store().insertTracks(1) } catch { Issue.record(error) } }
        }
        let store = try scratch.store()
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 160)
        #expect(try store.verify() == [])
    }

    /// Catches: a read that has begun before the closing and opens the suspended file again after it.
    @Test func `a closed store stays closed beside a read that wakes it`() throws {
        for _ in 0..<100 {
            let scratch = try Scratch()
            let store = try scratch.store()
            try store.insertTracks(1)
            try store.suspend()
            DispatchQueue.concurrentPerform(iterations: 2) { number in
                if number == 0 { _ = try? store.snapshot() } else { try? store.shutDown() }
            }
            try store.shutDown()
            #expect(!store.environment.isOpen)
        }
    }

    /// Catches: a store whose saves are acknowledged and can never be written, because its other files have the former name.
    @Test func `S066: a file that was moved while it is open is not opened under its new name`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let moved = scratch.url.appendingPathExtension("moved")
        try FileManager.default.moveItem(at: scratch.url, to: moved)
        defer { try? FileManager.default.removeItem(at: moved) }
        let error = #expect(throws: StoreError.self) { _ = try LMDBStore.open(moved, schema: Samples.schema) }
        #expect(
            error?.code == .inUseElsewhere && error?.message.contains("moved from \(scratch.url.path)") == true,
            "\(String(describing: error))")
        withExtendedLifetime(store) {}
    }
}
