/// Reads the public names out of the sources, textually: declarations at file level and in types, bodies of functions left out.
struct PublicNames {
    /// A public declaration, or one that is public if the type that it extends is.
    struct Name {
        /// With the types around it, and the labels of its parameters: `Page.value(_:column:)`.
        var text: String
        /// The extended type around it, if there is one.
        var extended: String?
    }

    /// In the order of the file.
    private(set) var names: [Name] = []
    /// The types that the file declares, by qualified name, and whether they can be named from another module.
    private(set) var types: [String: Bool] = [:]

    private var tokens: [Token]
    private var position = 0

    /// The public names of a module, sorted. A name that is overloaded stands there as often.
    static func of(_ files: [SourceFile]) -> [String] {
        let scans = files.map(PublicNames.init)
        let types = scans.reduce(into: [String: Bool]()) { all, scan in
            all.merge(scan.types) { $0 || $1 }
        }
        return scans.flatMap(\.names).filter { name in name.extended.map { types[$0] != false } ?? true }.map(\.text).sorted()
    }

    init(_ file: SourceFile) {
        tokens = Token.all(in: file)
        members(of: Scope(path: [], isVisible: true))
    }

    // MARK: Tokens

    private struct Token {
        var text: String
        var isFirstOfLine: Bool

        /// Words, and all other characters one by one.
        static func all(in file: SourceFile) -> [Token] {
            var tokens: [Token] = []
            for line in file.codeLines {
                let start = tokens.count
                var rest = line[...]
                while let first = rest.first {
                    let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "`" }
                    let text = word.isEmpty ? rest.prefix(1) : word
                    if !first.isWhitespace { tokens.append(Token(text: String(text), isFirstOfLine: tokens.count == start)) }
                    rest = rest.dropFirst(text.count)
                }
            }
            return tokens
        }
    }

    private var token: String? { position < tokens.count ? tokens[position].text : nil }

    private mutating func next() -> String? {
        defer { position += 1 }
        return token
    }

    /// Skips a parenthesis, bracket or brace with all that it holds.
    private mutating func skipGroup() {
        var depth = 0
        repeat {
            switch next() {
            case "(", "[", "{": depth += 1
            case ")", "]", "}": depth -= 1
            case nil: return
            default: break
            }
        } while depth > 0
    }

    /// Skips the rest of a declaration, its body included.
    private mutating func skipRest() {
        while let text = token, text != "}" {
            if tokens[position].isFirstOfLine, Self.starts.contains(text) { return }
            if text == ";" { return }
            if ["(", "[", "{"].contains(text) { skipGroup() } else { position += 1 }
        }
    }

    private static let kinds: Set = ["struct", "class", "enum", "protocol", "actor", "extension"]
    private static let accesses: Set = ["public", "open", "package", "internal", "fileprivate", "private"]
    private static let modifiers: Set = [
        "static", "final", "mutating", "nonmutating", "override", "convenience", "required", "lazy", "weak", "unowned",
        "nonisolated", "indirect", "dynamic", "consuming", "borrowing", "prefix", "postfix", "infix",
    ]
    private static let starts: Set<String> = kinds.union(accesses).union(modifiers).union([
        "func", "init", "deinit", "subscript", "var", "let", "case", "typealias", "associatedtype", "macro", "import", "@", "#",
    ])

    // MARK: Declarations

    private struct Scope {
        var path: [String]
        /// Whether a member that says `public` is.
        var isVisible: Bool
        /// Whether a member that says nothing is as visible as the type: a protocol's, or of a public extension.
        var isOpen = false
        var isEnum = false
        var extended: String?
    }

    private mutating func members(of scope: Scope) {
        var access: String?
        var spi = ""
        while let text = token {
            switch text {
            case "}": return
            case "@": if attribute() == "_spi" { spi = "@_spi " }
            case "#": skipDirective()
            case ";": position += 1
            case "class" where ["func", "var", "subscript"].contains(tokens[min(position + 1, tokens.count - 1)].text):
                position += 1
            case let text where Self.kinds.contains(text):
                type(in: scope, access)
                (access, spi) = (nil, "")
            case let text where Self.accesses.contains(text):
                position += 1
                if token == "(" { skipGroup() } else { access = text }
            case let text where Self.modifiers.contains(text):
                position += 1
                if token == "(" { skipGroup() }
            case "func", "init", "subscript", "var", "let", "case", "typealias", "associatedtype", "macro":
                let found = declaration()
                if isPublic(access, text, scope) {
                    names += found.map { Name(text: spi + (scope.path + [$0]).joined(separator: "."), extended: scope.extended) }
                }
                (access, spi) = (nil, "")
            default:
                position += 1
                skipRest()
                (access, spi) = (nil, "")
            }
        }
    }

    private func isPublic(_ access: String?, _ keyword: String, _ scope: Scope) -> Bool {
        guard scope.isVisible else { return false }
        return access == "public" || access == "open" || (access == nil && (scope.isOpen || (keyword == "case" && scope.isEnum)))
    }

    private mutating func attribute() -> String? {
        position += 1
        let name = next()
        // An attribute's list begins at once; a space before it is not kept, but no declaration begins with a parenthesis.
        if token == "(" { skipGroup() }
        return name
    }

    private mutating func skipDirective() {
        repeat { position += 1 } while position < tokens.count && !tokens[position].isFirstOfLine
    }

    /// Skips the value of one case, up to the next case of the same line.
    private mutating func skipRawValue() {
        while let text = token, ![",", ";", "}"].contains(text), !tokens[position].isFirstOfLine { position += 1 }
    }

    private mutating func type(in scope: Scope, _ access: String?) {
        let kind = next()
        var name = next() ?? ""
        while token == "." {
            position += 1
            name += "." + (next() ?? "")
        }
        while let text = token, text != "{" { if text == "(" { skipGroup() } else { position += 1 } }
        position += 1
        let path = scope.path + [name]
        var inner = Scope(path: path, isVisible: scope.isVisible, isEnum: kind == "enum", extended: scope.extended)
        if kind == "extension" {
            inner.extended = name
            inner.isOpen = access == "public"
            inner.isVisible = access == nil || access == "public"
        } else {
            inner.isVisible = isPublic(access, "", scope)
            inner.isOpen = kind == "protocol"
            types[path.joined(separator: ".")] = inner.isVisible
            if inner.isVisible { names.append(Name(text: path.joined(separator: "."), extended: scope.extended)) }
        }
        members(of: inner)
        position += 1
    }

    /// The names of one declaration; an enumeration's `case` and a `let` may have several.
    private mutating func declaration() -> [String] {
        let keyword = next() ?? ""
        var names: [String] = []
        switch keyword {
        case "case", "var", "let":
            repeat {
                if token == "," { position += 1 }
                names.append(next() ?? "")
                if keyword == "case", token == "(" { skipGroup() }
                if keyword == "case", token == "=" { skipRawValue() }
            } while token == ","
        case "func", "macro":
            var name = next() ?? ""
            if !(name.first.map { $0.isLetter || $0 == "_" || $0 == "`" } ?? true) {
                while let text = token, text != "(" {
                    name += text
                    position += 1
                }
            }
            names.append(name + labels(ofSubscript: false))
        case "init", "subscript":
            names.append(keyword + labels(ofSubscript: keyword == "subscript"))
        default:
            names.append(next() ?? "")
        }
        skipRest()
        return names
    }

    /// Skips generic parameters and reads a parameter list: `(_:column:)`. A subscript's single names are no labels.
    private mutating func labels(ofSubscript: Bool) -> String {
        while let text = token, text != "(" { if text == "{" || text == "}" { return "" } else { position += 1 } }
        position += 1
        var (text, depth, angles, isStart) = ("", 0, 0, true)
        while let current = next() {
            if isStart, depth == 0, current != ")" {
                let isLabel = !ofSubscript || token != ":"
                text += (isLabel ? current : "_") + ":"
                isStart = false
            }
            switch current {
            case "(", "[", "{": depth += 1
            case ")", "]", "}":
                if depth == 0 { return "(\(text))" }
                depth -= 1
            case "<": angles += 1
            case ">" where tokens[position - 2].text != "-": angles = max(0, angles - 1)
            case "," where depth == 0 && angles == 0: isStart = true
            default: break
            }
        }
        return "(\(text))"
    }
}
