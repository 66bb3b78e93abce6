import SwiftSyntax

/// A stored property of a model class, as far as the source text describes it.
struct ModelProperty {
    enum Kind: Equatable {
        case attribute(AttributeOptions)
        /// A relationship, which has a number among the relationships of the class. A to-one relationship also has a column.
        case toOne(RelationshipOptions)
        case toMany(RelationshipOptions)
        case transient
    }

    struct AttributeOptions: Equatable {
        /// The index kind: "unique" or "indexed".
        var index: String?
        /// The former name as a literal, with its quotes.
        var renamedFrom: String?
        var preservesValueOnDeletion = false
    }

    struct RelationshipOptions: Equatable {
        var destination: String
        /// The name of the inverse property.
        var inverse: String?
        /// The delete rule as an expression from the source.
        var deleteRule: String?
        /// The former name as a literal, with its quotes.
        var renamedFrom: String?
    }

    var name: String
    /// The name in the source, with backticks if it needs them.
    var sourceName: String
    var kind: Kind
    var type: TypeSyntax?
    var initialValue: ExprSyntax?
    /// The position among the attributes and to-one relationships.
    var column: Int?
    /// The position among the relationships.
    var relationship: Int?

    /// The former name as a literal, with its quotes.
    var renamedFrom: String? {
        switch kind {
        case .attribute(let options): options.renamedFrom
        case .toOne(let options), .toMany(let options): options.renamedFrom
        case .transient: nil
        }
    }

    var isTransient: Bool { kind == .transient }

    /// Whether the property is nil without an explicit initial value.
    var isImplicitlyNil: Bool { type.map { $0.is(OptionalTypeSyntax.self) } ?? false }

    /// Whether an `init` must assign the property.
    var needsValue: Bool {
        if case .toMany = kind { return false }
        return initialValue == nil && !isImplicitlyNil
    }

    /// Whether the initial value is the same each time, so that the entity's description can contain it.
    var hasConstantInitialValue: Bool {
        guard let initialValue else { return false }
        if let prefix = initialValue.as(PrefixOperatorExprSyntax.self) { return prefix.expression.isLiteral }
        if let member = initialValue.as(MemberAccessExprSyntax.self) {
            return member.base == nil && member.declName.baseName.text != "now"
        }
        return initialValue.isLiteral
    }

    /// The type in the source, or the type of a literal initial value.
    var typeText: String? {
        if let type { return type.trimmedDescription }
        guard let initialValue else { return nil }
        if let prefix = initialValue.as(PrefixOperatorExprSyntax.self) { return prefix.expression.literalType }
        if let call = initialValue.as(FunctionCallExprSyntax.self),
            let callee = call.calledExpression.as(DeclReferenceExprSyntax.self),
            callee.baseName.text.first?.isUppercase == true
        {
            return callee.baseName.text
        }
        return initialValue.literalType
    }
}

extension LabeledExprSyntax {
    /// Returns the literal of `renamedFrom:`, or nil unless it is plain text and differs from the current name.
    func formerName(of name: String) -> String? {
        guard let text = expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue, !text.isEmpty, text != name else {
            return nil
        }
        return expression.trimmedDescription
    }
}

extension ExprSyntax {
    /// The type of a literal without a type annotation.
    var literalType: String? {
        switch kind {
        case .integerLiteralExpr: "Int"
        case .floatLiteralExpr: "Double"
        case .booleanLiteralExpr: "Bool"
        case .stringLiteralExpr: "String"
        default: nil
        }
    }

    /// Whether the expression is a literal without interpolation.
    fileprivate var isLiteral: Bool {
        if let text = self.as(StringLiteralExprSyntax.self) { return text.representedLiteralValue != nil }
        return literalType != nil
    }
}

extension TypeSyntax {
    /// The type `X` of `X?` or `Optional<X>`.
    var wrappedByOptional: TypeSyntax? {
        if let optional = self.as(OptionalTypeSyntax.self) { return optional.wrappedType.trimmed }
        return argument(of: "Optional")
    }

    /// The type `X` of `[X]` or `Array<X>`.
    var wrappedByArray: TypeSyntax? {
        if let array = self.as(ArrayTypeSyntax.self) { return array.element.trimmed }
        return argument(of: "Array")
    }

    private func argument(of generic: String) -> TypeSyntax? {
        guard let named = self.as(IdentifierTypeSyntax.self), named.name.text == generic,
            let argument = named.genericArgumentClause?.arguments.first
        else { return nil }
        return TypeSyntax("\(argument.argument.trimmed)")
    }

    /// The last part of a dotted name, which is the name of the entity.
    var lastName: String {
        if let member = self.as(MemberTypeSyntax.self) { return member.name.plainName }
        return self.as(IdentifierTypeSyntax.self)?.name.plainName ?? trimmedDescription
    }
}
