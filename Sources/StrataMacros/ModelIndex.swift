import SwiftDiagnostics
import SwiftSyntax

/// One index of a model, from one list of `#Index<Model>(...)` or `#Unique<Model>(...)`.
struct ModelIndex {
    /// The name of the case of `IndexKind`.
    var kind: String
    var properties: [String]

    /// The index as an expression of type `IndexDescription`.
    func description(_ spelling: Spelling) -> String {
        "\(spelling.types)IndexDescription(properties: [\(properties.map { "\"\($0)\"" }.joined(separator: ", "))], kind: .\(kind))"
    }
}

extension ModelClass {
    /// Reads the index if the member is `#Index` or `#Unique`. Ignores other macros.
    mutating func readIndexes(_ member: MemberBlockItemSyntax) {
        guard let macro = member.decl.as(MacroExpansionDeclSyntax.self) else { return }
        let kind: String
        switch macro.macroName.text {
        case "Index": kind = "indexed"
        case "Unique": kind = "unique"
        default: return
        }
        for argument in macro.arguments {
            let elements = argument.keyPaths?.elements.map(\.expression)
            // SwiftData accepts an empty list, which requires nothing.
            if spelling == .swiftData, elements?.isEmpty == true { continue }
            let names = elements?.compactMap { indexedName($0) }
            if let names, !names.isEmpty, names.count == elements?.count {
                indexes.append(ModelIndex(kind: kind, properties: names))
            } else {
                // Several key paths may be one index or several.
                let isOnlyKeyPath = macro.arguments.count == 1 && indexedName(argument.expression) != nil
                let fixIts =
                    isOnlyKeyPath ? Remedy.replaceArgument(argument, with: "[\(argument.expression.trimmedDescription)]") : []
                misuses.append(ModelDiagnostic.wrongIndex.at(argument, fixIts: fixIts))
            }
        }
    }

    /// Returns the name of the stored property to which a key path leads; nil for another expression.
    private func indexedName(_ expression: ExprSyntax) -> String? {
        guard let components = expression.as(KeyPathExprSyntax.self)?.components, components.count == 1 else { return nil }
        let name = components.first?.component.as(KeyPathPropertyComponentSyntax.self)?.declName.baseName.plainName
        return name.flatMap { misusedNames.contains($0) ? $0 : property(named: $0)?.column == nil ? nil : $0 }
    }
}

extension LabeledExprSyntax {
    /// The key paths of an index: `[\.name]`, or `.binary([\.name])`.
    fileprivate var keyPaths: ArrayExprSyntax? {
        let list = expression.as(FunctionCallExprSyntax.self)?.arguments.first?.expression ?? expression
        return list.as(ArrayExprSyntax.self)
    }
}
