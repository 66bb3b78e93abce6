import SwiftDiagnostics
import SwiftSyntax

/// Reads rules of properties, and the order of relationships, from the arguments of `@Attribute` and `@Relationship`.
enum RuleReader {
    /// Returns the rule of an attribute as an expression of type `PropertyRule`.
    static func rule(_ argument: LabeledExprSyntax, of property: ModelProperty) throws(ModelDiagnostic) -> String {
        let type = property.type ?? property.typeText.map { TypeSyntax("\(raw: $0)") }
        if let member = argument.expression.as(MemberAccessExprSyntax.self), member.declName.baseName.text == "required" {
            return ".required"
        }
        guard let call = argument.expression.as(FunctionCallExprSyntax.self), call.arguments.count == 1,
            let name = call.calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName.text,
            let bounds = call.arguments.first?.expression
        else { throw .unknownOption }
        switch name {
        case "length":
            if let type, !type.hasLength { throw .lengthOfOther }
            return ".length(\(bounds.trimmedDescription))"
        case "range":
            if let type, !type.hasOrder { throw .rangeOfOther }
            return ".range(\(bounds.trimmedDescription))"
        case "pattern":
            if let type, !type.isText { throw .patternOfOther }
            return ".pattern(\(try pattern(bounds)))"
        default: throw .unknownOption
        }
    }

    /// Returns the change of an argument that belongs to another kind of property, or its removal if no other argument has its
    /// meaning.
    static func remedies(
        _ mistake: ModelDiagnostic, _ argument: LabeledExprSyntax, in marker: AttributeSyntax, of property: ModelProperty
    ) -> [FixIt] {
        let type = property.type ?? property.typeText.map { TypeSyntax("\(raw: $0)") }
        let inner = argument.expression.as(FunctionCallExprSyntax.self)?.arguments.first
        let bounds = inner?.expression.trimmedDescription ?? ""
        switch mistake {
        case .lengthOfOther where type?.hasOrder == true: return Remedy.replaceArgument(argument, with: ".range(\(bounds))")
        case .rangeOfOther where type?.hasLength == true: return Remedy.replaceArgument(argument, with: ".length(\(bounds))")
        case .lengthOfOther, .rangeOfOther, .patternOfOther, .notOrdered: return Remedy.remove([argument], of: marker)
        case .patternOnLines: return inner.map { Remedy.joinLines(ofPattern: $0.expression, in: argument) } ?? []
        case .unknownOption:
            // `.rule(.length(1...))` has the same meaning as `.length(1...)`.
            guard let inner, argument.expression.isCall(of: "rule"), bounds.hasPrefix(".") else { return [] }
            return (try? rule(inner, of: property)) == nil ? [] : Remedy.replaceArgument(argument, with: bounds)
        case .requiredObjects where !marker.hasArgument("count"):
            return Remedy.moveArgument(argument, of: marker, toLabel: "count", "1...")
        case .countOfOne where argument.expression.trimmedDescription == "1...":
            return marker.hasOption("required")
                ? Remedy.remove([argument], of: marker)
                : Remedy.moveArgument(argument, of: marker, toLabel: nil, ".required")
        default: return []
        }
    }

    /// Returns a pattern as an expression of type `String`.
    private static func pattern(_ expression: ExprSyntax) throws(ModelDiagnostic) -> String {
        guard let regex = expression.as(RegexLiteralExprSyntax.self) else {
            if expression.trimmedDescription.contains(where: \.isNewline) { throw .patternOnLines }
            return expression.trimmedDescription
        }
        let text = regex.regex.text
        if text.contains(where: \.isNewline) { throw .patternOnLines }
        // More signs than any run in the text, so that nothing in it ends the literal or interpolates.
        var run = 0
        var longest = 0
        for character in text {
            run = character == "#" ? run + 1 : 0
            longest = max(longest, run)
        }
        let signs = String(repeating: "#", count: longest + 1)
        return "\(signs)\"\(text)\"\(signs)"
    }

    /// Reads the rules and options among the arguments of a relationship.
    static func read(
        _ argument: LabeledExprSyntax, of property: ModelProperty, _ spelling: Spelling,
        into options: inout ModelProperty.RelationshipOptions
    ) throws(ModelDiagnostic) {
        let isToMany = property.type.map { $0.unwrapped.element != nil }
        switch argument.label?.text {
        case "minimumModelCount", "maximumModelCount":
            if spelling == .swiftData { options.limits.append(argument.trimmed.with(\.trailingComma, nil).trimmedDescription) }
        case "count":
            if argument.expression.is(NilLiteralExprSyntax.self) { return }
            if isToMany == false { throw .countOfOne }
            options.rules.append(".count(\(argument.expression.trimmedDescription))")
        case nil where spelling == .strata:
            switch argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text {
            case "required":
                if isToMany == true { throw .requiredObjects }
                options.rules.append(".required")
            case "ordered":
                if let type = property.type?.unwrapped, type.wrappedByArray == nil { throw .notOrdered }
                options.isOrdered = true
            default:
                guard let name = argument.expression.implicitMember else { throw .unknownRelationshipOption }
                options.unknownOption = name
            }
        default: break
        }
    }
}

extension ExprSyntax {
    /// The name in `.name` or `.name(…)`; nil for other expressions.
    var implicitMember: String? {
        let callee = self.as(FunctionCallExprSyntax.self)?.calledExpression ?? self
        guard let member = callee.as(MemberAccessExprSyntax.self), member.base == nil else { return nil }
        return member.declName.baseName.plainName
    }

    /// Whether the expression is `.name` or `.name(…)` with a name that no option of `@Attribute` has. The compiler reports it.
    var isUnknownOption: Bool {
        guard let name = implicitMember else { return false }
        let known =
            self.is(FunctionCallExprSyntax.self)
            ? ["rule", "length", "range", "pattern"] : ["unique", "indexed", "preserveValueOnDeletion", "required"]
        return !known.contains(name)
    }

    /// Whether the expression calls a function with this name, as in `.name(1)`.
    fileprivate func isCall(of name: String) -> Bool {
        let callee = self.as(FunctionCallExprSyntax.self)?.calledExpression
        return callee?.as(MemberAccessExprSyntax.self)?.declName.baseName.text == name
    }
}

extension AttributeSyntax {
    fileprivate func hasArgument(_ label: String) -> Bool {
        guard case .argumentList(let arguments) = arguments else { return false }
        return arguments.contains { $0.label?.text == label }
    }
}

extension TypeSyntax {
    static let numbers: Set<String> = [
        "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double", "Decimal",
    ]

    /// Whether values have a length, as far as the source shows it.
    fileprivate var hasLength: Bool { !isPlain || ["String", "Data", "URL"].contains(unwrapped.lastName) }

    /// Whether values are in ranges, as far as the source shows it.
    fileprivate var hasOrder: Bool {
        if isPlain { return unwrapped.lastName == "Date" || Self.numbers.contains(unwrapped.lastName) }
        return unwrapped.element == nil && !unwrapped.isDictionary
    }

    /// Whether values are texts, as far as the source shows it.
    fileprivate var isText: Bool {
        if isPlain { return ["String", "URL"].contains(unwrapped.lastName) }
        return unwrapped.element == nil && !unwrapped.isDictionary
    }
}
