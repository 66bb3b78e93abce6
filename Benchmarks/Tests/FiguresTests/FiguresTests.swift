import Foundation
import Testing

@testable import Figures

/// The arithmetic behind the tables, and the form of the JSON.
@Suite struct FiguresTests {
    @Test func theMiddleOfAnEvenNumberLiesBetweenTheTwoInTheMiddle() {
        let even = Spread([4, 1, 3, 2])
        #expect((even.min, even.median, even.max) == (1, 2.5, 4))
        #expect(Spread([7]).median == 7)
    }

    @Test func aStallMissesAFrameForEachWholePeriodThatItLasts() {
        let busy = [BusyInterval(start: 0, end: 8_000_000), BusyInterval(start: 100_000_000, end: 120_000_000)]
        let figures = MainThreadFigures(busy)
        #expect(figures.busySeconds == 0.028)
        #expect(figures.longestStallMilliseconds == 20)
        #expect(figures.missedFrames60 == 1)
        #expect(figures.missedFrames120 == 2)
        #expect(MainThreadFigures([]).longestStallMilliseconds == 0)
    }

    @Test(arguments: [
        (0.0, "0"), (0.0004, "0.000"), (0.0123, "0.012"), (1.005, "1.00"), (9.999, "10.00"), (12.34, "12.3"), (1234.5, "1235"),
        (-3.25, "-3.25"),
    ])
    func numbersHaveThreeOrFourDigits(value: Double, text: String) {
        #expect(Shown.number(value) == text)
    }

    @Test func tablesLineUpAndMarkdownLeansNumbersRight() {
        var table = TextTable(header: ["name", "s"], names: 1)
        table.rows = [["a", "10.5"], ["long name", "1"]]
        #expect(table.text(.terminal) == "name          s\n---------  ----\na          10.5\nlong name     1")
        #expect(table.text(.markdown).split(separator: "\n")[1] == "| --------- | ---: |")
    }

    @Test func theJSONHasTheFieldsThatProgramsReadAndNoneThatARowLacks() throws {
        var row = Report.Row(benchmark: "shootout", durability: "durable", objects: 3, verified: true)
        row.stack = "siblings"
        let data = try Report(machine: Machine(libraries: [:]), runs: [row]).json()
        let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(json["schema"] as? Int == 1)
        let first = try #require((json["runs"] as? [[String: Any]])?.first)
        #expect(Set(first.keys) == ["benchmark", "durability", "objects", "verified", "stack"])
    }

    @Test func thePageNeedsNothingFromOutsideAndEscapesNames() {
        var row = Report.Row(benchmark: "shootout", durability: "durable", objects: 3, verified: true)
        row.stack = "a<b"
        row.take([
            RunFigures(
                start: 100, totalSeconds: 1, processCPUSeconds: 1, mainCPUSeconds: 0.1, main: MainThreadFigures([]),
                busy: [BusyInterval(start: 100, end: 200_000_000)],
                spans: [Span(lane: "import", kind: .save, start: 100, end: 500_000_000)], peakMemoryBytes: 1,
                residentAfterBytes: 1)
        ])
        let page = Report(machine: Machine(libraries: [:]), runs: [row]).html(title: "t")
        #expect(page.contains("a&lt;b") && !page.contains("a<b"))
        #expect(page.contains("<svg") && page.contains("save 500 ms"))
        #expect(!page.contains("src=") && !page.contains("href="))
    }
}
