/// Reads dates in the forms of data files: `2013-01-31`, `2013-01-31 10:00:00` and `2013-01-31T10:00:00Z`, with or without a
/// fraction. Dates are always UTC.
public enum DateText {
    /// Returns the seconds since 2001-01-01 UTC, or nil if the text is not a date.
    public static func seconds(_ text: some StringProtocol) -> Double? {
        var text = Array(text.utf8)
        guard text.count >= 10, text.count <= 30 else { return nil }
        if text.last == UInt8(ascii: "Z") { text.removeLast() }
        guard let year = number(text, start: 0, count: 4), text[4] == dash, let month = number(text, start: 5, count: 2),
            text[7] == dash,
            let day = number(text, start: 8, count: 2), (1...12).contains(month), (1...daysIn(month, year)).contains(day)
        else { return nil }
        let midnight = Double(daysSince2001(year, month: month, day: day)) * 86_400
        if text.count == 10 { return midnight }
        guard text.count >= 19, text[10] == UInt8(ascii: "T") || text[10] == UInt8(ascii: " "),
            let hour = number(text, start: 11, count: 2), text[13] == colon, let minute = number(text, start: 14, count: 2),
            text[16] == colon,
            let second = number(text, start: 17, count: 2), hour < 24, minute < 60, second < 61
        else { return nil }
        guard let fraction = fraction(text[19...]) else { return nil }
        return midnight + Double(hour * 3600 + minute * 60 + second) + fraction
    }

    /// Returns the seconds of a text as ``seconds(_:)`` does, or nil if a date would change the time: for a leap second, and for a
    /// fraction with more digits than a double keeps.
    static func exactSeconds(_ text: some StringProtocol) -> Double? {
        guard let seconds = seconds(text) else { return nil }
        let bytes = Array(text.utf8)
        if bytes.count >= 19, bytes[17] == UInt8(ascii: "6") { return nil }
        guard bytes.count > 19, bytes[19] == UInt8(ascii: ".") else { return seconds }
        func digits(_ bytes: [UInt8]) -> [UInt8] {
            var digits = bytes.dropFirst(20)
            while let last = digits.last, last == UInt8(ascii: "0") || last == UInt8(ascii: "Z") { digits.removeLast() }
            return Array(digits)
        }
        guard let written = self.text(seconds), digits(Array(written.utf8)) == digits(bytes) else { return nil }
        return seconds
    }

    /// Returns a date in the form `2013-01-31T10:00:00.25Z`, with as few digits as ``seconds(_:)`` needs to return the same number.
    /// Returns nil for a number that has no such form: minus zero, and a date before the year 1, after 9999, or with a finer fraction.
    public static func text(_ seconds: Double) -> String? {
        guard seconds.magnitude < 1e12, seconds != 0 || seconds.sign == .plus else { return nil }
        let whole = seconds.rounded(.down)
        let day = (whole / 86_400).rounded(.down)
        let second = Int(whole - day * 86_400)
        guard let date = civilDate(Int(day)) else { return nil }
        let start = [
            padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T" + padded(second / 3600, 2),
            padded(second / 60 % 60, 2), padded(second % 60, 2),
        ].joined(separator: ":")
        if seconds == whole { return start + "Z" }
        var scale = 1.0
        for digits in 1...9 {
            scale *= 10
            let fraction = Int(((seconds - whole) * scale).rounded())
            guard fraction < Int(scale), whole + Double(fraction) / scale == seconds else { continue }
            let text = start + "." + padded(fraction, digits) + "Z"
            if self.seconds(text) == seconds { return text }
        }
        return nil
    }

    private static func padded(_ number: Int, _ count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }

    /// Returns the date of a day, counted from 2001-01-01; nil before the year 1 and after 9999.
    private static func civilDate(_ day: Int) -> (year: Int, month: Int, day: Int)? {
        let first = daysSince2001(1, month: 1, day: 1)
        guard day >= first, day <= daysSince2001(9999, month: 12, day: 31) else { return nil }
        // An estimate that is at most one year too late.
        var year = 1 + Int(Double(day - first) / 365.2425) + 1
        while daysSince2001(year, month: 1, day: 1) > day { year -= 1 }
        var month = 12
        while daysSince2001(year, month: month, day: 1) > day { month -= 1 }
        return (year, month, day - daysSince2001(year, month: month, day: 1) + 1)
    }

    private static let dash = UInt8(ascii: "-")
    private static let colon = UInt8(ascii: ":")

    private static func number(_ text: [UInt8], start: Int, count: Int) -> Int? {
        guard start + count <= text.count else { return nil }
        var result = 0
        for byte in text[start..<start + count] {
            guard byte >= 48, byte <= 57 else { return nil }
            result = result * 10 + Int(byte - 48)
        }
        return result
    }

    private static func fraction(_ text: ArraySlice<UInt8>) -> Double? {
        guard let point = text.first else { return 0 }
        guard point == UInt8(ascii: "."), text.count > 1, text.dropFirst().allSatisfy({ $0 >= 48 && $0 <= 57 }) else {
            return nil
        }
        return Double("0" + String(decoding: text, as: UTF8.self))
    }

    private static func daysIn(_ month: Int, _ year: Int) -> Int {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Counts days of the proleptic Gregorian calendar. Years begin in March here, so leap days come last.
    private static func daysSince2001(_ year: Int, month: Int, day: Int) -> Int {
        func days(_ year: Int, month: Int, day: Int) -> Int {
            let y = month <= 2 ? year - 1 : year
            let m = month <= 2 ? month + 9 : month - 3
            return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day
        }
        return days(year, month: month, day: day) - days(2001, month: 1, day: 1)
    }
}
