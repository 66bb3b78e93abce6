import SwiftSyntax

/// The product whose names a program uses, and whose names an expansion therefore contains.
enum Spelling {
    case strata
    /// `StrataSwiftData`, which does not export Strata's types: their names are members of `_Strata`.
    case swiftData

    /// The text before the name of a type.
    var types: String { self == .strata ? "" : "_Strata." }
    /// The protocols of a model.
    ///
    /// The one of `StrataSwiftData` refines the other. Both are stated, because while the compiler expands a model whose `@Relationship`
    /// names a property of a class in another file, it does not find what the conformance of that class implies.
    var modelProtocols: String { self == .strata ? "PersistentModel" : "_Strata.StoredModel, _Strata.PersistentModel" }
    /// The text before the name of a macro that writes accessors.
    var macros: String { self == .strata ? "" : "_" }
    /// The label of a former name.
    var formerName: String { self == .strata ? "renamedFrom" : "originalName" }

    /// The spelling of a macro that writes accessors.
    init(of node: AttributeSyntax) { self = node.attributeName.lastName.hasPrefix("_") ? .swiftData : .strata }
}
