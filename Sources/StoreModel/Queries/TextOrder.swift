#if canImport(FoundationEssentials)
    // The standard library's decomposition. Foundation's needs ICU, which would add 7 MB to each process.
    @_spi(_Unicode) import Swift
#else
    import Foundation
#endif

/// An order of strings for people. It is computed in Swift, never by stores.
///
/// The order does not depend on the locale of the process, because processes with different settings may share a file.
package enum TextOrder: Sendable, Hashable {
    /// By code point, but runs of decimal digits by their numbers: `b2` before `b10`.
    case numeric
    /// As ``numeric``, without case, diacritics and width. Strings that are then equal are in the order of their code points.
    case localizedStandard

    /// Returns a string whose order by code point is this order of the texts.
    package func key(_ text: String) -> String {
        var key = String.UnicodeScalarView()
        switch self {
        case .numeric: Self.append(text.unicodeScalars, to: &key)
        case .localizedStandard: Self.append(TextFolding.folded(text).unicodeScalars, to: &key)
        }
        // Equal keys are ordered by their texts. A zero ends the folded text, which has none: see `append`.
        key.append("\0")
        key.append(contentsOf: text.unicodeScalars)
        return String(key)
    }

    /// Appends the scalars, with the length before each number, so that longer numbers are greater.
    private static func append(_ scalars: some Sequence<Unicode.Scalar>, to key: inout String.UnicodeScalarView) {
        var digits: [Unicode.Scalar] = []
        func appendNumber() {
            guard !digits.isEmpty else { return }
            let number = digits.drop { $0 == "0" }
            key.append("0")
            key.append(Unicode.Scalar(UInt32(0x100 + min(number.count, 0xD000))) ?? "0")
            key.append(contentsOf: number)
            digits.removeAll(keepingCapacity: true)
        }
        for scalar in scalars {
            if let digit = digit(scalar) {
                digits.append(digit)
            } else {
                appendNumber()
                if scalar.value <= 1 { key.append("\u{1}") }
                key.append(scalar)
            }
        }
        appendNumber()
    }

    /// Returns the ASCII digit of a decimal digit of any script; nil for other characters.
    private static func digit(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.isASCII { return ("0"..."9").contains(scalar) ? scalar : nil }
        guard scalar.properties.numericType == .decimal, let value = scalar.properties.numericValue else { return nil }
        return Unicode.Scalar(UInt8(ascii: "0") + UInt8(value))
    }
}

/// Strings without the differences that people ignore when they search.
package enum TextFolding {
    /// Returns the text in lower case, without diacritics, with characters of full width replaced by those of ASCII.
    package static func folded(_ text: String) -> String {
        let lower = text.lowercased()
        if lower.utf8.allSatisfy({ $0 < 0x80 }) { return lower }
        var folded = String.UnicodeScalarView()
        for scalar in decomposed(lower) where !isDiacritic(scalar) { folded.append(narrow(scalar)) }
        return String(folded)
    }

    private static func decomposed(_ text: String) -> some Sequence<Unicode.Scalar> {
        #if canImport(FoundationEssentials)
            text._nfd
        #else
            text.decomposedStringWithCanonicalMapping.unicodeScalars
        #endif
    }

    /// Whether a scalar is a combining diacritical mark. Vowel signs of other scripts are letters.
    private static func isDiacritic(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x300...0x36F, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF: true
        default: false
        }
    }

    private static func narrow(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard (0xFF01...0xFF5E).contains(scalar.value) else { return scalar }
        return Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar
    }
}
