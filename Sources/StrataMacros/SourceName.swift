import SwiftSyntax

extension TokenSyntax {
    /// The name without the backticks that the source may need for it: what the store knows.
    var plainName: String {
        let text = text
        guard text.count > 2, text.first == "`", text.last == "`" else { return text }
        return String(text.dropFirst().dropLast())
    }
}

/// The name of the storage behind a property; in backticks where the property's own characters ask for them.
func placeholderName(of plainName: String) -> String {
    let isPlain = plainName.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
    return isPlain ? "_\(plainName)" : "`_\(plainName)`"
}
