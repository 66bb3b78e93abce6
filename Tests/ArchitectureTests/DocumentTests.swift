import Foundation
import Testing

/// Checks of the documents against the code, as far as a program can check them.
@Suite struct DocumentTests {
    private static let documents: [SourceFile] =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map { SourceFile(path: $0, root: Repository.root) }
        + Repository.files(under: "Docs", endingIn: "md")

    private static let words: Set<String> = Set(
        Repository.modules.values.joined().flatMap { file in
            file.codeWords.map(\.text)
        })

    @Test func everyLinkToAFileLeadsSomewhere() {
        let link = /\]\(([^)#]+)(?:#[^)]*)?\)/
        for document in Self.documents {
            let folder = Repository.root.appending(path: document.path).deletingLastPathComponent()
            for (number, line) in document.lines.enumerated() {
                for match in line.matches(of: link) where !match.1.contains("://") {
                    let target = folder.appending(path: String(match.1)).path
                    #expect(FileManager.default.fileExists(atPath: target), "\(document.path):\(number + 1): \(match.1)")
                }
            }
        }
    }

    /// Tables of figures are separate files, so that a reader finds the method and the goals on this page.
    @Test func thePageOnBenchmarksIsShort() throws {
        let page = try #require(Self.documents.first { $0.path == "Docs/Benchmarks.md" })
        #expect(page.lines.reduce(0) { $0 + $1.utf8.count + 1 } <= 8192)
    }

    /// Checks names in code font that look like types of the package, or like a type with a member.
    @Test(arguments: ["Docs/Internals/Architecture.md", "Docs/Concurrency.md"])
    func everyTypeThatADocumentNamesIsInTheSources(path: String) {
        guard let document = Self.documents.first(where: { $0.path == path }) else { return }
        let typeInCode = /`([A-Z][a-z]\w+)(?:\.(\w+))?(?:\([\w:]*\))?`/
        for (number, line) in document.lines.enumerated() {
            for match in line.matches(of: typeInCode)
            where !["swift", "md"].contains(match.2) {
                let names = [match.1, match.2].compactMap { $0 }
                let isFolder = Repository.swiftFiles.contains {
                    $0.path.contains("/\(names[0])/") || $0.path.hasPrefix("\(names[0])/")
                }
                let isKnown = names.allSatisfy { Self.words.contains(String($0)) } || isFolder
                #expect(isKnown, "\(path):\(number + 1): \(match.0) is not in the sources")
            }
        }
    }

    /// The compiled copy is between two lines of dashes in a test that also runs it.
    @Test func theReadmesCodeIsCodeThatCompiles() throws {
        let readme = SourceFile(path: "README.md", root: Repository.root)
        let start = try #require(readme.lines.firstIndex(of: "```swift"))
        let end = try #require(readme.lines[start...].firstIndex(of: "```"))
        let compiled = try #require(Repository.swiftFiles.first { $0.path == "Tests/StrataTests/ReadmeExample.swift" })
        let marks = compiled.lines.indices.filter { compiled.lines[$0].hasPrefix("// -----") }
        try #require(marks.count == 2)
        #expect(readme.lines[start + 1..<end] == compiled.lines[marks[0] + 1..<marks[1]])
    }

    /// Code of pages that no test compiles, by its first line.
    private static let uncompiled: [String: String] = [
        // The manifest of a user's package.
        "README.md": "// swift-tools-version: 6.2",
        // The name of a test without its body.
        "CONTRIBUTING.md": "@Test func `S071: a child's fetch includes its parent's pending changes`()",
    ]

    /// The compiled copies are in tests, each between a line that names the document and one that ends it. Two pages may have the same
    /// code, also one of them in `Sources`. The test above compares the example of the README.
    @Test func `the code of the pages compiles`() {
        var compiled: [String: Set<[String]>] = [:]
        for file in Repository.swiftFiles where file.isTest {
            for mark in Set(file.lines.map { String($0.drop { $0 == " " }) })
            where mark.hasPrefix("// Docs/") || mark.hasPrefix("// Sources/") {
                compiled[String(mark.dropFirst(3)), default: []].formUnion(file.blocks(from: mark, to: "// end"))
            }
        }
        let all = Set(compiled.values.joined())
        var count = 0
        for document in Self.documents {
            let shown = document.blocks(from: "```swift", to: "```").dropFirst(document.path == "README.md" ? 1 : 0)
            for block in shown where !all.contains(block) {
                if let first = block.first, first == Self.uncompiled[document.path] { continue }
                Issue.record("\(document.path): tests do not compile \(block.first ?? "")")
            }
            let copies = compiled.removeValue(forKey: document.path) ?? []
            #expect(copies.isSubset(of: shown), "\(document.path): show what tests compile for it")
            count += shown.count
        }
        #expect(count > 15)
        #expect(compiled.keys.filter { $0.hasPrefix("Docs/") } == [], "no such page")
        for (path, line) in Self.uncompiled {
            let document = Self.documents.first { $0.path == path }
            #expect(document?.lines.contains(line) == true, "\(path) has no such code")
        }
    }

    /// The compiled copies are in tests, each between a line that names the source file and one that ends it.
    @Test func `the examples in documentation comments compile`() {
        let tests = Repository.swiftFiles.filter { file in
            file.isTest && file.lines.contains { $0.drop { $0 == " " }.hasPrefix("// Sources/") }
        }
        for file in Repository.swiftFiles where file.path.hasPrefix("Sources/") {
            let shown = file.documentation.blocks(from: "```swift", to: "```")
            let compiled = tests.flatMap { $0.blocks(from: "// \(file.path)", to: "// end") }
            #expect(Set(shown) == Set(compiled), "\(file.path): change its examples and their copies in Tests together")
        }
    }

    /// DocC refuses a comment that describes only some of the parameters, but only `make docs` runs it.
    @Test func `a documentation comment describes all parameters or none`() {
        let isPublic = /\b(?:public|open) [^(]*\b(?:func|init|subscript)\b/
        let entry = /- Parameter (`?)(\w+)\1:/
        let listed = /\ \ - (`?)(\w+)\1:/
        for file in Repository.modules.values.joined() {
            for signature in file.signatures where file.lines[signature.line - 1].contains(isPublic) {
                var described: [String] = []
                var isList = false
                for comment in file.documentation(above: signature.line) {
                    if let match = comment.prefixMatch(of: entry) { described.append(String(match.2)) }
                    if isList, let match = comment.prefixMatch(of: listed) { described.append(String(match.2)) }
                    if comment.hasPrefix("- ") { isList = comment == "- Parameters:" }
                }
                guard !described.isEmpty else { continue }
                #expect(described == signature.parameters, "\(file.path):\(signature.line): \(signature.name)")
            }
        }
    }

    /// The types that users meet, without those that only generated code names, protocols of SwiftData that users do not conform to, and
    /// types whose example is that of another type. A type inside `#if` counts, and a nested type does not.
    @Test func `each type that users meet has an example`() {
        let others: Set<String> = [
            // For generated code.
            "DetachedEntity", "EncodedAttribute", "ModelAnchor", "ModelPlaceholder", "PropertyNumber", "RawAttribute",
            "SchemaProperty", "SubclassAnchor", "_Strata",
            // Shown with another type: AttributeOption, HistoryChange, ModelActor, PersistentModel of ObjectGraph.
            "RelationshipOption", "DefaultHistoryInsert", "DefaultHistoryUpdate", "DefaultHistoryDelete", "HistoryToken",
            "HistoryTransaction", "HistoryInsert", "HistoryUpdate", "HistoryDelete", "ModelExecutor", "SerialModelExecutor",
            "DefaultSerialModelExecutor", "PersistentModel",
        ]
        var found: Set<String> = []
        let declaration = /^(@\w+ )*public (final )?(class|struct|enum|actor|protocol) (\w+)/
        for file in Repository.swiftFiles {
            let isMet = ["ObjectGraph", "Strata", "StrataSwiftData"].contains { file.path.hasPrefix("Sources/\($0)/") }
            guard isMet else { continue }
            let lines = file.lines.map { String($0.drop { $0 == " " }) }
            var conditions = 0
            for (number, line) in lines.enumerated() {
                if line.hasPrefix("#if") { conditions += 1 }
                if line.hasPrefix("#endif") { conditions -= 1 }
                // The formatter indents the code between `#if` and `#endif`. A nested type is indented more.
                guard file.lines[number].count - line.count == 4 * conditions else { continue }
                guard let match = line.firstMatch(of: declaration) else { continue }
                let comment = lines[..<number].reversed().prefix { $0.hasPrefix("///") || $0.hasPrefix("@") }
                let name = String(match.4)
                if comment.contains(where: { $0.hasPrefix("/// ```") }) { continue }
                found.insert(name)
                if !others.contains(name) { Issue.record("\(file.path): \(name) has no example") }
            }
        }
        #expect(others.subtracting(found).isEmpty, "these have an example, or do not exist")
    }

    /// The compiled copies are in tests, between a line that names a file of `Sources` and one that ends it.
    @Test func `the code of articles compiles`() {
        var compiled: [String: Set<[String]>] = [:]
        for file in Repository.swiftFiles where file.isTest {
            for mark in Set(file.lines.map { String($0.drop { $0 == " " }) }) where mark.hasPrefix("// Sources/") {
                compiled[String(mark.dropFirst(3)), default: []].formUnion(file.blocks(from: mark, to: "// end"))
            }
        }
        let all = Set(compiled.values.joined())
        let articles = Repository.files(under: "Sources", endingIn: "md")
        #expect(articles.count > 10)
        for article in articles {
            let shown = Set(article.blocks(from: "```swift", to: "```"))
            for block in shown where !all.contains(block) {
                Issue.record("\(article.path): tests do not compile \(block.first ?? "")")
            }
            #expect(shown.isSuperset(of: compiled[article.path] ?? []), "\(article.path): show what tests compile for it")
        }
    }

    /// A nested configuration replaces the repository's, so it repeats the other settings.
    @Test(arguments: ["Benchmarks", "Tests", "fuzz"])
    func `a folder's format differs only in not asking for documentation`(folder: String) throws {
        func format(_ folder: String) throws -> String {
            try String(contentsOf: Repository.root.appending(path: "\(folder)/.swift-format"), encoding: .utf8)
        }
        let rule = "\"AllPublicDeclarationsHaveDocumentation\":"
        #expect(try format(folder) == format(".").replacing("\(rule) true", with: "\(rule) false"))
    }

    /// Every target of the library must be in the table, in the order of the manifest.
    @Test(arguments: ["CONTRIBUTING.md", "Docs/Internals/Architecture.md"])
    func aTableOfLayersNamesEveryTargetInOrder(path: String) throws {
        let document = try #require(Self.documents.first { $0.path == path })
        let named = document.lines.filter { $0.starts(with: /\| \d \| `/) }
            .flatMap { line in line.split(separator: "|")[1].matches(of: /`(\w+)`/).map { String($0.1) } }
        let targets = Repository.manifest.lines.indices.filter {
            Repository.manifest.lines[$0].contains(/^ +\.(target|systemLibrary|macro)\(/)
        }.compactMap { start in
            Repository.manifest.lines[start...].prefix(2).joined().firstMatch(of: /name: "(\w+)"/).map { String($0.1) }
        }
        #expect(named == targets.filter { !["TestSupport", "DictionaryStore", "EditSheet"].contains($0) })
    }

    /// Every difference that is stated as a fact must have a test.
    @Test func everyDifferenceFromCoreDataHasATest() throws {
        let document = SourceFile(path: "Docs/DifferencesFromCoreData.md", root: Repository.root)
        let start = try #require(document.lines.firstIndex(of: "## Different on purpose"))
        let rows = document.lines[(start + 1)...].prefix { !$0.hasPrefix("## ") }
        for row in rows {
            for match in row.matches(of: /\bS(\d{3})\b/) {
                let isTested = Int(match.1).map { Promises.tested[$0] != nil } ?? false
                #expect(isTested, "S\(match.1) has no test")
            }
        }
    }
}

extension SourceFile {
    /// The text of the documentation comments.
    fileprivate var documentation: SourceFile {
        let comments = lines.map { $0.drop { $0 == " " } }.filter { $0.hasPrefix("///") }
        return SourceFile(path: path, text: comments.map { String($0.dropFirst(4)) }.joined(separator: "\n"))
    }

    /// The lines between two marks, for each pair of marks, without the indentation of the first mark.
    fileprivate func blocks(from start: String, to end: String) -> [[String]] {
        var blocks: [[String]] = []
        var indentation: Int?
        for line in lines {
            let text = line.drop { $0 == " " }
            if let depth = indentation {
                if text == end {
                    indentation = nil
                } else {
                    blocks[blocks.count - 1].append(String(line.dropFirst(depth)))
                }
            } else if text == start {
                indentation = line.count - text.count
                blocks.append([])
            }
        }
        return blocks
    }
}

extension SourceFile {
    /// The lines of the documentation comment above a declaration, without slashes. Attributes may be between them.
    fileprivate func documentation(above line: Int) -> [String] {
        let above = lines[..<(line - 1)].reversed().map { $0.drop { $0 == " " } }.drop { $0.hasPrefix("@") }
        return above.prefix { $0.hasPrefix("///") }.reversed().map { String($0.dropFirst($0.hasPrefix("/// ") ? 4 : 3)) }
    }
}
