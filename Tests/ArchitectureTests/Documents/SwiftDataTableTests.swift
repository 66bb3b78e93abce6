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

    /// The symbols of SwiftData, with the types around them. A new symbol of SwiftData belongs in this list.
    private static let symbols: [String] = {
        let list = SourceFile(path: "Tests/ArchitectureTests/Fixtures/swiftdata-symbols.txt", root: Repository.root)
        return list.lines.filter { !$0.isEmpty }
    }()

    /// The public names of the module with the types around them, without arguments.
    private static let declared = Set(
        PublicNames.of(Repository.modules["StrataSwiftData"] ?? []).map { name in String(name.prefix { $0 != "(" }) })

    /// Whether a row says that its symbols are in the module, as in SwiftData. A row that begins with *differs* may name a symbol to say
    /// that it is missing.
    private static func isHere(_ answer: Substring) -> Bool { answer.contains(/^ (same|ignored|additions)\b/) }

    /// Catches: a symbol that a developer uses on Apple's systems and for which the table has no answer.
    @Test func `each symbol of SwiftData has a row`() {
        #expect(Self.symbols.count > 150)
        for symbol in Self.symbols {
            let parts = symbol.split(separator: ".")
            #expect(
                Self.names.contains { $0.isSuperset(of: parts) },
                "Docs/StrataSwiftData.md: add a row that names \(symbol), with the types around it")
        }
    }

    /// Catches: a row that promises a symbol of SwiftData which the module does not declare, or declares in another type.
    @Test func `each symbol of SwiftData that a row calls the same is public in its type`() {
        // An extension of the protocol `HistoryUpdate` declares it.
        let inherited: Set = ["DefaultHistoryUpdate.PropertyUpdate"]
        var count = 0
        for symbol in Self.symbols where !inherited.contains(symbol) {
            let parts = symbol.split(separator: ".")
            for (row, names) in zip(Self.rows, Self.names) where Self.isHere(row.answer) && names.isSuperset(of: parts) {
                count += 1
                let isDeclared = Self.declared.contains(symbol)
                #expect(isDeclared, "Docs/StrataSwiftData.md:\(row.line): \(symbol) is not public in StrataSwiftData")
            }
        }
        #expect(count > 100)
    }

    /// Catches: a name that is in no list of SwiftData's symbols, such as that of an addition or of an initializer's type, and that the
    /// module does not declare.
    @Test func `each name that a row calls the same, ignored or an addition is public`() {
        // The module exports Foundation. `let` is Swift's.
        let others: Set<Substring> = ["SortDescriptor", "Predicate", "localizedStandardContains", "let"]
        let declared = Set(Self.declared.compactMap { $0.split(separator: ".").last })
        var found: Set<Substring> = []
        for row in Self.rows where Self.isHere(row.answer) {
            for match in row.symbols.matches(of: /`[@#.]?([\w.]+)[^`]*`/) {
                let name = match.1.split(separator: ".").last ?? match.1
                found.insert(name)
                let isKnown = declared.contains(name) || others.contains(name)
                #expect(isKnown, "Docs/StrataSwiftData.md:\(row.line): StrataSwiftData has no public \(name)")
            }
        }
        #expect(found.count > 100 && found.isSuperset(of: others))
    }

    @Test func `each row says that its symbols are the same, how they differ, or why they are not here`() {
        #expect(Self.rows.count > 70)
        for row in Self.rows {
            let isAnswer = row.answer.contains(/^ (same\b|differs: |ignored\b|additions: |not here, (because|for) )/)
            #expect(isAnswer, "Docs/StrataSwiftData.md:\(row.line): begin with same, differs, ignored, or not here, because")
        }
    }
}
