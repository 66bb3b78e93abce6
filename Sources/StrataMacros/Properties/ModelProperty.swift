import SwiftSyntax

/// A stored property of a model class, as far as the source text describes it.
struct ModelProperty {
    /// The role that the source gives the property by `@Attribute`, `@Relationship` or `@Transient`.
    enum Marker: Equatable {
        /// No marker: the type determines whether it is an attribute or a relationship.
        case none
        case attribute(AttributeOptions)
        case relationship(RelationshipOptions)
        case transient
    }

    /// The derivation of an attribute as an expression of type `Derivation`; nil for an attribute that programs set.
    var derivation: String?
    /// "private" or "fileprivate"; nil for a property that other files can read.
    var accessLimit: String?

    struct AttributeOptions: Equatable {
        /// The index kind: "unique" or "indexed".
        var index: String?
        /// The former name as a literal, with its quotes.
        var renamedFrom: String?
        var preservesValueOnDeletion = false
        /// The rules as expressions of type `PropertyRule`.
        var rules: [String] = []
        /// The name of an option that `@Model` does not know.
        var unknownOption: String?
    }

    struct RelationshipOptions: Equatable {
        /// The name of the inverse property.
        var inverse: String?
        /// Whether the source says `.ordered`.
        var isOrdered = false
        /// Whether the source says `inverse: nil`.
        var refusesInverse = false
        /// The delete rule as an expression from the source.
        var deleteRule: String?
        /// The former name as a literal, with its quotes.
        var renamedFrom: String?
        /// The rules as expressions of type `PropertyRule`.
        var rules: [String] = []
        /// The arguments of SwiftData's limits, with their labels.
        var limits: [String] = []
        /// The name of an option that `@Model` does not know.
        var unknownOption: String?
    }

    let name: String
    /// The name in the source, with backticks if it needs them.
    let sourceName: String
    /// The name in a key path. After the name of a type, `Type` and `Protocol` would be part of that name.
    var keyPathName: String { ["Type", "Protocol"].contains(name) ? "self.\(sourceName)" : sourceName }
    /// The name of the variable with the property's value in an initializer.
    /// In an expression, `await` would begin another one.
    var variableName: String { ["self", "await"].contains(name) ? "__$\(name)" : sourceName }
    let marker: Marker
    let type: TypeSyntax?
    let initialValue: ExprSyntax?
    /// The storage of the property, as far as the source shows it.
    let kind: PropertyKind
    /// The position among the attributes and to-one relationships, as an expression.
    var column: String?
    /// The position among the relationships, as an expression.
    var relationship: String?

    /// The former name as a literal, with its quotes.
    var renamedFrom: String? {
        switch marker {
        case .attribute(let options): options.renamedFrom
        case .relationship(let options): options.renamedFrom
        case .none, .transient: nil
        }
    }

    /// The name of an option that `@Model` does not know. It does not compile, unless the program declares it in an extension.
    var unknownOption: String? {
        switch marker {
        case .attribute(let options): options.unknownOption
        case .relationship(let options): options.unknownOption
        case .none, .transient: nil
        }
    }

    var isTransient: Bool { marker == .transient }

    /// Whether the property is nil without an explicit initial value.
    var isImplicitlyNil: Bool {
        type.map { $0.is(OptionalTypeSyntax.self) || $0.is(ImplicitlyUnwrappedOptionalTypeSyntax.self) } ?? false
    }

    /// Whether an `init` must assign the property.
    var needsValue: Bool {
        if case .relationship = marker, kind.columns == .zero { return false }
        if derivation != nil { return false }
        return initialValue == nil && !isImplicitlyNil
    }

    /// Whether the initializer that the macro writes has a parameter for the property. As in that of a structure (SE-0502), a private
    /// property with a value has none: its type may be private.
    var isParameter: Bool { derivation == nil && (accessLimit == nil || needsValue) }

    /// The initial value as an expression for the entity's description, which evaluates it once; nil if there is none, or if evaluating
    /// it could have an effect.
    var defaultValue: String? {
        guard let initialValue, !initialValue.is(NilLiteralExprSyntax.self), initialValue.isPure else { return nil }
        let text = initialValue.trimmedDescription
        // The parameter is an optional, in which `.none` and other names would have another meaning.
        guard let type, !initialValue.isLiteral else { return text }
        // `as` binds closer than the operators of comparisons.
        let isSequence = initialValue.is(SequenceExprSyntax.self) || initialValue.is(InfixOperatorExprSyntax.self)
        return "(\(isSequence ? "(\(text))" : text) as \(type.spelledAsOptional))"
    }

    /// The type in the source, or the type of an initial value that shows it.
    var typeText: String? { type?.trimmedDescription ?? initialValue?.typeText }

    /// The type of the property's parameter in an initializer; nil if only the compiler knows it.
    var parameterType: String? { type?.spelledAsOptional ?? initialValue?.optionalType ?? typeText }

    init(name: String, sourceName: String, marker: Marker, type: TypeSyntax?, initialValue: ExprSyntax?) {
        self.name = name
        self.sourceName = sourceName
        self.marker = marker
        self.type = type
        self.initialValue = initialValue
        kind = Self.kind(marker, type: type, initialValue: initialValue)
    }

    private static func kind(_ marker: Marker, type: TypeSyntax?, initialValue: ExprSyntax?) -> PropertyKind {
        let shown = type ?? initialValue?.typeText.map { TypeSyntax("\(raw: $0)") }
        switch marker {
        case .transient: return PropertyKind(columns: .zero, relationships: .zero)
        case .attribute: return shown?.isPlain == true ? .plain : .attribute
        case .none: return shown.map(PropertyKind.init(unmarked:)) ?? initialValue?.propertyKind ?? .unknown
        case .relationship: return shown.map(PropertyKind.init(relationship:)) ?? PropertyKind(relationships: .one)
        }
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
    private var literalType: String? {
        switch kind {
        case .integerLiteralExpr: "Int"
        case .floatLiteralExpr: "Double"
        case .booleanLiteralExpr: "Bool"
        case .stringLiteralExpr: "String"
        default: nil
        }
    }

    /// Whether the expression is a literal, which has the same meaning for a type and an optional of it.
    fileprivate var isLiteral: Bool {
        if let text = self.as(StringLiteralExprSyntax.self) { return text.representedLiteralValue != nil }
        if let prefix = self.as(PrefixOperatorExprSyntax.self) { return prefix.expression.isLiteral }
        return literalType != nil
    }

    /// The type of the value: a literal's, or `T` of `T(…)`, `[T]()` and `Set<T>()`.
    fileprivate var typeText: String? {
        if let prefix = self.as(PrefixOperatorExprSyntax.self) { return prefix.expression.literalType }
        guard let callee = self.as(FunctionCallExprSyntax.self)?.calledExpression else { return literalType }
        if callee.is(ArrayExprSyntax.self) || callee.is(DictionaryExprSyntax.self) { return callee.trimmedDescription }
        let named = callee.as(GenericSpecializationExprSyntax.self)?.expression ?? callee
        let last =
            named.as(DeclReferenceExprSyntax.self)?.baseName ?? named.as(MemberAccessExprSyntax.self)?.declName.baseName
        let isMember = named.as(MemberAccessExprSyntax.self).map { $0.base == nil } ?? false
        // Only the compiler knows the elements of `Array(repeating: 0, count: 9)`.
        let generic = ["Array", "ContiguousArray", "Set", "Dictionary", "Optional"]
        if callee == named, let last, generic.contains(last.plainName) { return nil }
        return last?.plainName.first?.isUppercase == true && !isMember ? callee.trimmedDescription : nil
    }

    /// The type `T?` of a call of an initializer of a standard type that may return nil, such as `URL(string: "…")`; nil for other
    /// expressions.
    fileprivate var optionalType: String? {
        guard let call = self.as(FunctionCallExprSyntax.self), let type = typeText, let first = call.arguments.first else {
            return nil
        }
        let labels = ["URL": "string", "UUID": "uuidString", "Decimal": "string", "Data": "base64Encoded"]
        let isNumber = TypeSyntax.numbers.contains(type)
        let isText = first.label == nil && first.expression.is(StringLiteralExprSyntax.self)
        let isOptional =
            labels[type].map { $0 == first.label?.text } ?? false || isNumber && (first.label?.text == "exactly" || isText)
        return isOptional ? "\(type)?" : nil
    }

    /// The kind of a property without a type annotation whose initial value does not show its type.
    fileprivate var propertyKind: PropertyKind? {
        if self.is(DictionaryExprSyntax.self) { return .attribute }
        // A constant like `Date.now` or `Int.max`. Other members may have any type.
        let constants: Set = ["now", "distantPast", "distantFuture", "max", "min", "zero", "pi", "infinity"]
        guard let member = self.as(MemberAccessExprSyntax.self), let base = member.base,
            constants.contains(member.declName.baseName.text), TypeSyntax("\(raw: base.trimmedDescription)").isPlain
        else { return nil }
        return .plain
    }
}
