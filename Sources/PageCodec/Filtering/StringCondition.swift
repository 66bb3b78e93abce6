import StoreInterface
import StoreModel

/// A condition that matches a string column with a pattern, by bytes.
final class StringCondition: Sendable {
    let column: ColumnIndex
    private let match: StorePredicate.StringMatch
    private let pattern: String
    private let sensitivity: StorePredicate.CaseSensitivity
    /// The pattern's UTF-8; in lower case if the condition is case-insensitive.
    private let bytes: [UInt8]
    private let patternIsASCII: Bool

    init(
        column: ColumnIndex, match: StorePredicate.StringMatch, pattern: String, sensitivity: StorePredicate.CaseSensitivity
    ) {
        self.column = column
        self.match = match
        self.pattern = pattern
        self.sensitivity = sensitivity
        bytes = Array((sensitivity == .insensitive ? pattern.lowercased() : pattern).utf8)
        patternIsASCII = bytes.allSatisfy { $0 < 0x80 }
    }

    func mask(_ page: ObjectPage, _ candidates: UInt64) throws(PageError) -> UInt64 {
        if column.rawValue < page.columnCount { return try mask(page, section: page.section(column), among: candidates) }
        if let section = page.olderSection(column) { return try mask(page, section: section, among: candidates) }
        return try page.olderMask(column, among: candidates) { value in
            if case .string(let text) = value { match.matches(text, pattern: pattern, sensitivity: sensitivity) } else { false }
        }
    }

    @inline(__always)
    private func mask(
        _ page: ObjectPage, section: ObjectPage.Section, among candidates: UInt64
    ) throws(PageError) -> UInt64 {
        guard section.code == .string else { return 0 }
        var result: UInt64 = 0
        let present = candidates & ~section.nulls
        for slot in SlotIterator(present & ~section.outside) {
            let span = try page.span(slot, in: section)
            if sensitivity == .sensitive ? matches(span) : try matchesFolded(span, page: page, slot: slot) {
                result |= 1 << UInt64(slot)
            }
        }
        return present & section.outside == 0
            ? result : result | (try large(page, section: section, among: present & section.outside))
    }

    /// Evaluates out-of-line values. A separate function, so that the loop over the values in the page stays small.
    @inline(never)
    private func large(
        _ page: ObjectPage, section: ObjectPage.Section, among candidates: UInt64
    ) throws(PageError) -> UInt64 {
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) {
            let isMatch = try page.withLargeSpan(slot, in: section) { span throws(PageError) in
                sensitivity == .sensitive ? matches(span) : try matchesFolded(span, page: page, slot: slot)
            }
            if isMatch { result |= 1 << UInt64(slot) }
        }
        return result
    }

    private func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        let count = bytes.count
        guard text.count >= count else { return false }
        switch match {
        case .equals: return text.count == count && equal(text, from: 0) { $0 }
        case .hasPrefix: return equal(text, from: 0) { $0 }
        case .hasSuffix: return equal(text, from: text.count - count) { $0 }
        case .contains: return contains(text) { $0 }
        }
    }

    /// Matches without case. ASCII is compared in place. Other text goes through `lowercased()`, which may change its length.
    private func matchesFolded(_ text: UnsafeRawBufferPointer, page: ObjectPage, slot: Int) throws(PageError) -> Bool {
        guard patternIsASCII, text.isASCII else {
            guard case .string(let string) = try page.value(slot, column) else { return false }
            return match.matches(string, pattern: pattern, sensitivity: .insensitive)
        }
        let count = bytes.count
        guard text.count >= count else { return false }
        switch match {
        case .equals: return text.count == count && equal(text, from: 0, Self.lower)
        case .hasPrefix: return equal(text, from: 0, Self.lower)
        case .hasSuffix: return equal(text, from: text.count - count, Self.lower)
        case .contains: return contains(text, Self.lower)
        }
    }

    @inline(__always)
    private static func lower(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    @inline(__always)
    private func equal(_ text: UnsafeRawBufferPointer, from start: Int, _ fold: (UInt8) -> UInt8) -> Bool {
        bytes.withUnsafeBufferPointer { pattern in
            for i in 0..<pattern.count where fold(text[start &+ i]) != pattern[i] { return false }
            return true
        }
    }

    @inline(__always)
    private func contains(_ text: UnsafeRawBufferPointer, _ fold: (UInt8) -> UInt8) -> Bool {
        guard let first = bytes.first else { return true }
        guard text.count >= bytes.count else { return false }
        for start in 0...(text.count - bytes.count) where fold(text[start]) == first {
            if equal(text, from: start, fold) { return true }
        }
        return false
    }
}
