import SwiftSyntax
import SwiftSyntaxMacros

/// The implementation of `@Attribute`, `@Relationship` and `@Transient`, which add no code. ``ModelMacro`` reads them.
public struct MarkerMacro: PeerMacro {
    /// Returns no declarations.
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}

/// The implementation of `#Index` and `#Unique`, which add no code. ``ModelMacro`` reads them.
public struct IndexMacro: DeclarationMacro {
    /// Returns no declarations.
    public static func expansion(
        of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}
