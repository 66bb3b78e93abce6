import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Conditions in the language of the tool, and the options of `query`.
@Suite struct QueryTests {
    private static func shop() async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        return folder
    }

    @Test func `conditions select the objects that they describe`() async throws {
        let folder = try await Self.shop()
        let cases: [(entity: String, condition: String, titles: [Int])] = [
            ("Song", "seconds > 300", [4, 5, 6]), ("Song", "seconds>=300 and seconds!=400", [3, 5, 6]),
            ("Song", "seconds < 200 or seconds = 600", [1, 6]), ("Song", "not seconds < 500", [5, 6]),
            ("Song", "!(seconds < 500 && seconds <> 100)", [1, 5, 6]), ("Song", "seconds in (100, 300,700)", [1, 3]),
            ("Song", "seconds not in (100, 300)", [2, 4, 5, 6]),
            ("Song", "seconds between 200 and 400 and seconds != 300", [2, 4]),
            ("Song", "seconds in ()", []), ("Song", "text = nil", [1, 2, 4, 5, 6]), ("Song", "text is not nil", [3]),
            ("Song", "text != null", [3]), ("Song", #"text contains "\"la\"""#, [3]), ("Song", "text endswith 'la'", [3]),
            ("Song", "title contains \"\u{301}\"", []), ("Song", "title like[c] 'SONG 2'", [2]),
            ("Song", "title like '*ong 2*'", [2]),
            ("Song", "title like[c] 'SONG*'", [1, 2, 3, 4, 5, 6]),
            ("Song", "title like '*5'", [5]), ("Song", "text like '*'", [3]), ("Song", #"title like 'Song 2\\*'"#, []),
            ("Song", "title like 'song*'", []),
            ("Song", "title beginswith 'song'", []), ("Song", "album = nil", [6]),
            ("Song", "album.band.name = 'Oasis'", [2, 5]), ("Song", "album.band.isActive = true", [1, 3, 4]),
            ("Song", "lists.count = 1", [2, 4, 6]), ("Song", "any lists (name = 'even') and seconds > 200", [4, 6]),
            ("Song", "none lists (name = 'even')", [1, 3, 5]), ("Song", "all lists (name = 'odd')", [1, 3, 5]),
            ("Song", "`seconds` > -1 and album.band.since >= 2001-01-02", [1, 3, 4]),
            ("Song", "album.band.since = '2001-01-02T00:00:00Z'", [1, 3, 4]), ("Song", "SECONDS > 1", []),
        ]
        for (entity, condition, titles) in cases {
            let run = await ToolRun("query", folder.path("shop"), entity, condition, "--columns", "title", "--json")
            if condition.hasPrefix("SECONDS") {
                #expect(run.isRefused(naming: "SECONDS", "did you mean seconds?"))
                continue
            }
            #expect(run.status == 0, "\(condition): \(run.errors)")
            let found = try run.list().compactMap { $0["title"] as? String }
            #expect(found == titles.map { "Song \($0)" }, "\(condition)")
        }
    }

    @Test func `a wrong condition is refused with the place of the mistake`() async throws {
        let folder = try await Self.shop()
        let cases: [(condition: String, place: Int)] = [
            ("seconds", 8), ("seconds >", 10), ("seconds > 'x'", 11), ("seconds > 1.5", 11), ("seconds > 99999999999", 11),
            ("(seconds > 1", 13), ("seconds > 1)", 12), ("seconds > 1 seconds > 2", 13), ("title contains 5", 16),
            ("seconds contains 'a'", 18), ("title like 'S*2'", 12), ("title like 'Song ?'", 12), ("lists = 1", 1),
            ("lists.count = 'a'", 15), ("any seconds (1 = 1)", 5),
            ("any lists name", 11), ("title = 'never", 9), ("seconds > #", 11), ("title is 5", 10), ("text < nil", 8),
            ("`title = 5", 1), ("album.nothing = 1", 1), ("seconds in (1", 14), ("and", 1), ("seconds between 1", 18),
        ]
        for (condition, place) in cases {
            let run = await ToolRun("query", folder.path("shop"), "Song", condition)
            #expect(run.isRefused(naming: "character \(place)"), "\(condition): \(run.errors)")
        }
        let deep = String(repeating: "(", count: 100_000) + "seconds = 1"
        #expect(await ToolRun("query", folder.path("shop"), "Song", deep).isRefused(naming: "64 levels"))
        let negated = String(repeating: "not ", count: 60) + "seconds = 1"
        #expect(await ToolRun("query", folder.path("shop"), "Song", negated).status == 0)
    }

    @Test func `rows are sorted, limited, counted and grouped`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        let sorted = await ToolRun(
            "query", shop, "Song", "--sort", "-album.title,seconds", "--columns", "title,album.title", "--limit", "2", "--offset",
            "1",
            "--json")
        #expect(try sorted.list().map { $0["title"] as? String } == ["Song 2", "Song 5"], "\(sorted)")
        #expect(await ToolRun("query", shop, "Song", "seconds > 300", "--count").output == "3\n")
        let groups = await ToolRun(
            "query", shop, "Song", "--aggregate", "count,sum(seconds),average(seconds)", "--group-by", "album.title", "--sort",
            "-count,album.title",
            "--json")
        let rows = try groups.list()
        #expect(rows.count == 4)
        #expect(rows.first?["album.title"] as? String == "Blur" && rows.first?["sum(seconds)"] as? Int == 500, "\(groups)")
        let total = await ToolRun("query", shop, "Song", "--aggregate", "max(seconds)", "--json")
        #expect(try total.list().first?["max(seconds)"] as? Int == 600)
        let plan = await ToolRun("query", shop, "Song", "seconds = 300", "--explain")
        #expect(plan.status == 0 && plan.output.contains("seconds"))
        let table = await ToolRun("query", shop, "Song", "seconds = 300")
        #expect(table.lines.first?.contains("$key") == true && table.lines.count == 3)
        for (arguments, name) in [
            (["--columns", "nothing"], "nothing"), (["--sort", "lists"], "lists"),
            (["--aggregate", "median(seconds)"], "median"),
            (["--aggregate", "sum(title)"], "title"), (["--aggregate", "count", "--columns", "title"], "--columns"),
            (["--group-by", "title"], "--aggregate"), (["--columns", ","], "columns"),
        ] {
            let run = await ToolRun(["query", shop, "Song"] + arguments)
            #expect(run.isRefused(naming: name), "\(arguments): \(run.errors)")
        }
    }

    /// Catches: a sum of small or unsigned numbers that is refused, and a number that no float equals, because it is read as a double.
    @Test(arguments: fileKinds)
    func `numbers of each type are summed, and floats are found by the digits that are typed`(_ kind: StoreKind) async throws {
        let types = ColumnType.allCases.filter(\.isNumeric)
        let model = try Model([
            EntityDescription(
                name: "Part", properties: types.map { PropertyDescription.attribute(.init(name: $0.rawValue, type: $0)) })
        ])
        let folder = try ToolFolder()
        try await folder.fill("parts", kind, model) { context in
            for number in 1...3 {
                let part = context.insert("Part")
                for type in types { part[type.rawValue] = Self.number(number, type) }
            }
        }
        let query = ["query", folder.path("parts"), "Part"]
        for type in types {
            let column = type.rawValue
            let run = await ToolRun(query + ["--aggregate", "sum(\(column)),average(\(column))", "--json"])
            #expect(run.status == 0, "\(column): \(run)")
            let sum = try #require(run.list().first?["sum(\(column))"] as? NSNumber).doubleValue
            let expected = type == .float || type == .double ? 0.6 : 6
            #expect(abs(sum - expected) < 0.001, "\(column): \(run)")
        }
        for (condition, count) in [
            ("float = 0.1", 1), ("float > 0.1", 2), ("float in (0.1, 0.3)", 2), ("float between 0.1 and 0.2", 2),
            ("double = 0.1", 1), ("uint64 = 3", 1),
        ] {
            #expect(await ToolRun(query + [condition, "--count"]).output == "\(count)\n", "\(condition)")
        }
    }

    /// Catches: a plan that ends the program, because the limit and the offset have no sum.
    @Test(arguments: fileKinds)
    func `S135: rows after the greatest offset are none, and have a plan`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let query = ["query", folder.path("shop"), "Song", "--sort", "title", "--limit", "5", "--offset", "\(Int.max)"]
        let plan = await ToolRun(query + ["--explain"])
        #expect(plan.status == 0 && plan.lines.count == 1, "\(plan)")
        if kind == .lmdb { #expect(plan.output.hasSuffix("; sorted in memory\n"), "\(plan)") }
        let rows = await ToolRun(query + ["--json"])
        #expect(rows.status == 0)
        #expect(try rows.list().isEmpty, "\(rows)")
    }

    /// Returns a number, or a tenth of it in a column of fractions.
    private static func number(_ number: Int, _ type: ColumnType) -> Value {
        switch type {
        case .float, .double: .double(Double(number) / 10)
        case .uint64: .uint(UInt64(number))
        default: .int(Int64(number))
        }
    }
}
