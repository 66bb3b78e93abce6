import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Model` adds.
extension ModelClass {
    /// The text before the name of a type.
    private var types: String { spelling.types }

    var members: [DeclSyntax] {
        if isGeneric { return stubs }
        var members: [DeclSyntax] = hasOverridableMembers ? linkedAnchor : [anchor]
        if superclass == nil { members.append(managedObject) }
        if hasOverridableMembers {
            members += [
                typeProperty("entityDescription", "\(types)EntityDescription", stored: "describedEntity"), description,
                typeProperty("entityName", "String", stored: "\"\(name)\""),
            ]
        } else {
            members += [description, "\(raw: access)static var entityName: String { \"\(raw: name)\" }"]
        }
        members.append("private static let detachedEntity = \(raw: types)\(raw: detachedEntity)")
        members += hasOverridableMembers ? inheritableColumns : [columns]
        members += [wrappingInitializer, placeholderInitializer]
        if let numbers { members.append("\(raw: numbers)") }
        if !hasInitializer, superclass == nil { members.append(memberwiseInitializer) }
        return members
    }

    private var anchor: DeclSyntax {
        "@exclusivity(unchecked) private var \(raw: anchorName) = \(raw: types)ModelAnchor(for: \(raw: sourceName).detachedEntity)"
    }

    /// The declaration of the description, up to its value.
    private var described: String {
        let name = hasOverridableMembers ? "private static let describedEntity" : "\(access)static let entityDescription"
        return "\(name): \(types)EntityDescription"
    }

    /// Members that only satisfy the compiler, for a class whose mistake prevents others.
    private var stubs: [DeclSyntax] {
        [
            "\(raw: access)var managedObject: \(raw: types)ManagedObject { fatalError() }",
            "\(raw: access)static var entityDescription: \(raw: types)EntityDescription { fatalError() }",
            "\(raw: access)static var entityName: String { fatalError() }",
            "\(raw: access)static var columnsByKeyPath: [AnyKeyPath: String] { fatalError() }",
            "\(raw: access)\(raw: required)init(managedObject: \(raw: types)ManagedObject) { fatalError() }",
        ]
    }

    /// The managed object. If the class has a property of this name, which is diagnosed, another member satisfies the protocol.
    private var managedObject: DeclSyntax {
        let name = "managedObject"
        guard misusedNames.contains(name) else {
            return "\(raw: access)var managedObject: \(raw: types)ManagedObject { \(raw: anchorName).object }"
        }
        return """
            @_implements(\(raw: types)PersistentModel, managedObject) \(raw: access)var __$managedObject: \(raw: types)ManagedObject { \
            \(raw: anchorName).object }
            """
    }

    /// The description of the entity. Its properties are added one by one, because the compiler would take long to choose the
    /// overloads of many properties in one expression.
    private var description: DeclSyntax {
        guard persisted.contains(where: { $0.isDescribedByType(spelling) }) else {
            return """
                \(raw: described) = \(raw: types)EntityDescription(
                    name: "\(raw: name)",
                    properties: [
                        \(raw: persisted.map { $0.description(in: sourceName, spelling) + "," }.joined(separator: "\n        "))
                    ]\(raw: indexArgument)\(raw: formerNameArgument)\(raw: inheritanceArguments))
                """
        }
        let lines = persisted.map { "description.properties.append(\($0.description(in: sourceName, spelling)))" } + columnCheck
        return """
            \(raw: described) = {
                var description = \(raw: types)EntityDescription(
                    name: "\(raw: name)", properties: []\(raw: indexArgument)\(raw: formerNameArgument)\(raw: inheritanceArguments))
                \(raw: lines.joined(separator: "\n    "))
                return description
            }()
            """
    }

    /// A statement that stops the program if a property whose column is counted from the source has none, because its type is an alias
    /// of an array of models.
    private var columnCheck: [String] {
        let counted = persisted.filter {
            $0.kind.columns == .one && $0.kind.relationships != .zero && $0.isDescribedByType(spelling)
        }
        guard !counted.isEmpty else { return [] }
        let names = counted.map { "\"\($0.name)\"" }.joined(separator: ", ")
        return ["description.requireColumns(of: [\(names)])"]
    }

    private var formerNameArgument: String { renamedFrom.map { ",\n    renamedFrom: \($0)" } ?? "" }

    private var indexArgument: String {
        guard !indexes.isEmpty else { return "" }
        return ",\n    indexes: [\n        " + indexes.map { $0.description(spelling) + "," }.joined(separator: "\n        ")
            + "\n    ]"
    }

    /// The dictionary of columns by key path. `nonisolated(unsafe)` is right because it is created once and never changed,
    /// and key paths are immutable.
    private var columns: DeclSyntax {
        let entries = persisted.map { "\\\(sourceName).\($0.sourceName): \"\($0.name)\"," }
        return """
            nonisolated(unsafe) \(raw: access)static let columnsByKeyPath: [AnyKeyPath: String] = [
                \(raw: entries.isEmpty ? ":" : entries.joined(separator: "\n    "))
            ]
            """
    }

    private var wrappingInitializer: DeclSyntax {
        """
        \(raw: access)\(raw: required)convenience init(managedObject: \(raw: types)ManagedObject) {
            \(raw: types)ModelAnchor.wrapNext(managedObject)
            self.init(wrapping: ())
        }
        """
    }

    private var placeholderInitializer: DeclSyntax {
        let assignments = persisted.filter(\.needsValue).map { "\(placeholderName(of: $0.name)) = \(types)ModelPlaceholder()" }
        let up = superclass == nil ? [] : ["super.init(wrapping: ())"]
        let modifiers = superclass == nil ? (isFinal ? "private " : access) : "override \(access)"
        return """
            \(raw: modifiers)init(wrapping: Void) {
                \(raw: misuses.isEmpty ? (assignments + up).joined(separator: "\n    ") : "fatalError()")
            }
            """
    }

    /// The initializer that Swift would write for a struct.
    private var memberwiseInitializer: DeclSyntax {
        let assigned = persisted.filter { $0.derivation == nil }
        let parameters = assigned.filter { $0.typeText != nil }.map { property in
            let value = property.initialValue?.description ?? property.defaultArgument
            return "\(property.sourceName): \(property.parameterType ?? "")\(value.map { " = \($0)" } ?? "")"
        }
        let assignments = assigned.map { "self.\($0.sourceName) = \($0.sourceName)" }
        return """
            init(\(raw: parameters.joined(separator: ", "))) {
                \(raw: misuses.isEmpty ? assignments.joined(separator: "\n    ") : "fatalError()")
            }
            """
    }

}

extension ModelProperty {
    fileprivate var defaultArgument: String? {
        if case .relationship = marker, kind.columns == .zero, !isImplicitlyNil { return "[]" }
        return isImplicitlyNil ? "nil" : nil
    }

    /// Returns the property as an expression of type `PropertyDescription`.
    fileprivate func description(in model: String, _ spelling: Spelling) -> String {
        let path = "\\\(model).\(sourceName)"
        if isDescribedByType(spelling) {
            return
                "\(spelling.types)PropertyDescription.\(describingFunction(spelling))(\(arguments(["\"\(name)\"", "of: \(path)"])))"
        }
        switch kind.access {
        case .byType: return ""
        case .plain: return ".attribute(\(spelling.types)AttributeDescription(\(arguments(["\"\(name)\"", "of: \(path)"]))))"
        case .toOne(let destination): return ".relationship(RelationshipDescription(\(arguments(destination, ".toOne"))))"
        case .toMany(let destination): return ".relationship(RelationshipDescription(\(arguments(destination, ".toMany"))))"
        }
    }

    /// The function that describes the property by its type.
    private func describingFunction(_ spelling: Spelling) -> String {
        guard case .relationship = marker else { return "property" }
        return spelling == .strata ? "related" : "_relationship"
    }

    /// Whether the compiler chooses the description and the accessors by the property's type.
    ///
    /// In models for SwiftData, it does for each relationship: the destination is often named by an alias of a class in a versioned
    /// schema.
    fileprivate func isDescribedByType(_ spelling: Spelling) -> Bool {
        switch kind.access {
        case .byType: true
        case .plain: false
        case .toOne, .toMany: spelling == .swiftData
        }
    }

    /// Returns arguments with the options of the property.
    private func arguments(_ first: [String]) -> String {
        var arguments = first
        switch marker {
        case .relationship(let options):
            if let inverse = options.inverse { arguments.append("inverse: \"\(inverse)\"") }
            if let deleteRule = options.deleteRule { arguments.append("deleteRule: \(deleteRule)") }
            if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
            if options.refusesInverse { arguments.append("inference: .refused") }
            if options.isOrdered { arguments.append("isOrdered: true") }
            arguments += options.limits
            arguments += rulesArgument(options.rules)
        case .none, .attribute, .transient:
            var options = AttributeOptions()
            if case .attribute(let own) = marker { options = own }
            if let index = options.index { arguments.append("index: .\(index)") }
            if let defaultValue { arguments.append("default: \(defaultValue)") }
            if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
            if options.preservesValueOnDeletion { arguments.append("preservesValueOnDeletion: true") }
            arguments += rulesArgument(options.rules)
            if let derivation { arguments.append("derivation: \(derivation)") }
        }
        return arguments.joined(separator: ", ")
    }

    /// Returns the arguments of a relationship whose destination the source shows.
    private func arguments(_ destination: String, _ cardinality: String) -> String {
        guard case .relationship(let options) = marker else { return "" }
        var arguments = ["name: \"\(name)\"", "destination: \"\(destination)\""]
        if let inverse = options.inverse { arguments.append("inverse: \"\(inverse)\"") }
        arguments.append("cardinality: \(cardinality)")
        if let deleteRule = options.deleteRule { arguments.append("deleteRule: \(deleteRule)") }
        if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
        if options.refusesInverse { arguments.append("inference: .refused") }
        if options.isOrdered { arguments.append("isOrdered: true") }
        arguments += rulesArgument(options.rules)
        return arguments.joined(separator: ", ")
    }

    private func rulesArgument(_ rules: [String]) -> [String] {
        rules.isEmpty ? [] : ["rules: [\(rules.joined(separator: ", "))]"]
    }

    /// The macro that writes the property's accessors, with its numbers as arguments.
    ///
    /// - Parameter mayBeInherited: Whether the class may have a superclass that is a model. Then the anchor knows the numbers.
    func accessorMacro(_ spelling: Spelling, mayBeInherited: Bool = false) -> AttributeSyntax? {
        if isTransient { return nil }
        let column = mayBeInherited ? self.column.map { "\(anchorName).column(\($0))" } : self.column
        let relationship = mayBeInherited ? self.relationship.map { "\(anchorName).relationship(\($0))" } : self.relationship
        func number(_ text: String?) -> String { text.map { Int($0) == nil ? "\"\($0)\"" : $0 } ?? "0" }
        switch isDescribedByType(spelling) ? .byType : kind.access {
        case .plain where derivation != nil: return "@PersistedDerived(\(raw: number(column)))"
        case .plain: return "@\(raw: spelling.macros)PersistedAttribute(\(raw: number(column)))"
        case .toOne: return "@\(raw: spelling.macros)PersistedToOne(\(raw: number(relationship)), column: \(raw: number(column)))"
        case .toMany: return "@\(raw: spelling.macros)PersistedToMany(\(raw: number(relationship)))"
        case .byType:
            // A relationship without a column gets a number that no column has: it is not used.
            let column = column ?? "127"
            guard let relationship else { return "@\(raw: spelling.macros)PersistedProperty(\"\(raw: column)\")" }
            return "@\(raw: spelling.macros)PersistedProperty(\"\(raw: column)\", \"\(raw: relationship)\")"
        }
    }
}
