import SwiftSyntax

/// The product whose names a program uses, and whose names an expansion therefore contains.
enum Spelling {
    case strata
    /// `StrataSwiftData`, which does not export Strata's types: their names are members of `_Strata`.
    case swiftData

    /// The text before the name of a type.
    var types: String { self == .strata ? "" : "_Strata." }
    /// The text before the name of a macro that writes accessors.
    var macros: String { self == .strata ? "" : "_" }
    /// The label of a former name.
    var formerName: String { self == .strata ? "renamedFrom" : "originalName" }

    /// The spelling of a macro that writes accessors.
    init(of node: AttributeSyntax) { self = node.attributeName.lastName.hasPrefix("_") ? .swiftData : .strata }
}
