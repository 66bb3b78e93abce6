import SwiftSyntax

/// Reads the arguments of `@Derived`.
enum DerivationReader {
    /// The functions of `Derivation` by the label of the first argument.
    private static let functions = [
        "from": "value(at:", "count": "count(of:", "sum": "sum(of:", "minimum": "minimum(of:", "maximum": "maximum(of:",
        "average": "average(of:", "lowercased": "lowercased(", "folded": "folded(",
    ]

    /// Returns the derivation as an expression of type `Derivation`.
    static func derivation(_ marker: AttributeSyntax, of property: ModelProperty) throws(ModelDiagnostic) -> String {
        if property.initialValue != nil { throw .derivedWithValue }
        guard property.kind.relationships == .zero, property.kind.access == .plain else { throw .derivedOfOther }
        if case .attribute(let options) = property.marker {
            if options.index == "unique" || !options.rules.isEmpty { throw .derivedOption }
        }
        guard case .argumentList(let arguments) = marker.arguments, let first = arguments.first,
            let label = first.label?.text, let function = functions[label]
        else { throw .wrongDerivation }
        var names = try path(first.expression)
        if arguments.count == 2, let last = arguments.last { names = try path(last.expression) + names }
        return ".\(function)\(function.hasSuffix("(") ? "" : " ")\(literal(names.joined(separator: "."))))"
    }

    /// Returns the names in a key path.
    private static func path(_ expression: ExprSyntax) throws(ModelDiagnostic) -> [String] {
        guard let keyPath = expression.as(KeyPathExprSyntax.self) else { throw .wrongDerivation }
        var names: [String] = []
        for component in keyPath.steps {
            switch component.component {
            case .property(let property): names.append(property.declName.baseName.plainName)
            case .optional: continue
            default: throw .wrongDerivation
            }
        }
        return names
    }
}
