import Foundation
import Testing

@testable import Figures

/// The page of `--html`: its size, what it contains, and how a browser shows it.
@Suite struct PageTests {
    /// A run set as of `shootout --store lmdb,sqlite --stack all --repeat 5`, with a very uneven main thread.
    private static let usual = shootout(contexts: 1)

    private static func shootout(contexts: Int) -> Report {
        var random = Numbers(state: 7)
        var rows: [Report.Row] = []
        for (store, routing, scale) in [("lmdb", "snapshot", 1.0), ("sqlite", "snapshot", 2.5), ("sqlite", "ancestors", 5.0)] {
            for stack in ["nested", "masterMainWorker", "siblings", "split", "hybrid"] {
                var row = Report.Row(benchmark: "shootout", durability: "durable", objects: 15_607, verified: true)
                (row.stack, row.store, row.routing, row.saveEvery) = (stack, store, routing, 500)
                let isNested = stack == "nested" || stack == "masterMainWorker"
                row.take((0..<5).map { _ in run(seconds: 0.1 * scale, isBusy: isNested, contexts, &random) })
                rows.append(row)
            }
        }
        return Report(machine: Machine(libraries: ["LMDB": "0.9.24"]), notes: ["Medians of 5."], runs: rows)
    }

    private static func run(seconds: Double, isBusy: Bool, _ contexts: Int, _ random: inout Numbers) -> RunFigures {
        let start: UInt64 = 1_000_000_000
        let end = start + UInt64(seconds * 1e9)
        var busy: [BusyInterval] = []
        var now = start
        while now < end {
            let begin = now + random.below(isBusy ? 400_000 : 900_000)
            now = begin + random.below(isBusy ? 300_000 : 12_000) + 1
            if now < end { busy.append(BusyInterval(start: begin, end: now)) }
        }
        var spans: [Span] = []
        for context in 0..<contexts {
            now = start
            while now < end {
                let middle = now + 500_000 + random.below(2_000_000)
                let next = middle + random.below(3_000_000)
                if next < end {
                    let lane = contexts == 1 ? "import" : "group \(context)"
                    spans.append(Span(lane: lane, kind: .work, start: now, end: middle))
                    spans.append(Span(lane: lane, kind: .save, start: middle, end: next))
                }
                now = next
            }
        }
        var figures = RunFigures(
            start: start, totalSeconds: seconds * (1 + Double(random.below(100)) / 2_000), processCPUSeconds: seconds,
            mainCPUSeconds: seconds / 50, main: MainThreadFigures(busy), busy: busy, spans: spans, peakMemoryBytes: 9 << 20,
            residentAfterBytes: 5 << 20)
        (figures.fileBytes, figures.saves) = (3 << 20, 61)
        return figures
    }

    @Test(arguments: [1, 3, 50])
    func `the page of a whole shootout has at most 60 KB`(contexts: Int) {
        let page = Self.shootout(contexts: contexts).html(title: "strata-bench shootout")
        #expect(page.utf8.count <= 60_000)
    }

    @Test func `the page loads nothing, and shows names as text`() {
        var report = Self.usual
        report.runs[0].stack = "a<b"
        report.runs[0].timelines[0].spans[0].lane = "<i>"
        report.notes = ["x & \"y\""]
        let page = report.html(title: "<t>")
        #expect(page.contains("a&lt;b") && !page.contains("a<b") && !page.contains("<t>"))
        #expect(page.contains("x &amp; &quot;y&quot;"))
        for word in ["<script", "src=", "href=", "url(", "@import"] { #expect(!page.contains(word), "\(word)") }
        #expect(page.contains("default-src 'none'"))
    }

    @Test func `the summary has a row of figures for each stack and store, and one legend`() throws {
        let page = Self.usual.html(title: "t")
        #expect(page.components(separatedBy: "<ul class=\"legend\">").count == 2)
        let rows = page.components(separatedBy: "<th scope=\"row\">").dropFirst()
        #expect(rows.count == 15)
        #expect(page.components(separatedBy: "<th scope=\"rowgroup\"").count == 6)
        #expect(rows.allSatisfy { $0.contains("class=\"main\"") && $0.contains("width:") })
        #expect(rows.contains { $0.hasPrefix("sqlite, ancestors<") } && rows.contains { $0.hasPrefix("lmdb<") })
        #expect(page.contains("total, ms") && page.contains("main busy, ms"))
    }

    @Test func `each time line has a title and says in words what it shows`() {
        let page = Self.usual.html(title: "t")
        let drawings = page.components(separatedBy: "<svg").dropFirst()
        #expect(drawings.count == 15)
        #expect(drawings.allSatisfy { $0.contains("role=\"img\"") && $0.contains("<title>") && $0.contains("import works for ") })
        #expect(Self.shootout(contexts: 50).html(title: "t").contains("<span>main<br>50 contexts</span>"))
    }

    @Test func `a report without stacks has no charts`() {
        var row = Report.Row(benchmark: "storage", durability: "durable", objects: 3, verified: true)
        (row.operation, row.engine, row.nanosecondsPerObject) = ("insert", "strata", Spread([5]))
        let page = Report(machine: Machine(libraries: [:]), runs: [row]).html(title: "t")
        #expect(!page.contains("<svg") && !page.contains("At a glance") && page.contains("<td>insert</td>"))
    }

    @Test(
        .enabled(if: Chromium.path != nil, "no Chromium is installed: install the package chromium"),
        arguments: [320, 400, 1_200])
    func `the page does not scroll sideways in a narrow window`(width: Int) throws {
        let page = Self.usual.html(title: "strata-bench shootout")
        let widths = try Chromium.widths(of: page, windowWidth: width)
        // The page, and the labels of its axes.
        #expect(widths.content == width && widths.visible == width)
    }
}

/// A headless browser that loads one page and ends.
private enum Chromium {
    static let path: String? = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        return names.lazy.flatMap { name in folders.map { "\($0)/\(name)" } }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    /// Returns the width of the page's content and of its window. The page is in a frame of the given width, because a browser's window
    /// has a least width.
    static func widths(of page: String, windowWidth: Int) throws -> (content: Int, visible: Int) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-page-\(UUID())", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let frame = """
            <!doctype html><iframe style="width:\(windowWidth)px;height:6000px;border:0" srcdoc="\(Report.escaped(page))"
            onload="const e=this.contentDocument.documentElement;document.title='widths '+e.scrollWidth+' '+e.clientWidth"></iframe>
            """
        let file = folder.appending(path: "frame.html")
        try Data(frame.utf8).write(to: file)
        let process = Process()
        process.executableURL = URL(filePath: try #require(path))
        process.arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking", "--user-data-dir=\(folder.appending(path: "profile").path)", "--dump-dom",
            file.path,
        ]
        let output = Pipe()
        (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let found = try #require(text.firstMatch(of: /<title>widths (\d+) (\d+)<\/title>/), "\(text.prefix(200))")
        return (try #require(Int(found.1)), try #require(Int(found.2)))
    }
}
