#if os(Linux)
    import Foundation
    import Platform
    import StoreContract
    import TestSupport
    import Testing

    /// Watches of files, which share one instance of inotify: by default, a user may have 128 in all processes together.
    @Suite struct FileWatcherTests {
        private static func append(_ file: URL) throws {
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: Data([1]))
            try handle.close()
        }

        private static func watch(_ file: URL, _ heard: Counter) throws -> FileWatcher {
            try FileWatcher(path: file.path, for: .writes, restore: {}) { heard.count.withLock { $0 += 1 } }
        }

        private final class Counter: Sendable {
            let count = Mutex(0)
            var value: Int { count.withLock { $0 } }
        }

        /// Catches: an instance per watch, of which a program with many stores has too few, and an event that reaches another file's watch.
        @Test func `S161: many files are watched with one instance, and each write reaches the watch of its file`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let files = (0..<300).map { folder.url.appendingPathComponent("\($0)") }
            for file in files { try Data([0]).write(to: file) }
            let counters = files.map { _ in Counter() }
            let watchers = try zip(files, counters).map { try Self.watch($0, $1) }
            let links = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == "anon_inode:inotify"
            }
            // Another instance may be about to end.
            #expect(links.count <= 2)
            for (number, file) in files.enumerated() where number % 3 == 0 { try Self.append(file) }
            try await until("each write is heard") {
                counters.enumerated().allSatisfy { $0.offset % 3 != 0 || $0.element.value > 0 }
            }
            for (number, counter) in counters.enumerated() where number % 3 != 0 { #expect(counter.value == 0) }
            withExtendedLifetime(watchers) {}
        }

        /// Catches: a slash that a combining mark hides, so that another folder is watched, and its permissions are asked for.
        @Test func `S161: a file that is not there yet is watched, also if its name begins with a combining mark`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = URL(fileURLWithPath: folder.url.path + "/\u{301}file", isDirectory: false)
            #expect(FileSystem.folder(of: file.path) == folder.url.path)
            let heard = Counter()
            let watcher = try Self.watch(file, heard)
            try Data([0]).write(to: file)
            try await until("the new file is heard") { heard.value > 0 }
            withExtendedLifetime(watcher) {}
        }

        /// Catches: ending one watch also ends another watch of the same file, or a watch reports changes after its end.
        @Test func `S161: each of two watches of a file is told until its own end`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = folder.url.appendingPathComponent("file")
            try Data([0]).write(to: file)
            let (first, second) = (Counter(), Counter())
            let stays = try Self.watch(file, first)
            var ends: FileWatcher? = try Self.watch(file, second)
            try Self.append(file)
            try await until("both are told") { first.value > 0 && second.value > 0 }
            _ = ends
            ends = nil
            let (before, ended) = (first.value, second.value)
            try Self.append(file)
            try await until("the other one is told") { first.value > before }
            #expect(second.value == ended)
            withExtendedLifetime(stays) {}
        }

        /// Calls `body` until a watch reports something after it.
        private static func heard(_ what: String, by counter: Counter, after body: () throws -> Void) async throws {
            try await until(what) {
                let before = counter.value
                try body()
                for _ in 0..<50 where counter.value == before { try await Task.sleep(for: .milliseconds(2)) }
                return counter.value > before
            }
        }

        /// The numbers of the files that this process watches, as the kernel lists them.
        private static func watchedFiles() throws -> Set<UInt64> {
            var numbers: Set<UInt64> = []
            for descriptor in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo") {
                // Other tests close descriptors meanwhile.
                let text = (try? String(contentsOfFile: "/proc/self/fdinfo/\(descriptor)", encoding: .utf8)) ?? ""
                numbers.formUnion(text.matches(of: /inotify wd:\S+ ino:([0-9a-f]+)/).compactMap { UInt64($0.1, radix: 16) })
            }
            return numbers
        }

        enum Creation: CaseIterable { case created, movedIntoPlace }

        /// Catches: a watch that begins before the file exists and is never moved to the file, or that keeps the watch of the folder.
        @Test(arguments: Creation.allCases)
        func `S161: a watch of a missing file reports its creation and its writes`(_ creation: Creation) async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let (file, other) = (folder.url.appendingPathComponent("file"), folder.url.appendingPathComponent("other"))
            let counter = Counter()
            let watcher = try Self.watch(file, counter)
            let number = try FileStatus(folder.url.path).identity.inode
            #expect(try Self.watchedFiles().contains(number))
            // Another file of the folder is not reported.
            try Data([0]).write(to: other)
            try Self.append(other)
            #expect(counter.value == 0)
            switch creation {
            case .created: try Data([0]).write(to: file)
            case .movedIntoPlace: try FileManager.default.moveItem(at: other, to: file)
            }
            try await until("the creation is reported") { counter.value > 0 }
            try await Self.heard("a write is reported", by: counter) { try Self.append(file) }
            #expect(try !Self.watchedFiles().contains(number))
            withExtendedLifetime(watcher) {}
        }

        /// Catches: a file that is created after the look for it and before the watch of its folder.
        @Test func `S161: a file that is created while its watch begins is watched`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = folder.url.appendingPathComponent("file")
            let counter = Counter()
            // Without a watch there is no instance of inotify, and the injector would be asked for that first.
            let running = try Self.watch(folder.url, Counter())
            let watcher = try SystemFaults.withInjector({ [path = file.path] call, asked in
                guard call == .watch, asked == path, !FileManager.default.fileExists(atPath: path) else { return nil }
                #expect(FileManager.default.createFile(atPath: path, contents: Data([0])), "\(SystemError.last)")
                return SystemError.notFound.number
            }) { try Self.watch(file, counter) }
            try await Self.heard("a write is reported", by: counter) { try Self.append(file) }
            withExtendedLifetime((running, watcher)) {}
        }

        enum Pause: CaseIterable { case none, untilReported }

        /// Catches: a watch that ends with the file, if another process creates it again later, or at once and with the same number.
        @Test(arguments: Pause.allCases)
        func `S161: a removed file that is created again is watched again`(_ pause: Pause) async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = folder.url.appendingPathComponent("file")
            try Data([0]).write(to: file)
            let counter = Counter()
            let watcher = try Self.watch(file, counter)
            for _ in 0..<20 {
                let before = counter.value
                try FileManager.default.removeItem(at: file)
                if pause == .untilReported { try await until("the removal is reported") { counter.value > before } }
                _ = FileManager.default.createFile(atPath: file.path, contents: Data([0]))
                try await Self.heard("a write is reported", by: counter) { try Self.append(file) }
            }
            withExtendedLifetime(watcher) {}
        }

        /// Catches: a watch that gives up if the system refuses it once.
        @Test func `S161: a watch that the system refuses for a while begins later`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = folder.url.appendingPathComponent("file")
            try Data([0]).write(to: file)
            let (counter, refusals) = (Counter(), Counter())
            let watcher = try Self.watch(file, counter)
            let refuse: SystemFaults.Injector = { [path = file.path] call, asked in
                guard call == .watch, asked == path else { return nil }
                refusals.count.withLock { $0 += 1 }
                return SystemError.diskFull.number
            }
            try SystemFaults.withInjector(refuse) {
                try Data([1]).write(to: file, options: .atomic)
                for _ in 0..<600_000 where refusals.value == 0 { usleep(1000) }
                #expect(refusals.value > 0)
            }
            try await Self.heard("a write is reported", by: counter) { try Self.append(file) }
            withExtendedLifetime(watcher) {}
        }

        /// Catches: a file that comes back after its owner has ended the watch and removed the file.
        @Test func `S161: a file is not recreated after the end of its watch`() async throws {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = folder.url.appendingPathComponent("file")
            for round in 0..<50 {
                try Data([0]).write(to: file)
                weak var held: Flag?
                do {
                    let isRestoring = Flag()
                    held = isRestoring
                    var watcher: FileWatcher? = try FileWatcher(
                        path: file.path, for: .writes,
                        restore: { [path = file.path] in
                            isRestoring.set()
                            _ = FileManager.default.createFile(atPath: path, contents: nil)
                        }, {})
                    _ = watcher
                    try FileManager.default.removeItem(at: file)
                    // Every second watch ends while its file is being recreated.
                    if round % 2 == 1 { #expect(isRestoring.wait(atMost: .seconds(600))) }
                    watcher = nil
                }
                try? FileManager.default.removeItem(at: file)
                // The closure that recreates the file holds the flag, and is released after the last event that could call it.
                try await until("the closure is released") { held == nil }
                #expect(!FileManager.default.fileExists(atPath: file.path))
            }
        }
    }
#endif
