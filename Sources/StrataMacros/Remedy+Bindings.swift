import SwiftDiagnostics
import SwiftSyntax

/// Changes of the type and the initial value of a property. As in fix-its of the compiler, the programmer replaces the placeholders.
extension Remedy {
    /// Gives a property a placeholder as its type.
    static func addType(to binding: PatternBindingSyntax) -> [FixIt] {
        var typed = binding
        typed.pattern = binding.pattern.with(\.trailingTrivia, [])
        let type = IdentifierTypeSyntax(name: .identifier("<#Type#>"))
        typed.typeAnnotation = annotation(type, trailingTrivia: binding.pattern.trailingTrivia)
        return [replace(binding, with: typed, "add the type")]
    }

    /// Gives a property an initial value: nil for a variable whose type is an optional, a placeholder otherwise.
    static func addValue(to binding: PatternBindingSyntax, isConstant: Bool) -> [FixIt] {
        let isNil = !isConstant && binding.typeAnnotation?.type.trimmed.wrappedByOptional != nil
        let placeholder = DeclReferenceExprSyntax(baseName: .identifier("<#value#>"))
        let value: ExprSyntax = isNil ? ExprSyntax(NilLiteralExprSyntax()) : ExprSyntax(placeholder)
        var valued = binding
        let trailing = binding.typeAnnotation?.trailingTrivia ?? binding.pattern.trailingTrivia
        if let annotation = binding.typeAnnotation {
            valued.typeAnnotation = annotation.with(\.trailingTrivia, [])
        } else {
            valued.pattern = binding.pattern.with(\.trailingTrivia, [])
        }
        valued.initializer = initializer(value, trailingTrivia: trailing)
        return [replace(binding, with: valued, "add an initial value")]
    }

    /// Removes the initial value of a property.
    ///
    /// - Parameter type: The type that the initial value shows, for a property without a type annotation.
    static func removeValue(of binding: PatternBindingSyntax, type: String?) -> [FixIt] {
        guard binding.initializer != nil, binding.accessorBlock == nil else { return [] }
        var plain = binding
        plain.initializer = nil
        if binding.typeAnnotation == nil {
            guard let type else { return [] }
            plain.pattern = binding.pattern.with(\.trailingTrivia, [])
            plain.typeAnnotation = annotation(TypeSyntax("\(raw: type)"))
        }
        return [replace(binding, with: plain.with(\.trailingTrivia, binding.trailingTrivia), "remove the initial value")]
    }

    /// Declares each name of a pattern on its own line, if the value is a tuple with an element per name.
    static func split(pattern variable: VariableDeclSyntax) -> [FixIt] {
        guard let binding = variable.bindings.first, binding.typeAnnotation == nil, binding.accessorBlock == nil,
            let names = binding.pattern.as(TuplePatternSyntax.self)?.elements,
            let values = binding.initializer?.value.as(TupleExprSyntax.self)?.elements, names.count == values.count
        else { return [] }
        var bindings: [PatternBindingSyntax] = []
        for (name, value) in zip(names, values) {
            guard let identifier = name.pattern.as(IdentifierPatternSyntax.self), name.label == nil, value.label == nil else {
                return []
            }
            bindings.append(
                PatternBindingSyntax(pattern: identifier.trimmed, initializer: initializer(value.expression.trimmed)))
        }
        return split(variable, into: PatternBindingListSyntax(bindings))
    }

    private static func annotation(_ type: some TypeSyntaxProtocol, trailingTrivia: Trivia = []) -> TypeAnnotationSyntax {
        TypeAnnotationSyntax(colon: .colonToken(trailingTrivia: .space), type: type, trailingTrivia: trailingTrivia)
    }

    private static func initializer(_ value: ExprSyntax, trailingTrivia: Trivia = []) -> InitializerClauseSyntax {
        InitializerClauseSyntax(
            equal: .equalToken(leadingTrivia: .space, trailingTrivia: .space), value: value, trailingTrivia: trailingTrivia)
    }
}
