/// Finds the name that a user probably meant.
enum Suggestion {
    /// Returns the end of an error about an unknown name: the name that is meant, if one is near, and all known names.
    static func hint(for name: String, among known: [String]) -> String {
        let list = "known are \(known.joined(separator: ", "))"
        guard let near = nearest(to: name, among: known) else { return "; \(list)" }
        return "; did you mean \(near)? \(list)"
    }

    /// Returns the name with the fewest letters to insert, remove or replace; nil if that is more than half of them.
    static func nearest(to name: String, among known: [String]) -> String? {
        let best = known.map { ($0, distance(name.lowercased(), $0.lowercased())) }.min { $0.1 < $1.1 }
        guard let best, best.1 * 2 <= max(name.count, best.0.count) else { return nil }
        return best.0
    }

    /// The Levenshtein distance of two texts.
    private static func distance(_ a: String, _ b: String) -> Int {
        let b = Array(b)
        var row = Array(0...b.count)
        for (i, letter) in a.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in b.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, diagonal + 1)
            }
        }
        return row[b.count]
    }
}
