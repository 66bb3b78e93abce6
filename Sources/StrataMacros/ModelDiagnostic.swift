import SwiftDiagnostics
import SwiftSyntax

/// The errors in the use of `@Model`. Each text contains the remedy.
enum ModelDiagnostic: String, DiagnosticMessage, Error {
    case notAClass = "@Model can be attached to a class only; its objects have an identity"
    case notAnActor = "@ModelActor can be attached to an actor only"
    case generic = "a class with @Model cannot be generic: each entity of the store is one class"
    case isolated =
        "a class with @Model cannot be isolated to the main actor, because background contexts use its objects too; remove '@MainActor'"
    case severalInOne = "declare each property of a model on its own line"
    case pattern = "a property of a model is declared by one name, not by a pattern"
    case constant = "a stored property of a model cannot be a constant in the language mode 6 of Swift; declare it with 'var'"
    case lazy = "a stored property of a model cannot be 'lazy'; mark it with @Transient"
    case reference = "a stored property of a model cannot be 'weak' or 'unowned'; mark it with @Transient"
    case closure = "a closure cannot be stored; mark the property with @Transient"
    case observers = "a stored property of a model cannot have observers; use the hooks of ManagedObjectLifecycle"
    case wrapped = "a property wrapper cannot be used on a stored property of a model; mark it with @Transient"
    case subclassInitializer =
        "write an initializer that sets the properties of the class and calls super.init; @Model does not know those of the superclass"
    case conditional =
        "a stored property of a model cannot be inside '#if', because a file has the same properties in every build; move it out"
    case conditionalMarker =
        "an attribute of a stored property, #Index or #Unique cannot be inside '#if', because @Model would not apply it; move it out"
    case markerOfOther =
        "a computed or static property is not stored, so this attribute would change nothing; remove it"
    case repeatedMarker = "only the first of these attributes would count; write all options in one"
    case untyped = "give the type of this property, so that @Model can write an initializer; or write one yourself"
    case scalarRelationship = "a relationship leads to a model; a value is stored without '@Relationship'"
    case attributeOnRelationship = "a relationship is not an attribute; it is always indexed"
    case wrongInverse = "the inverse must be a property of the model at the far end, as in 'inverse: \\Artist.tracks'"
    case transientWithoutValue = "a transient property needs an initial value, since it is not stored"
    case transientMixed = "a transient property is neither an attribute nor a relationship"
    case reservedName = "the managedObject of a model is Strata's; choose another name for this property"
    case unknownOption =
        "an attribute's options are .unique, .indexed, .preserveValueOnDeletion, .required, .length, .range and .pattern, written out"
    case lengthOfOther = ".length is for strings, data, arrays and sets; use .range for numbers and dates"
    case rangeOfOther = ".range is for numbers and dates; use .length for strings, data, arrays and sets"
    case patternOfOther = ".pattern is for strings"
    case patternOnLines = "a pattern is a regex literal or a string on one line"
    case unknownRelationshipOption = "a relationship's options are .required and .ordered, written out"
    case requiredObjects = ".required is for a relationship to one object; use 'count: 1...'"
    case countOfOne = "'count:' is for a relationship to many objects; use .required for one object"
    case notOrdered = "only an array of models can be ordered: a set has no order, and neither has one object"
    case wrongDerivation =
        "a derivation is a key path, as in 'from: \\Album.artist?.name', 'count: \\Album.tracks' or 'sum: \\Track.length, in: \\Album.tracks'"
    case derivedWithValue = "a derived attribute has no initial value: saves compute it"
    case derivedOfOther = "a derived attribute is a number, a string, a date, or an optional of one, with its type written out"
    case derivedOption = "a derived attribute is not unique and has no rules: give them to what it is derived from"

    case formerName = "renamedFrom: takes a former name, as a string without interpolation that differs from the current name"
    case sameFormerName = "another property has the same former name"
    case indexOfOther = "an index belongs to the model that contains it; write the name of this class in angle brackets"
    case wrongIndex = "an index is a list of key paths of stored properties, as in '[\\.name, \\.year]'"

    var message: String { rawValue }
    var diagnosticID: MessageID { MessageID(domain: "Strata", id: "\(self)") }
    var severity: DiagnosticSeverity { .error }

    func at(_ node: some SyntaxProtocol, fixIts: [FixIt] = []) -> Diagnostic {
        Diagnostic(node: Syntax(node), message: self, fixIts: fixIts)
    }
}

/// The text of a fix-it.
struct Remedy: FixItMessage {
    var message: String
    var fixItID: MessageID { MessageID(domain: "Strata", id: message) }

    static func replace(_ old: some SyntaxProtocol, with new: some SyntaxProtocol, _ message: String) -> FixIt {
        FixIt(message: Remedy(message: message), changes: [.replace(oldNode: Syntax(old), newNode: Syntax(new))])
    }
}

extension Remedy {
    /// Declares each of several properties on its own line, if each one shows its type or its value.
    ///
    /// - Parameter bindings: The properties; nil for those of the declaration.
    static func split(_ variable: VariableDeclSyntax, into bindings: PatternBindingListSyntax? = nil) -> [FixIt] {
        var type: TypeAnnotationSyntax?
        var declarations: [VariableDeclSyntax] = []
        for var binding in (bindings ?? variable.bindings).reversed() {
            // In `var a, b: Int`, both have the type of the last one.
            if binding.initializer == nil, binding.typeAnnotation == nil { binding.typeAnnotation = type }
            type = binding.initializer == nil ? binding.typeAnnotation : nil
            guard binding.typeAnnotation != nil || binding.initializer != nil, binding.accessorBlock == nil else { return [] }
            binding.trailingComma = nil
            binding = binding.trimmed
            declarations.insert(variable.with(\.bindings, [binding]).trimmed, at: 0)
        }
        let pieces = variable.leadingTrivia.pieces
        let last = pieces.lastIndex(where: \.isNewline)
        let indent = Trivia(pieces: last.map { Array(pieces[($0 + 1)...]) } ?? [])
        let items = declarations.enumerated().map { position, declaration in
            let start = position == 0 ? variable.leadingTrivia : .newline + indent
            return MemberBlockItemSyntax(decl: declaration.with(\.leadingTrivia, start))
        }
        return [replace(variable, with: MemberBlockItemListSyntax(items), "declare each property on its own line")]
    }

    /// Declares a constant as a variable.
    static func makeVariable(_ variable: VariableDeclSyntax) -> FixIt {
        let specifier = variable.bindingSpecifier
        return replace(specifier, with: specifier.with(\.tokenKind, .keyword(.var)), "replace 'let' by 'var'")
    }

    /// Excludes a property from the store.
    static func markTransient(_ variable: VariableDeclSyntax) -> FixIt {
        var marked = variable.with(\.leadingTrivia, [])
        let marker = AttributeSyntax("@Transient").with(\.leadingTrivia, variable.leadingTrivia).with(\.trailingTrivia, .space)
        marked.attributes = [.attribute(marker)] + marked.attributes
        return replace(variable, with: marked, "mark the property with '@Transient'")
    }

    /// Removes an attribute of a class that has others.
    static func remove(_ attribute: AttributeSyntax, of declaration: ClassDeclSyntax) -> FixIt {
        let all = declaration.attributes
        let rest = all.filter { $0.as(AttributeSyntax.self)?.id != attribute.id }.with(\.leadingTrivia, all.leadingTrivia)
        return replace(all, with: rest, "remove '\(attribute.trimmedDescription)'")
    }

    /// Makes a structure a class. Other types have no such remedy.
    static func makeClass(_ declaration: some DeclGroupSyntax) -> [FixIt] {
        guard let structure = declaration.as(StructDeclSyntax.self) else { return [] }
        let keyword = structure.structKeyword
        return [replace(keyword, with: keyword.with(\.tokenKind, .identifier("final class")), "make it a final class")]
    }

    /// Makes a structure, or a class without a superclass, an actor.
    static func makeActor(_ declaration: some DeclGroupSyntax) -> [FixIt] {
        let keyword: TokenSyntax
        if let structure = declaration.as(StructDeclSyntax.self) {
            keyword = structure.structKeyword
        } else if let found = declaration.as(ClassDeclSyntax.self), !found.mayBeSubclass,
            !found.modifiers.contains(where: { $0.name.text == "open" })
        {
            keyword = found.classKeyword
        } else {
            return []
        }
        return [replace(keyword, with: keyword.with(\.tokenKind, .keyword(.actor)), "make it an actor")]
    }
}
