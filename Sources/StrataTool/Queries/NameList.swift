import ObjectGraph
import StoreInterface
import StoreModel

/// Lists of names in options: `title,-album.title`. A name or path with commas is written in backticks.
enum NameList {
    /// Returns the names of a list without backticks, and without the blanks around them. Empty names are left out.
    static func names(_ text: String) throws(ToolError) -> [String] {
        var names: [String] = []
        var name = ""
        var isQuoted = false
        for character in text {
            switch character {
            case "`": isQuoted.toggle()
            case "," where !isQuoted:
                names.append(name)
                name = ""
            // A blank in backticks is part of the name, and one at the end of a name is not.
            case " " where !isQuoted: name.append(separator)
            default: name.append(character)
            }
        }
        guard !isQuoted else { throw .wrongInput("\(text): a name without its second backtick. Add it") }
        return (names + [name]).map(trimmed).filter { !$0.isEmpty }
    }

    /// Returns the sort that a list describes.
    static func sort(_ text: String) throws(ToolError) -> [AttributeSort] { try names(text).map { sort(name: $0) } }

    private static func sort(name: String) -> AttributeSort {
        name.hasPrefix("-") ? AttributeSort(String(name.dropFirst()), .descending) : AttributeSort(name)
    }

    /// The place of a blank outside of backticks, until the blanks at the ends of names are removed.
    private static let separator: Character = "\u{0}"

    private static func trimmed(_ name: String) -> String {
        let start = name.drop { $0 == separator }
        let end = start.reversed().drop { $0 == separator }.reversed()
        return String(end.map { $0 == separator ? " " : $0 })
    }
}
