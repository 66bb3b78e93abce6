import Testing

/// The numbered promises of a context. A test of one begins with its number: `S072_childFetchSeesParentPendingChanges`.
enum Promises {
    static let numbers: Set<Int> = {
        let ranges: [ClosedRange<Int>] = [
            1...8, 20...25, 30...35, 40...49, 60...66, 70...80, 90...94, 100...110, 120...121, 130...137, 140...144, 150...153,
            160...164, 170...171,
        ]
        return Set(ranges.joined())
    }()

    static func number(_ value: Int) -> String { "S" + String(repeating: "0", count: 3 - String(value).count) + String(value) }

    /// Which promises have tests, by number.
    static let tested: [Int: [String]] = {
        var found: [Int: [String]] = [:]
        for file in Repository.swiftFiles where file.isTest {
            for (_, line) in file.codeLines(with: "func S") {
                guard let match = line.firstMatch(of: /\bfunc S(\d+)(\w*)/), let number = Int(match.1) else { continue }
                found[number, default: []].append("\(file.path): S\(match.1)\(match.2)")
            }
        }
        return found
    }()
}

@Suite struct PromiseTests {
    @Test func noTestClaimsAPromiseThatDoesNotExist() {
        for (number, tests) in Promises.tested where !Promises.numbers.contains(number) {
            Issue.record("there is no promise \(Promises.number(number)): \(tests)")
        }
    }

    @Test func aTestOfAPromiseWritesItsNumberWithThreeDigits() {
        for file in Repository.swiftFiles where file.isTest {
            for (_, line) in file.codeLines(with: "func S") {
                guard let match = line.firstMatch(of: /\bfunc S(\d+)/) else { continue }
                #expect(match.1.count == 3, "\(file.path): \(line)")
            }
        }
    }
}
