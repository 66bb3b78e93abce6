import Foundation
import TestSupport
import Testing

@testable import Datasets

/// Dates as text: what is written is read as the same number.
@Suite struct DateTextTests {
    @Test func `dates have as many digits as they need`() {
        let cases: [(Double, String?)] = [
            (0, "2001-01-01T00:00:00Z"), (0.5, "2001-01-01T00:00:00.5Z"), (-1, "2000-12-31T23:59:59Z"),
            (-0.25, "2000-12-31T23:59:59.75Z"), (86_400 * 59, "2001-03-01T00:00:00Z"), (725_587_200, "2023-12-30T00:00:00Z"),
            (-63_113_904_000, "0001-01-01T00:00:00Z"), (252_423_993_599, "9999-12-31T23:59:59Z"), (252_423_993_600, nil),
            (.nan, nil), (.infinity, nil), (-1e15, nil), (-0.0, nil),
        ]
        for (seconds, text) in cases { #expect(DateText.text(seconds) == text, "\(seconds)") }
    }

    @Test func `a date that is written is read as the same number`() throws {
        var random = SeededGenerator()
        let calendar = Date.ISO8601FormatStyle(includingFractionalSeconds: false)
        for _ in 0..<Rounds.of(1000, long: 100_000) {
            let magnitudes: [Double] = [1e3, 1e6, 1e9, 5e10]
            let magnitude = magnitudes[random.below(magnitudes.count)]
            var seconds = Double.random(in: -magnitude...magnitude, using: &random)
            if random.chance(50) { seconds = seconds.rounded() }
            guard let text = DateText.text(seconds) else { continue }
            #expect(DateText.seconds(text) == seconds, "\(seconds)")
            // The date and time agree with those of Foundation, except for the fraction.
            let whole = Date(timeIntervalSinceReferenceDate: seconds.rounded(.down))
            if seconds > -1e10 { #expect(text.prefix(19) == whole.formatted(calendar).prefix(19), "\(seconds)") }
        }
    }
}
