import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The implementation of an attribute's accessors: `@PersistedAttribute(column)`.
public struct PersistedAttributeMacro {}

/// The implementation of a to-one relationship's accessors: `@PersistedToOne(relationship, column: column)`.
public struct PersistedToOneMacro {}

/// The implementation of a to-many relationship's accessors: `@PersistedToMany(relationship)`.
public struct PersistedToManyMacro {}

/// The implementation of accessors that the compiler chooses by the type: `@PersistedProperty("column", "relationship")`.
public struct PersistedPropertyMacro {}

/// The implementation of a derived attribute's getter: `@PersistedDerived(column)`.
public struct PersistedDerivedMacro: AccessorMacro {
    /// Returns the getter of a derived attribute, which has no setter.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let column = node.number(0) else { return [] }
        return ["get { \(raw: anchorName).object.get(\(raw: column)) }"]
    }
}

/// A macro that writes the accessors of a property, and a placeholder as its storage.
public protocol PersistedMacro: AccessorMacro, PeerMacro {}

extension PersistedMacro {
    /// Returns the placeholder of the property's storage.
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        AccessedProperty(declaration, Spelling(of: node)).map { [$0.placeholder] } ?? []
    }
}

extension PersistedAttributeMacro: PersistedMacro {
    /// Returns the accessors of an attribute.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration, Spelling(of: node)), let column = node.number(0) else { return [] }
        return property.accessors(
            initialize: "\(anchorName).object.initialize(\(column), to: initialValue)", get: "get(\(column))",
            set: "object.set(\(column)")
    }
}

extension PersistedToOneMacro: PersistedMacro {
    /// Returns the accessors of a to-one relationship.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration, Spelling(of: node)), let relationship = node.number(0),
            let column = node.number(1)
        else { return [] }
        return property.accessors(
            initialize: "\(anchorName).locatedObject.initializeToOne(\(relationship), \(column), to: initialValue)",
            get: "toOne(\(relationship), \(column))",
            set: "locatedObject.setToOne(\(relationship), \(column)")
    }
}

extension PersistedToManyMacro: PersistedMacro {
    /// Returns the accessors of a to-many relationship.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration, Spelling(of: node)), let relationship = node.number(0) else {
            return []
        }
        return property.accessors(
            initialize: "\(anchorName).locatedObject.initializeToMany(\(relationship), to: initialValue)",
            get: "toMany(\(relationship))",
            set: "locatedObject.setToMany(\(relationship)")
    }
}

extension PersistedPropertyMacro: PersistedMacro {
    /// Returns the accessors of an attribute or a relationship.
    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = AccessedProperty(declaration, Spelling(of: node)), let column = node.number(0) else { return [] }
        let numbers = [column, node.number(1)].compactMap(\.self).joined(separator: ", ")
        // A property with a relationship number may be a relationship.
        let object = node.number(1) == nil ? "object" : "locatedObject"
        let set = "\(anchorName).\(object).setProperty(\(numbers), to: initialValue)"
        return property.accessors(
            initialize: "if \(anchorName).object.takesInitialValues { \(set) }", get: "property(\(numbers))",
            set: "\(object).setProperty(\(numbers)")
    }
}

/// The property whose accessors are written.
///
/// Its storage is a placeholder without size, which makes Swift require a value for it in each initializer.
private struct AccessedProperty {
    private let name: String
    /// Whether an `init` must assign the property.
    private let needsValue: Bool

    private let spelling: Spelling

    init?(_ declaration: some DeclSyntaxProtocol, _ spelling: Spelling) {
        guard let variable = declaration.as(VariableDeclSyntax.self) else { return nil }
        var reader = PropertyReader(variable, spelling)
        guard let property = reader.read() else { return nil }
        name = property.name
        self.spelling = spelling
        needsValue = property.needsValue
    }

    /// Returns the three accessors. `get` and `set` are calls, of the object and of the anchor; `set` lacks its last argument.
    func accessors(initialize: String, get: String, set: String) -> [AccessorDeclSyntax] {
        [
            """
            @storageRestrictions(initializes: \(raw: placeholderName), accesses: \(raw: anchorName))
            init(initialValue) {
                \(raw: initialize)
                \(raw: placeholderName) = \(raw: spelling.types)ModelPlaceholder()
            }
            """,
            "get { \(raw: anchorName).object.\(raw: get) }",
            "set { \(raw: anchorName).\(raw: set), to: newValue) }",
        ]
    }

    var placeholder: DeclSyntax {
        needsValue
            ? "private var \(raw: placeholderName): \(raw: spelling.types)ModelPlaceholder"
            : "private var \(raw: placeholderName) = \(raw: spelling.types)ModelPlaceholder()"
    }

    private var placeholderName: String { StrataMacros.placeholderName(of: name) }
}

extension AttributeSyntax {
    /// Returns the number at a position: a literal, or the text of a string literal.
    fileprivate func number(_ position: Int) -> String? {
        guard case .argumentList(let arguments) = arguments, position < arguments.count else { return nil }
        let argument = arguments[arguments.index(arguments.startIndex, offsetBy: position)].expression
        return argument.as(StringLiteralExprSyntax.self)?.representedLiteralValue ?? argument.trimmedDescription
    }
}
