import Foundation
import Testing

/// The program `todo`, run as a process on a new file.
@Suite final class TodoTests {
    private let folder: URL
    private let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "todo").path

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "todo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @Test func `todos are added, listed by due date and tag, edited, and done`() throws {
        #expect(try run("add Buy milk +food due:2026-12-02") == "1 [ ] 2026-12-02 Buy milk +food".added)
        #expect(try run("add Write a letter due:2026-12-01") == "2 [ ] 2026-12-01 Write a letter".added)
        #expect(try run("add Bake bread +food +home") == "3 [ ] Bake bread +food +home".added)
        #expect(
            try run("list") == """
                3 [ ] Bake bread +food +home
                2 [ ] 2026-12-01 Write a letter
                1 [ ] 2026-12-02 Buy milk +food

                """)
        #expect(try run("list +home") == "3 [ ] Bake bread +food +home\n")
        #expect(try run("edit 3 Bake two breads -home +oven due:2026-12-03") == "3 [ ] 2026-12-03 Bake two breads +food +oven\n")
        #expect(try run("edit 3 due:") == "3 [ ] Bake two breads +food +oven\n")
        #expect(try run("search BREAD") == "3 [ ] Bake two breads +food +oven\n")
        #expect(try run("tags") == "+food 2\n+oven 1\n")
        #expect(try run("done 3") == "")
        #expect(try run("remove 2") == "")
        #expect(try run("list") == "1 [ ] 2026-12-02 Buy milk +food\n")
        #expect(try run("list all") == "3 [x] Bake two breads +food +oven\n1 [ ] 2026-12-02 Buy milk +food\n")
        #expect(try run("tags") == "+food 1\n")
    }

    @Test func `an undo reverts the last command of a session, and the next process sees it`() throws {
        let lines = ["add Buy milk +food", "done 1", "undo", "list", "edit 1 Buy bread", "undo", "undo", "list all"]
        #expect(try session(lines) == "\("1 [ ] Buy milk +food".added)1 [ ] Buy milk +food\n1 [ ] Buy bread +food\n")
        #expect(try run("list all") == "")
        #expect(try run("undo", status: 2) == "todo: nothing to undo: only commands of this session can be undone\n")
    }

    @Test func `bad input is one line and status 2, and changes nothing`() throws {
        #expect(try run("add Buy milk") == "1 [ ] Buy milk".added)
        for (words, error) in [
            ("fly", "unknown command fly. Commands are add, edit, done, remove, list, search, tags, watch, undo"),
            ("add +food", "a todo needs a title: add Buy milk +food due:2026-12-01"),
            ("add Buy bread due:2026-13-01", "2026-13-01 is no date. Write it as due:2026-12-01"),
            ("done", "a number of a todo is missing: done 3"), ("done 7", "there is no todo 7. `list all` shows the numbers"),
            ("edit 1 \(String(repeating: "x", count: 201))", "title must have 1 to 200 characters, has 201"),
            ("list today", "list takes `all` and one +tag, not today"),
        ] {
            #expect(try run(words, status: 2).hasSuffix("todo: \(error)\n"), "\(words)")
        }
        #expect(try run("list all") == "1 [ ] Buy milk\n")
        #expect(try session(["done 9", "done 1"], status: 2) == "todo: there is no todo 9. `list all` shows the numbers\n")
        #expect(try run("list all") == "1 [x] Buy milk\n")
    }

    @Test func `a file that cannot be opened is one line and status 1`() throws {
        try Data("no store".utf8).write(to: folder.appending(path: "list.strata"))
        let error = try run("list", status: 1)
        #expect(error.hasPrefix("todo: ") && error.count { $0 == "\n" } == 1, "\(error)")
    }

    /// Catches: a program that a signal ends, and an edit that is lost because its line cannot be shown.
    @Test func `output that cannot be written is one line and status 1, and the edit stays`() throws {
        #expect(try run("add Buy milk") == "1 [ ] Buy milk".added)
        let failing = ["&-", "/dev/full"].filter { $0 == "&-" || FileManager.default.fileExists(atPath: $0) }
        for (number, target) in failing.enumerated() {
            let error = try output("'\(program)' '\(file)' edit 1 'Buy \(number)' 2>&1 >\(target)", 1)
            #expect(error.hasPrefix("todo: cannot write the output: ") && error.count { $0 == "\n" } == 1, "\(error)")
            #expect(try run("list") == "1 [ ] Buy \(number)\n")
        }
        #expect(try output("'\(program)' 2>&-", 2) == "")
    }

    @Test func `a watching process shows the changes of another`() throws {
        #expect(try run("add Buy milk") == "1 [ ] Buy milk".added)
        let watcher = try Running("'\(program)' '\(file)' watch 2 2>&1")
        #expect(watcher.line() == "1 [ ] Buy milk\n")
        #expect(try run("add Bake bread") == "2 [ ] Bake bread".added)
        #expect(watcher.line() == "--\n" && watcher.line() == "1 [ ] Buy milk\n" && watcher.line() == "2 [ ] Bake bread\n")
        #expect(try run("done 1") == "")
        #expect(watcher.line() == "--\n" && watcher.line() == "2 [ ] Bake bread\n")
        #expect(watcher.line() == nil && watcher.status() == 0)
    }

    @Test func `processes that add todos at one time each get a number, and share a new tag`() throws {
        let adding = try (1...8).map { _ in try Running("'\(program)' '\(file)' add 'Buy milk' +food 2>&1") }
        let lines = adding.map { $0.line() ?? "" }
        #expect(adding.allSatisfy { $0.status() == 0 })
        #expect(lines.sorted() == (1...8).map { "\($0) [ ] Buy milk +food".added })
        #expect(try run("tags") == "+food 8\n")
    }

    // MARK: Processes

    private var file: String { folder.appending(path: "list.strata").path }

    private func run(_ words: String, status: Int32 = 0) throws -> String {
        try output("'\(program)' '\(file)' \(words.split(separator: " ").map { "'\($0)'" }.joined(separator: " ")) 2>&1", status)
    }

    private func session(_ lines: [String], status: Int32 = 0) throws -> String {
        try output("printf '%s\\n' \(lines.map { "'\($0)'" }.joined(separator: " ")) | '\(program)' '\(file)' 2>&1", status)
    }

    private func output(_ command: String, _ status: Int32) throws -> String {
        let running = try Running(command)
        var text = ""
        while let line = running.line() { text += line }
        let found = running.status()
        #expect(found == status, "\(command): \(text)")
        return text
    }
}

extension String {
    fileprivate var added: String { "added \(self)\n" }
}

/// A command of the shell, and what it prints.
private final class Running {
    private let pipe: UnsafeMutablePointer<FILE>

    struct CannotStart: Error {}

    init(_ command: String) throws {
        guard let pipe = popen(command, "r") else { throw CannotStart() }
        self.pipe = pipe
    }

    /// Waits for the next line. Returns nil at the end of the output.
    func line() -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        guard fgets(&bytes, Int32(bytes.count), pipe) != nil else { return nil }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Waits for the end of the command. Call this once.
    func status() -> Int32 { pclose(pipe) >> 8 & 0xff }
}
