#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Values as people write them. The type of the column distinguishes dates from numbers, and tells how many digits a number has.
extension Value {
    /// Returns the value of a column as text: a date in ISO 8601, null as `nil`, a float with its own digits, and other values as in
    /// ``description``.
    package func text(as type: ColumnType?) -> String {
        switch (self, type) {
        case (.null, _): "nil"
        case (.double(let seconds), .date): Self.dateText(seconds)
        case (.double(let number), .float): Float(exactly: number).map { "\($0)" } ?? description
        default: description
        }
    }

    /// Returns the value of a column as the Swift value of the same content.
    package func content(as type: ColumnType?) -> Any {
        switch (self, type) {
        case (.null, _): "nil"
        case (.double(let seconds), .date): Date(timeIntervalSinceReferenceDate: seconds)
        case (.double(let number), .float): Float(exactly: number) ?? number
        case (.bool(let flag), _): flag
        case (.int(let number), _): number
        case (.uint(let number), _): number
        case (.double(let number), _): number
        case (.string(let text), _): text
        case (.data, _), (.reference, _): description
        case (.uuid(let uuid), _): uuid
        }
    }

    private static func dateText(_ seconds: Double) -> String {
        // Calendars do not cover the dates of all doubles.
        guard seconds.magnitude < 1e11 else { return "\(seconds) seconds since 2001-01-01T00:00:00Z" }
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        let isWhole = seconds == seconds.rounded()
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: !isWhole))
    }
}

extension Value: CustomReflectable {
    /// No children: the value's ``description`` says everything.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
