import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataTool

/// `shell`: lines, words, completion and editing.
@Suite struct ShellTests {
    @Test func `lines are verbs on the store, and the status is the worst one`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let good = await ToolRun(
            "shell", folder.path("shop"), input: ["query Song 'seconds > 300' --count", "", "help", "exit", "query Nothing"])
        #expect(good.status == 0 && good.lines.first == "3" && good.errors.isEmpty, "\(good)")
        let bad = await ToolRun(
            "shell", folder.path("shop"),
            input: ["get Band 99999", "qurey Song", "query 'Song", "shell x", "import a b", "help query", "query Song --count"])
        #expect(bad.status == 2 && bad.lines.last == "6")
        #expect(bad.errors.split(separator: "\n").count == 5, "\(bad.errors)")
        #expect(bad.errors.contains("did you mean query?"))
        let json = await ToolRun("shell", folder.path("shop"), "--json", input: ["query Song --count"])
        #expect(try json.object()["count"] as? Int == 6)
        #expect(await ToolRun("shell", folder.path("missing")).isRefused(naming: "missing"))
    }

    @Test func `quotes and backslashes keep blanks in words`() throws {
        #expect(try ShellWords.split(#"  a "b c" 'd "e"' f\ g "" x"y"z "#) == ["a", "b c", #"d "e""#, "f g", "", "xyz"])
        #expect(try ShellWords.split(#""a\"b\n" '\'"#) == [#"a"b\n"#, #"\"#])
        #expect(try ShellWords.split("count \"\u{301} x\"") == ["count", "\u{301} x"])
        #expect(try ShellWords.split("") == [])
        #expect(throws: ToolError.self) { try ShellWords.split("'a") }
        #expect(throws: ToolError.self) { try ShellWords.split("a\\") }
    }

    @Test func `completion offers verbs, entities, properties and options`() {
        let completion = ShellCompletion(Shop.model)
        #expect(completion.candidates("qu").words == ["query"])
        #expect(completion.candidates("query S").words == ["Song"])
        #expect(completion.candidates("query song 's").words == ["seconds"])
        #expect(completion.candidates("query Song --so").words == ["--sort"])
        #expect(completion.candidates("history --entity B").words == ["Band"])
        #expect(completion.candidates("help re").words == ["repair"])
        #expect(completion.candidates("nothing x").words == [])
    }

    @Test func `completion offers the options that a verb has, and subentities and collections`() throws {
        let model = try Model([
            EntityDescription(name: "Vehicle", properties: [.attribute(.init(name: "wheels", type: .int64))]),
            EntityDescription(
                name: "Truck", properties: [.attribute(.init(name: "load", type: .int64))], superentity: "Vehicle"),
        ])
        let completion = ShellCompletion(model, collections: ["drafts"])
        #expect(completion.candidates("watch Vehicle --").words.contains("--times"))
        #expect(completion.candidates("watch Vehicle --co").words == ["--columns"])
        #expect(completion.candidates("query Vehicle --co").words.sorted() == ["--columns", "--count"])
        #expect(Set(completion.candidates("studio --").words).isSuperset(of: ["--write", "--port", "--json"]))
        #expect(completion.candidates("query Tr").words == ["Truck"])
        #expect(completion.candidates("query truck lo").words == ["load"])
        #expect(completion.candidates("get dr").words == ["drafts"])
        #expect(completion.candidates("query dr").words == [])
    }

    /// Returns the two ends of a new terminal: that of the keyboard and that of the program.
    private static func terminal() -> (keyboard: Int32, program: Int32)? {
        // The requests TIOCSPTLCK and TIOCGPTN, macros that Swift does not import.
        let (lock, number): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        var isLocked: Int32 = 0
        var name: Int32 = 0
        let keyboard = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        guard keyboard >= 0, ioctl(keyboard, lock, &isLocked) == 0, ioctl(keyboard, number, &name) == 0 else { return nil }
        let program = open("/dev/pts/\(name)", O_RDWR | O_NOCTTY)
        return program >= 0 ? (keyboard, program) : nil
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/ptmx"), "this system has no such terminals"))
    func `pasted lines are all read, and Escape takes no key`() throws {
        let (terminal, program) = try #require(Self.terminal())
        defer { for end in [terminal, program] { close(end) } }
        let editor = try #require(LineEditor.onTerminal(prompt: "> ", input: program, output: program) { _ in (0, []) })
        func paste(_ text: String) { #expect(text.withCString { write(terminal, $0, strlen($0)) } == text.utf8.count) }
        paste("query Song\rinfo\rx\u{1B}\u{1B}[D\u{1B}yz\r")
        #expect(editor.readLine() == "query Song")
        #expect(editor.readLine() == "info")
        // Escape alone, the left arrow, and Escape before a letter.
        #expect(editor.readLine() == "yzx")
    }

    /// Catches: sequences of other keys, of which the end was typed into the line.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/ptmx"), "this system has no such terminals"))
    func `keys that the editor does not know type nothing`() throws {
        let (terminal, program) = try #require(Self.terminal())
        defer { for end in [terminal, program] { close(end) } }
        let editor = try #require(LineEditor.onTerminal(prompt: "> ", input: program, output: program) { _ in (0, []) })
        // F5, control with the right arrow, the marks of a pasted text, F1 of two terminals, Page Up, a mouse, and a device's answer.
        let unknown = ["[15~", "[1;5C", "[200~", "[201~", "OP", "[[A", "[5~", "[<0;10;20M", "[?1;2c"]
        // Home, End, Delete and the arrow keys in the forms of several terminals.
        let known = ["[1~", "!", "[4~", "?", "[7~", "[3~", "[8~", "OD", "OH", "[C"]
        let text =
            "b" + unknown.map { "\u{1B}\($0)a" }.joined() + known.map { $0.count > 1 ? "\u{1B}\($0)" : $0 }.joined() + "c\r"
        #expect(text.withCString { write(terminal, $0, strlen($0)) } == text.utf8.count)
        #expect(editor.readLine() == "bc" + String(repeating: "a", count: unknown.count) + "?")
    }

    @Test func `keys edit the line`() {
        let completion = ShellCompletion(Shop.model)
        var line = EditedLine(history: ["info", "verify"])
        func press(_ keys: EditedLine.Key...) -> EditedLine.Effect {
            var effect = EditedLine.Effect.none
            for key in keys { effect = line.press(key, completion.candidates) }
            return effect
        }
        func type(_ text: String) { for character in text { _ = press(.character(character)) } }
        type("qu")
        #expect(press(.tab) == .none && line.text == "query ")
        #expect(press(.tab) == .list(["Band", "Album", "Song", "List"]))
        type("so")
        _ = press(.tab)
        #expect(line.text == "query Song ")
        type("t")
        #expect(press(.tab) == .list(["title", "text"]))
        _ = press(.home, .delete, .character("Q"), .end, .backspace, .left, .right, .right)
        #expect(line.text == "Query Song " && line.cursor == 11)
        _ = press(.up, .up, .up)
        #expect(line.text == "info")
        _ = press(.down, .down, .down)
        #expect(line.text == "Query Song ")
        _ = press(.left, .left, .removeBefore, .removeAfter)
        #expect(line.text == "" && line.cursor == 0)
        _ = press(.backspace, .delete, .left)
        #expect(press(.endOfInput) == .end && press(.enter) == .accept && press(.cancel) == .cancel)
        type("x")
        #expect(press(.endOfInput) == .none && line.text == "x")
    }
}
