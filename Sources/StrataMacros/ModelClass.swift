import SwiftDiagnostics
import SwiftSyntax

/// A class with `@Model`, read from its source text: its stored properties with their numbers, and its errors.
struct ModelClass {
    /// The product whose names the members contain.
    let spelling: Spelling
    let name: String
    /// The name in the source, with backticks if it needs them.
    let sourceName: String
    /// The access level of members that a protocol requires: "public ", "package " or empty.
    let access: String
    private(set) var properties: [ModelProperty] = []
    /// The names of properties that cannot be stored. Their mistakes are in ``misuses``.
    private(set) var misusedNames: Set<String> = []
    /// The nested type with the numbers of properties that are no literals.
    private(set) var numbers: String?
    /// "required " unless the class is final.
    let required: String
    /// Whether the class has a mistake that prevents members and accessors.
    let isRefused: Bool
    /// Whether the class is isolated to the main actor.
    let isIsolated: Bool
    var indexes: [ModelIndex] = []
    /// The former name as a literal, with its quotes.
    private(set) var renamedFrom: String?
    var misuses: [Diagnostic] = []
    /// Whether the class has a designated initializer, so that the macro adds none.
    let hasInitializer: Bool
    /// The superclass, which is a model too, as the source names it; nil if the class has none.
    let superclass: String?
    /// Whether the class may have a superclass that is a model. Only the macro that adds members knows it.
    let mayBeSubclass: Bool
    let isFinal: Bool
    /// The access level of members that subclasses override.
    let overridableAccess: String
    private(set) var isAbstract = false

    /// - Parameters:
    ///   - context: The declarations around the class, the innermost first.
    ///   - refusesConstants: Whether the compiler refuses accessors of a constant.
    init(
        _ declaration: ClassDeclSyntax, _ spelling: Spelling = .strata, isSubclass: Bool = false, in context: [Syntax] = [],
        refusingConstants refusesConstants: Bool = false
    ) {
        superclass = isSubclass ? declaration.firstInherited : nil
        mayBeSubclass = declaration.mayBeSubclass
        self.spelling = spelling
        name = declaration.name.plainName
        sourceName = declaration.name.text
        let modifiers = declaration.modifiers.map(\.name.text)
        access = declaration.accessOfMembers(in: context)
        hasInitializer = declaration.memberBlock.members.contains(where: \.declaresInitializer)
        isFinal = modifiers.contains("final")
        overridableAccess = modifiers.contains("open") ? "open " : access
        required = isFinal && !isSubclass ? "" : "required "
        let isInGeneric = context.contains {
            $0.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
        }
        let isolation = declaration.attributes.attribute(named: "MainActor")
        isIsolated = isolation != nil
        isRefused = declaration.genericParameterClause != nil || isInGeneric || isIsolated
        if let parameters = declaration.genericParameterClause {
            misuses.append(ModelDiagnostic.generic.at(parameters))
        } else if isInGeneric {
            misuses.append(ModelDiagnostic.generic.at(declaration.name))
        }
        if let isolation {
            misuses.append(ModelDiagnostic.isolated.at(isolation, fixIts: [Remedy.remove(isolation, of: declaration)]))
        }
        readFormerName(declaration)
        for member in declaration.memberBlock.members {
            guard let variable = member.decl.as(VariableDeclSyntax.self) else { continue }
            var reader = PropertyReader(variable, spelling, in: name, refusingConstants: refusesConstants)
            defer { misuses += reader.misuses }
            guard variable.isStoredInInstances else {
                reader.checkNotStored()
                continue
            }
            let property = reader.read()
            if let property { properties.append(property) } else { misusedNames.formUnion(variable.names) }
        }
        for member in declaration.memberBlock.members { checkConditions(member) }
        numbers = Self.number(&properties, of: sourceName, spelling)
        let computed = declaration.memberBlock.members.compactMap { $0.decl.as(VariableDeclSyntax.self) }
            .filter { !$0.isStoredInInstances }.flatMap(\.names)
        for member in declaration.memberBlock.members { readIndexes(member, computed: Set(computed)) }
        checkFormerNames(declaration)
        checkInitializer(declaration)
    }

    var persisted: [ModelProperty] { properties.filter { !$0.isTransient } }

    func property(named name: String) -> ModelProperty? { properties.first { $0.name == name } }

    private mutating func readFormerName(_ declaration: ClassDeclSyntax) {
        guard let marker = declaration.attributes.attribute(named: "Model"), case .argumentList(let arguments) = marker.arguments
        else { return }
        isAbstract = arguments.contains { $0.label?.text == "isAbstract" && $0.expression.trimmedDescription == "true" }
        guard let argument = arguments.first(where: { $0.label?.text == "renamedFrom" }) else { return }
        renamedFrom = argument.formerName(of: name)
        guard renamedFrom == nil else { return }
        let fixIts = Remedy.removeFormerName(argument, of: marker, currentName: name)
        misuses.append(ModelDiagnostic.formerName.at(argument.expression, fixIts: fixIts))
    }

    /// Checks that no two properties have the same former name.
    private mutating func checkFormerNames(_ declaration: ClassDeclSyntax) {
        var known: Set<String> = []
        for property in persisted {
            guard let former = property.renamedFrom, !known.insert(former).inserted else { continue }
            let member = declaration.memberBlock.members.first { member in
                let pattern = member.decl.as(VariableDeclSyntax.self)?.bindings.first?.pattern
                return pattern?.as(IdentifierPatternSyntax.self)?.identifier.plainName == property.name
            }
            misuses.append(ModelDiagnostic.sameFormerName.at(member.map { Syntax($0.decl) } ?? Syntax(declaration)))
        }
    }

    /// Checks that no stored property or index is inside `#if`. The macro does not know which of its clauses the compiler uses.
    private mutating func checkConditions(_ member: MemberBlockItemSyntax) {
        guard let conditions = member.decl.as(IfConfigDeclSyntax.self) else { return }
        for case .decls(let members)? in conditions.clauses.map(\.elements) {
            for member in members {
                checkConditions(member)
                if let macro = member.decl.as(MacroExpansionDeclSyntax.self), ["Index", "Unique"].contains(macro.macroName.text) {
                    misuses.append(ModelDiagnostic.conditionalMarker.at(macro))
                }
                guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isStoredInInstances,
                    variable.attribute(named: "Transient") == nil
                else { continue }
                misuses.append(ModelDiagnostic.conditional.at(variable.bindings))
                misusedNames.formUnion(variable.names)
            }
        }
    }

    /// Checks that an initializer can be generated if the class has none. It needs the types of its parameters.
    private mutating func checkInitializer(_ declaration: ClassDeclSyntax) {
        guard !hasInitializer else { return }
        guard superclass == nil else {
            misuses.append(ModelDiagnostic.subclassInitializer.at(declaration.name))
            return
        }
        for member in declaration.memberBlock.members {
            guard let binding = member.decl.as(VariableDeclSyntax.self)?.bindings.first,
                let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainName,
                let property = property(named: name), !property.isTransient, property.isParameter,
                property.parameterType == nil
            else { continue }
            misuses.append(ModelDiagnostic.untyped.at(binding.pattern, fixIts: Remedy.addType(to: binding)))
        }
    }
}

extension MemberBlockItemSyntax {
    /// Whether the member is a designated initializer, or a condition each of whose clauses has one.
    fileprivate var declaresInitializer: Bool {
        if let found = decl.as(InitializerDeclSyntax.self) { return !found.modifiers.contains { $0.name.text == "convenience" } }
        guard let conditions = decl.as(IfConfigDeclSyntax.self), conditions.clauses.last?.poundKeyword.tokenKind == .poundElse
        else { return false }
        return conditions.clauses.allSatisfy { clause in
            guard case .decls(let members)? = clause.elements else { return false }
            return members.contains(where: \.declaresInitializer)
        }
    }
}

extension DeclGroupSyntax {
    /// The access level of members that a protocol requires: "public ", "package " or empty. A declaration without a level has that of the
    /// extension around it.
    ///
    /// - Parameter context: The declarations around this one, the innermost first.
    func accessOfMembers(in context: [Syntax]) -> String {
        let levels: Set = ["open", "public", "package", "internal", "fileprivate", "private"]
        var modifiers = modifiers.map(\.name.text)
        if levels.isDisjoint(with: modifiers), let around = context.first?.as(ExtensionDeclSyntax.self) {
            modifiers = around.modifiers.map(\.name.text)
        }
        if modifiers.contains("public") || modifiers.contains("open") { return "public " }
        return modifiers.contains("package") ? "package " : ""
    }
}

extension VariableDeclSyntax {
    /// The names that the declaration gives, without those inside patterns.
    fileprivate var names: [String] {
        bindings.compactMap { $0.pattern.as(IdentifierPatternSyntax.self)?.identifier.plainName }
    }

    /// Whether the property is neither static nor computed.
    var isStoredInInstances: Bool {
        if modifiers.contains(where: { $0.name.text == "static" || $0.name.text == "class" }) { return false }
        guard bindings.count == 1, let block = bindings.first?.accessorBlock else { return true }
        switch block.accessors {
        case .getter: return false
        case .accessors(let accessors):
            return accessors.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
        }
    }

    /// Whether the declaration begins with `let`.
    var isConstant: Bool { bindingSpecifier.tokenKind == .keyword(.let) }

    /// Returns the attribute with this name, with or without a module name.
    func attribute(named name: String) -> AttributeSyntax? { attributes.attribute(named: name) }
}

extension AttributeListSyntax {
    fileprivate func attribute(named name: String) -> AttributeSyntax? {
        lazy.compactMap { $0.as(AttributeSyntax.self) }.first { $0.attributeName.trimmedTypeName == name }
    }
}

extension TypeSyntax {
    fileprivate var trimmedTypeName: String { lastName }
}
