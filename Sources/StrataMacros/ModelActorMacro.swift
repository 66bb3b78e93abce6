import SwiftSyntax
import SwiftSyntaxMacros

/// The implementation of `@ModelActor`, which gives an actor a model context.
public struct ModelActorMacro {}

extension ModelActorMacro: MemberMacro {
    /// Returns the container, the executor, and the initializer that creates both.
    public static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let declaration = declaration.as(ActorDeclSyntax.self) else {
            context.diagnose(ModelDiagnostic.notAnActor.at(node, fixIts: Remedy.makeActor(declaration)))
            return []
        }
        let access = declaration.accessOfMembers(in: context.lexicalContext)
        var members: [DeclSyntax] = [
            "\(raw: access)nonisolated let modelExecutor: any StrataSwiftData.ModelExecutor",
            "\(raw: access)nonisolated let modelContainer: StrataSwiftData.ModelContainer",
        ]
        if !node.disablesInitializer {
            members.append(
                """
                \(raw: access)init(modelContainer: StrataSwiftData.ModelContainer) {
                    let modelContext = StrataSwiftData.ModelContext(modelContainer)
                    self.modelExecutor = StrataSwiftData.DefaultSerialModelExecutor(modelContext: modelContext)
                    self.modelContainer = modelContainer
                }
                """)
        }
        return members
    }
}

extension ModelActorMacro: ExtensionMacro {
    /// Returns the conformance to `ModelActor`, unless the actor states it.
    public static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(ActorDeclSyntax.self), !protocols.isEmpty else { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): StrataSwiftData.ModelActor {}")]
    }
}

extension AttributeSyntax {
    /// Whether the source says `disableGenerateInit: true`.
    fileprivate var disablesInitializer: Bool {
        guard case .argumentList(let arguments) = arguments else { return false }
        return arguments.contains {
            $0.label?.text == "disableGenerateInit" && $0.expression.trimmedDescription == "true"
        }
    }
}
