import SwiftSyntax

/// Reads the arguments of `@Derived`.
enum DerivationReader {
    /// The functions of `Derivation` by the label of the first argument.
    private static let functions = [
        "from": "value(at:", "count": "count(of:", "sum": "sum(of:", "minimum": "minimum(of:", "maximum": "maximum(of:",
        "average": "average(of:", "lowercased": "lowercased(", "folded": "folded(",
    ]

    /// Returns the derivation as an expression of type `Derivation`.
    ///
    /// - Parameter className: The class of the property; nil if it is not known.
    static func derivation(
        _ marker: AttributeSyntax, of property: ModelProperty, in className: String?
    ) throws(ModelDiagnostic) -> String {
        if property.initialValue != nil { throw .derivedWithValue }
        guard property.kind.relationships == .zero, property.kind.access == .plain else { throw .derivedOfOther }
        if case .attribute(let options) = property.marker {
            if options.index == "unique" || !options.rules.isEmpty { throw .derivedOption }
        }
        guard case .argumentList(let arguments) = marker.arguments, let first = arguments.first,
            let label = first.label?.text, let function = functions[label]
        else { throw .wrongDerivation }
        func ownPath(_ expression: ExprSyntax) throws(ModelDiagnostic) -> [String] {
            try self.names(expression) { path in className.flatMap { path.path(from: $0) } ?? path.steps }
        }
        let names: [String]
        if arguments.count == 2, let last = arguments.last {
            // The first one is an attribute of another class.
            names = try ownPath(last.expression) + self.names(first.expression, \.path)
        } else {
            names = try ownPath(first.expression)
        }
        return ".\(function)\(function.hasSuffix("(") ? "" : " ")\(literal(names.joined(separator: "."))))"
    }

    /// Returns the names of those components of a key path that do not belong to the name of a type.
    private static func names(
        _ expression: ExprSyntax, _ components: (KeyPathExprSyntax) -> [KeyPathComponentSyntax]
    ) throws(ModelDiagnostic) -> [String] {
        guard let keyPath = expression.as(KeyPathExprSyntax.self) else { throw .wrongDerivation }
        var names: [String] = []
        for component in components(keyPath) {
            switch component.component {
            case .property(let property): names.append(property.declName.baseName.plainName)
            case .optional: continue
            default: throw .wrongDerivation
            }
        }
        return names
    }
}
