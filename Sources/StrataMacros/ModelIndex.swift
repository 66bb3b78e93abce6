import SwiftDiagnostics
import SwiftSyntax

/// One index of a model, from one list of `#Index<Model>(...)` or `#Unique<Model>(...)`.
struct ModelIndex {
    /// The name of the case of `IndexKind`.
    var kind: String
    var properties: [String]

    /// The index as an expression of type `IndexDescription`.
    func description(_ spelling: Spelling) -> String {
        "\(spelling.types)IndexDescription(properties: [\(properties.map(literal).joined(separator: ", "))], kind: .\(kind))"
    }
}

extension ModelClass {
    /// The properties that each model has, and that are not stored.
    private static let inheritedNames: Set<String> = [
        "id", "persistentModelID", "managedObject", "managedObjectContext", "modelContext", "isDeleted", "hasChanges",
        "hashValue",
        "description", "debugDescription",
    ]

    /// Reads the index if the member is `#Index` or `#Unique`. Ignores other macros.
    ///
    /// - Parameter computed: The names of the properties in the class that are not stored.
    mutating func readIndexes(_ member: MemberBlockItemSyntax, computed: Set<String>) {
        guard let macro = member.decl.as(MacroExpansionDeclSyntax.self) else { return }
        let kind: String
        switch macro.macroName.text {
        case "Index": kind = "indexed"
        case "Unique": kind = "unique"
        default: return
        }
        if case .type(let other)? = macro.genericArgumentClause?.arguments.first?.argument,
            ![name, "Self"].contains(other.lastName)
        {
            let remedy = Remedy.replace(other, with: TypeSyntax("\(raw: sourceName)"), "use '\(sourceName)'")
            misuses.append(ModelDiagnostic.indexOfOther.at(other, fixIts: [remedy]))
            return
        }
        for argument in macro.arguments {
            let elements = argument.keyPaths?.elements.map(\.expression)
            // SwiftData accepts an empty list, which requires nothing.
            if spelling == .swiftData, elements?.isEmpty == true { continue }
            let names = elements?.compactMap { indexedName($0, computed: computed) }
            if let names, !names.isEmpty, names.count == elements?.count {
                indexes.append(ModelIndex(kind: kind, properties: names))
            } else {
                // Several key paths may be one index or several.
                let isOnlyKeyPath =
                    macro.arguments.count == 1 && indexedName(argument.expression, computed: computed) != nil
                let fixIts =
                    isOnlyKeyPath ? Remedy.replaceArgument(argument, with: "[\(argument.expression.trimmedDescription)]") : []
                misuses.append(ModelDiagnostic.wrongIndex.at(argument, fixIts: fixIts))
            }
        }
    }

    /// Returns the name of the stored property to which a key path leads; nil for a property without a column or another expression.
    ///
    /// Also returns a name that the class does not declare. A superclass may have the property; if no class has it, the compiler complains.
    /// If it has no column, as a computed property in an extension, opening a store throws an error about the index.
    private func indexedName(_ expression: ExprSyntax, computed: Set<String>) -> String? {
        guard let keyPath = expression.as(KeyPathExprSyntax.self) else { return nil }
        let path = keyPath.path(from: self.name) ?? keyPath.path
        guard path.count == 1, let name = path[0].propertyName else { return nil }
        if misusedNames.contains(name) { return name }
        if let property = property(named: name) { return property.column == nil ? nil : name }
        return computed.contains(name) || Self.inheritedNames.contains(name) ? nil : name
    }
}

extension LabeledExprSyntax {
    /// The key paths of an index: `[\.name]`, or `.binary([\.name])`.
    fileprivate var keyPaths: ArrayExprSyntax? {
        let list = expression.as(FunctionCallExprSyntax.self)?.arguments.first?.expression ?? expression
        return list.as(ArrayExprSyntax.self)
    }
}
