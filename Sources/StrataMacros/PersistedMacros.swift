import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The implementation of an attribute's accessors: `@PersistedAttribute(column)`.
public struct PersistedAttributeMacro {}

/// The implementation of a to-one relationship's accessors: `@PersistedToOne(relationship, column: column)`.
public struct PersistedToOneMacro {}

/// The implementation of a to-many relationship's accessors: `@PersistedToMany(relationship)`.
public struct PersistedToManyMacro {}

extension PersistedAttributeMacro: AccessorMacro, PeerMacro {
    /// Returns the accessors of an attribute.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration), let column = node.number(0) else { return [] }
        return property.accessors(initialize: "initialize(\(column)", get: "get(\(column))", set: "set(\(column)")
    }

    /// Returns the placeholder that stands for the property's storage.
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        AccessedProperty(declaration).map { [$0.placeholder(needsValue: $0.needsValue)] } ?? []
    }
}

extension PersistedToOneMacro: AccessorMacro, PeerMacro {
    /// Returns the accessors of a to-one relationship.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration), let relationship = node.number(0), let column = node.number(1)
        else { return [] }
        return property.accessors(
            initialize: "initializeToOne(\(relationship), \(column)", get: "toOne(\(relationship), \(column))",
            set: "setToOne(\(relationship), \(column)")
    }

    /// Returns the placeholder that stands for the property's storage.
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        AccessedProperty(declaration).map { [$0.placeholder(needsValue: $0.needsValue)] } ?? []
    }
}

extension PersistedToManyMacro: AccessorMacro, PeerMacro {
    /// Returns the accessors of a to-many relationship.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration), let relationship = node.number(0) else { return [] }
        return property.accessors(
            initialize: "initializeToMany(\(relationship)", get: "toMany(\(relationship))",
            set: "setToMany(\(relationship)")
    }

    /// Creates a placeholder that needs no value: a new object has no related objects.
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        AccessedProperty(declaration).map { [$0.placeholder(needsValue: false)] } ?? []
    }
}

/// The property whose accessors are written.
///
/// Its storage is a placeholder without size, which makes Swift require a value for it in each initializer.
private struct AccessedProperty {
    var name: String
    /// Whether an `init` must assign the property.
    var needsValue: Bool

    init?(_ declaration: some DeclSyntaxProtocol) {
        guard let binding = declaration.as(VariableDeclSyntax.self)?.bindings.first,
            let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
        else { return nil }
        name = pattern.identifier.plainName
        let isOptional = binding.typeAnnotation.map { $0.type.is(OptionalTypeSyntax.self) } ?? false
        needsValue = binding.initializer == nil && !isOptional
    }

    /// Returns the three accessors. Each argument is a call; `initialize` and `set` lack their last argument.
    func accessors(initialize: String, get: String, set: String) -> [AccessorDeclSyntax] {
        [
            """
            @storageRestrictions(initializes: \(raw: placeholderName), accesses: modelAnchor)
            init(initialValue) {
                modelAnchor.object.\(raw: initialize), to: initialValue)
                \(raw: placeholderName) = ModelPlaceholder()
            }
            """,
            "get { managedObject.\(raw: get) }",
            "set { managedObject.\(raw: set), to: newValue) }",
        ]
    }

    func placeholder(needsValue: Bool) -> DeclSyntax {
        needsValue
            ? "private var \(raw: placeholderName): ModelPlaceholder"
            : "private var \(raw: placeholderName) = ModelPlaceholder()"
    }

    private var placeholderName: String { StrataMacros.placeholderName(of: name) }
}

extension AttributeSyntax {
    /// Returns the numeric argument at a position.
    fileprivate func number(_ position: Int) -> String? {
        guard case .argumentList(let arguments) = arguments, position < arguments.count else { return nil }
        return arguments[arguments.index(arguments.startIndex, offsetBy: position)].expression.trimmedDescription
    }
}
