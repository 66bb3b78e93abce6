import SwiftSyntax

extension TokenSyntax {
    /// The name without backticks, as the store knows it.
    var plainName: String {
        let text = text
        guard text.count > 2, text.first == "`", text.last == "`" else { return text }
        return String(text.dropFirst().dropLast())
    }
}

/// Returns a name as a string literal. A name in backticks may contain quotation marks.
func literal(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
}

/// Returns the name of the storage behind a property, in backticks if its characters need them.
func placeholderName(of plainName: String) -> String {
    let isPlain = plainName.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
    return isPlain ? "_$\(plainName)" : "`_$\(plainName)`"
}

/// The name of the link from a model to its managed object. No property can have it.
let anchorName = "__$modelAnchor"
