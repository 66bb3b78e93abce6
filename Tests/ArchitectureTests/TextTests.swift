import Testing

/// Checks for text that must not occur in any file of the repository.
@Suite struct TextTests {
    private static let texts: [SourceFile] =
        Repository.swiftFiles + Repository.files(under: "Docs", endingIn: "md")
        + Repository.files(under: "Sources/Strata", endingIn: "md")
        + ["Package.swift", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Makefile", ".ci/run"].map {
            SourceFile(path: $0, root: Repository.root)
        }

    // Spelled in two parts, so that this file does not contain them.
    private static let unfinished = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
    private static let machinePaths = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/"]

    @Test func nothingIsMarkedAsUnfinished() {
        for file in Self.texts {
            for (number, line) in file.lines.enumerated() where Self.unfinished.contains(where: line.holds) {
                Issue.record("\(file.path):\(number + 1): finish it, or open a ticket: \(line)")
            }
        }
    }

    @Test func noPathOfSomebodysMachineIsWrittenDown() {
        for file in Self.texts {
            for (number, line) in file.lines.enumerated() where Self.machinePaths.contains(where: line.holds) {
                Issue.record("\(file.path):\(number + 1): \(line)")
            }
        }
    }

    // MARK: Plain words

    /// Comments of the product, and documents outside of code blocks and tables.
    private static let prose =
        comments(of: Array(Repository.modules.values.joined())) + documents.flatMap(proseLines)

    private static func comments(of files: [SourceFile]) -> [(file: SourceFile, number: Int, text: String)] {
        files.flatMap { file in
            file.lines.enumerated().compactMap { number, line in
                let text = line.drop { $0 == " " }
                return text.hasPrefix("//") ? (file, number + 1, String(text.drop { $0 == "/" }.dropFirst())) : nil
            }
        }
    }

    private static let documents = texts.filter { $0.path.hasSuffix(".md") }

    private static func proseLines(_ file: SourceFile) -> [(file: SourceFile, number: Int, text: String)] {
        var isCode = false
        return file.lines.enumerated().compactMap { number, line in
            if line.hasPrefix("```") { isCode.toggle() }
            return isCode || line.hasPrefix("    ") || line.hasPrefix("|") ? nil : (file, number + 1, line)
        }
    }

    /// A pronoun in place of a subject makes a sentence hard to read: name the caller, the context, the process.
    @Test func noSentenceOpensWithAPronounForSomebody() {
        for (file, number, text) in Self.prose + Self.comments(of: Self.texts.filter { $0.path.hasPrefix("Tests/") })
        where ["Who ", "Whoever ", "What "].contains(where: text.hasPrefix) && !text.contains("?") {
            Issue.record("\(file.path):\(number): name the subject: \(text)")
        }
    }

    @Test func rowsAndBytesAreCountedPerObject() {
        let rate = /\b(bytes|µs|ns|ms|times|rows|pages|bits|hops) an? (object|page|row|value|second|save|entity|commit|key)\b/
        // The search for words alone is much cheaper.
        for (file, number, text) in Self.prose where (text.holds(" a ") || text.holds(" an ")) && text.contains(rate) {
            Issue.record("\(file.path):\(number): write per: \(text)")
        }
    }

    @Test func documentsAreWrappedAtAHundredColumns() {
        for (file, number, text) in Self.documents.flatMap(Self.proseLines) where text.count > 100 {
            Issue.record("\(file.path):\(number): \(text.count) columns")
        }
    }
}
