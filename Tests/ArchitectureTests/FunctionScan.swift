/// A function, initialiser or deinitialiser with a body.
struct FoundFunction: Equatable {
    var name: String
    /// The line of the keyword, counted from 1.
    var line: Int
    /// The number of lines from the keyword to the closing brace.
    var length: Int
}

extension SourceFile {
    /// The functions with bodies, including nested functions. Found by matching braces in the blanked code.
    var functions: [FoundFunction] {
        let words = codeWords
        return words.indices.compactMap { index in
            let word = words[index]
            guard ["func", "init", "deinit"].contains(word.text), index == 0 || words[index - 1].text != "." else { return nil }
            guard let closing = Self.closingBrace(of: index, in: words) else { return nil }
            let name = word.text == "func" && index + 1 < words.count ? words[index + 1].text : word.text
            return FoundFunction(name: name, line: word.line, length: words[closing].line - word.line + 1)
        }
    }

    struct Word {
        var text: String
        var line: Int
    }

    /// Identifiers, and single characters that matter to the scan.
    var codeWords: [Word] {
        var words: [Word] = []
        for (number, line) in codeLines.enumerated() {
            var current: [UInt8] = []
            func end() {
                guard !current.isEmpty else { return }
                words.append(Word(text: String(decoding: current, as: UTF8.self), line: number + 1))
                current = []
            }
            for byte in line.utf8 {
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 128...:
                    current.append(byte)
                case UInt8(ascii: " "), UInt8(ascii: "\t"):
                    end()
                default:
                    end()
                    words.append(Word(text: String(UnicodeScalar(byte)), line: number + 1))
                }
            }
            end()
        }
        return words
    }

    private static let declarations: Set = [
        "func", "init", "var", "let", "subscript", "case", "static", "associatedtype", "typealias", "mutating", "extension",
    ]

    /// Returns the index of the brace that ends the body of the declaration at `start`, or nil if it has no body.
    private static func closingBrace(of start: Int, in words: [Word]) -> Int? {
        var parentheses = 0
        var braces = 0
        for index in (start + 1)..<max(words.count, start + 1) {
            switch words[index].text {
            case "(", "[": parentheses += 1
            case ")", "]": parentheses -= 1
            case "{" where parentheses == 0 || braces > 0: braces += 1
            case "}" where braces > 0:
                braces -= 1
                if braces == 0 { return index }
            case "}" where parentheses == 0: return nil
            case let text where braces == 0 && parentheses == 0 && Self.declarations.contains(text): return nil
            default: break
            }
        }
        return nil
    }
}
