import Foundation
import LMDB
import Platform
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

// The lock of LMDB's writer is in the lock file on Linux only.
#if os(Linux)
    /// Another process saves between two calls of an opening, in each run between two others.
    @Suite struct OpeningBesideWriterTests {
        /// The number of tracks in each save.
        private static let tracks = 16

        private static var options: LMDBStore.Options {
            var options = LMDBStore.Options()
            // So small that the other process makes the file larger than the map of this one.
            options.mapSize = 1 << 20
            return options
        }

        enum Way: CaseIterable { case opening, resuming }

        /// Catches: an opening that writes or cuts the file without the writer's lock, or that goes on with the state from before a save of
        /// another process, so that the next save overwrites that one.
        @Test(arguments: Way.allCases)
        func `S067: a save of another process is not lost, whichever call of an opening it comes before`(_ way: Way) async throws
        {
            let scratch = try Scratch()
            let pipes = try SavePipes(in: scratch.folder)
            let (outcomes, outcome) = AsyncStream<Result<Void, any Error>>.makeStream()
            // A thread, because the waits for the ends of other processes may occupy every thread that runs tasks.
            Thread.detachNewThread {
                outcome.yield(Result { try Self.run(way, scratch, pipes) })
                outcome.finish()
                pipes.end()
            }
            await Self.runOther(scratch, pipes)
            for await outcome in outcomes { try outcome.get() }
        }

        /// Opens the store again and again, until the other process has saved before each call. Saves after each opening.
        private static func run(_ way: Way, _ scratch: Scratch, _ pipes: SavePipes) throws {
            guard try pipes.takeAnswer() == 0 else { throw OtherProcessEnded() }
            var store = try scratch.store(options)
            var (saves, between) = (0, 0)
            for moment in 1... {
                let calls = CallsOfOpening(moment, pipes)
                switch way {
                case .opening:
                    try store.shutDown()
                    try calls.run(in: scratch.folder) { store = try scratch.store(options) }
                case .resuming:
                    try store.suspend()
                    try calls.run(in: scratch.folder) { _ = try store.snapshot() }
                }
                guard let answer = calls.answer else { break }
                guard answer >= 0 else { throw OtherProcessEnded() }
                if answer > 0 {
                    between += 1
                    saves += 1
                    #expect(answer == saves, "the other process saves before call \(moment)")
                }
                try store.insertTracks(tracks)
                saves += 1
                let newest = try store.snapshot()
                #expect(newest.generation.rawValue == saves, "after call \(moment)")
                #expect(try newest.count(StoreQuery(entity: Samples.track)) == saves * tracks, "after call \(moment)")
            }
            #expect(between > 0)
            #expect(try store.verify() == [])
            try store.shutDown()
        }

        /// Runs the other process. It ends when ``SavePipes/end()`` is called in this process.
        private static func runOther(_ scratch: Scratch, _ pipes: SavePipes) async {
            await #expect(processExitsWith: .success) {
                [folder = scratch.folder as URL, path = scratch.url.path as String] in
                try OpeningBesideWriterTests.serve(SavePipes(in: folder), path)
            }
            // Ends the wait for a process that has ended early.
            pipes.answer(-1)
        }

        /// The other process: saves when it is asked to, and answers with the generation. While the process that asks has the
        /// writer's lock, answers 0 and saves nothing, because it would wait for that process.
        private static func serve(_ pipes: SavePipes, _ path: String) throws {
            let store = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema, options: options)
            let lock = try WriterLock(store, path: path)
            pipes.answer(0)
            while try pipes.takeQuestion() == .save {
                if lock.isHeld {
                    pipes.answer(0)
                    continue
                }
                try store.insertTracks(tracks)
                pipes.answer(Int64(try store.snapshot().generation.rawValue))
            }
        }
    }

    private struct OtherProcessEnded: Error {}

    /// The calls of LMDB and of the system for the files in a folder. Before one of them, the other process saves.
    private final class CallsOfOpening: Sendable {
        private struct State {
            var count = 0
            var answer: Int64?
        }

        private let moment: Int
        private let pipes: SavePipes
        private let state = Mutex(State())

        init(_ moment: Int, _ pipes: SavePipes) { (self.moment, self.pipes) = (moment, pipes) }

        /// The answer of the other process; nil if there were fewer calls.
        var answer: Int64? { state.withLock { $0.answer } }

        func run(in folder: URL, _ body: () throws -> Void) throws {
            let name = folder.lastPathComponent
            try LMDBFaults.withInjector(at: folder.path, { [self] _ in note() }) {
                try SystemFaults.withInjector({ [self] _, path in path.contains(name) ? note() : nil }, body)
            }
        }

        /// Counts a call, which then runs.
        private func note() -> Int32? {
            let isNow = state.withLock { state in
                state.count += 1
                return state.count == moment
            }
            if isNow {
                let answer = (try? pipes.save()) ?? -1
                state.withLock { $0.answer = answer }
            }
            return nil
        }
    }

    /// Two named pipes between this process and the other one.
    private final class SavePipes: Sendable {
        enum Question: Int64 { case save = 1, end }

        private let questions: Int32
        private let answers: Int32

        /// Opens the pipes, and creates them if they do not exist. Each is opened for both directions, so that no process waits until
        /// the other has opened it.
        init(in folder: URL) throws {
            questions = try Self.pipe(folder.appendingPathComponent("questions").path)
            answers = try Self.pipe(folder.appendingPathComponent("answers").path)
        }

        deinit {
            close(questions)
            close(answers)
        }

        private static func pipe(_ path: String) throws -> Int32 {
            _ = mkfifo(path, 0o600)
            let descriptor = open(path, O_RDWR | O_CLOEXEC)
            guard descriptor >= 0 else { throw OtherProcessEnded() }
            return descriptor
        }

        /// Asks for a save and waits for the answer.
        func save() throws -> Int64 {
            Self.put(Question.save.rawValue, questions)
            return try takeAnswer()
        }

        func end() { Self.put(Question.end.rawValue, questions) }

        func answer(_ number: Int64) { Self.put(number, answers) }

        func takeAnswer() throws -> Int64 { try Self.take(answers) }

        func takeQuestion() throws -> Question { Question(rawValue: try Self.take(questions)) ?? .end }

        private static func put(_ number: Int64, _ pipe: Int32) {
            // A pipe takes eight bytes as a whole.
            withUnsafeBytes(of: number) { _ = write(pipe, $0.baseAddress, $0.count) }
        }

        private static func take(_ pipe: Int32) throws -> Int64 {
            var wait = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
            var ready: Int32 = 0
            // The limit ends a test that hangs.
            repeat { ready = poll(&wait, 1, 600_000) } while ready < 0 && errno == EINTR
            var number: Int64 = 0
            guard ready == 1, read(pipe, &number, 8) == 8 else { throw OtherProcessEnded() }
            return number
        }
    }

    /// The lock of LMDB's writer: words of the lock file that change while a process has it.
    private struct WriterLock {
        /// Stays open: closing any descriptor of the lock file releases LMDB's locks of this process on it.
        private let file: Int32
        private let words: [Int]
        private let free: [UInt64]

        /// Finds the words. No other process may write meanwhile.
        init(_ store: LMDBStore, path: String) throws {
            let file = open(path + "-lock", O_RDONLY | O_CLOEXEC)
            let free = Self.content(file)
            let held = try store.environment.write { _ in Self.content(file) }
            let words = free.indices.filter { free[$0] != held[$0] }
            try #require(!words.isEmpty, "the writer's lock is not in the lock file")
            (self.file, self.free, self.words) = (file, free, words)
        }

        var isHeld: Bool {
            let now = Self.content(file)
            return words.contains { now[$0] != free[$0] }
        }

        private static func content(_ file: Int32) -> [UInt64] {
            var words = [UInt64](repeating: 0, count: 64)
            _ = words.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
            return words
        }
    }
#endif
