import SwiftDiagnostics
import SwiftSyntax

/// A reader of one stored property of a model class, which also reports its errors.
struct PropertyReader {
    private let variable: VariableDeclSyntax
    private let spelling: Spelling
    /// The class of the property; nil if only the property is known.
    private let className: String?
    /// Whether the compiler refuses accessors of a constant.
    private let refusesConstants: Bool
    private(set) var misuses: [Diagnostic] = []

    /// Attributes that are not property wrappers.
    private static let knownAttributes: Set<String> = [
        "Attribute", "Relationship", "Transient", "Derived", "available", "objc", "nonobjc", "usableFromInline", "inlinable",
        "MainActor", "_spi", "preconcurrency", "ObservationIgnored",
        "PersistedAttribute", "PersistedToOne", "PersistedToMany", "PersistedProperty", "PersistedDerived",
        "_PersistedAttribute", "_PersistedToOne", "_PersistedToMany", "_PersistedProperty",
    ]

    init(
        _ variable: VariableDeclSyntax, _ spelling: Spelling, in className: String? = nil, refusingConstants refuses: Bool = false
    ) {
        self.variable = variable
        self.className = className
        refusesConstants = refuses
        self.spelling = spelling
    }

    /// The attributes that change how a property is stored.
    private static let markers = ["Attribute", "Relationship", "Derived"]

    /// Reports an attribute of a computed or static property, which would change nothing.
    mutating func checkNotStored() {
        for name in Self.markers {
            guard let marker = variable.attribute(named: name) else { continue }
            _ = misuse(.markerOfOther, at: marker, fixIts: [remove(marker)])
            return
        }
    }

    /// Returns the property, or nil if it cannot be stored.
    mutating func read() -> ModelProperty? {
        guard let binding = variable.bindings.first else { return nil }
        guard variable.bindings.count == 1 else {
            return misuse(.severalInOne, at: variable.bindings, fixIts: Remedy.split(variable))
        }
        guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
            return misuse(.pattern, at: binding.pattern, fixIts: Remedy.split(pattern: variable))
        }
        let property = ModelProperty(
            name: pattern.identifier.plainName, sourceName: pattern.identifier.text, marker: .transient,
            type: binding.typeAnnotation?.type.trimmed, initialValue: binding.initializer?.value.trimmed)
        for name in Self.markers {
            let same = variable.attributes.compactMap { $0.as(AttributeSyntax.self) }.filter { $0.attributeName.lastName == name }
            if same.count > 1 { return misuse(.repeatedMarker, at: same[1]) }
        }
        if let transient = variable.attribute(named: "Transient") { return readTransient(property, transient) }
        guard checkStorage(binding) else { return nil }
        if property.name == "managedObject" { return misuse(.reservedName, at: pattern) }
        if let attribute = variable.attribute(named: "Attribute"), attribute.hasOption("ephemeral") {
            return readTransient(property, attribute)
        }
        guard let marker = readMarker(property) else { return nil }
        var made = ModelProperty(
            name: property.name, sourceName: property.sourceName, marker: marker, type: property.type,
            initialValue: property.initialValue)
        made.accessLimit = variable.accessLimit
        guard let derived = variable.attribute(named: "Derived") else { return made }
        do { made.derivation = try DerivationReader.derivation(derived, of: made, in: className) } catch {
            return misuse(error, at: derived, fixIts: derivationRemedies(error, of: made, binding))
        }
        return made
    }

    /// Returns the removal of what a derived attribute cannot have.
    private func derivationRemedies(
        _ mistake: ModelDiagnostic, of property: ModelProperty, _ binding: PatternBindingSyntax
    ) -> [FixIt] {
        switch mistake {
        case .derivedWithValue: return Remedy.removeValue(of: binding, type: property.parameterType)
        case .derivedOption:
            guard let marker = variable.attribute(named: "Attribute"), case .argumentList(let arguments) = marker.arguments else {
                return []
            }
            let refused = Array(arguments).filter { argument in
                let option = argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text
                return argument.label == nil && option != "indexed" && option != "preserveValueOnDeletion"
            }
            return Remedy.remove(refused, of: marker)
        default: return []
        }
    }

    private mutating func misuse(
        _ misuse: ModelDiagnostic, at node: some SyntaxProtocol, fixIts: [FixIt] = []
    ) -> ModelProperty? {
        misuses.append(misuse.at(node, fixIts: fixIts))
        return nil
    }

    private mutating func readTransient(_ property: ModelProperty, _ marker: AttributeSyntax) -> ModelProperty? {
        let attribute = variable.attribute(named: "Attribute").flatMap { $0 == marker ? nil : $0 }
        if let other = attribute ?? variable.attribute(named: "Relationship") {
            return misuse(.transientMixed, at: marker, fixIts: [remove(marker), remove(other)])
        }
        let isLazy = variable.modifiers.contains { $0.name.text == "lazy" }
        let isConstant = variable.isConstant
        if property.initialValue == nil, !isLazy, isConstant || !property.isImplicitlyNil {
            let fixIts = variable.bindings.first.map { Remedy.addValue(to: $0, isConstant: isConstant) } ?? []
            return misuse(.transientWithoutValue, at: variable.bindings, fixIts: fixIts)
        }
        return property
    }

    /// Reports `let` where it cannot have accessors, `lazy`, `weak`, observers and wrappers, which cannot be stored.
    private mutating func checkStorage(_ binding: PatternBindingSyntax) -> Bool {
        let before = misuses.count
        let remedy = [Remedy.markTransient(variable)]
        let isEphemeral = variable.attribute(named: "Attribute")?.hasOption("ephemeral") == true
        if refusesConstants, variable.isConstant, !isEphemeral {
            _ = misuse(.constant, at: variable.bindingSpecifier, fixIts: [Remedy.makeVariable(variable)])
        }
        for modifier in variable.modifiers {
            switch modifier.name.text {
            case "lazy": _ = misuse(.lazy, at: modifier, fixIts: remedy)
            case "weak", "unowned": _ = misuse(.reference, at: modifier, fixIts: remedy)
            default: break
            }
        }
        if let block = binding.accessorBlock { _ = misuse(.observers, at: block) }
        for element in variable.attributes {
            if let conditions = element.as(IfConfigDeclSyntax.self), conditions.hasMarker {
                _ = misuse(.conditionalMarker, at: conditions)
            }
            guard let attribute = element.as(AttributeSyntax.self) else { continue }
            if !Self.knownAttributes.contains(attribute.attributeName.lastName) {
                _ = misuse(.wrapped, at: attribute, fixIts: remedy)
            }
        }
        if misuses.count == before, !isEphemeral, let type = binding.typeAnnotation?.type, type.isFunction {
            // Without a value, the property could not be transient either.
            _ = misuse(.closure, at: type, fixIts: binding.initializer == nil ? [] : remedy)
        }
        return misuses.count == before
    }

    private mutating func readMarker(_ property: ModelProperty) -> ModelProperty.Marker? {
        let attribute = variable.attribute(named: "Attribute")
        guard let relationship = variable.attribute(named: "Relationship") else {
            guard let attribute else { return ModelProperty.Marker.none }
            return readOptions(property, attribute).map(ModelProperty.Marker.attribute)
        }
        if let attribute {
            _ = misuse(.attributeOnRelationship, at: attribute, fixIts: [remove(attribute)])
            return nil
        }
        if let type = property.type, type.isPlain || type.unwrapped.element?.isPlain == true || type.unwrapped.isDictionary {
            _ = misuse(.scalarRelationship, at: relationship, fixIts: [remove(relationship)])
            return nil
        }
        return readRelationship(property, relationship).map(ModelProperty.Marker.relationship)
    }

    private func remove(_ marker: AttributeSyntax) -> FixIt {
        let rest = variable.attributes.filter { $0.as(AttributeSyntax.self)?.id != marker.id }
        let name = "remove '@\(marker.attributeName.lastName)'"
        guard rest.isEmpty else {
            return Remedy.replace(variable.attributes, with: rest.with(\.leadingTrivia, variable.attributes.leadingTrivia), name)
        }
        let plain = variable.with(\.attributes, []).with(\.leadingTrivia, variable.leadingTrivia)
        return Remedy.replace(variable, with: plain, name)
    }

    private mutating func readOptions(_ property: ModelProperty, _ marker: AttributeSyntax) -> ModelProperty.AttributeOptions? {
        var options = ModelProperty.AttributeOptions()
        guard case .argumentList(let arguments) = marker.arguments else { return options }
        for argument in arguments {
            if argument.label?.text == spelling.formerName {
                guard readFormerName(of: property, argument, in: marker, into: &options.renamedFrom) else { return nil }
                continue
            }
            if argument.label != nil { continue }
            switch argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text {
            case "unique": options.index = "unique"
            case "preserveValueOnDeletion": options.preservesValueOnDeletion = true
            case "indexed": options.index = options.index ?? "indexed"
            case _ where spelling == .swiftData: break
            case _ where argument.expression.isUnknownOption: options.unknownOption = argument.expression.implicitMember
            default:
                do { options.rules.append(try RuleReader.rule(argument, of: property)) } catch {
                    _ = misuse(error, at: argument, fixIts: RuleReader.remedies(error, argument, in: marker, of: property))
                    return nil
                }
            }
        }
        return options
    }

    private mutating func readRelationship(
        _ property: ModelProperty, _ marker: AttributeSyntax
    ) -> ModelProperty.RelationshipOptions? {
        var options = ModelProperty.RelationshipOptions()
        guard case .argumentList(let arguments) = marker.arguments else { return options }
        let type = property.type?.unwrapped
        let destination = (type?.element ?? type)?.unwrapped.lastName
        for argument in arguments {
            do { try RuleReader.read(argument, of: property, spelling, into: &options) } catch {
                _ = misuse(error, at: argument, fixIts: RuleReader.remedies(error, argument, in: marker, of: property))
                return nil
            }
            if argument.label?.text == "deleteRule" { options.deleteRule = argument.expression.trimmedDescription }
            if argument.label?.text == spelling.formerName {
                guard readFormerName(of: property, argument, in: marker, into: &options.renamedFrom) else { return nil }
            }
            guard argument.label?.text == "inverse" else { continue }
            options.refusesInverse = argument.expression.is(NilLiteralExprSyntax.self)
            if options.refusesInverse { continue }
            guard let keyPath = argument.expression.as(KeyPathExprSyntax.self), keyPath.path.count == 1,
                let inverse = keyPath.path[0].propertyName, let type = keyPath.typeName,
                spelling == .swiftData || destination == nil || type == destination
            else {
                _ = misuse(.wrongInverse, at: argument.expression)
                return nil
            }
            options.inverse = inverse
        }
        return options
    }

    /// Reads a former name. Returns false for a misuse. SwiftData accepts the current name as a former name.
    private mutating func readFormerName(
        of property: ModelProperty, _ argument: LabeledExprSyntax, in marker: AttributeSyntax, into former: inout String?
    ) -> Bool {
        let name = property.name
        former = argument.formerName(of: name)
        if former != nil { return true }
        if spelling == .swiftData {
            if argument.expression.is(NilLiteralExprSyntax.self) { return true }
            if argument.expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue == name { return true }
        }
        let fixIts = Remedy.removeFormerName(argument, of: marker, currentName: name)
        _ = misuse(.formerName, at: argument.expression, fixIts: fixIts)
        return false
    }
}

extension TypeSyntax {
    /// Whether the type is that of a closure.
    fileprivate var isFunction: Bool {
        self.is(FunctionTypeSyntax.self) || self.as(AttributedTypeSyntax.self)?.baseType.is(FunctionTypeSyntax.self) == true
    }
}

extension VariableDeclSyntax {
    /// The modifier "private" or "fileprivate" of the whole property, which `private(set)` is not.
    fileprivate var accessLimit: String? {
        modifiers.first { ["private", "fileprivate"].contains($0.name.text) && $0.detail == nil }?.name.text
    }
}

extension AttributeSyntax {
    /// Whether one of the arguments is the option with this name.
    func hasOption(_ name: String) -> Bool {
        guard case .argumentList(let arguments) = arguments else { return false }
        return arguments.contains { $0.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text == name }
    }
}

extension IfConfigDeclSyntax {
    /// Whether a clause contains an attribute that `@Model` reads.
    fileprivate var hasMarker: Bool {
        clauses.contains { clause in
            guard case .attributes(let attributes)? = clause.elements else { return false }
            return attributes.contains { element in
                if let inner = element.as(IfConfigDeclSyntax.self) { return inner.hasMarker }
                let name = element.as(AttributeSyntax.self)?.attributeName.lastName ?? ""
                return ["Attribute", "Relationship", "Transient", "Derived"].contains(name)
            }
        }
    }
}
