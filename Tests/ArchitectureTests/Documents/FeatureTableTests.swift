import Testing

/// The table of Core Data's and SwiftData's features: each has a decision, and what is promised exists.
@Suite struct FeatureTableTests {
    private struct Row {
        let number: Int
        let feature: String
        let decision: String
        let name: String
        let proof: String
    }

    private static let page = SourceFile(path: "Docs/Features.md", root: Repository.root)

    private static let rows: [Row] = page.lines.enumerated().compactMap { number, line in
        guard line.hasPrefix("| "), !line.hasPrefix("| ---"), !line.hasPrefix("| feature") else { return nil }
        let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
            .map { $0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed() }.map { String($0) }
        guard cells.count == 4 else {
            Issue.record("Docs/Features.md:\(number + 1): a row has four columns")
            return nil
        }
        return Row(number: number + 1, feature: cells[0], decision: cells[1], name: cells[2], proof: cells[3])
    }

    /// The rows of features that exist.
    private static let built = rows.filter { $0.decision != "*no*" }

    /// The names of the public interface without their arguments, and each of their parts.
    private static let names: Set<String> = {
        let list = SourceFile(path: "Tests/ArchitectureTests/Fixtures/public-api.txt", root: Repository.root)
        var names: Set<String> = []
        for line in list.lines {
            guard let name = line.split(separator: " ").dropFirst().first else { continue }
            let plain = String(name.prefix { $0 != "(" })
            names.insert(plain)
            let parts = plain.split(separator: ".").map(String.init)
            for length in 1...max(1, parts.count) where length <= parts.count {
                names.insert(parts.suffix(length).joined(separator: "."))
                names.insert(parts.prefix(length).joined(separator: "."))
            }
        }
        return names
    }()

    /// Whether a name in code font, such as `@Model` or `Results.updates`, is in the public interface.
    private static func isPublic(_ name: String) -> Bool {
        names.contains(String(name.drop { $0 == "@" || $0 == "#" || $0 == "." }.prefix { $0 != "(" }))
    }

    /// The second column of the tables has names of Strata only.
    @Test func `each name of Strata in the tables for users of other libraries is public`() {
        let pages = Repository.files(under: "Sources/Strata/Strata.docc", endingIn: "md").filter {
            $0.path.contains("/ComingFrom")
        }
        #expect(pages.count == 4)
        var count = 0
        for page in pages {
            for (number, line) in page.lines.enumerated() where line.hasPrefix("| ") && !line.hasPrefix("| ---") {
                let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                #expect(cells.count == 5, "\(page.path):\(number + 1): a row has three columns")
                for match in cells.dropFirst(2).first?.matches(of: /`([^`]+)`/) ?? [] {
                    count += 1
                    #expect(Self.isPublic(String(match.1)), "\(page.path):\(number + 1): \(match.1) is not public")
                }
            }
        }
        #expect(count > 60)
    }

    /// Catches: a type that a developer looks for in the table of SwiftData's symbols and does not find.
    @Test func `each public type of StrataSwiftData is in the table of symbols`() {
        let page = SourceFile(path: "Docs/StrataSwiftData.md", root: Repository.root)
        let rows = page.lines.filter { $0.hasPrefix("| ") }
        let symbols = rows.flatMap { $0.split(separator: "|").first?.matches(of: /`([^`]+)`/).map { String($0.1) } ?? [] }
        // `Schema.Entity` names both of its parts, and `fetch(_:)` names `fetch`.
        let named = Set(symbols.flatMap { $0.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init) })
        let list = SourceFile(path: "Tests/ArchitectureTests/Fixtures/public-api.txt", root: Repository.root)
        let types = list.lines.filter { $0.hasPrefix("StrataSwiftData ") }.compactMap { $0.split(separator: " ").last }
            .filter { !$0.hasPrefix("_") && !$0.contains("(") }
            .compactMap { name in name.split(separator: ".").first { $0.first?.isUppercase == true } }
        #expect(Set(types).count > 30 && rows.count > 50)
        for type in Set(types).sorted() where !["String", "PropertyDescription"].contains(type) {
            #expect(named.contains(String(type)), "Docs/StrataSwiftData.md: a row for \(type)")
        }
    }

    @Test func `each feature has one of three decisions, and a reason if it is missing`() {
        #expect(Self.rows.count > 60)
        #expect(Set(Self.rows.map(\.feature)).count == Self.rows.count, "a feature has one row")
        for row in Self.rows {
            switch row.decision {
            case "*yes*", "*other name*":
                #expect(!row.proof.isEmpty, "Docs/Features.md:\(row.number): name the promise or the page")
            case "*no*":
                #expect(row.name == "–" && row.proof.hasPrefix("because "), "Docs/Features.md:\(row.number): give the reason")
            default: Issue.record("Docs/Features.md:\(row.number): decide: *yes*, *other name* or *no*")
            }
        }
    }

    @Test func `each feature that exists has a public name`() {
        for row in Self.built {
            let shown = row.name.matches(of: /`([^`]+)`/).map { String($0.1) }
            #expect(!shown.isEmpty, "Docs/Features.md:\(row.number): name the API")
            for name in shown {
                #expect(Self.isPublic(name), "Docs/Features.md:\(row.number): \(name) is not public")
            }
        }
    }

    @Test func `each feature that exists has a promise with a test`() {
        for row in Self.built {
            let numbers = Promises.numbers(in: row.proof)
            #expect(!numbers.isEmpty, "Docs/Features.md:\(row.number): name the promise")
            for number in numbers {
                #expect(Promises.tested[number] != nil, "Docs/Features.md:\(row.number): \(Promises.name(number)) has no test")
            }
        }
    }
}
