import Foundation
import Platform
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// Names that a power cut has left. Until the folder is synced, a disk may keep a later change of a name and lose an earlier one.
@Suite struct KeptNameTests {
    private static func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
    }

    /// Creates a closed store with one save, and returns its path.
    private static func make(_ kind: FileKind, in folder: TemporaryFolder) throws -> String {
        let path = folder.url.appendingPathComponent("store").path
        let store = try kind.open(path)
        try insert(store, 64)
        try store.shutDown()
        return path
    }

    enum SecondName: CaseIterable { case new, partial }

    /// Catches: a store that is refused for good because of its second name. The file whose lock would show that no process uses that name
    /// is lost, and another process has the number in it.
    @Test(arguments: FileKind.allCases, SecondName.allCases)
    func `S066: a store opens if a power cut has kept its temporary name without the lock beside it`(
        _ kind: FileKind, _ second: SecondName
    ) throws {
        let folder = try TemporaryFolder()
        let path = try Self.make(kind, in: folder)
        let number = ProcessInfo.processInfo.processIdentifier
        let name = second == .new ? ".store.new" : ".store.partial-\(number)-\(UUID().uuidString)"
        try FileManager.default.linkItem(atPath: path, toPath: folder.url.appendingPathComponent(name).path)
        #expect(try kind.open(path).snapshot().generation == 1)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.allSatisfy { !$0.hasPrefix(".") }, "\(names)")
    }

    /// Catches: saves that a power cut takes away together with the name of their file. The process that made the name was killed before it
    /// synced the folder.
    @Test(arguments: FileKind.allCases)
    func `S066: an opening that finds what a killed creator has left syncs the folder`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        let path = try Self.make(kind, in: folder)
        let folderName = folder.url.lastPathComponent
        for isLeft in [false, true] {
            if isLeft { try Data().write(to: folder.url.appendingPathComponent(".store.making")) }
            let syncs = Mutex(0)
            let opened = try SystemFaults.withInjector({ call, name in
                if call == .sync, name.hasSuffix(folderName) { syncs.withLock { $0 += 1 } }
                return nil
            }) {
                try kind.open(path)
            }
            #expect(syncs.withLock { $0 } == (isLeft ? 1 : 0))
            #expect(try opened.snapshot().generation == 1)
            try opened.shutDown()
        }
    }

    enum Replacement: CaseIterable { case migration, restore, restoreBesideLog, backup }

    /// Catches: saves that a power cut takes away together with the name of their file. The process that restored or migrated the file
    /// ended after it had given the file its name, and before that name was on disk.
    @Test(arguments: FileKind.allCases, [Replacement.migration, .restore])
    func `S066: an opening syncs the folder after a replacement that could not`(_ kind: FileKind, _ replacement: Replacement)
        throws
    {
        let folder = try TemporaryFolder()
        let path = try Self.make(kind, in: folder)
        let copy = folder.url.appendingPathComponent("copy")
        let store = try kind.open(path)
        _ = try store.backup(to: copy, existing: .refuse)
        try store.shutDown()
        let file = try #require(kind.description(path).migration)
        let folderName = folder.url.lastPathComponent
        let isNamed = Mutex(false)
        let failing: SystemFaults.Injector = { call, name in
            if call == .rename, name.contains(folderName) { isNamed.withLock { $0 = true } }
            return call == .sync && name.hasSuffix(folderName) && isNamed.withLock { $0 } ? 5 : nil
        }
        let copied = try file.makeCopy()
        #expect(throws: StoreError.self) {
            try SystemFaults.withInjector(failing) {
                if replacement == .migration {
                    try copied.replaceOriginal()
                } else {
                    try file.restore(from: copy, cancellation: Cancellation())
                }
            }
        }
        copied.discard()
        let mark = folder.url.appendingPathComponent(".store.making").path
        #expect(throws: StoreError.self) { _ = try SystemFaults.withInjector(failing) { try kind.open(path) } }
        for isFirst in [true, false] {
            #expect(FileManager.default.fileExists(atPath: mark) == isFirst)
            let syncs = Mutex(0)
            let opened = try SystemFaults.withInjector({ call, name in
                if call == .sync, name.hasSuffix(folderName) { syncs.withLock { $0 += 1 } }
                return nil
            }) {
                try kind.open(path)
            }
            // Opening also syncs the folder if it makes a lock file.
            if isFirst { #expect(syncs.withLock { $0 } > 0) }
            #expect(try opened.snapshot().generation == 1)
            try opened.shutDown()
        }
    }

    private enum Step: Equatable {
        /// A sync of the folder, with the log and the journal that were beside the file to replace.
        case sync(beside: [String])
        case rename
    }

    /// Catches: a log or journal of the replaced file that a power cut keeps beside the new file. SQLite would apply it to that file.
    @Test(arguments: Replacement.allCases)
    func `S066: the removal of an SQLite file's log is on disk before another file gets its name`(_ replacement: Replacement)
        throws
    {
        let folder = try TemporaryFolder()
        let path = try Self.make(.sqlite, in: folder)
        let copy = folder.url.appendingPathComponent("copy")
        let store = try FileKind.sqlite.open(path)
        _ = try store.backup(to: copy, existing: .refuse)
        let file = try #require(FileKind.sqlite.description(path).migration)
        let target = replacement == .backup ? copy.path : path
        let folderName = folder.url.lastPathComponent
        let steps = Mutex<[Step]>([])
        let noting: SystemFaults.Injector = { call, name in
            if call == .sync, name.hasSuffix(folderName) {
                let beside = ["-wal", "-journal"].filter { FileManager.default.fileExists(atPath: target + $0) }
                steps.withLock { $0.append(.sync(beside: beside)) }
            }
            if call == .rename, name.contains(folderName) { steps.withLock { $0.append(.rename) } }
            return nil
        }
        switch replacement {
        case .migration:
            try store.shutDown()
            let copied = try file.makeCopy()
            try SystemFaults.withInjector(noting) { try copied.replaceOriginal() }
        case .restore, .restoreBesideLog:
            try store.shutDown()
            if replacement == .restoreBesideLog {
                try FileManager.default.removeItem(atPath: path)
                try Data("log".utf8).write(to: URL(fileURLWithPath: path + "-wal"))
            }
            try SystemFaults.withInjector(noting) { try file.restore(from: copy, cancellation: Cancellation()) }
        case .backup:
            // Opening it as a store gives the copy a log.
            try FileKind.sqlite.open(copy.path).shutDown()
            try SystemFaults.withInjector(noting) { _ = try store.backup(to: copy, existing: .replace) }
        }
        let all = steps.withLock { $0 }
        let rename = try #require(all.firstIndex(of: .rename))
        #expect(rename > 0 && all[rename - 1] == .sync(beside: []), "\(all)")
        #expect(try FileKind.sqlite.open(target).snapshot().generation == 1)
    }
}
