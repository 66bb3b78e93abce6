import SwiftDiagnostics
import SwiftIfConfig
import SwiftSyntax
import SwiftSyntaxMacros

/// The implementation of `@Model`, which makes a class a `PersistentModel`.
///
/// It reads the stored properties in the order of their declaration and numbers them. Each property gets the macro that
/// writes its accessors. Errors are reported once, when the members are created.
public struct ModelMacro: ModelMaking {
    static let spelling = Spelling.strata
}

/// The implementation of `@Model` of `StrataSwiftData`.
public struct SwiftDataModelMacro: ModelMaking {
    static let spelling = Spelling.swiftData
}

/// A macro that makes a class a model.
protocol ModelMaking: MemberMacro, MemberAttributeMacro, ExtensionMacro {
    static var spelling: Spelling { get }
}

extension ModelMaking {
    /// Returns the members of a model class. Diagnoses each misuse once. The members also fit a class with misuses, so that it is a
    /// model for the rest of the program.
    public static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let declaration = declaration.as(ClassDeclSyntax.self) else {
            context.diagnose(ModelDiagnostic.notAClass.at(node, fixIts: Remedy.makeClass(declaration)))
            return []
        }
        let model = ModelClass(
            declaration, spelling, isSubclass: declaration.isSubclass(conformingTo: protocols), in: context.lexicalContext,
            refusingConstants: context.refusesConstants)
        for misuse in model.misuses { context.diagnose(misuse) }
        return model.members
    }

    /// Returns the accessor macro of a stored property, nothing for a transient property, and `@inline(never)` for an initializer.
    ///
    /// A context finds the model of an object by the address of the model's anchor, and then retains the model. Where Swift inlines an
    /// initializer, the optimizer may allocate the model on the stack, without the header that counts references. A model that a function
    /// returns is on the heap. An initializer with `@inline(__always)` gets the attribute too, so that the compiler reports a duplicate.
    public static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        if let initializer = member.as(InitializerDeclSyntax.self) {
            return declaration.is(ClassDeclSyntax.self) && !initializer.isNeverInlined ? ["@inline(never)"] : []
        }
        guard let declaration = declaration.as(ClassDeclSyntax.self),
            let variable = member.as(VariableDeclSyntax.self), variable.isStoredInInstances,
            let name = variable.bindings.first?.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainName
        else { return [] }
        let model = ModelClass(
            declaration, spelling, in: context.lexicalContext, refusingConstants: context.refusesConstants)
        guard !model.isRefused, let property = model.property(named: name) else { return [] }
        return property.accessorMacro(spelling, mayBeInherited: model.mayBeSubclass).map { [$0] } ?? []
    }

    /// Returns the conformance to `PersistentModel`, which must not be isolated in a module whose default isolation is the main actor, and an
    /// unavailable one to `Sendable`, unless the class states its own.
    public static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(ClassDeclSyntax.self) else { return [] }
        let missing = protocols.map(\.lastName)
        var extensions: [ExtensionDeclSyntax] = []
        if missing.contains("PersistentModel") {
            let stated = spelling.modelProtocols + (missing.contains("Hashable") ? ", Hashable" : "")
            extensions.append(try ExtensionDeclSyntax("nonisolated extension \(type.trimmed): \(raw: stated) {}"))
        }
        if missing.contains("Sendable") {
            extensions.append(try ExtensionDeclSyntax("@available(*, unavailable) extension \(type.trimmed): Sendable {}"))
        }
        return extensions
    }
}

extension MacroExpansionContext {
    /// Whether the compiler refuses accessors of a constant, as it does in the language mode 6. In earlier ones, it warns.
    fileprivate var refusesConstants: Bool { buildConfiguration.map { $0.languageVersion >= VersionTuple(6) } ?? false }
}

extension InitializerDeclSyntax {
    /// Whether the program has marked the initializer `@inline(never)`.
    fileprivate var isNeverInlined: Bool {
        attributes.contains { $0.trimmedDescription == "@inline(never)" }
    }
}
