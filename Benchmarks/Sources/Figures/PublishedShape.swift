/// The published import beside a run with its parse cost: how much longer each stack takes than siblings, and main's share.
///
/// It took 67 s with siblings, 83 s nested and 105 s with master, main and worker, on the Core Data of 2013.
public enum PublishedShape {
    private struct Figures {
        var total: Double
        var belowImporter: Double
        var mainShare: Double
    }

    private static let figures: [String: Figures] = [
        "nested": Figures(total: 1.24, belowImporter: 1.6, mainShare: 0.52),
        "masterMainWorker": Figures(total: 1.57, belowImporter: 2.4, mainShare: 0.28),
        "siblings": Figures(total: 1, belowImporter: 1, mainShare: 0.004),
    ]

    /// Returns a line for each row with the routing of Core Data and a published figure, if siblings ran too.
    public static func notes(_ rows: [Report.Row]) -> [String] {
        let emulated = rows.filter { $0.routing == "ancestors" && below($0) != nil }
        guard let siblings = emulated.first(where: { $0.stack == "siblings" }), let least = siblings.totalSeconds?.median else {
            return []
        }
        return emulated.compactMap { row in
            guard let stack = row.stack, let published = figures[stack], let total = row.totalSeconds?.median,
                let below = below(row), let belowLeast = self.below(siblings)
            else { return nil }
            return """
                \(stack) as Core Data routes it, published figures in brackets: total \(Shown.ratio(total / least)) of siblings \
                [\(Shown.ratio(published.total))], below the importer \(Shown.ratio(below / belowLeast)) \
                [\(Shown.ratio(published.belowImporter))], main busy \
                \(Shown.percent(row.mainBusySeconds?.median ?? 0, of: total)) and its processor time \
                \(Shown.percent(row.mainCPUSeconds?.median ?? 0, of: total)) of the total \
                [\(Shown.percent(published.mainShare, of: 1))].
                """
        }
    }

    private static func below(_ row: Report.Row) -> Double? { row.extraMilliseconds?["below the importer"]?.median }
}
