import Testing

/// The table of SwiftData's symbols: each symbol of SwiftData has a row, and each row says what becomes of its symbols.
@Suite struct SwiftDataTableTests {
    private static let page = SourceFile(path: "Docs/StrataSwiftData.md", root: Repository.root)

    /// The rows of the table, with the line of each, counted from 1.
    private static let rows: [(line: Int, symbols: Substring, answer: Substring)] = {
        guard let head = page.lines.firstIndex(where: { $0.hasPrefix("| symbol |") }) else { return [] }
        let table = page.lines.enumerated().dropFirst(head + 2).prefix { $0.element.hasPrefix("| ") }
        return table.map { number, line in
            let cells = line.split(separator: "|")
            return (number + 1, cells.first ?? "", cells.dropFirst().first ?? "")
        }
    }()

    /// The names in code font of each row's first column. `fetch(_:)` is `fetch`, and `Schema.Entity` is both of its parts.
    private static let names: [Set<Substring>] = rows.map { row in
        Set(row.symbols.matches(of: /`([^`]+)`/).flatMap { match in match.1.matches(of: /\w+/).map(\.output) })
    }

    /// Catches: a symbol that a developer uses on Apple's systems and for which the table has no answer. A new symbol of SwiftData
    /// belongs in the list, `Fixtures/swiftdata-symbols.txt`.
    @Test func `each symbol of SwiftData has a row`() {
        let list = SourceFile(path: "Tests/ArchitectureTests/Fixtures/swiftdata-symbols.txt", root: Repository.root)
        let symbols = list.lines.filter { !$0.isEmpty }
        #expect(symbols.count > 150)
        for symbol in symbols {
            let parts = symbol.split(separator: ".")
            #expect(
                Self.names.contains { $0.isSuperset(of: parts) },
                "Docs/StrataSwiftData.md: add a row that names \(symbol), with the types around it")
        }
    }

    @Test func `each row says that its symbols are the same, how they differ, or why they are not here`() {
        #expect(Self.rows.count > 70)
        for row in Self.rows {
            let isAnswer = row.answer.contains(/^ (same\b|differs: |ignored\b|additions: |not here, (because|for) )/)
            #expect(isAnswer, "Docs/StrataSwiftData.md:\(row.line): begin with same, differs, ignored, or not here, because")
        }
    }
}
