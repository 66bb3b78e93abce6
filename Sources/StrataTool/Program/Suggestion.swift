/// Finds the name that a user probably meant.
enum Suggestion {
    /// Returns the end of an error about an unknown name: the name that is meant, if one is near, and all known names.
    static func hint(for name: String, among known: [String]) -> String {
        let near = known.map { (name: $0, edits: edits(Array(name.lowercased()), Array($0.lowercased()))) }
            .filter { $0.edits * 2 <= max(name.count, $0.name.count) }.min { $0.edits < $1.edits }?.name
        return (near.map { "; did you mean \($0)?" } ?? ";") + " Known are \(known.joined(separator: ", "))"
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
