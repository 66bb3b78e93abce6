import Testing

/// The numbered promises of `Docs/Contract.md`, and the tests that name them: `S072_aChildSeesPendingChanges` or
/// ``S072: a child sees pending changes``.
enum Promises {
    static let contract = SourceFile(path: "Docs/Contract.md", root: Repository.root)

    struct Promise {
        var number: Int
        /// Whether the promise is built, at least in part: it is not marked *not built yet*.
        var isBuilt: Bool
        /// Whether the promise is marked **B+**.
        var isBeyondCoreData: Bool
    }

    /// All promises, in the order of the page.
    static let all: [Promise] = {
        let promise = /^\*\*S(\d{3})\.\*\*( \*\*B\+\*\*)?( \*not built yet\*)?/
        return contract.lines.compactMap { line in
            guard let match = line.firstMatch(of: promise), let number = Int(match.1) else { return nil }
            return Promise(number: number, isBuilt: match.3 == nil, isBeyondCoreData: match.2 != nil)
        }
    }()

    static let numbers = Set(all.map(\.number))

    static func name(_ number: Int) -> String { "S" + String(repeating: "0", count: 3 - String(number).count) + String(number) }

    /// The tests of each promise, by number.
    static let tested: [Int: [String]] = {
        var found: [Int: [String]] = [:]
        // Outside the loops, because Swift compiles a regular expression literal each time it evaluates it.
        let function = /\bfunc (`?)(S\d.*)/
        for file in Repository.swiftFiles where file.isTest {
            for (_, line) in file.codeLines(with: "func S", "func `S") {
                guard let match = line.firstMatch(of: function) else { continue }
                let isSentence = !match.1.isEmpty
                // A test name may begin with several numbers: `S050, S051: …`.
                let head = isSentence ? match.2.prefix { $0 != ":" } : match.2.prefix(4)
                for number in numbers(in: String(head)) { found[number, default: []].append("\(file.path): \(match.2)") }
            }
        }
        // The checks of the contract are tests whose names are strings.
        let check = /^\s*"(S\d{3}[^:]*): (.*)",$/
        for file in Repository.modules["StoreContract"] ?? [] {
            for line in file.lines where line.holds("\"S") {
                guard let match = line.firstMatch(of: check) else { continue }
                for number in numbers(in: String(match.1)) { found[number, default: []].append("\(file.path): \(match.2)") }
            }
        }
        return found
    }()

    /// Returns the numbers in a line: an S and three digits that are not part of a longer word.
    static func numbers(in line: String) -> [Int] {
        func isWord(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), 0x80...:
                true
            default: false
            }
        }
        var line = line
        return line.withUTF8 { bytes in
            bytes.indices.compactMap { start in
                guard bytes[start] == UInt8(ascii: "S"), start + 4 <= bytes.count, start == 0 || !isWord(bytes[start - 1]),
                    start + 4 == bytes.count || !isWord(bytes[start + 4])
                else { return nil }
                return Int(String(decoding: bytes[start + 1..<start + 4], as: UTF8.self))
            }
        }
    }
}

@Suite struct PromiseTests {
    @Test func everyPromiseIsDefinedOnceAndInOrder() {
        let numbers = Promises.all.map(\.number)
        #expect(!numbers.isEmpty && numbers == Promises.numbers.sorted())
    }

    @Test func everyPromiseThatIsBuiltHasATest() {
        for promise in Promises.all where promise.isBuilt {
            #expect(Promises.tested[promise.number] != nil, "\(Promises.name(promise.number)) has no test")
        }
    }

    @Test func aPromiseThatHasATestIsNotMarkedAsMissing() {
        for promise in Promises.all {
            let name = Promises.name(promise.number)
            guard let tests = Promises.tested[promise.number] else { continue }
            #expect(promise.isBuilt, "\(name) is not built yet but has tests: \(tests). Change its mark in Docs/Contract.md.")
        }
    }

    @Test func noTestClaimsAPromiseThatDoesNotExist() {
        for (number, tests) in Promises.tested where !Promises.numbers.contains(number) {
            Issue.record("there is no promise \(Promises.name(number)): \(tests)")
        }
    }

    @Test func everyNumberInSourcesAndDocumentsExists() {
        let documents = ["Docs", "fuzz", "Benchmarks", "Sources"].flatMap { Repository.files(under: $0, endingIn: "md") }
        let others = ["README.md", "CONTRIBUTING.md", "Makefile"].map { SourceFile(path: $0, root: Repository.root) }
        for file in Repository.swiftFiles + documents + others {
            for (index, line) in file.lines.enumerated() {
                for number in Promises.numbers(in: line) where !Promises.numbers.contains(number) {
                    Issue.record("\(file.path):\(index + 1): there is no promise \(Promises.name(number))")
                }
            }
        }
    }

    @Test func aTestOfAPromiseWritesItsNumberWithThreeDigits() {
        let function = /\bfunc `?S(\d+)/
        for file in Repository.swiftFiles where file.isTest {
            for (_, line) in file.codeLines(with: "func S", "func `S") {
                guard let match = line.firstMatch(of: function) else { continue }
                #expect(match.1.count == 3, "\(file.path): \(line)")
            }
        }
    }

    @Test func everyPromiseBeyondCoreDataIsComparedWithIt() {
        let page = SourceFile(path: "Docs/DifferencesFromCoreData.md", root: Repository.root)
        let compared = Set(page.lines.flatMap(Promises.numbers(in:)))
        for promise in Promises.all where promise.isBeyondCoreData && promise.isBuilt {
            #expect(compared.contains(promise.number), "\(page.path) has no line about \(Promises.name(promise.number))")
        }
    }
}
