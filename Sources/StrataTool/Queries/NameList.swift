import ObjectGraph
import StoreInterface
import StoreModel

/// Lists of names in options: `title,-album.title`. A name or path with commas is written in backticks.
enum NameList {
    /// Returns the names of a list without backticks, and without the blanks around them. Empty names are left out.
    static func names(_ text: String) throws(ToolError) -> [String] { try parts(text).map { plain($0) } }

    /// Returns the parts of a list, with a place for each minus in backticks.
    private static func parts(_ text: String) throws(ToolError) -> [String] {
        var names: [String] = []
        var name = ""
        var isQuoted = false
        for character in ConditionLexer.separated(text) {
            switch character {
            case "`": isQuoted.toggle()
            case "," where !isQuoted:
                names.append(name)
                name = ""
            // A minus in backticks is part of the name, and one before a name is not.
            case "-" where isQuoted: name.append(quotedMinus)
            // A blank in backticks is part of the name, and one at the end of a name is not.
            case " " where !isQuoted: name.append(separator)
            default: name.append(character)
            }
        }
        guard !isQuoted else { throw .wrongInput("\(text): a name without its second backtick. Add it") }
        return (names + [name]).map(trimmed).filter { !$0.isEmpty }
    }

    /// Returns the sort that a list describes.
    static func sort(_ text: String) throws(ToolError) -> [AttributeSort] { try parts(text).map { sort(part: $0) } }

    private static func sort(part: String) -> AttributeSort {
        part.hasPrefix("-") ? AttributeSort(plain(String(part.dropFirst())), .descending) : AttributeSort(plain(part))
    }

    /// The place of a minus in backticks.
    private static let quotedMinus: Character = "\u{1}"

    private static func plain(_ part: String) -> String { String(part.map { $0 == quotedMinus ? "-" : $0 }) }

    /// The place of a blank outside of backticks, until the blanks at the ends of names are removed.
    private static let separator: Character = "\u{0}"

    private static func trimmed(_ name: String) -> String {
        let start = name.drop { $0 == separator }
        let end = start.reversed().drop { $0 == separator }.reversed()
        return String(end.map { $0 == separator ? " " : $0 })
    }
}
