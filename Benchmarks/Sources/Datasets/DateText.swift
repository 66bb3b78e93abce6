/// Reads dates in the forms of data files: `2013-01-31`, `2013-01-31 10:00:00` and `2013-01-31T10:00:00Z`, with or without a
/// fraction. Dates are always UTC.
enum DateText {
    /// Returns the seconds since 2001-01-01 UTC, or nil if the text is not a date.
    static func seconds(_ text: some StringProtocol) -> Double? {
        var text = Array(text.utf8)
        guard text.count >= 10, text.count <= 30 else { return nil }
        if text.last == UInt8(ascii: "Z") { text.removeLast() }
        guard let year = number(text, 0, 4), text[4] == dash, let month = number(text, 5, 2), text[7] == dash,
            let day = number(text, 8, 2), (1...12).contains(month), (1...daysIn(month, year)).contains(day)
        else { return nil }
        let midnight = Double(daysSince2001(year, month, day)) * 86_400
        if text.count == 10 { return midnight }
        guard text.count >= 19, text[10] == UInt8(ascii: "T") || text[10] == UInt8(ascii: " "),
            let hour = number(text, 11, 2), text[13] == colon, let minute = number(text, 14, 2), text[16] == colon,
            let second = number(text, 17, 2), hour < 24, minute < 60, second < 61
        else { return nil }
        guard let fraction = fraction(text[19...]) else { return nil }
        return midnight + Double(hour * 3600 + minute * 60 + second) + fraction
    }

    private static let dash = UInt8(ascii: "-")
    private static let colon = UInt8(ascii: ":")

    private static func number(_ text: [UInt8], _ start: Int, _ count: Int) -> Int? {
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
        guard point == UInt8(ascii: "."), text.count > 1 else { return nil }
        var value = 0.0
        var unit = 0.1
        for byte in text.dropFirst() {
            guard byte >= 48, byte <= 57 else { return nil }
            value += Double(byte - 48) * unit
            unit /= 10
        }
        return value
    }

    private static func daysIn(_ month: Int, _ year: Int) -> Int {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Counts days of the proleptic Gregorian calendar. Years begin in March here, so leap days come last.
    private static func daysSince2001(_ year: Int, _ month: Int, _ day: Int) -> Int {
        func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
            let y = month <= 2 ? year - 1 : year
            let m = month <= 2 ? month + 9 : month - 3
            return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day
        }
        return days(year, month, day) - days(2001, 1, 1)
    }
}
