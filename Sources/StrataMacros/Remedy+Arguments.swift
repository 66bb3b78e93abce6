import SwiftDiagnostics
import SwiftSyntax

/// Changes of the arguments of `@Attribute`, `@Relationship`, `@Model` and `#Index`.
extension Remedy {
    /// Replaces an argument that means another one.
    static func replaceArgument(_ argument: LabeledExprSyntax, with text: String) -> [FixIt] {
        let new = LabeledExprSyntax(
            leadingTrivia: argument.leadingTrivia, expression: ExprSyntax("\(raw: text)"), trailingComma: argument.trailingComma)
        return [replace(argument, with: new, "use '\(new.trimmed.with(\.trailingComma, nil))'")]
    }

    /// Replaces an argument of `@Relationship` by one with another label, at its position among the parameters of the macro.
    static func moveArgument(
        _ argument: LabeledExprSyntax, of marker: AttributeSyntax, toLabel label: String?, _ text: String
    ) -> [FixIt] {
        guard case .argumentList(let arguments) = marker.arguments else { return [] }
        let labels: [String?] = [nil, "deleteRule", "inverse", "count", "renamedFrom"]
        func position(_ label: String?) -> Int { labels.firstIndex(of: label) ?? 0 }
        let new = LabeledExprSyntax(
            leadingTrivia: argument.leadingTrivia, label: label.map { .identifier($0) },
            colon: label.map { _ in .colonToken(trailingTrivia: .space) }, expression: ExprSyntax("\(raw: text)"))
        var list = Array(arguments).filter { $0.id != argument.id }
        let next = list.firstIndex { position($0.label?.text) > position(label) }
        list.insert(new, at: next ?? list.endIndex)
        return [replace(marker, with: marker.replacingArguments(with: list), "use '\(new.trimmed)'")]
    }

    /// Removes arguments of a marker. Without arguments, the marker has no parentheses.
    static func remove(_ removed: [LabeledExprSyntax], of marker: AttributeSyntax) -> [FixIt] {
        guard case .argumentList(let arguments) = marker.arguments, !removed.isEmpty else { return [] }
        let rest = Array(arguments).filter { argument in !removed.contains { $0.id == argument.id } }
        let names = removed.map { "'\($0.trimmed.with(\.trailingComma, nil))'" }.joined(separator: " and ")
        return [replace(marker, with: marker.replacingArguments(with: rest), "remove \(names)")]
    }

    /// Removes a former name that says nothing: nil, an empty text or the current name. Another one may be mistyped, and stays.
    static func removeFormerName(_ argument: LabeledExprSyntax, of marker: AttributeSyntax, currentName: String) -> [FixIt] {
        let text = argument.expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue
        let saysNothing = argument.expression.is(NilLiteralExprSyntax.self) || text == "" || text == currentName
        return saysNothing ? remove([argument], of: marker) : []
    }

    /// Writes a literal of three lines on one line, if the pattern on its second line has neither white space nor comments. These have
    /// another meaning in a literal on one line.
    static func joinLines(ofPattern pattern: ExprSyntax, in argument: LabeledExprSyntax) -> [FixIt] {
        let lines = pattern.trimmedDescription.split(separator: "\n", omittingEmptySubsequences: false)
        let isString = pattern.is(StringLiteralExprSyntax.self)
        guard lines.count == 3, isString || pattern.is(RegexLiteralExprSyntax.self) else { return [] }
        let text = lines[1].drop { $0 == " " }
        let end = lines[2].drop { $0 == " " }
        guard !text.isEmpty, !text.hasSuffix("\\"), !text.contains(where: { $0.isWhitespace || $0 == "#" || $0 == "\"" }) else {
            return []
        }
        guard isString else { return replaceArgument(argument, with: ".pattern(\(lines[0])\(text)\(end))") }
        // Further indentation than that of the last line belongs to a string.
        guard lines[1].count - text.count == lines[2].count - end.count else { return [] }
        // `"""` becomes `"`, and `#"""` becomes `#"`.
        let (opening, closing) = (lines[0].dropLast(2), end.dropFirst(2))
        return replaceArgument(argument, with: ".pattern(\(opening)\(text)\(closing))")
    }
}

extension AttributeSyntax {
    /// Returns the attribute with other arguments, and without parentheses if there are none.
    fileprivate func replacingArguments(with list: [LabeledExprSyntax]) -> AttributeSyntax {
        var attribute = self
        guard !list.isEmpty else {
            attribute.leftParen = nil
            attribute.arguments = nil
            attribute.rightParen = nil
            return attribute.with(\.trailingTrivia, trailingTrivia)
        }
        var separated = list
        for position in list.indices {
            if position == list.count - 1 {
                separated[position].trailingComma = nil
            } else if list[position].trailingComma == nil {
                separated[position].trailingComma = .commaToken(trailingTrivia: .space)
            }
        }
        attribute.arguments = .argumentList(LabeledExprListSyntax(separated))
        return attribute
    }
}
