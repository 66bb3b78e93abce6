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

/// A class or actor and the number of its stored properties.
struct FoundClass: Equatable {
    var name: String
    var storedProperties: Int
}

extension SourceFile {
    /// The classes and actors of the file. Reads lines: a property is stored if it is declared with a value, with an observer or without
    /// a body.
    var classes: [FoundClass] {
        var found: [FoundClass] = []
        var open: [(index: Int, depth: Int)] = []
        var pending: String?
        var depth = 0
        for (number, line) in codeLines.enumerated() {
            let words = Self.words(of: line)
            let isClass = Self.className(words) != nil
            if let current = open.last, depth == current.depth + 1, !isClass, isStored(words, line, number) {
                found[current.index].storedProperties += 1
            }
            if let name = Self.className(words) { pending = name }
            for character in line {
                if character == "{" {
                    if let name = pending {
                        open.append((found.count, depth))
                        found.append(FoundClass(name: name, storedProperties: 0))
                        pending = nil
                    }
                    depth += 1
                } else if character == "}" {
                    depth -= 1
                    if open.last?.depth == depth { open.removeLast() }
                }
            }
        }
        return found
    }

    private static func words(of line: String) -> [Substring] {
        line.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "@") }
    }

    private static let modifiers: Set<Substring> = [
        "public", "package", "private", "fileprivate", "internal", "final", "open", "nonisolated", "weak", "unowned", "lazy",
        "set",
        "unsafe", "unchecked",
    ]

    private static func declaration(_ words: [Substring]) -> ArraySlice<Substring> {
        words.drop { $0.hasPrefix("@") || modifiers.contains($0) }
    }

    private static func className(_ words: [Substring]) -> String? {
        let rest = declaration(words)
        guard let first = rest.first, ["class", "actor"].contains(first), rest.count > 1 else { return nil }
        let name = String(rest[rest.startIndex + 1])
        return ["func", "var", "let", "subscript"].contains(name) ? nil : name
    }

    private func isStored(_ words: [Substring], _ line: String, _ number: Int) -> Bool {
        guard let keyword = Self.declaration(words).first, ["let", "var"].contains(keyword) else { return false }
        guard let brace = line.firstIndex(of: "{") else { return true }
        if let equals = line.firstIndex(of: "="), equals < brace { return true }
        let after = line[line.index(after: brace)...].drop { $0 == " " }
        let body = after.isEmpty && number + 1 < codeLines.count ? codeLines[number + 1].drop { $0 == " " } : after
        return body.hasPrefix("didSet") || body.hasPrefix("willSet")
    }
}

/// A function, initialiser or subscript and its parameters.
struct FoundSignature: Equatable {
    var name: String
    /// The line of the keyword, counted from 1.
    var line: Int
    /// The number of parameters that calls pass without a label.
    var unlabelled: Int
    /// The names of the parameters in the body.
    var parameters: [String] = []
}

extension SourceFile {
    /// The signatures of the functions, initialisers and subscripts, with and without bodies.
    var signatures: [FoundSignature] {
        let words = codeWords
        return words.indices.compactMap { index in
            let word = words[index]
            guard ["func", "init", "subscript"].contains(word.text), index == 0 || words[index - 1].text != ".",
                let opening = Self.parameterList(of: index, in: words)
            else { return nil }
            let name = word.text == "func" ? words[index + 1].text : word.text
            let parameters = Self.parameters(from: opening, in: words)
            let unlabelled = parameters.count { Self.isUnlabelled($0, isSubscript: word.text == "subscript") }
            return FoundSignature(name: name, line: word.line, unlabelled: unlabelled, parameters: parameters.compactMap(\.last))
        }
    }

    /// Returns the index of the parenthesis that opens the parameters of the declaration at `start`.
    private static func parameterList(of start: Int, in words: [Word]) -> Int? {
        var angles = 0
        for index in (start + 1)..<max(words.count, start + 1) {
            switch words[index].text {
            case "<": angles += 1
            case ">": angles -= 1
            case "(" where angles <= 0 || words[index - 1].text == "<": return index
            case "{", "}",
                "=" where angles > 0 || words[start].text != "func":
                return nil
            default: break
            }
        }
        return nil
    }

    /// Returns the first words of each parameter, up to its colon.
    private static func parameters(from opening: Int, in words: [Word]) -> [[String]] {
        var found: [[String]] = []
        var current: [String]? = []
        var depth = 0
        for index in opening..<words.count {
            let text = words[index].text
            let isArrow = text == ">" && words[index - 1].text == "-"
            if ["(", "[", "{", "<"].contains(text) { depth += 1 }
            if [")", "]", "}"].contains(text) || text == ">" && !isArrow { depth -= 1 }
            if depth == 0 { return found }
            if depth == 1, text == "," {
                current = []
            } else if depth == 1, text == ":", let parameter = current {
                found.append(parameter)
                current = nil
            } else if index > opening, depth == 1, text != ")" {
                current?.append(text)
            }
        }
        return found
    }

    /// Returns whether the parameter of these words has no label. Attributes come before the label: `@Sendable _ body`.
    private static func isUnlabelled(_ words: [String], isSubscript: Bool) -> Bool {
        var rest = words[...]
        while rest.first == "@" { rest = rest.dropFirst(2) }
        return rest.first == "_" || isSubscript && rest.count == 1
    }
}
