import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Model` adds.
extension ModelClass {
    var members: [DeclSyntax] {
        var members: [DeclSyntax] = [
            "@exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: \(raw: sourceName).detachedEntity)",
            "\(raw: access)var managedObject: ManagedObject { modelAnchor.object }",
            description,
            "private static let detachedEntity = DetachedEntity(entityDescription)",
            columns,
            wrappingInitializer,
            placeholderInitializer,
        ]
        if !hasInitializer { members.append(memberwiseInitializer) }
        return members
    }

    private var description: DeclSyntax {
        """
        \(raw: access)static let entityDescription = EntityDescription(
            name: "\(raw: name)",
            properties: [
                \(raw: persisted.map { $0.description(in: sourceName) + "," }.joined(separator: "\n        "))
            ]\(raw: indexArgument)\(raw: renamedFrom.map { ",\n    renamedFrom: \($0)" } ?? ""))
        """
    }

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
        \(raw: access)convenience init(managedObject: ManagedObject) {
            ModelAnchor.wrapNext(managedObject)
            self.init(wrapping: ())
        }
        """
    }

    private var placeholderInitializer: DeclSyntax {
        let assignments = persisted.filter(\.needsValue).map { "\(placeholderName(of: $0.name)) = ModelPlaceholder()" }
        return """
            private init(wrapping: Void) {
                \(raw: assignments.joined(separator: "\n    "))
            }
            """
    }

    /// The initializer that Swift would write for a struct.
    private var memberwiseInitializer: DeclSyntax {
        let parameters = persisted.map { property in
            let value = property.initialValue?.description ?? property.defaultArgument
            return "\(property.sourceName): \(property.typeText ?? "")\(value.map { " = \($0)" } ?? "")"
        }
        let assignments = persisted.map { "self.\($0.sourceName) = \($0.sourceName)" }
        return """
            init(\(raw: parameters.joined(separator: ", "))) {
                \(raw: assignments.joined(separator: "\n    "))
            }
            """
    }
}

extension ModelProperty {
    fileprivate var defaultArgument: String? {
        if case .toMany = kind { return "[]" }
        return isImplicitlyNil ? "nil" : nil
    }

    /// Returns the property as an expression of type `PropertyDescription`.
    fileprivate func description(in model: String) -> String {
        switch kind {
        case .attribute(let options):
            var arguments = ["\"\(name)\"", "of: \\\(model).\(sourceName)"]
            if let index = options.index { arguments.append("index: .\(index)") }
            if hasConstantInitialValue, let initialValue { arguments.append("default: \(initialValue)") }
            if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
            if options.preservesValueOnDeletion { arguments.append("preservesValueOnDeletion: true") }
            return ".attribute(AttributeDescription(\(arguments.joined(separator: ", "))))"
        case .toOne(let options): return Self.description(name, options, ".toOne")
        case .toMany(let options): return Self.description(name, options, ".toMany")
        case .transient: return ""
        }
    }

    private static func description(_ name: String, _ options: RelationshipOptions, _ cardinality: String) -> String {
        var arguments = ["name: \"\(name)\"", "destination: \"\(options.destination)\""]
        if let inverse = options.inverse { arguments.append("inverse: \"\(inverse)\"") }
        arguments.append("cardinality: \(cardinality)")
        if let deleteRule = options.deleteRule { arguments.append("deleteRule: \(deleteRule)") }
        if let renamedFrom = options.renamedFrom { arguments.append("renamedFrom: \(renamedFrom)") }
        return ".relationship(RelationshipDescription(\(arguments.joined(separator: ", "))))"
    }

    /// The macro that writes the property's accessors, with its numbers as arguments.
    var accessorMacro: AttributeSyntax? {
        switch (kind, column, relationship) {
        case (.attribute, let column?, _): return "@PersistedAttribute(\(raw: column))"
        case (.toOne, let column?, let relationship?):
            return "@PersistedToOne(\(raw: relationship), column: \(raw: column))"
        case (.toMany, _, let relationship?): return "@PersistedToMany(\(raw: relationship))"
        default: return nil
        }
    }
}
