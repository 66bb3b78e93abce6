import Foundation
import Platform
import StoreContract
import StoreInterface
import StoreModel
import Testing

#if os(Linux)
    /// The order in which one process opens or replaces an SQLite file and another one replaces it or saves to it. The other process is
    /// played by another store of this process, which acts before one of the calls that Strata makes of the system. The calls that SQLite
    /// makes are not seen.
    @Suite struct SQLiteFileOrderTests {
        /// Acts before the call with a given number among those for the files of a folder.
        private final class OtherProcess: Sendable {
            struct State {
                var calls = 0
                var isActing = false
                var hasActed = false
                /// Whether the action was refused, because another connection has the file open.
                var isRefused = false
                var failure: String?
                /// Open until the files are no longer used: closing it would release the locks that SQLite has on the same file.
                var opened: OpenFile?
            }

            /// The byte that SQLite locks while a connection has the file to itself.
            private static let reservedByte = 0x4000_0001

            private let folder: URL
            private let moment: Int
            private let action: @Sendable () throws -> Void
            private let state = Mutex(State())

            init(in folder: TemporaryFolder, before moment: Int, _ action: @escaping @Sendable () throws -> Void) {
                self.folder = folder.url
                self.moment = moment
                self.action = action
            }

            deinit { seen.opened?.close() }

            var seen: State { state.withLock { $0 } }

            /// Takes note of a call of the system. Calls of the action itself do not count.
            func call(_ name: String) {
                guard name.contains(folder.lastPathComponent) else { return }
                let isNow = state.withLock { state in
                    if state.isActing { return false }
                    state.calls += 1
                    state.isActing = state.calls == moment
                    return state.isActing
                }
                guard isNow else { return }
                if !mustWait() { act() }
                state.withLock { $0.isActing = false }
            }

            /// Returns whether a process would have to wait now, which the thread that makes the call cannot: for the one that gives the
            /// file its name, or for the connection that has the file to itself.
            private func mustWait() -> Bool {
                let lock = folder.appendingPathComponent(".store.making").path
                if FileManager.default.fileExists(atPath: lock) { return true }
                let path = folder.appendingPathComponent("store").path
                guard let file = try? OpenFile(path, access: .read) else { return false }
                state.withLock { $0.opened = file }
                return (try? file.isLockedElsewhere(byte: Self.reservedByte, owner: .openFile)) ?? false
            }

            private func act() {
                do {
                    try action()
                    state.withLock { $0.hasActed = true }
                } catch let error as StoreError where error.code == .inUseElsewhere {
                    state.withLock { $0.isRefused = true }
                } catch {
                    state.withLock { $0.failure = "\(error)" }
                }
            }

            func watching<R>(_ body: () throws -> R) throws -> R {
                try SystemFaults.withInjector({ _, name in
                    self.call(name)
                    return nil
                }) {
                    try body()
                }
            }
        }

        private static func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
            try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
        }

        private static func save(_ key: ObjectKey, _ path: String) throws {
            let store = try FileKind.sqlite.open(path)
            try insert(store, key)
            try store.shutDown()
        }

        /// Creates a closed store with two saves, and a backup of it after the first.
        private static func prepare(_ folder: TemporaryFolder) throws -> (path: String, backup: URL) {
            let path = folder.url.appendingPathComponent("store").path
            let backup = folder.url.appendingPathComponent("backup")
            let store = try FileKind.sqlite.open(path)
            try insert(store, 64)
            _ = try store.backup(to: backup, existing: .refuse)
            try insert(store, 65)
            try store.shutDown()
            return (path, backup)
        }

        /// Checks the closed store and returns its objects.
        private static func keys(_ path: String, after moment: Int) throws -> [ObjectKey] {
            let store = try FileKind.sqlite.open(path)
            let keys = try store.snapshot().keys(StoreQuery(entity: Sample.item))
            #expect(try store.verify() == [], "call \(moment)")
            try store.shutDown()
            return keys.sorted()
        }

        /// Catches: an opening that goes on with the file from before a migration by another process.
        @Test func `S164: an SQLite store that is opened while another process replaces its file loses no save`() throws {
            var replaced = 0
            for moment in 1... {
                let folder = try TemporaryFolder()
                let (path, _) = try Self.prepare(folder)
                let file = try #require(FileKind.sqlite.description(path).migration)
                let other = OtherProcess(in: folder, before: moment) {
                    let copy = try file.makeCopy()
                    defer { copy.discard() }
                    try copy.replaceOriginal()
                    try Self.save(70, path)
                }
                let opened = try other.watching { try FileKind.sqlite.open(path) }
                try Self.insert(opened, 66)
                try opened.shutDown()
                let seen = other.seen
                #expect(seen.failure == nil, "call \(moment)")
                let expected: [ObjectKey] = [64, 65, 66] + (seen.hasActed ? [70] : [])
                #expect(try Self.keys(path, after: moment) == expected, "call \(moment)")
                withExtendedLifetime(other) {}
                if seen.hasActed { replaced += 1 }
                if seen.calls < moment { break }
            }
            #expect(replaced > 0)
        }

        enum Replacement: CaseIterable { case migration, restore }

        private static func replace(_ file: any MigratableFile, by replacement: Replacement, from backup: URL) throws {
            switch replacement {
            case .migration:
                let copy = try file.makeCopy()
                defer { copy.discard() }
                try copy.replaceOriginal()
            case .restore: try file.restore(from: backup, cancellation: Cancellation())
            }
        }

        /// Catches: a migration that replaces a file with saves that its copy does not have, and a save to a file that has lost its name.
        @Test(arguments: Replacement.allCases)
        func `S164: of the saves to an SQLite file, only a restore takes those away that came before it`(
            _ replacement: Replacement
        ) throws {
            var (kept, refused) = (0, 0)
            for moment in 1... {
                let folder = try TemporaryFolder()
                let (path, backup) = try Self.prepare(folder)
                let file = try #require(FileKind.sqlite.description(path).migration)
                let saved = Mutex<FileIdentity?>(nil)
                let other = OtherProcess(in: folder, before: moment) {
                    try Self.save(70, path)
                    let identity = try FileStatus(path).identity
                    saved.withLock { $0 = identity }
                }
                var isRefused = false
                do {
                    try other.watching { try Self.replace(file, by: replacement, from: backup) }
                } catch let error as StoreError where error.code == .inUseElsewhere {
                    isRefused = true
                }
                let seen = other.seen
                #expect(seen.failure == nil && !seen.isRefused, "call \(moment)")
                // Without another process, nothing prevents the replacement.
                #expect(seen.hasActed || !isRefused, "call \(moment)")
                let named = try FileStatus(path).identity
                let isKept = seen.hasActed && (replacement == .migration || saved.withLock { $0 } == named)
                let before: [ObjectKey] = replacement == .restore && !isRefused ? [64] : [64, 65]
                let expected: [ObjectKey] = before + (isKept ? [70] : [])
                #expect(try Self.keys(path, after: moment) == expected, "call \(moment)")
                withExtendedLifetime(other) {}
                if isKept { kept += 1 }
                if isRefused { refused += 1 }
                if seen.calls < moment { break }
            }
            #expect(kept > 0)
            #expect((refused > 0) == (replacement == .migration))
        }
    }
#endif
