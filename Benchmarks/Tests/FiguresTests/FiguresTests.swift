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

    @Test func `busy intervals are cut at the ends of a run, and a job that still runs counts up to its end`() {
        var recorder = BusyRecorder()
        recorder.begin(at: 1)
        recorder.end(at: 2)
        recorder.begin(at: 5)
        recorder.start(at: 10)
        recorder.end(at: 15)
        recorder.begin(at: 20)
        recorder.end(at: 25)
        recorder.begin(at: 30)
        #expect(
            recorder.stop(at: 42) == [
                BusyInterval(start: 10, end: 15), BusyInterval(start: 20, end: 25), BusyInterval(start: 30, end: 42),
            ])
        // The job goes on, and the next recording has the rest of it only.
        recorder.start(at: 50)
        recorder.end(at: 53)
        recorder.begin(at: 60)
        recorder.end(at: 70)
        #expect(recorder.stop(at: 65) == [BusyInterval(start: 50, end: 53), BusyInterval(start: 60, end: 65)])
        #expect(recorder.stop(at: 80).isEmpty)
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

    private static func figures(total: Double, hops: [String: Int] = [:], extra: [String: Double] = [:]) -> RunFigures {
        var figures = RunFigures(
            start: 0, totalSeconds: total, processCPUSeconds: total, mainCPUSeconds: total / 2, main: MainThreadFigures([]),
            busy: [], spans: [], peakMemoryBytes: 0, residentAfterBytes: 0)
        figures.hops = hops
        figures.extra = extra
        return figures
    }

    private static func row(_ stack: String, _ figures: RunFigures) -> Report.Row {
        var row = Report.Row(benchmark: "shootout", durability: "durable", objects: 100, verified: true)
        (row.stack, row.store, row.routing) = (stack, "sqlite", "ancestors")
        row.take([figures])
        return row
    }

    @Test func `hops are reported per object, and by kind and level`() throws {
        let report = Report(
            machine: Machine(libraries: [:]),
            runs: [
                Self.row("nested", Self.figures(total: 1, hops: ["fault 1": 150, "save 1": 50])),
                Self.row("split", Self.figures(total: 1)),
            ])
        #expect(report.runs[0].hopsPerObject?.median == 2)
        let json = try #require(try JSONSerialization.jsonObject(with: report.json()) as? [String: Any])
        let runs = try #require(json["runs"] as? [[String: Any]])
        let hops = try #require(runs[0]["hops"] as? [String: [String: Double]])
        #expect(hops["fault 1"]?["median"] == 150)
        #expect((runs[0]["hopsPerObject"] as? [String: Double])?["median"] == 2)
        #expect(runs[1]["hops"] == nil)
        let table = report.stackTable()
        let column = try #require(table.header.firstIndex(of: "hops/obj."))
        #expect(table.rows.map { $0[column] } == ["2.00", "0"])
    }

    @Test func `a run with the published parse cost is compared with the published import`() throws {
        let siblings = Self.row("siblings", Self.figures(total: 2, extra: ["below the importer": 800]))
        let nested = Self.row("nested", Self.figures(total: 3, extra: ["below the importer": 2_000]))
        let notes = PublishedShape.notes([siblings, nested])
        #expect(notes.count == 2)
        #expect(notes[1].contains("total 1.50× of siblings [1.24×], below the importer 2.50× [1.60×]"))
        #expect(notes[1].contains("its processor time 50.0 % of the total [52.0 %]"))
        #expect(PublishedShape.notes([nested]).isEmpty)
        #expect(PublishedShape.notes([Self.row("siblings", Self.figures(total: 2))]).isEmpty)
    }
}
