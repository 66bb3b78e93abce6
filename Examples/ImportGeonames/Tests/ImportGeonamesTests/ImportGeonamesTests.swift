import Foundation
import Testing

/// The program `import-geonames`, run as a process with few rows.
@Suite final class ImportGeonamesTests {
    private let folder: URL
    private let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "import-geonames")

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "geonames-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @Test func `places are imported in saves and found by their indexes`() throws {
        let lines = try run("2000 500")
        #expect(Array(lines.prefix(4)) == [500, 1000, 1500, 2000].map { "saved \($0) of 2000 rows" })
        #expect(lines[4].hasPrefix("imported 2000 places in ") && lines[4].hasSuffix(" rows/s"))
        #expect(
            Self.queries(lines) == [
                "the largest cities of France", "the first places that begin with Neu", "the largest places near Basel",
                "countries by population",
            ])
        let plans = lines.filter { $0.hasPrefix("  plan: ") }
        #expect(plans.count == 3 && plans[0].contains("index on country") && plans[1].contains("index on name"), "\(plans)")
        #expect(lines.suffix(3).allSatisfy { $0.contains("country.code: ") && $0.contains("people: ") })
    }

    @Test func `an import that is stopped keeps its saves, and goes on later with the same result`() throws {
        let stopped = try run("1000 200 400", status: 130)
        #expect(
            stopped == [
                "saved 200 of 1000 rows", "saved 400 of 1000 rows",
                "stopped after 400 places, which stay. Run the program again for the rest.",
            ])
        let rest = try run("1000 200")
        #expect(Array(rest.prefix(4)) == ["the file has 400 places"] + [200, 400, 600].map { "saved \($0) of 600 rows" })
        #expect(rest[4].hasPrefix("imported 600 places"))

        let other = folder.appending(path: "whole.strata").path
        #expect(try Self.results(run("1000 1000", file: other)) == Self.results(rest))
    }

    @Test func `a wrong number is one line and status 2`() throws {
        for words in ["many", "0", "100 -1"] {
            #expect(
                try run(words, status: 2) == [
                    "import-geonames: usage: import-geonames FILE [ROWS [ROWS-PER-SAVE [STOP-AFTER]]], each a number greater than 0"
                ])
        }
    }

    /// Catches: an error that stops the program by a signal, because standard error is closed.
    @Test func `an error that cannot be shown ends the program with its status`() {
        let status = system("'\(program.path)' 2>&-")
        #expect(status & 0x7f == 0 && status >> 8 & 0xff == 2, "\(status)")
    }

    /// The titles of the queries, without their times.
    private static func queries(_ lines: [String]) -> [String] {
        lines.filter { $0.hasSuffix(" ms:") }.map { $0.components(separatedBy: ", in ")[0] }
    }

    /// The results of the queries.
    private static func results(_ lines: [String]) -> [String] { lines.filter { $0.hasPrefix("  ") } }

    private func run(_ words: String, file: String? = nil, status: Int32 = 0) throws -> [String] {
        let file = file ?? folder.appending(path: "places.strata").path
        let output = folder.appending(path: "output.txt")
        let code = system("'\(program.path)' '\(file)' \(words) >'\(output.path)' 2>&1")
        let text = try String(contentsOf: output, encoding: .utf8)
        #expect(code >> 8 & 0xff == status, "\(words): \(text)")
        return text.split(separator: "\n").map(String.init)
    }
}
