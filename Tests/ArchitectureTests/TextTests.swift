import Testing

/// Checks for text that must not occur in any file of the repository.
@Suite struct TextTests {
    private static let texts: [SourceFile] =
        Repository.swiftFiles + Repository.files(under: "Docs", endingIn: "md")
        + ["Package.swift", "README.md", "CONTRIBUTING.md", "Makefile", ".ci/run"].map {
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
}
