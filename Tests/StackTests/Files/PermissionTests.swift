import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Files and folders without a permission (S166). The superuser has all permissions. The tests therefore run as another user,
/// in a process of their own that only the superuser can start.
@Suite(.enabled(if: geteuid() == 0, "only the superuser can become another user")) struct PermissionTests {
    static func becomeNobody() throws {
        try #require(setgid(65_534) == 0 && setuid(65_534) == 0)
    }

    private static func protect(_ bed: TestBed, file: Int, folder: Int, beside: Int = 0o644) throws {
        let manager = FileManager.default
        for name in try manager.contentsOfDirectory(atPath: bed.folder.path) {
            let path = bed.folder.appendingPathComponent(name).path
            try manager.setAttributes([.posixPermissions: path == bed.file.path ? file : beside], ofItemAtPath: path)
        }
        try manager.setAttributes([.posixPermissions: folder], ofItemAtPath: bed.folder.path)
    }

    private static func names(_ bed: TestBed) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).sorted()
    }

    /// Catches: a copy that the superuser makes of a private file, and that its owner then cannot read.
    @Test(arguments: ReadOnlyTests.kinds)
    func `S211: files that the superuser creates beside or from a file have its owner and its mode`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try #require(chown(bed.file.path, 65_534, 65_534) == 0 && chmod(bed.file.path, 0o600) == 0)
        let store = ReadOnlyTests.description(bed.file, kind.rawValue, readOnly: false)
        let file = try #require(store.migration)
        let copy = bed.folder.appendingPathComponent("copy")
        for step in OwnerStep.allCases {
            switch step {
            case .backup: break
            // As a migration in stages does.
            case .replacement: try file.makeCopy().replaceOriginal()
            case .restore: try await PersistentContainer.restore(store, from: copy)
            }
            let container = try await ReadOnlyTests.open(bed.file, kind.rawValue, readOnly: false)
            try container.followOtherProcesses()
            if step == .backup { _ = try await container.coordinator.backup(to: copy) }
            try await container.coordinator.insert(into: "Thing", ["number"], rows: [[.int(-1)]])
            for name in try Self.names(bed) {
                var status = stat()
                try #require(stat(bed.folder.appendingPathComponent(name).path, &status) == 0)
                #expect(status.st_uid == 65_534 && status.st_gid == 65_534, "\(name) after \(step)")
                #expect(status.st_mode & 0o777 == 0o600, "\(name) after \(step)")
            }
            try await container.close()
        }
    }

    private enum OwnerStep: CaseIterable { case backup, replacement, restore }

    enum Beside: String, CaseIterable, Sendable { case kept, removed, writable }

    @Test(arguments: ReadOnlyTests.kinds, Beside.allCases)
    func `S166: a store is read in a folder where nothing can be written`(_ kind: StoreKind, _ beside: Beside) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        if beside == .removed {
            for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        }
        try Self.protect(bed, file: 0o444, folder: 0o555, beside: beside == .writable ? 0o666 : 0o444)
        let before = try ReadOnlyTests.Look(bed.file)
        let names = try Self.names(bed)
        await #expect(processExitsWith: .success) { [file = bed.file as URL, kind = kind.rawValue as String] in
            try PermissionTests.becomeNobody()
            let container = try await ReadOnlyTests.open(file, kind)
            try container.followOtherProcesses()
            try await ReadOnlyTests.use(container)
        }
        #expect(try Self.names(bed) == names)
        #expect(try ReadOnlyTests.Look(bed.file) == before)
    }

    @Test(arguments: ReadOnlyTests.kinds)
    func `S166: a file that nobody may write is read in a folder that may be written`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try Self.protect(bed, file: 0o444, folder: 0o777)
        for _ in 0..<2 {
            await #expect(processExitsWith: .success) { [file = bed.file as URL, kind = kind.rawValue as String] in
                try PermissionTests.becomeNobody()
                try await ReadOnlyTests.use(try await ReadOnlyTests.open(file, kind))
            }
        }
    }

    #if os(Linux)
        /// Catches: a store that releases LMDB's locks with each read, because it began without a place among the readers.
        @Test func `S166, S167: a store that reads without locks does so after a suspension`() async throws {
            let bed = try TestBed(.lmdb)
            try await ReadOnlyTests.fill(bed)
            let lock = bed.file.path + "-lock"
            try Self.protect(bed, file: 0o444, folder: 0o555, beside: 0o444)
            try #require(chown(lock, 65_534, 65_534) == 0)
            await #expect(processExitsWith: .success) { [file = bed.file as URL, lock = lock as String] in
                try PermissionTests.becomeNobody()
                let container = try await ReadOnlyTests.open(file, "lmdb")
                try #require(try await ReadOnlyTests.count(container) == ReadOnlyTests.count)
                try await container.suspend()
                try #require(chmod(lock, 0o666) == 0)
                await container.resume()
                try #require(try await ReadOnlyTests.count(container) == ReadOnlyTests.count)
                let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
                }
                try #require(!descriptors.contains { $0?.hasSuffix("-lock") == true })
            }
        }
    #endif

    @Test func `S166: a file that is open elsewhere is not read without a place among its readers`() async throws {
        let bed = try TestBed(.lmdb)
        try await ReadOnlyTests.fill(bed)
        try Self.protect(bed, file: 0o644, folder: 0o755)
        let writer = try await ReadOnlyTests.open(bed.file, "lmdb", readOnly: false)
        await #expect(processExitsWith: .success) { [file = bed.file as URL] in
            try PermissionTests.becomeNobody()
            let error = await ReadOnlyTests.refusal { _ = try await ReadOnlyTests.open(file, "lmdb") }
            try #require(error.code == .inUseElsewhere && error.message.contains("-lock"), "\(error)")
        }
        withExtendedLifetime(writer) {}
    }

    @Test(arguments: ReadOnlyTests.kinds)
    func `S166: reading without locks ends with an error when another process writes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try Self.protect(bed, file: 0o644, folder: 0o755)
        let ready = bed.folder.appendingPathComponent("ready")
        // The reader waits for the writer.
        try await WaitingProcesses.run {
            async let reader: ExitTest.Result? = #expect(processExitsWith: .success) {
                [file = bed.file as URL, kind = kind.rawValue as String, ready = ready as URL] in
                // Created before the permission is dropped.
                let descriptor = open(ready.path, O_WRONLY | O_CREAT, 0o644)
                try PermissionTests.becomeNobody()
                let container = try await ReadOnlyTests.open(file, kind)
                let found = try await ReadOnlyTests.count(container)
                try #require(found == ReadOnlyTests.count)
                try #require(write(descriptor, "1", 1) == 1)
                var error: StoreError?
                try await until("reading is refused") {
                    do { _ = try await ReadOnlyTests.count(container) } catch let found as StoreError { error = found }
                    return error != nil
                }
                try #require(error?.code == .inUseElsewhere, "\(String(describing: error))")
            }
            try await until("the reader has read") { (try? Data(contentsOf: ready).count) == 1 }
            let writer = try await ReadOnlyTests.open(bed.file, kind.rawValue, readOnly: false)
            try await writer.coordinator.insert(into: "Thing", ["number"], rows: [[.int(1)]])
            _ = await reader
            withExtendedLifetime(writer) {}
        }
    }

    /// Saves to a store when the process that reads it is ready, closes it, and then creates a file for which that process waits.
    private static func saveAndClose(_ bed: TestBed, when ready: URL, then done: URL) async throws {
        try await until("the reader is ready") { (try? Data(contentsOf: ready).count) == 1 }
        let writer = try await ReadOnlyTests.open(bed.file, bed.kind.rawValue, readOnly: false)
        try await writer.coordinator.batchUpdate(EntityFetchRequest("Thing"), set: ["number": .int(-1)])
        try await writer.close()
        try Data().write(to: done)
    }

    /// Blocks the thread until a file exists, in a callback that cannot suspend.
    static func blockUntilCreated(_ file: URL) {
        for _ in 0..<600_000 {
            if FileManager.default.fileExists(atPath: file.path) { return }
            usleep(1_000)
        }
    }

    /// Catches: pages of a later save that are read as the state of a snapshot. LMDB keeps a state for three commits of another process.
    @Test func `S023, S150, S166: a snapshot that is read without locks shows nothing that another process writes`() async throws
    {
        let bed = try TestBed(.sqlite)
        try await ReadOnlyTests.fill(bed)
        for suffix in ["-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try Self.protect(bed, file: 0o644, folder: 0o755)
        let (ready, done) = (bed.folder.appendingPathComponent("ready"), bed.folder.appendingPathComponent("done"))
        // The reader waits for the writer.
        try await WaitingProcesses.run {
            async let reader: ExitTest.Result? = #expect(processExitsWith: .success) {
                [file = bed.file as URL, ready = ready as URL, done = done as URL] in
                // Created before the permission is dropped.
                let descriptor = open(ready.path, O_WRONLY | O_CREAT, 0o644)
                try PermissionTests.becomeNobody()
                let container = try await ReadOnlyTests.open(file, "sqlite")
                let context = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
                let fives = EntityFetchRequest("Thing", matching: .equal("number", .int(5)))
                let found = try await context.perform { try $0.count(fives) }
                try #require(found == 1)
                try #require(write(descriptor, "1", 1) == 1)
                try await until("the store is written") { FileManager.default.fileExists(atPath: done.path) }
                let errors = [
                    await ReadOnlyTests.refusal { _ = try await context.perform { try $0.count(fives) } },
                    await ReadOnlyTests.refusal { _ = try await context.perform { try $0.fetchIDs(fives) } },
                    await ReadOnlyTests.refusal {
                        _ = try await context.perform { try $0.aggregate(.sum("number"), of: EntityFetchRequest("Thing")) }
                    },
                ]
                for error in errors { try #require(error.code == .inUseElsewhere, "\(error)") }
            }
            try await Self.saveAndClose(bed, when: ready, then: done)
            _ = await reader
        }
    }

    enum Copying: String, Codable, Sendable { case backup, compactCopy, restore }

    /// Catches: a copy with pages of two states.
    @Test(arguments: [
        (StoreKind.lmdb, Copying.backup), (.lmdb, .compactCopy), (.sqlite, .backup), (.sqlite, .restore),
    ])
    func `S166, S168: a copy that is made without locks is refused if another process writes meanwhile`(
        _ kind: StoreKind, _ copying: Copying
    ) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try Self.protect(bed, file: 0o644, folder: 0o755)
        let copies = bed.folder.appendingPathComponent("copies")
        try FileManager.default.createDirectory(at: copies, withIntermediateDirectories: true)
        try #require(chmod(copies.path, 0o777) == 0)
        let (ready, done) = (bed.folder.appendingPathComponent("ready"), bed.folder.appendingPathComponent("done"))
        // The copying process waits for the writer.
        try await WaitingProcesses.run {
            async let reader: ExitTest.Result? = #expect(processExitsWith: .success) {
                [
                    file = bed.file as URL, kind = kind.rawValue as String, copying = copying as Copying,
                    copy = copies.appendingPathComponent("copy") as URL, ready = ready as URL, done = done as URL
                ] in
                // Created before the permission is dropped.
                let descriptor = open(ready.path, O_WRONLY | O_CREAT, 0o644)
                try PermissionTests.becomeNobody()
                let letWrite: @Sendable (Double) -> Void = { _ in
                    _ = write(descriptor, "1", 1)
                    PermissionTests.blockUntilCreated(done)
                }
                let error = await ReadOnlyTests.refusal {
                    switch copying {
                    case .backup:
                        let container = try await ReadOnlyTests.open(file, kind)
                        try await container.coordinator.backup(to: copy, progress: letWrite)
                    case .compactCopy:
                        let container = try await ReadOnlyTests.open(file, kind)
                        try await container.coordinator.compactCopy(to: copy, progress: letWrite)
                    case .restore:
                        let store = ReadOnlyTests.description(copy, kind, readOnly: false)
                        try store.migration?.restore(from: file, cancellation: Cancellation(progress: letWrite))
                    }
                }
                try #require(error.code == .inUseElsewhere, "\(error)")
            }
            try await Self.saveAndClose(bed, when: ready, then: done)
            _ = await reader
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: copies.path) == [])
    }

    enum Replacement: String, CaseIterable, Sendable { case restore, migration }

    /// Catches: a reader that goes on with the former file for good, because no process has the new one open.
    @Test(arguments: ReadOnlyTests.kinds, Replacement.allCases)
    func `S166, S168: reading without locks ends with an error when another process has replaced the file`(
        _ kind: StoreKind, _ replacement: Replacement
    ) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        let backup = bed.folder.appendingPathComponent("backup")
        let container = try await ReadOnlyTests.open(bed.file, kind.rawValue, readOnly: false)
        try await container.coordinator.backup(to: backup)
        try await container.close()
        for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try Self.protect(bed, file: 0o644, folder: 0o755)
        let (ready, done) = (bed.folder.appendingPathComponent("ready"), bed.folder.appendingPathComponent("done"))
        // The reader waits for the replacement.
        try await WaitingProcesses.run {
            async let reader: ExitTest.Result? = #expect(processExitsWith: .success) {
                [file = bed.file as URL, kind = kind.rawValue as String, ready = ready as URL, done = done as URL] in
                // Created before the permission is dropped.
                let descriptor = open(ready.path, O_WRONLY | O_CREAT, 0o644)
                try PermissionTests.becomeNobody()
                let container = try await ReadOnlyTests.open(file, kind)
                let found = try await ReadOnlyTests.count(container)
                try #require(found == ReadOnlyTests.count)
                try #require(write(descriptor, "1", 1) == 1)
                try await until("the file is replaced") { FileManager.default.fileExists(atPath: done.path) }
                var error: StoreError?
                try await until("reading is refused") {
                    do { _ = try await ReadOnlyTests.count(container) } catch let found as StoreError { error = found }
                    return error != nil
                }
                let expected: StoreError.Code = kind == "lmdb" ? .fileReplaced : .inUseElsewhere
                try #require(error?.code == expected, "\(String(describing: error))")
                try #require(error?.message.contains("open it again") == true, "\(String(describing: error))")
                try await container.close()
                let again = try await ReadOnlyTests.count(try await ReadOnlyTests.open(file, kind))
                try #require(again == ReadOnlyTests.count)
            }
            try await until("the reader has read") { (try? Data(contentsOf: ready).count) == 1 }
            let store = ReadOnlyTests.description(bed.file, kind.rawValue, readOnly: false)
            switch replacement {
            case .restore: try await PersistentContainer.restore(store, from: backup)
            case .migration: try #require(store.migration).makeCopy().replaceOriginal()
            }
            try Data().write(to: done)
            _ = await reader
        }
    }

    @Test(arguments: [true, false])
    func `S166: a log that a killed writer left is read where it is, or refused`(_ keepsIndex: Bool) async throws {
        let bed = try TestBed(.sqlite)
        try await ReadOnlyTests.fill(bed)
        await #expect(processExitsWith: .signal(SIGKILL)) { [file = bed.file as URL] in
            let writer = try await ReadOnlyTests.open(file, "sqlite", readOnly: false)
            try await writer.coordinator.insert(into: "Thing", ["number"], rows: [[.int(-5)]])
            kill(getpid(), SIGKILL)
        }
        if !keepsIndex { unlink(bed.file.path + "-shm") }
        try Self.protect(bed, file: 0o444, folder: 0o555, beside: 0o444)
        await #expect(processExitsWith: .success) { [file = bed.file as URL, keepsIndex = keepsIndex as Bool] in
            try PermissionTests.becomeNobody()
            if keepsIndex {
                let found = try await ReadOnlyTests.count(try await ReadOnlyTests.open(file, "sqlite"))
                try #require(found == ReadOnlyTests.count + 1)
            } else {
                let error = await ReadOnlyTests.refusal { _ = try await ReadOnlyTests.open(file, "sqlite") }
                try #require(error.code == .readOnly && error.message.contains("-wal"), "\(error)")
            }
        }
    }

    struct Missing: Codable, Sendable {
        var file: Int
        /// nil: there is no such file.
        var beside: Int?
        var folder: Int
        var words: String
        var isReadOnly = false
    }

    @Test(arguments: ReadOnlyTests.kinds)
    func `S166: an error names the permission that is missing`(_ kind: StoreKind) async throws {
        let cases =
            [
                Missing(file: 0o600, beside: 0o666, folder: 0o755, words: "may not read the file"),
                Missing(file: 0o600, beside: 0o666, folder: 0o755, words: "may not read the file", isReadOnly: true),
                Missing(file: 0o644, beside: 0o666, folder: 0o755, words: "may not write to the file"),
                Missing(file: 0o666, beside: nil, folder: 0o755, words: "may not write to the folder"),
                Missing(file: 0o666, beside: 0o666, folder: 0o700, words: "may not enter the folder"),
                Missing(file: 0o666, beside: 0o666, folder: 0o700, words: "may not enter the folder", isReadOnly: true),
            ] + (kind == .lmdb ? [Missing(file: 0o666, beside: 0o644, folder: 0o777, words: "store.lmdb-lock")] : [])
        for missing in cases {
            let bed = try TestBed(kind)
            try await ReadOnlyTests.fill(bed)
            if missing.beside == nil { for suffix in ["-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) } }
            try Self.protect(bed, file: missing.file, folder: missing.folder, beside: missing.beside ?? 0o644)
            await #expect(processExitsWith: .success) {
                [file = bed.file as URL, kind = kind.rawValue as String, missing = missing as Missing] in
                try PermissionTests.becomeNobody()
                let error = await ReadOnlyTests.refusal {
                    _ = try await ReadOnlyTests.open(file, kind, readOnly: missing.isReadOnly)
                }
                try #require(error.message.contains(missing.words), "\(error)")
                try #require([.cannotOpen, .readOnly].contains(error.code), "\(error)")
            }
        }
    }

    @Test func `S166: an error names the signal file whose permission is missing`() async throws {
        let bed = try TestBed(.lmdb)
        try await ReadOnlyTests.fill(bed)
        try Self.protect(bed, file: 0o666, folder: 0o777, beside: 0o666)
        chmod(bed.file.path + "-signal", 0o644)
        await #expect(processExitsWith: .success) { [file = bed.file as URL] in
            try PermissionTests.becomeNobody()
            let error = await ReadOnlyTests.refusal { _ = try await ReadOnlyTests.open(file, "lmdb", readOnly: false) }
            try #require(error.code == .readOnly && error.message.contains("store.lmdb-signal"), "\(error)")
            let container = try await ReadOnlyTests.open(file, "lmdb")
            try await ReadOnlyTests.use(container)
        }
    }

    @Test(arguments: ReadOnlyTests.kinds)
    func `S166: a file cannot be created in a folder that may not be written`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        chmod(bed.folder.path, 0o555)
        await #expect(processExitsWith: .success) { [file = bed.file as URL, kind = kind.rawValue as String] in
            try PermissionTests.becomeNobody()
            let error = await ReadOnlyTests.refusal { _ = try await ReadOnlyTests.open(file, kind, readOnly: false) }
            try #require(error.code == .readOnly && error.message.contains("may not write to the folder"), "\(error)")
        }
    }

    /// Catches: a backup that is write-protected, as archives are, and cannot be restored where there is no store.
    @Test(arguments: ReadOnlyTests.kinds)
    func `S168: a backup that nobody may write is restored, and the store can be written`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        let backup = bed.folder.appendingPathComponent("backup")
        do {
            let container = try await ReadOnlyTests.open(bed.file, kind.rawValue, readOnly: false)
            try await container.coordinator.backup(to: backup)
            try await container.close()
        }
        for suffix in ["", "-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try #require(
            chown(backup.path, 65_534, 65_534) == 0 && chmod(backup.path, 0o444) == 0 && chmod(bed.folder.path, 0o777) == 0)
        await #expect(processExitsWith: .success) {
            [file = bed.file as URL, backup = backup as URL, kind = kind.rawValue as String] in
            try PermissionTests.becomeNobody()
            try await PersistentContainer.restore(ReadOnlyTests.description(file, kind, readOnly: false), from: backup)
            let container = try await ReadOnlyTests.open(file, kind, readOnly: false)
            try await container.coordinator.insert(into: "Thing", ["number"], rows: [[.int(1)]])
            try await container.close()
        }
        #expect(try FileManager.default.attributesOfItem(atPath: bed.file.path)[.posixPermissions] as? Int == 0o644)
    }

    /// Catches: a copy in SQLite's log mode that is read as if a log could be created.
    @Test(arguments: ReadOnlyTests.kinds)
    func `S168: a backup in a folder where nothing can be written is restored`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await ReadOnlyTests.fill(bed)
        let archive = bed.folder.appendingPathComponent("archive")
        try FileManager.default.createDirectory(at: archive, withIntermediateDirectories: true)
        let backup = archive.appendingPathComponent("backup")
        do {
            let container = try await ReadOnlyTests.open(bed.file, kind.rawValue, readOnly: false)
            try await container.coordinator.backup(to: backup)
            try await container.close()
        }
        for suffix in ["", "-lock", "-signal", "-wal", "-shm"] { unlink(bed.file.path + suffix) }
        try #require(chmod(backup.path, 0o444) == 0 && chmod(archive.path, 0o555) == 0 && chmod(bed.folder.path, 0o777) == 0)
        await #expect(processExitsWith: .success) {
            [file = bed.file as URL, backup = backup as URL, kind = kind.rawValue as String] in
            try PermissionTests.becomeNobody()
            try await PersistentContainer.restore(ReadOnlyTests.description(file, kind, readOnly: false), from: backup)
        }
        chmod(archive.path, 0o755)
    }
}
