import Foundation
import StoreContract
import StoreFiles
import StoreModel
import Testing

/// Names under which no new file is created, and files that no new file replaces.
@Suite struct PartialFileTests {
    private let temporary: TemporaryFolder
    private var folder: URL { temporary.url }

    init() throws { temporary = try TemporaryFolder() }

    private func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    private func make(_ name: String, _ existing: ExistingFile = .replace, _ text: String = "new") throws {
        let partial = try PartialFile(for: url(name), existing: existing)
        defer { partial.discard() }
        try Data(text.utf8).write(to: URL(fileURLWithPath: partial.path))
        try partial.finish()
    }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }

    private func isRefused(_ body: () throws -> Void, naming texts: String...) -> Bool {
        do {
            try body()
            return false
        } catch let error as StoreError {
            return error.code == .cannotOpen && texts.allSatisfy(error.message.contains)
        } catch {
            return false
        }
    }

    enum Special: CaseIterable { case pipe, folder, linkToPipe }

    /// Catches: an export as the superuser to `/dev/null`, which would replace the device.
    @Test(arguments: Special.allCases) func `a new file replaces regular files only`(_ special: Special) throws {
        let target = url("target").path
        switch special {
        case .pipe: try #require(mkfifo(target, 0o600) == 0)
        case .folder: try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        case .linkToPipe:
            try #require(mkfifo(url("pipe").path, 0o600) == 0)
            try FileManager.default.createSymbolicLink(atPath: target, withDestinationPath: url("pipe").path)
        }
        let before = try names()
        #expect(isRefused({ try make("target") }, naming: "not a regular file", "another name"))
        #expect(try names() == before)
        var status = stat()
        try #require(stat(target, &status) == 0)
        #expect(status.st_mode & S_IFMT == (special == .folder ? S_IFDIR : S_IFIFO))
    }

    /// Catches: a file that becomes another one while the new file is written.
    @Test func `a new file does not replace a pipe that was created meanwhile`() throws {
        let partial = try PartialFile(for: url("target"), existing: .replace)
        defer { partial.discard() }
        try #require(mkfifo(url("target").path, 0o600) == 0)
        #expect(isRefused({ try partial.finish() }, naming: "not a regular file"))
        #expect(try FileManager.default.attributesOfItem(atPath: url("target").path)[.type] as? FileAttributeType != .typeRegular)
    }

    /// Catches: copies that stay for good because a later process has the number of the one that died, as in a container.
    @Test func `files that a dead process left are removed, also if this process has its number`() throws {
        let left = ".target.partial-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
        for suffix in ["", "-wal", "-use"] { try Data("left".utf8).write(to: url(left + suffix)) }
        try make("target")
        #expect(try names() == ["target"])
    }

    /// Catches: a file that another copy to the same name removes while it is written.
    @Test func `files in use stay, whoever asks`() throws {
        let partial = try PartialFile(for: url("target"), existing: .replace)
        try make("target", .replace, "other")
        #expect(FileManager.default.fileExists(atPath: partial.path))
        try Data("mine".utf8).write(to: URL(fileURLWithPath: partial.path))
        try partial.finish()
        partial.discard()
        #expect(try Data(contentsOf: url("target")) == Data("mine".utf8))
        #expect(try names() == ["target"])
    }

    static let companions = ["-wal", "-shm", "-journal", "-lock", "-signal"]

    /// Catches: an export over the log of another store, which loses the saves in it.
    @Test(arguments: companions) func `a new file does not get the name of a file that belongs to a store`(_ suffix: String)
        throws
    {
        try make("shop")
        for isThere in [false, true] {
            if isThere { try Data("log".utf8).write(to: url("shop" + suffix)) }
            let before = try names()
            #expect(isRefused({ try make("shop" + suffix) }, naming: "shop" + suffix, url("shop").path, "another name"))
            #expect(try names() == before)
        }
        #expect(try Data(contentsOf: url("shop" + suffix)) == Data("log".utf8))
        // Beside no such file, it is a name like any other.
        try make("other" + suffix)
        // Nor is a folder a store.
        try FileManager.default.createDirectory(at: url("folder"), withIntermediateDirectories: false)
        try make("folder" + suffix)
    }

    /// Catches: SQLite applies a log to the file that was created beside it, or the saves in the log are lost.
    @Test(arguments: ["-wal", "-journal"], [ExistingFile.refuse, .replace])
    func `a new file is not created beside a filled log`(_ suffix: String, _ existing: ExistingFile) throws {
        if existing == .replace { try make("shop", .refuse, "old") }
        try Data("log".utf8).write(to: url("shop" + suffix))
        let before = try names()
        #expect(isRefused({ try make("shop", existing) }, naming: "shop" + suffix, "Close it"))
        #expect(try names() == before)
        // Readers leave an empty log.
        try Data().write(to: url("shop" + suffix))
        try make("shop", existing)
        #expect(try Data(contentsOf: url("shop")) == Data("new".utf8))
    }

    /// Catches: a store that was opened for writing while the new file was written.
    @Test func `a new file does not replace one whose log was filled meanwhile`() throws {
        try make("shop", .refuse, "old")
        let partial = try PartialFile(for: url("shop"), existing: .replace)
        try Data("log".utf8).write(to: url("shop-wal"))
        #expect(isRefused({ try partial.finish() }, naming: "shop-wal"))
        partial.discard()
        #expect(try Data(contentsOf: url("shop")) == Data("old".utf8))
        #expect(try names() == ["shop", "shop-wal"])
    }
}
