/// Splits the text of a condition into words, numbers, strings and signs.
struct ConditionLexer {
    enum Token: Hashable {
        /// A name, a path of names, or a keyword.
        case word(String)
        /// A name or path with backticks, which is no keyword.
        case name(String)
        /// A number or a date without quotes, as it is written.
        case number(String)
        case string(String)
        case sign(String)
    }

    struct Placed: Hashable {
        var token: Token
        /// The position of the first character, from 1.
        var position: Int
    }

    private static let signs = [
        "==", "!=", "<>", "<=", ">=", "&&", "||", "=", "<", ">", "!", "(", ")", "[", "]", "{", "}", ",", "-",
    ]

    /// - Throws: ``ToolError`` with the position of a character that begins no token.
    static func tokens(_ text: String) throws -> [Placed] {
        let characters = separated(text)
        var tokens: [Placed] = []
        var place = 0
        while place < characters.count {
            let start = place
            let first = characters[place]
            if first.isWhitespace {
                place += 1
            } else if first == "\"" || first == "'" {
                let string = try string(characters, &place)
                tokens.append(Placed(token: .string(string), position: start + 1))
            } else if first == "`" || first.isLetter || first == "_" || first == "$" {
                let text = try name(characters, &place)
                let isPlain = !characters[start..<place].contains("`")
                tokens.append(Placed(token: isPlain ? .word(text) : .name(text), position: start + 1))
            } else if first.isASCII && first.isNumber {
                while place < characters.count, isPartOfNumber(characters, place) { place += 1 }
                tokens.append(Placed(token: .number(String(characters[start..<place])), position: start + 1))
            } else if let sign = signs.first(where: { characters[place...].starts(with: $0) }) {
                place += sign.count
                tokens.append(Placed(token: .sign(sign), position: start + 1))
            } else {
                throw ConditionParser.failure("no condition can contain the character \(first)", at: start + 1)
            }
        }
        return tokens
    }

    /// Returns the characters of a text. Swift counts a quotation mark and a combining mark after it as one character. Here they are two,
    /// because the combining mark belongs to the quoted text.
    static func separated(_ text: String) -> [Character] {
        let signs = Set("\"'`\\".unicodeScalars)
        return text.flatMap { character -> [Character] in
            let scalars = character.unicodeScalars
            return scalars.count > 1 && scalars.contains(where: signs.contains) ? scalars.map { Character($0) } : [character]
        }
    }

    /// Whether a character continues a number or a date: `1.5e-3`, `2013-01-31T10:00:00Z`.
    private static func isPartOfNumber(_ characters: [Character], _ place: Int) -> Bool {
        let character = characters[place]
        guard character.isASCII else { return false }
        if character.isNumber || character.isLetter || character == "." || character == ":" { return true }
        let previous = characters[place - 1]
        let isBetween = place + 1 < characters.count && characters[place + 1].isNumber
        return (character == "-" && (previous.isNumber || previous == "e" || previous == "E") && isBetween)
            || (character == "+" && (previous == "e" || previous == "E") && isBetween)
    }

    private static func string(_ characters: [Character], _ place: inout Int) throws -> String {
        let quote = characters[place]
        let start = place
        place += 1
        var text = ""
        while place < characters.count, characters[place] != quote {
            if characters[place] == "\\", place + 1 < characters.count {
                place += 1
                switch characters[place] {
                case "n": text.append("\n")
                case "t": text.append("\t")
                default: text.append(characters[place])
                }
            } else {
                text.append(characters[place])
            }
            place += 1
        }
        guard place < characters.count else { throw ConditionParser.failure("a string that never ends", at: start + 1) }
        place += 1
        return text
    }

    /// Reads a path of names. A name with other characters than letters, digits and underscores is between backticks.
    private static func name(_ characters: [Character], _ place: inout Int) throws -> String {
        var text = ""
        while place < characters.count {
            let character = characters[place]
            if character == "`" {
                let start = place
                guard let end = characters[(place + 1)...].firstIndex(of: "`") else {
                    throw ConditionParser.failure("a name without its second backtick", at: start + 1)
                }
                text += String(characters[(place + 1)..<end])
                place = end + 1
            } else if character.isLetter || character.isNumber || character == "_" || character == "$" || character == "." {
                text.append(character)
                place += 1
            } else {
                break
            }
        }
        return text
    }
}
