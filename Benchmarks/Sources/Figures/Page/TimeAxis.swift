import Foundation

/// An axis from 0 to a number of seconds, with its unit and its ticks.
struct TimeAxis {
    let seconds: Double
    /// `s`, `ms` or `µs`: the largest unit of which the axis has at least one.
    let unit: String
    private let perSecond: Double
    private let step: Double

    /// - Parameters:
    ///   - seconds: The end of the axis. Must be above 0.
    ///   - most: The largest number of ticks besides the one at 0.
    init(seconds: Double, most: Int) {
        self.seconds = seconds
        (unit, perSecond) =
            if seconds >= 1 { ("s", 1) } else if seconds >= 1e-3 { ("ms", 1e3) } else { ("µs", 1e6) }
        let least = seconds * perSecond / Double(most)
        let power = pow(10, log10(least).rounded(.down))
        step = ([1, 2, 5, 10].first { $0 * power >= least * (1 - 1e-9) } ?? 10) * power
    }

    /// The distance of two ticks as a share of the axis.
    var stepShare: Double { step / (seconds * perSecond) }

    /// The label of each tick, and its position as a share of the axis.
    var ticks: [(label: String, share: Double)] {
        let digits = max(0, Int(-log10(step).rounded(.down)))
        return (0...Int((1 / stepShare + 1e-9).rounded(.down))).map { number in
            (number == 0 ? "0" : Shown.fixed(Double(number) * step, digits), Double(number) * stepShare)
        }
    }

    /// Returns the time in the unit of the axis, without the unit.
    func number(_ seconds: Double) -> String { Shown.number(seconds * perSecond) }

    /// Returns the share of the axis that a time takes, in percent.
    func percent(_ seconds: Double) -> String { Self.percent(seconds / self.seconds) }

    /// Returns a share in percent for a style sheet, short: 12.3%.
    static func percent(_ share: Double) -> String {
        let text = Shown.fixed(min(1, max(0, share)) * 100, 2)
        return (text.hasSuffix(".00") ? String(text.dropLast(3)) : text) + "%"
    }

    /// Returns the labels of the ticks as a row of HTML. It is as wide as the axis.
    func html() -> String {
        let labels = ticks.map { tick in
            let isLast = tick.share > 0.94
            return "<i\(isLast ? " class=\"end\"" : "") style=\"left:\(Self.percent(tick.share))\">\(tick.label)</i>"
        }
        return "<span class=\"axis\" aria-hidden=\"true\">\(labels.joined())</span>"
    }
}
