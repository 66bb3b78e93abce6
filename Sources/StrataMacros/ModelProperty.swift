import SwiftSyntax

/// A stored property of a model class, as far as it can be known from the source text.
struct ModelProperty {
    enum Kind: Equatable {
        case attribute(AttributeOptions)
        /// Numbers among the relationships of the class; a to-one also has a column.
        case toOne(RelationshipOptions)
        case toMany(RelationshipOptions)
        case transient
    }

    struct AttributeOptions: Equatable {
        /// "unique" or "indexed".
        var index: String?
        /// The literal, with its quotes.
        var renamedFrom: String?
        var preservesValueOnDeletion = false
    }

    struct RelationshipOptions: Equatable {
        var destination: String
        /// The name of the property that leads back.
        var inverse: String?
        /// An expression, as the user wrote it.
        var deleteRule: String?
        /// The literal, with its quotes.
        var renamedFrom: String?
    }

    var name: String
    /// As written, with the backticks that the name may need.
    var sourceName: String
    var kind: Kind
    var type: TypeSyntax?
    var initialValue: ExprSyntax?
    /// The position among the attributes and to-one relationships.
    var column: Int?
    /// The position among the relationships.
    var relationship: Int?

    /// What it was called before: the literal, with its quotes.
    var renamedFrom: String? {
        switch kind {
        case .attribute(let options): options.renamedFrom
        case .toOne(let options), .toMany(let options): options.renamedFrom
        case .transient: nil
        }
    }

    var isTransient: Bool { kind == .transient }

    /// Whether Swift gives the property nil when nothing is said.
    var isImplicitlyNil: Bool { type.map { $0.is(OptionalTypeSyntax.self) } ?? false }

    /// Whether an `init` must assign the property.
    var needsValue: Bool {
        if case .toMany = kind { return false }
        return initialValue == nil && !isImplicitlyNil
    }

    /// Whether the initial value is the same each time, so that it can stand in the entity's description.
    var hasConstantInitialValue: Bool {
        guard let initialValue else { return false }
        if let prefix = initialValue.as(PrefixOperatorExprSyntax.self) { return prefix.expression.isLiteral }
        if let member = initialValue.as(MemberAccessExprSyntax.self) {
            return member.base == nil && member.declName.baseName.text != "now"
        }
        return initialValue.isLiteral
    }

    /// The type as written, or as plain from the initial value.
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
    /// The literal of `renamedFrom:`; nil unless it is plain text other than the name of now.
    func formerName(of name: String) -> String? {
        guard let text = expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue, !text.isEmpty, text != name else {
            return nil
        }
        return expression.trimmedDescription
    }
}

extension ExprSyntax {
    /// The type that a literal has when nothing else is said.
    var literalType: String? {
        switch kind {
        case .integerLiteralExpr: "Int"
        case .floatLiteralExpr: "Double"
        case .booleanLiteralExpr: "Bool"
        case .stringLiteralExpr: "String"
        default: nil
        }
    }

    /// A literal without parts that are computed.
    fileprivate var isLiteral: Bool {
        if let text = self.as(StringLiteralExprSyntax.self) { return text.representedLiteralValue != nil }
        return literalType != nil
    }
}

extension TypeSyntax {
    /// `X` of `X?` or `Optional<X>`.
    var wrappedByOptional: TypeSyntax? {
        if let optional = self.as(OptionalTypeSyntax.self) { return optional.wrappedType.trimmed }
        return argument(of: "Optional")
    }

    /// `X` of `[X]` or `Array<X>`.
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

    /// The last part of a dotted name: what the entity is called.
    var lastName: String {
        if let member = self.as(MemberTypeSyntax.self) { return member.name.plainName }
        return self.as(IdentifierTypeSyntax.self)?.name.plainName ?? trimmedDescription
    }
}
