import Datasets
import Testing

/// The suggestion in an error about a misspelled name.
@Suite struct SuggestionTests {
    @Test(arguments: [
        ("shotout", "shootout"), ("STALL", "stall"), ("siblngs", "siblings"), ("stal", "stall"), ("reader", "readers"),
        ("st", nil), ("verify", nil), ("", nil), ("stallstallstall", nil),
    ])
    func `the nearest name is suggested if at most half of its letters differ`(name: String, nearest: String?) {
        let known = ["shootout", "stall", "siblings", "readers"]
        let list = "nown are shootout, stall, siblings, readers"
        let hint = Suggestion.hint(for: name, among: known)
        #expect(hint == (nearest.map { "; did you mean \($0)? K\(list)" } ?? "; k\(list)"))
    }

    @Test func `there is no hint if no names are known`() { #expect(Suggestion.hint(for: "a", among: []).isEmpty) }

    @Test func `the first of equally near names is suggested`() {
        #expect(Suggestion.hint(for: "cat", among: ["bat", "hat"]).hasPrefix("; did you mean bat?"))
    }
}
