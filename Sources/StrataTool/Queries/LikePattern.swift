import ObjectGraph
import StoreModel

/// The pattern of `like`, with the meaning that it has in `NSPredicate`: `*` is any text, and `?` is one character. A backslash before one of
/// them makes it a character like any other.
struct LikePattern {
    private let text: String
    /// Whether any text may be before and after `text`.
    private let (isOpenAtStart, isOpenAtEnd): (Bool, Bool)

    /// - Throws: ``ToolError`` if the pattern has a `?`, or a `*` in its middle.
    init(_ pattern: String, at position: Int) throws {
        /// The characters; nil for `*`.
        var parts: [Character?] = []
        var rest = pattern[...]
        while let character = rest.popFirst() {
            switch character {
            case "\\": parts.append(rest.popFirst() ?? "\\")
            case "*": parts.append(nil)
            case "?":
                throw ConditionParser.failure(
                    "like with a ? in the pattern is not supported. Use contains, or = for a text with that character",
                    at: position)
            default: parts.append(character)
            }
        }
        let start = parts.prefix { $0 == nil }.count
        let end = start == parts.count ? 0 : parts.reversed().prefix { $0 == nil }.count
        (isOpenAtStart, isOpenAtEnd) = (start > 0, end > 0)
        let middle = parts.dropFirst(start).dropLast(end)
        guard middle.allSatisfy({ $0 != nil }) else {
            throw ConditionParser.failure(
                "like with a * in the middle of the pattern is not supported. Use beginswith, contains and endswith, joined by and",
                at: position)
        }
        text = String(middle.compactMap(\.self))
    }

    /// Returns the condition that the pattern describes for a property.
    func condition(_ name: String, sensitivity: StorePredicate.CaseSensitivity) -> Condition {
        let match: StorePredicate.StringMatch =
            switch (isOpenAtStart, isOpenAtEnd) {
            case (false, false): .equals
            case (false, true): .hasPrefix
            case (true, false): .hasSuffix
            case (true, true): .contains
            }
        if text.isEmpty, match != .equals { return .not(.isNil(name)) }
        return .string(name, match, pattern: text, sensitivity: sensitivity)
    }
}
