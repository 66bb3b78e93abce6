import Foundation

/// A line of text that is being edited, as keys change it.
struct EditedLine {
    /// A key or a combination of keys.
    enum Key: Hashable {
        case character(Character)
        case enter, tab, backspace, delete, left, right, up, down, home, end
        /// Control with U or K: removes what is before or after the cursor.
        case removeBefore, removeAfter
        /// Control with C: gives the line up.
        case cancel
        /// Control with D: ends the input if the line is empty.
        case endOfInput
    }

    /// The effect of a key beyond the line.
    enum Effect: Hashable { case none, accept, cancel, end, list([String]) }

    private(set) var characters: [Character] = []
    private(set) var cursor = 0
    private let history: [String]
    /// The position in the history; its count for the new line.
    private var place: Int
    private var draft: [Character] = []

    init(history: [String] = []) {
        self.history = history
        place = history.count
    }

    var text: String { String(characters) }

    mutating func press(_ key: Key, _ complete: (String) -> (count: Int, words: [String])) -> Effect {
        switch key {
        case .character(let character):
            characters.insert(character, at: cursor)
            cursor += 1
        case .enter: return .accept
        case .cancel: return .cancel
        case .endOfInput: if characters.isEmpty { return .end }
        case .tab: return completed(complete)
        case .backspace: if cursor > 0 { removeCharacters(cursor - 1..<cursor) }
        case .delete: if cursor < characters.count { removeCharacters(cursor..<cursor + 1) }
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(characters.count, cursor + 1)
        case .home: cursor = 0
        case .end: cursor = characters.count
        case .removeBefore: removeCharacters(0..<cursor)
        case .removeAfter: characters.removeSubrange(cursor...)
        case .up: recall(place - 1)
        case .down: recall(place + 1)
        }
        return .none
    }

    private mutating func removeCharacters(_ range: Range<Int>) {
        characters.removeSubrange(range)
        cursor = range.lowerBound
    }

    private mutating func recall(_ wanted: Int) {
        guard wanted >= 0, wanted <= history.count, wanted != place else { return }
        if place == history.count { draft = characters }
        place = wanted
        characters = wanted == history.count ? draft : Array(history[wanted])
        cursor = characters.count
    }

    /// Replaces the end of the text before the cursor by what all candidates begin with. Lists them if that is no more than is there.
    private mutating func completed(_ complete: (String) -> (count: Int, words: [String])) -> Effect {
        let (count, words) = complete(String(characters[..<cursor]))
        guard let first = words.first else { return .none }
        var common = Array(first)
        for word in words.dropFirst() {
            common = Array(zip(common, word).prefix { $0.lowercased() == $1.lowercased() }.map(\.0))
        }
        let addition = words.count == 1 ? common + [" "] : common
        guard addition.count > count else { return words.count > 1 ? .list(words) : .none }
        characters.replaceSubrange(cursor - count..<cursor, with: addition)
        cursor += addition.count - count
        return .none
    }
}

/// Reads lines from the terminal with editing, history and completion.
final class LineEditor {
    private let prompt: String
    private let complete: (String) -> (count: Int, words: [String])
    private var history: [String] = []
    private let original: termios
    private let (input, output): (Int32, Int32)
    /// A byte that was read after an Escape that begins no sequence.
    private var returned: UInt8?
    /// The time in milliseconds in which the rest of an arrow key's sequence arrives.
    private static let escapeTime: Int32 = 50

    /// Returns an editor if standard input and output are a terminal.
    static func onTerminal(
        prompt: String, input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO,
        _ complete: @escaping (String) -> (count: Int, words: [String])
    ) -> LineEditor? {
        var original = termios()
        guard isatty(input) == 1, isatty(output) == 1, tcgetattr(input, &original) == 0 else { return nil }
        return LineEditor(prompt, original: original, terminal: (input, output), complete)
    }

    private init(
        _ prompt: String, original: termios, terminal: (input: Int32, output: Int32),
        _ complete: @escaping (String) -> (count: Int, words: [String])
    ) {
        self.prompt = prompt
        self.original = original
        (input, output) = terminal
        self.complete = complete
    }

    /// Returns the next line, or nil at the end of the input.
    func readLine() -> String? {
        var raw = original
        cfmakeraw(&raw)
        // Not TCSAFLUSH, which would drop the other lines of a pasted text.
        tcsetattr(input, TCSADRAIN, &raw)
        var restored = original
        defer { tcsetattr(input, TCSADRAIN, &restored) }
        var line = EditedLine(history: history)
        show(line)
        while let key = nextKey() {
            switch line.press(key, complete) {
            case .none: show(line)
            case .list(let words):
                write("\r\n" + words.joined(separator: "  ") + "\r\n")
                show(line)
            case .cancel:
                write("^C\r\n")
                line = EditedLine(history: history)
                show(line)
            case .end:
                write("\r\n")
                return nil
            case .accept:
                write("\r\n")
                if !line.characters.isEmpty, history.last != line.text { history.append(line.text) }
                return line.text
            }
        }
        return nil
    }

    /// Shows the part of the line around the cursor that fits the width of the terminal.
    private func show(_ line: EditedLine) {
        var size = winsize()
        let width = ioctl(output, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 20 ? Int(size.ws_col) : 80
        let room = max(10, width - prompt.count - 1)
        let start = max(0, line.cursor - room)
        let shown = String(line.characters[start...].prefix(room))
        write("\r\(prompt)\(shown)\u{1B}[K\r\u{1B}[\(prompt.count + line.cursor - start)C")
    }

    private func write(_ text: String) {
        // A terminal that cannot show the line cannot show an error either.
        try? FileHandle(fileDescriptor: output, closeOnDealloc: false).write(contentsOf: Data(text.utf8))
    }

    // MARK: Keys

    private func nextByte() -> UInt8? {
        if let byte = returned {
            returned = nil
            return byte
        }
        var byte: UInt8 = 0
        return read(input, &byte, 1) == 1 ? byte : nil
    }

    /// Whether a byte arrives within the time of a sequence.
    private var isFollowed: Bool {
        var wanted = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, Self.escapeTime) == 1
    }

    private func nextKey() -> EditedLine.Key? {
        while let byte = nextByte() {
            switch byte {
            case 0x0D, 0x0A: return .enter
            case 0x09: return .tab
            case 0x7F, 0x08: return .backspace
            case 0x01: return .home
            case 0x05: return .end
            case 0x15: return .removeBefore
            case 0x0B: return .removeAfter
            case 0x03: return .cancel
            case 0x04: return .endOfInput
            case 0x1B: if let key = escapedKey() { return key }
            case 0x20...: if let character = character(from: byte) { return .character(character) }
            default: break
            }
        }
        return nil
    }

    /// Reads the rest of a sequence such as `ESC [ D`, the left arrow. A sequence of another key, such as `ESC [ 1 5 ~`, is read to its end
    /// and ignored. Escape alone is no key, and does not take the next one.
    private func escapedKey() -> EditedLine.Key? {
        guard isFollowed, let kind = nextByte() else { return nil }
        switch kind {
        case UInt8(ascii: "["): return controlSequence()
        case UInt8(ascii: "O"):
            guard isFollowed, let code = nextByte() else { return nil }
            return Self.key(code, parameters: [])
        default:
            returned = kind
            return nil
        }
    }

    /// Reads a sequence after `ESC [`: parameters, intermediate bytes, and one final byte. A byte that no sequence has ends it.
    private func controlSequence() -> EditedLine.Key? {
        var parameters: [UInt8] = []
        while isFollowed, let byte = nextByte() {
            switch byte {
            case 0x20...0x3F: parameters.append(byte)
            // F1 to F5 of the Linux console: ESC [ [ A.
            case UInt8(ascii: "[") where parameters.isEmpty:
                if isFollowed { _ = nextByte() }
                return nil
            case 0x40...0x7E: return Self.key(byte, parameters: parameters)
            default:
                returned = byte
                return nil
            }
        }
        return nil
    }

    /// Returns the key of a sequence; nil for keys that the editor does not know.
    private static func key(_ code: UInt8, parameters: [UInt8]) -> EditedLine.Key? {
        switch (code, String(decoding: parameters, as: UTF8.self)) {
        case (UInt8(ascii: "A"), ""): .up
        case (UInt8(ascii: "B"), ""): .down
        case (UInt8(ascii: "C"), ""): .right
        case (UInt8(ascii: "D"), ""): .left
        case (UInt8(ascii: "H"), ""), (UInt8(ascii: "~"), "1"), (UInt8(ascii: "~"), "7"): .home
        case (UInt8(ascii: "F"), ""), (UInt8(ascii: "~"), "4"), (UInt8(ascii: "~"), "8"): .end
        case (UInt8(ascii: "~"), "3"): .delete
        default: nil
        }
    }

    /// Reads the rest of a character in UTF-8.
    private func character(from first: UInt8) -> Character? {
        var bytes = [first]
        let count = first < 0x80 ? 1 : first & 0xE0 == 0xC0 ? 2 : first & 0xF0 == 0xE0 ? 3 : first & 0xF8 == 0xF0 ? 4 : 0
        while bytes.count < count, let next = nextByte() { bytes.append(next) }
        return String(validating: bytes, as: UTF8.self)?.first
    }
}
