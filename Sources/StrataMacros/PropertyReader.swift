import SwiftDiagnostics
import SwiftSyntax

/// A reader of one stored property of a model class, which also reports its errors.
struct PropertyReader {
    private let variable: VariableDeclSyntax
    private(set) var misuses: [Diagnostic] = []

    /// The names of members that every model has.
    private static let reservedNames: Set<String> = [
        "id", "version", "hashValue", "managedObject", "managedObjectContext", "modelAnchor", "isDeleted", "hasChanges",
    ]
    /// Attributes that are not property wrappers.
    private static let knownAttributes: Set<String> = [
        "Attribute", "Relationship", "Transient", "available", "objc", "nonobjc", "usableFromInline", "inlinable", "MainActor",
        "PersistedAttribute", "PersistedToOne", "PersistedToMany",
    ]

    init(_ variable: VariableDeclSyntax) { self.variable = variable }

    /// Returns the property, or nil if it cannot be stored.
    mutating func read() -> ModelProperty? {
        guard let binding = variable.bindings.first else { return nil }
        guard variable.bindings.count == 1 else { return misuse(.severalInOne, variable.bindings) }
        guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else { return misuse(.pattern, binding.pattern) }
        var property = ModelProperty(
            name: pattern.identifier.plainName, sourceName: pattern.identifier.text, kind: .transient,
            type: binding.typeAnnotation?.type.trimmed, initialValue: binding.initializer?.value.trimmed)
        if let transient = variable.attribute(named: "Transient") { return readTransient(property, transient) }
        guard checkStorage(binding) else { return nil }
        if Self.reservedNames.contains(property.name) { return misuse(.reservedName, pattern) }
        guard let kind = readKind(property) else { return nil }
        property.kind = kind
        return property
    }

    private mutating func misuse(_ misuse: ModelDiagnostic, _ node: some SyntaxProtocol, _ fixIt: FixIt? = nil) -> ModelProperty?
    {
        misuses.append(misuse.at(node, fixIts: fixIt.map { [$0] } ?? []))
        return nil
    }

    private mutating func readTransient(_ property: ModelProperty, _ marker: AttributeSyntax) -> ModelProperty? {
        if variable.attribute(named: "Attribute") ?? variable.attribute(named: "Relationship") != nil {
            return misuse(.transientMixed, marker)
        }
        let isLazy = variable.modifiers.contains { $0.name.text == "lazy" }
        let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
        if property.initialValue == nil, !isLazy, isConstant || !property.isImplicitlyNil {
            return misuse(.transientWithoutValue, variable.bindings)
        }
        return property
    }

    /// Reports `let`, `lazy`, `weak`, observers and wrappers, which cannot be stored.
    private mutating func checkStorage(_ binding: PatternBindingSyntax) -> Bool {
        let before = misuses.count
        if variable.bindingSpecifier.tokenKind == .keyword(.let) {
            let fixed = variable.bindingSpecifier.with(\.tokenKind, .keyword(.var))
            _ = misuse(
                .constant, variable.bindingSpecifier,
                Remedy.replace(variable.bindingSpecifier, with: fixed, "replace 'let' with 'var'"))
        }
        for modifier in variable.modifiers {
            switch modifier.name.text {
            case "lazy": _ = misuse(.lazy, modifier)
            case "weak", "unowned": _ = misuse(.reference, modifier)
            default: break
            }
        }
        if let block = binding.accessorBlock { _ = misuse(.observers, block) }
        for element in variable.attributes {
            guard let attribute = element.as(AttributeSyntax.self) else { continue }
            if !Self.knownAttributes.contains(attribute.attributeName.lastName) { _ = misuse(.wrapped, attribute) }
        }
        return misuses.count == before
    }

    private mutating func readKind(_ property: ModelProperty) -> ModelProperty.Kind? {
        let marker = variable.attribute(named: "Attribute")
        guard let relationship = variable.attribute(named: "Relationship") else {
            return readOptions(property.name, marker).map(ModelProperty.Kind.attribute)
        }
        if let marker {
            let rest = variable.attributes.filter { $0.as(AttributeSyntax.self)?.id != marker.id }
                .with(\.leadingTrivia, variable.attributes.leadingTrivia)
            _ = misuse(
                .attributeOnRelationship, marker, Remedy.replace(variable.attributes, with: rest, "remove '@Attribute'"))
            return nil
        }
        guard let type = property.type else {
            _ = misuse(.relationshipUntyped, variable.bindings)
            return nil
        }
        if let destination = type.wrappedByOptional, destination.wrappedByArray == nil {
            return readRelationship(property.name, relationship, destination).map(ModelProperty.Kind.toOne)
        }
        if let destination = type.wrappedByArray, destination.wrappedByOptional == nil {
            return readRelationship(property.name, relationship, destination).map(ModelProperty.Kind.toMany)
        }
        let isPlainName =
            type.as(IdentifierTypeSyntax.self).map { $0.genericArgumentClause == nil } ?? type.is(MemberTypeSyntax.self)
        if isPlainName {
            let optional = OptionalTypeSyntax(wrappedType: type.trimmed)
            let old = variable.bindings.first?.typeAnnotation?.type ?? type
            _ = misuse(
                .relationshipNotOptional, old,
                Remedy.replace(
                    old, with: optional.with(\.trailingTrivia, old.trailingTrivia), "make it optional"))
        } else {
            _ = misuse(.relationshipNotSupported, variable.bindings.first?.typeAnnotation?.type ?? type)
        }
        return nil
    }

    private mutating func readOptions(_ name: String, _ marker: AttributeSyntax?) -> ModelProperty.AttributeOptions? {
        var options = ModelProperty.AttributeOptions()
        guard case .argumentList(let arguments) = marker?.arguments else { return options }
        for argument in arguments {
            if argument.label?.text == "renamedFrom" {
                guard let former = argument.formerName(of: name) else {
                    _ = misuse(.formerName, argument.expression)
                    return nil
                }
                options.renamedFrom = former
                continue
            }
            switch argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text {
            case "unique": options.index = "unique"
            case "preserveValueOnDeletion": options.preservesValueOnDeletion = true
            case "indexed": options.index = options.index ?? "indexed"
            default:
                _ = misuse(.unknownOption, argument)
                return nil
            }
        }
        return options
    }

    private mutating func readRelationship(
        _ name: String, _ marker: AttributeSyntax, _ destination: TypeSyntax
    ) -> ModelProperty.RelationshipOptions? {
        var options = ModelProperty.RelationshipOptions(destination: destination.lastName)
        guard case .argumentList(let arguments) = marker.arguments else { return options }
        for argument in arguments {
            if argument.label?.text == "deleteRule" { options.deleteRule = argument.expression.trimmedDescription }
            if argument.label?.text == "renamedFrom" {
                options.renamedFrom = argument.formerName(of: name)
                guard options.renamedFrom != nil else {
                    _ = misuse(.formerName, argument.expression)
                    return nil
                }
            }
            guard argument.label?.text == "inverse", !argument.expression.is(NilLiteralExprSyntax.self) else { continue }
            guard let keyPath = argument.expression.as(KeyPathExprSyntax.self), keyPath.components.count == 1,
                let property = keyPath.components.first?.component.as(KeyPathPropertyComponentSyntax.self),
                let root = keyPath.root, root.lastName == options.destination
            else {
                _ = misuse(.wrongInverse, argument.expression)
                return nil
            }
            options.inverse = property.declName.baseName.plainName
        }
        return options
    }
}
