/// The end of an error about a misspelled name. It helps programs that take names from their users.
public enum Suggestion {
    /// Returns the text that follows an error about an unknown name: the known name that is probably meant, and all known names.
    ///
    /// A name is suggested if at most half of its letters differ; case does not count. The text is empty if no names are known.
    ///
    /// - Parameters:
    ///   - name: The unknown name.
    ///   - known: The names that could be meant. Of several that are equally near, the first is suggested.
    public static func hint(for name: String, among known: [String]) -> String {
        if known.isEmpty { return "" }
        let list = known.joined(separator: ", ")
        let near = known.map { (name: $0, edits: edits(Array(name.lowercased()), Array($0.lowercased()))) }
            .filter { $0.edits * 2 <= max(name.count, $0.name.count) }.min { $0.edits < $1.edits }?.name
        return near.map { "; did you mean \($0)? Known are \(list)" } ?? "; known are \(list)"
    }

    /// Returns the number of letters to insert, remove or replace that turn one text into the other.
    private static func edits(_ a: [Character], _ b: [Character]) -> Int {
        a.indices.reduce(Array(0...b.count)) { above, i in
            b.indices.reduce(into: [i + 1]) { row, j in
                row.append(min(above[j] + (a[i] == b[j] ? 0 : 1), above[j + 1] + 1, row[j] + 1))
            }
        }[b.count]
    }
}
