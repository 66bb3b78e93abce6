import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

#if !canImport(Darwin)
    extension PredicateExpressions {
        /// A search in a string without case, diacritics and width: `$0.title.localizedStandardContains(query)`.
        ///
        /// Foundation has this expression only on Apple's systems. It is computed in memory, in the same way in each locale.
        public struct StringLocalizedStandardContains<Root: PredicateExpression, Other: PredicateExpression>: PredicateExpression
        where Root.Output: StringProtocol, Other.Output: StringProtocol {
            /// The result of the expression: whether the string contains the other.
            public typealias Output = Bool

            /// The string to search in.
            public let root: Root
            /// The string to search for.
            public let other: Other

            /// Creates the expression. The `#Predicate` macro calls this.
            public init(root: Root, other: Other) {
                self.root = root
                self.other = other
            }

            /// Returns whether the first string contains the second; false if the second is empty or has diacritics only.
            public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
                SearchedText.contains(try root.evaluate(bindings), try other.evaluate(bindings))
            }
        }

        /// A comparison of strings without case: `$0.title.caseInsensitiveCompare(name) == same`.
        ///
        /// Foundation has this expression only on Apple's systems. It is computed in memory, by `lowercased()` and code point.
        public struct StringCaseInsensitiveCompare<Root: PredicateExpression, Other: PredicateExpression>: PredicateExpression
        where Root.Output: StringProtocol, Other.Output: StringProtocol {
            /// The result of the expression: the order of the strings.
            public typealias Output = ComparisonResult

            /// The first string.
            public let root: Root
            /// The second string.
            public let other: Other

            /// Creates the expression. The `#Predicate` macro calls this.
            public init(root: Root, other: Other) {
                self.root = root
                self.other = other
            }

            /// Returns the order of the strings.
            public func evaluate(_ bindings: PredicateBindings) throws -> ComparisonResult {
                SearchedText.compare(try root.evaluate(bindings), try other.evaluate(bindings))
            }
        }

        /// A comparison of strings as people sort titles: `$0.title.localizedCompare(name) == descending`.
        ///
        /// Foundation has this expression only on Apple's systems. It is computed in memory, in the same way in each locale, and as
        /// sorts by ``StringComparison/localizedStandard`` compare.
        public struct StringLocalizedCompare<Root: PredicateExpression, Other: PredicateExpression>: PredicateExpression
        where Root.Output: StringProtocol, Other.Output: StringProtocol {
            /// The result of the expression: the order of the strings.
            public typealias Output = ComparisonResult

            /// The first string.
            public let root: Root
            /// The second string.
            public let other: Other

            /// Creates the expression. The `#Predicate` macro calls this.
            public init(root: Root, other: Other) {
                self.root = root
                self.other = other
            }

            /// Returns the order of the strings.
            public func evaluate(_ bindings: PredicateBindings) throws -> ComparisonResult {
                SearchedText.compareTitles(try root.evaluate(bindings), try other.evaluate(bindings))
            }
        }

        /// Creates a comparison of strings. The `#Predicate` macro calls this for `localizedCompare(_:)`.
        public static func build_localizedCompare<Root, Other>(
            _ root: Root, _ other: Other
        ) -> StringLocalizedCompare<Root, Other> {
            StringLocalizedCompare(root: root, other: other)
        }

        /// Creates a search in a string. The `#Predicate` macro calls this for `localizedStandardContains(_:)`.
        public static func build_localizedStandardContains<Root, Other>(
            _ root: Root, _ other: Other
        ) -> StringLocalizedStandardContains<Root, Other> {
            StringLocalizedStandardContains(root: root, other: other)
        }

        /// Creates a comparison of strings. The `#Predicate` macro calls this for `caseInsensitiveCompare(_:)`.
        public static func build_caseInsensitiveCompare<Root, Other>(
            _ root: Root, _ other: Other
        ) -> StringCaseInsensitiveCompare<Root, Other> {
            StringCaseInsensitiveCompare(root: root, other: other)
        }
    }

    extension PredicateExpressions.StringLocalizedStandardContains: Codable where Root: Codable, Other: Codable {}
    extension PredicateExpressions.StringLocalizedStandardContains: Sendable where Root: Sendable, Other: Sendable {}
    extension PredicateExpressions.StringLocalizedStandardContains: StandardPredicateExpression
    where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}

    extension PredicateExpressions.StringCaseInsensitiveCompare: Codable where Root: Codable, Other: Codable {}
    extension PredicateExpressions.StringCaseInsensitiveCompare: Sendable where Root: Sendable, Other: Sendable {}
    extension PredicateExpressions.StringCaseInsensitiveCompare: StandardPredicateExpression
    where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}

    extension PredicateExpressions.StringLocalizedCompare: Codable where Root: Codable, Other: Codable {}
    extension PredicateExpressions.StringLocalizedCompare: Sendable where Root: Sendable, Other: Sendable {}
    extension PredicateExpressions.StringLocalizedCompare: StandardPredicateExpression
    where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}
#endif

private enum SearchedText {
    /// No string contains the empty one, as in Foundation, nor one of diacritics only, which a search ignores.
    static func contains(_ text: some StringProtocol, _ pattern: some StringProtocol) -> Bool {
        let folded = TextFolding.folded(String(pattern))
        guard !folded.isEmpty else { return false }
        return StorePredicate.StringMatch.contains.matches(
            TextFolding.folded(String(text)), pattern: folded, sensitivity: .sensitive)
    }

    static func compare(_ a: some StringProtocol, _ b: some StringProtocol) -> ComparisonResult {
        result(a.lowercased(), b.lowercased())
    }

    static func compareTitles(_ a: some StringProtocol, _ b: some StringProtocol) -> ComparisonResult {
        result(TextOrder.localizedStandard.key(String(a)), TextOrder.localizedStandard.key(String(b)))
    }

    private static func result(_ a: String, _ b: String) -> ComparisonResult {
        let order = StoreInterface.Value.string(a).order(.string(b))
        return order == 0 ? .orderedSame : order < 0 ? .orderedAscending : .orderedDescending
    }
}

extension PredicateExpressions.StringLocalizedStandardContains: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (text, pattern) = (try lowering.row(root), try lowering.row(other))
        return RowExpression("\(text.text).localizedStandardContains(\(pattern.text))", of: text, pattern) {
            SearchedText.contains(try text.evaluate($0), try pattern.evaluate($0))
        }
    }
}

extension PredicateExpressions.StringCaseInsensitiveCompare: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (a, b) = (try lowering.row(root), try lowering.row(other))
        return RowExpression("\(a.text).caseInsensitiveCompare(\(b.text))", of: a, b) {
            SearchedText.compare(try a.evaluate($0), try b.evaluate($0))
        }
    }
}

extension PredicateExpressions.StringLocalizedCompare: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (a, b) = (try lowering.row(root), try lowering.row(other))
        return RowExpression("\(a.text).localizedCompare(\(b.text))", of: a, b) {
            SearchedText.compareTitles(try a.evaluate($0), try b.evaluate($0))
        }
    }
}
