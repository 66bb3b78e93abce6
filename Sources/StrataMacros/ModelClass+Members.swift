import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Model` adds.
extension ModelClass {
    /// The text before the name of a type.
    private var types: String { spelling.types }

    var members: [DeclSyntax] {
        if isRefused { return stubs + (hasInitializer || superclass != nil ? [] : [memberwiseInitializer]) }
        var members: [DeclSyntax] = hasOverridableMembers ? linkedAnchor : [anchor]
        if superclass == nil { members.append(managedObject) }
        if hasOverridableMembers {
            members += [
                typeProperty("entityDescription", "\(types)EntityDescription", stored: "describedEntity"), description,
                typeProperty("entityName", "String", stored: literal(name)),
            ]
        } else {
            members += [description, "\(raw: access)static var entityName: String { \(raw: literal(name)) }"]
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
        let access = (isIsolated ? "nonisolated " : "") + access
        return [
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

    /// The description of the entity. Properties with overloaded descriptions are added one by one, because the compiler would take
    /// long to choose the overloads of many properties in one expression.
    private var description: DeclSyntax {
        if let refusal { return "\(raw: described) = { preconditionFailure(\(raw: literal(refusal))) }()" }
        guard persisted.contains(where: { $0.kind.access != .plain }) else {
            return """
                \(raw: described) = \(raw: types)EntityDescription(
                    name: \(raw: literal(name)),
                    properties: [
                        \(raw: persisted.map { $0.description(in: sourceName, spelling) + "," }.joined(separator: "\n        "))
                    ]\(raw: indexArgument)\(raw: formerNameArgument)\(raw: inheritanceArguments))
                """
        }
        let lines = persisted.map { "description.properties.append(\($0.description(in: sourceName, spelling)))" } + columnCheck
        return """
            \(raw: described) = {
                var description = \(raw: types)EntityDescription(
                    name: \(raw: literal(name)), properties: []\(raw: indexArgument)\(raw: formerNameArgument)\(raw: inheritanceArguments))
                \(raw: lines.joined(separator: "\n    "))
                return description
            }()
            """
    }

    /// The message of a program that stops because of an option that it declares itself, and that the macro would ignore.
    private var refusal: String? {
        guard let property = persisted.first(where: { $0.unknownOption != nil }), let option = property.unknownOption else {
            return nil
        }
        return
            "cannot describe \(name).\(property.name): @Model does not know the option .\(option). Write one that Strata declares."
    }

    /// A statement that stops the program if a property whose column is counted from the source has none, because its type is an alias
    /// of an array of models.
    private var columnCheck: [String] {
        let counted = persisted.filter {
            $0.kind.columns == .one && $0.kind.relationships != .zero && $0.hasAccessorsByType(spelling)
        }
        guard !counted.isEmpty else { return [] }
        let names = counted.map { literal($0.name) }.joined(separator: ", ")
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
        let entries = persisted.map { "\\\(sourceName).\($0.keyPathName): \(literal($0.name))," }
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
            @inline(never) \(raw: modifiers)init(wrapping: Void) {
                \(raw: misuses.isEmpty ? (assignments + up).joined(separator: "\n    ") : "fatalError()")
            }
            """
    }

    /// The initializer that Swift would write for a struct. It is private if a parameter is a private property.
    private var memberwiseInitializer: DeclSyntax {
        let assigned = persisted.filter(\.isParameter)
        let parameters = assigned.compactMap { property -> String? in
            guard let type = property.parameterType else { return nil }
            let value = property.initialValue?.description ?? property.defaultArgument
            let inner = property.variableName == property.sourceName ? "" : " \(property.variableName)"
            return "\(property.sourceName)\(inner): \(type)\(value.map { " = \($0)" } ?? "")"
        }
        let assignments = assigned.map { "self.\($0.sourceName) = \($0.variableName)" }
        let limits = Set(assigned.compactMap(\.accessLimit))
        let limit = limits.contains("private") ? "private " : limits.contains("fileprivate") ? "fileprivate " : ""
        return """
            @inline(never) \(raw: limit)init(\(raw: parameters.joined(separator: ", "))) {
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
        let passed = arguments([literal(name), "of: \\\(model).\(keyPathName)"])
        if hasAccessorsByType(spelling) {
            return "\(spelling.types)PropertyDescription.\(describingFunction(spelling))(\(passed))"
        }
        if kind.access == .plain { return ".attribute(\(spelling.types)AttributeDescription(\(passed)))" }
        return ".relationship(\(spelling.types)RelationshipDescription(\(passed)))"
    }

    /// The function that describes the property by its type.
    private func describingFunction(_ spelling: Spelling) -> String {
        guard case .relationship = marker else { return "property" }
        return spelling == .strata ? "related" : "_relationship"
    }

    /// Whether the compiler chooses the accessors by the property's type.
    ///
    /// In models for SwiftData, it does for each relationship: its type is often an alias in a versioned schema.
    fileprivate func hasAccessorsByType(_ spelling: Spelling) -> Bool {
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
            if let inverse = options.inverse { arguments.append("inverse: \(literal(inverse))") }
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
        switch hasAccessorsByType(spelling) ? .byType : kind.access {
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
