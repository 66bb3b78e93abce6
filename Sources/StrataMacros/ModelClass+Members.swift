import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Model` adds.
extension ModelClass {
    var members: [DeclSyntax] {
        if isGeneric { return stubs }
        var members: [DeclSyntax] = [
            "@exclusivity(unchecked) private var \(raw: anchorName) = ModelAnchor(for: \(raw: sourceName).detachedEntity)",
            managedObject,
            description,
            "\(raw: access)static var entityName: String { \"\(raw: name)\" }",
            "private static let detachedEntity = DetachedEntity(entityDescription)",
            columns,
            wrappingInitializer,
            placeholderInitializer,
        ]
        if let numbers { members.append("\(raw: numbers)") }
        if !hasInitializer { members.append(memberwiseInitializer) }
        return members
    }

    /// Members that only satisfy the compiler, for a class whose mistake prevents others.
    private var stubs: [DeclSyntax] {
        [
            "\(raw: access)var managedObject: ManagedObject { fatalError() }",
            "\(raw: access)static var entityDescription: EntityDescription { fatalError() }",
            "\(raw: access)static var entityName: String { fatalError() }",
            "\(raw: access)static var columnsByKeyPath: [AnyKeyPath: String] { fatalError() }",
            "\(raw: access)\(raw: required)init(managedObject: ManagedObject) { fatalError() }",
        ]
    }

    /// The managed object. If the class has a property of this name, which is diagnosed, another member satisfies the protocol.
    private var managedObject: DeclSyntax {
        let name = "managedObject"
        guard misusedNames.contains(name) else {
            return "\(raw: access)var managedObject: ManagedObject { \(raw: anchorName).object }"
        }
        return """
            @_implements(PersistentModel, managedObject) \(raw: access)var __$managedObject: ManagedObject { \
            \(raw: anchorName).object }
            """
    }

    /// The description of the entity. Its properties are added one by one, because the compiler would take long to choose the
    /// overloads of many properties in one expression.
    private var description: DeclSyntax {
        guard persisted.contains(where: { $0.kind.access == .byType }) else {
            return """
                \(raw: access)static let entityDescription: EntityDescription = EntityDescription(
                    name: "\(raw: name)",
                    properties: [
                        \(raw: persisted.map { $0.description(in: sourceName) + "," }.joined(separator: "\n        "))
                    ]\(raw: indexArgument)\(raw: formerNameArgument))
                """
        }
        let lines = persisted.map { "description.properties.append(\($0.description(in: sourceName)))" } + columnCheck
        return """
            \(raw: access)static let entityDescription: EntityDescription = {
                var description = EntityDescription(
                    name: "\(raw: name)", properties: []\(raw: indexArgument)\(raw: formerNameArgument))
                \(raw: lines.joined(separator: "\n    "))
                return description
            }()
            """
    }

    /// A statement that stops the program if a property whose column is counted from the source has none, because its type is an alias
    /// of an array of models.
    private var columnCheck: [String] {
        let counted = persisted.filter { $0.marker == .none && $0.kind.access == .byType && $0.kind.relationships == .byType }
            .filter { $0.kind.columns == .one }
        guard !counted.isEmpty else { return [] }
        let names = counted.map { "\"\($0.name)\"" }.joined(separator: ", ")
        return ["description.requireColumns(of: [\(names)])"]
    }

    private var formerNameArgument: String { renamedFrom.map { ",\n    renamedFrom: \($0)" } ?? "" }

    private var indexArgument: String {
        guard !indexes.isEmpty else { return "" }
        return ",\n    indexes: [\n        " + indexes.map { $0.description + "," }.joined(separator: "\n        ") + "\n    ]"
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
        \(raw: access)\(raw: required)convenience init(managedObject: ManagedObject) {
            ModelAnchor.wrapNext(managedObject)
            self.init(wrapping: ())
        }
        """
    }

    private var placeholderInitializer: DeclSyntax {
        let assignments = persisted.filter(\.needsValue).map { "\(placeholderName(of: $0.name)) = ModelPlaceholder()" }
        return """
            private init(wrapping: Void) {
                \(raw: misuses.isEmpty ? assignments.joined(separator: "\n    ") : "fatalError()")
            }
            """
    }

    /// The initializer that Swift would write for a struct.
    private var memberwiseInitializer: DeclSyntax {
        let parameters = persisted.filter { $0.typeText != nil }.map { property in
            let value = property.initialValue?.description ?? property.defaultArgument
            let type = (property.typeText ?? "").replacing("!", with: "?", maxReplacements: 1)
            return "\(property.sourceName): \(type)\(value.map { " = \($0)" } ?? "")"
        }
        let assignments = persisted.map { "self.\($0.sourceName) = \($0.sourceName)" }
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
    fileprivate func description(in model: String) -> String {
        let path = "\\\(model).\(sourceName)"
        switch kind.access {
        case .plain: return ".attribute(AttributeDescription(\(arguments(["\"\(name)\"", "of: \(path)"]))))"
        case .toOne(let destination): return ".relationship(RelationshipDescription(\(arguments(destination, ".toOne"))))"
        case .toMany(let destination): return ".relationship(RelationshipDescription(\(arguments(destination, ".toMany"))))"
        case .byType:
            let function = if case .relationship = marker { "related" } else { "property" }
            return "PropertyDescription.\(function)(\(arguments(["\"\(name)\"", "of: \(path)"])))"
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
        case .none, .attribute, .transient:
            var options = AttributeOptions()
            if case .attribute(let own) = marker { options = own }
            if let index = options.index { arguments.append("index: .\(index)") }
            if hasConstantInitialValue, let initialValue { arguments.append("default: \(initialValue)") }
            if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
            if options.preservesValueOnDeletion { arguments.append("preservesValueOnDeletion: true") }
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
        return arguments.joined(separator: ", ")
    }

    /// The macro that writes the property's accessors, with its numbers as arguments.
    var accessorMacro: AttributeSyntax? {
        if isTransient { return nil }
        func number(_ text: String?) -> String { text.map { Int($0) == nil ? "\"\($0)\"" : $0 } ?? "0" }
        switch kind.access {
        case .plain: return "@PersistedAttribute(\(raw: number(column)))"
        case .toOne: return "@PersistedToOne(\(raw: number(relationship)), column: \(raw: number(column)))"
        case .toMany: return "@PersistedToMany(\(raw: number(relationship)))"
        case .byType:
            // A relationship without a column gets any number: it is not used.
            let column = column ?? "0"
            guard let relationship else { return "@PersistedProperty(\"\(raw: column)\")" }
            return "@PersistedProperty(\"\(raw: column)\", \"\(raw: relationship)\")"
        }
    }
}
