import ObjectGraph
import StoreInterface
import StoreModel

/// The source of model classes for a model.
struct SwiftSource {
    private let model: Model
    private let names: ClassNames

    init(_ model: Model) {
        self.model = model
        names = ClassNames(model)
    }

    /// The source of all classes, with imports.
    /// - Throws: ``ToolError`` for a name that no Swift source can contain.
    func text() throws -> String {
        let needsFoundation = entities.contains { $0.attributes.contains { [.date, .data, .uuid].contains($0.type) } }
        let start = needsFoundation ? "import Foundation\nimport Strata\n" : "import Strata\n"
        return try start + entities.map { "\n" + (try text(of: $0)) }.joined()
    }

    /// The entities that have a class: each with those that inherit from it directly after it.
    var entities: [Entity] {
        model.entities.flatMap { entity in
            [model.entity(named: entity.name) ?? entity] + model.subentities.filter { $0.number == entity.number }
        }
    }

    /// The source of one class.
    func text(of entity: Entity) throws -> String {
        var lines = [try header(of: entity)]
        let inherited = entity.superentityName.flatMap(model.entity)
        let columns = entity.columns.enumerated(as: ColumnIndex.self).filter { number, _ in
            entity.hasProperty(inColumn: number) && inherited?.hasProperty(inColumn: number) != true
        }
        lines += try columns.map { number, column in "    " + (try line(column, number: number, entity: entity)) }
        for relationship in entity.relationships where inherited?.relationship(named: relationship.name) == nil {
            guard case .toMany(let relation) = relationship.kind else { continue }
            lines.append("    " + (try toMany(relationship, relation: relation, entity: entity)))
        }
        if inherited != nil {
            // A class without properties begins with its initializer.
            lines += try initializer(of: entity).dropFirst(lines.count == 1 ? 1 : 0)
        }
        let indexes = try entity.indexes.filter { inherited?.indexes.contains($0) != true }.map { index in
            let paths = try index.columns.map { "\\." + (try Self.quoted(entity.columns[$0].name)) }
            return
                "    #\(index.kind == .unique ? "Unique" : "Index")<\(try names.quoted(entity.name))>([\(paths.joined(separator: ", "))])"
        }
        if !indexes.isEmpty { lines += [""] + indexes }
        return (lines + ["}", ""]).joined(separator: "\n")
    }

    private func header(of entity: Entity) throws -> String {
        let isFinal = !model.subentities.contains { $0.superentityName == entity.name }
        let superclass = try entity.superentityName.map { ": " + (try names.quoted($0)) } ?? ""
        var arguments = names.isRenamed(entity.name) ? ["renamedFrom: \(Self.literal(entity.name))"] : []
        if entity.isAbstract { arguments.append("isAbstract: true") }
        let mark = arguments.isEmpty ? "@Model" : "@Model(\(arguments.joined(separator: ", ")))"
        return "\(mark) \(isFinal ? "final " : "")class \(try names.quoted(entity.name))\(superclass) {"
    }

    /// The initializer of a subclass, which the macro does not write. It has the attributes that need a value.
    private func initializer(of entity: Entity) throws -> [String] {
        let needed = requiredAttributes(of: entity)
        let superentity = entity.superentityName.flatMap(model.entity)
        let inherited = needed.map(\.name).filter { superentity?.attribute(named: $0) != nil }
        let parameters = try needed.map { "\(try Self.quoted($0.name)): \(Self.type($0.type))" }
        let own = try needed.filter { !inherited.contains($0.name) }.map { attribute in
            let name = try Self.quoted(attribute.name)
            return "        self.\(name) = \(name)"
        }
        let arguments = try inherited.map { "\(try Self.quoted($0)): \(try Self.quoted($0))" }
        let isOverride = try superentity.map { try self.parameters(of: $0) == parameters } ?? false
        return ["", "    \(isOverride ? "override " : "")init(\(parameters.joined(separator: ", "))) {"] + own
            + ["        super.init(\(arguments.joined(separator: ", ")))", "    }"]
    }

    /// Returns the attributes that an initializer needs a value for.
    private func requiredAttributes(of entity: Entity) -> [Attribute] {
        entity.attributes.filter {
            !$0.isOptional && entity.columns[$0.column].derivation == nil && Self.value(entity, $0.column) == nil
        }
    }

    /// Returns the parameters of a class's initializer, which a subclass with equal parameters overrides. The macro writes that of a class
    /// without a superclass.
    private func parameters(of entity: Entity) throws -> [String] {
        guard entity.superentityName == nil else {
            return try requiredAttributes(of: entity).map { "\(try Self.quoted($0.name)): \(Self.type($0.type))" }
        }
        let attributes = try entity.attributes.filter { entity.columns[$0.column].derivation == nil }.map {
            "\(try Self.quoted($0.name)): \(Self.type($0.type))\($0.isOptional ? "?" : "")"
        }
        return try attributes + entity.relationships.map { try Self.quoted($0.name) }
    }

    /// Returns the entity that declares a relationship of a store's entity.
    private func owner(of relationship: Relationship, _ entity: Entity) -> Entity {
        let members = [model.entity(named: entity.name) ?? entity] + model.subentities.filter { $0.number == entity.number }
        return members.first { member in
            member.relationship(named: relationship.name) != nil
                && member.superentityName.flatMap(model.entity)?.relationship(named: relationship.name) == nil
        } ?? entity
    }

    /// Returns the class of the objects to which a relationship leads: the one that declares the inverse.
    private func destination(of relationship: Relationship) -> Entity {
        let far = model.entities[relationship.destination]
        return relationship.inverse.map { owner(of: far.relationships[$0], far) } ?? far
    }

    private func line(_ column: ColumnSchema, number: ColumnIndex, entity: Entity) throws -> String {
        let name = try Self.quoted(column.name)
        if let relationship = entity.relationships.first(where: { $0.kind == .toOne(column: number) }) {
            let far = model.entities[relationship.destination]
            return
                "\(try toOneMark(relationship, of: entity, to: far))var \(name): \(try names.quoted(destination(of: relationship).name))?"
        }
        var mark =
            switch column.index {
            case .none: ""
            case .indexed: "@Attribute(.indexed) "
            case .unique: "@Attribute(.unique) "
            }
        if let derivation = column.derivation {
            mark = try DerivationSource(model, entity: entity, derivation: derivation).text() + mark
        }
        let isOptional = entity.attribute(named: column.name)?.isOptional ?? column.isOptional
        let value = column.derivation == nil ? Self.value(entity, number).map { " = \($0)" } : nil
        return "\(mark)var \(name): \(Self.type(column.type))\(isOptional ? "?" : "")\(value ?? "")"
    }

    /// Returns the annotation of a to-one relationship. Of a one-to-one relationship, the second end names the first.
    private func toOneMark(_ relationship: Relationship, of entity: Entity, to far: Entity) throws -> String {
        guard let inverse = relationship.inverse, case .toOne = far.relationships[inverse].kind,
            entity.number > far.number || entity.number == far.number && relationship.number > inverse
        else { return attribute(relationship) }
        let back = far.relationships[inverse]
        return attribute(
            relationship, inverse: "\\\(try names.quoted(owner(of: back, far).name)).\(try Self.pathName(back.name))")
    }

    private func toMany(_ relationship: Relationship, relation: Relation, entity: Entity) throws -> String {
        let far = model.entities[relationship.destination]
        let name = try Self.quoted(relationship.name)
        let list = "var \(name): [\(try names.quoted(destination(of: relationship).name))]"
        guard let inverse = relationship.inverse else { return attribute(relationship) + list }
        // The inverse is named on one side only. A link is stored under the name of the end that comes first in the model.
        let isSecond = entity.number > far.number || entity.number == far.number && relationship.number > inverse
        if case .link = relation, !isSecond { return attribute(relationship) + list }
        let back = far.relationships[inverse]
        let path = "\\\(try names.quoted(owner(of: back, far).name)).\(try Self.pathName(back.name))"
        return attribute(relationship, inverse: path) + list
    }

    /// Returns the annotation of a relationship. Without one, it would be paired with a relationship that leads back.
    private func attribute(_ relationship: Relationship, inverse: String? = nil) -> String {
        var arguments = relationship.isOrdered ? [".ordered"] : []
        if relationship.deleteRule != .nullify { arguments.append("deleteRule: .\(relationship.deleteRule.rawValue)") }
        if let inverse { arguments.append("inverse: \(inverse)") }
        if relationship.inverse == nil { arguments.append("inverse: nil") }
        return "@Relationship" + (arguments.isEmpty ? " " : "(\(arguments.joined(separator: ", "))) ")
    }

    /// Returns the default of an attribute, or nil if it is null, zero or empty, or cannot be written as a literal.
    private static func value(_ entity: Entity, _ column: ColumnIndex) -> String? {
        guard entity.defaults.indices().contains(column) else { return nil }
        let value = entity.defaults[column]
        let isOptional = entity.attributes.first { $0.column == column }?.isOptional ?? entity.columns[column].isOptional
        guard isOptional || value != .zero(of: entity.columns[column].type) else { return nil }
        return switch value {
        case .bool(let flag): "\(flag)"
        case .int(let number): "\(number)"
        case .uint(let number): "\(number)"
        case .double(let number) where entity.columns[column].type != .date && number.isFinite: "\(number)"
        case .string(let text): literal(text)
        default: nil
        }
    }

    /// Returns a text as a literal.
    private static func literal(_ text: String) -> String { text.debugDescription }

    private static func type(_ type: ColumnType) -> String {
        switch type {
        case .bool: "Bool"
        case .int8: "Int8"
        case .int16: "Int16"
        case .int32: "Int32"
        case .int64: "Int"
        case .uint8: "UInt8"
        case .uint16: "UInt16"
        case .uint32: "UInt32"
        case .uint64: "UInt64"
        case .float: "Float"
        case .double: "Double"
        case .date: "Date"
        case .string: "String"
        case .data: "Data"
        case .uuid: "UUID"
        case .reference: "Never"
        }
    }

    /// Words that need backticks as the name of a class or a property.
    private static let keywords: Set<String> = [
        "Any", "as", "associatedtype", "await", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
        "else",
        "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import", "in", "init", "inout",
        "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public", "repeat", "rethrows",
        "return", "self", "Self", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true", "try",
        "typealias",
        "var", "where", "while", "Type", "Protocol",
    ]

    /// Returns a name in a key path. After the name of a type, `Type` and `Protocol` would be part of that name.
    static func pathName(_ name: String) throws -> String {
        (["Type", "Protocol"].contains(name) ? "self." : "") + (try quoted(name))
    }

    /// Returns a name in backticks if it needs them.
    static func quoted(_ name: String) throws -> String {
        let isPlain =
            name.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isXIDContinue }
            && name.unicodeScalars.first.map { $0 == "_" || $0.properties.isXIDStart } == true
        if isPlain { return keywords.contains(name) || name == "_" ? "`\(name)`" : name }
        let isAllowed = name.unicodeScalars.allSatisfy { $0 != "`" && $0 != "\\" && $0.properties.generalCategory != .control }
        guard isAllowed, name.contains(where: { !$0.isWhitespace }) else {
            throw ToolError.failed(
                "cannot write a class with the name \(name.debugDescription): Swift has no such names. Rename it")
        }
        return "`\(name)`"
    }
}

extension Entity {
    /// Whether a column is an attribute or a relationship of the entity.
    fileprivate func hasProperty(inColumn number: ColumnIndex) -> Bool {
        attributes.contains { $0.column == number } || relationships.contains { $0.kind == .toOne(column: number) }
    }
}
