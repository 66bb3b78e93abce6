import SwiftSyntax

extension TokenSyntax {
    /// The name without backticks, as the store knows it.
    var plainName: String {
        let text = text
        guard text.count > 2, text.first == "`", text.last == "`" else { return text }
        return String(text.dropFirst().dropLast())
    }
}

extension KeyPathExprSyntax {
    /// The number of components that belong to the name of the type. The parser takes only the first part of `Shop.Item` in
    /// `\Shop.Item.name` for the root. Types have names in upper case. The last component is a property, and so is one before a question
    /// mark.
    private var typeParts: Int {
        guard root != nil else { return 0 }
        let parts = Array(components)
        let upper = parts.prefix { $0.propertyName?.first?.isUppercase ?? false }.count
        let endsWithProperty = upper == parts.count || parts[upper].propertyName == nil
        return endsWithProperty ? max(upper - 1, 0) : upper
    }

    /// The components without those that lead to the same value. They may belong to the name of the type.
    var steps: [KeyPathComponentSyntax] { Array(components).filter { !$0.isIdentity } }

    /// Returns the components after a class, if the key path names it: those of `\Crate.items`, and the same of `\Shop.Crate.items`. A
    /// name in upper case after the class is a property. nil if the key path begins with a dot or names another type.
    func path(from className: String) -> [KeyPathComponentSyntax]? {
        guard let root else { return nil }
        if root.lastName == className { return steps }
        let parts = Array(components)
        guard let place = parts.firstIndex(where: { $0.propertyName == className }), place + 1 < parts.count,
            parts[...(place + 1)].allSatisfy({ $0.propertyName != nil })
        else { return nil }
        return parts[(place + 1)...].filter { !$0.isIdentity }
    }

    /// The components after the type.
    var path: [KeyPathComponentSyntax] { components.dropFirst(typeParts).filter { !$0.isIdentity } }

    /// The last part of the name of the type; nil if the key path begins with a dot.
    var typeName: String? { typeParts == 0 ? root?.lastName : Array(components)[typeParts - 1].propertyName }
}

extension KeyPathComponentSyntax {
    /// The name of a property; nil for another component.
    var propertyName: String? { component.as(KeyPathPropertyComponentSyntax.self)?.declName.baseName.plainName }

    /// Whether the component is `.self`, which leads to the same value.
    fileprivate var isIdentity: Bool {
        component.as(KeyPathPropertyComponentSyntax.self)?.declName.baseName.tokenKind == .keyword(.self)
    }
}

/// Returns a name as a string literal. A name in backticks may contain quotation marks.
func literal(_ name: String) -> String {
    // Scalars, because a mark that combines with a quotation mark makes it another character.
    var result: String.UnicodeScalarView = .init("\"".unicodeScalars)
    for scalar in name.unicodeScalars { result.append(contentsOf: scalar == "\"" ? ["\\", scalar] : [scalar]) }
    result.append("\"")
    return String(result)
}

/// Returns the name of the storage behind a property, in backticks if its characters need them.
func placeholderName(of plainName: String) -> String {
    let isPlain = plainName.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
    return isPlain ? "_$\(plainName)" : "`_$\(plainName)`"
}

/// The name of the link from a model to its managed object. No property can have it.
let anchorName = "__$modelAnchor"
