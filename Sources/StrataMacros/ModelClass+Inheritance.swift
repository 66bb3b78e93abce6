import SwiftSyntax
import SwiftSyntaxBuilder

extension ClassDeclSyntax {
    /// The first type in the inheritance clause, which is the superclass if the class has one.
    var firstInherited: String? { inheritanceClause?.inheritedTypes.first?.type.trimmedDescription }

    /// Protocols that models often conform to. A class that names another type first may have a superclass.
    private static let knownProtocols: Set<String> = [
        "AnyObject", "Codable", "Comparable", "CustomDebugStringConvertible", "CustomStringConvertible", "Decodable", "Encodable",
        "Equatable", "Hashable", "Identifiable", "ManagedObjectLifecycle", "Observable", "PersistentModel", "Sendable",
    ]

    /// Whether the first type in the inheritance clause may be a class, as far as the source shows it.
    var mayBeSubclass: Bool {
        guard let first = inheritanceClause?.inheritedTypes.first?.type, !first.is(AttributedTypeSyntax.self) else {
            return false
        }
        return !Self.knownProtocols.contains(first.lastName)
    }

    /// Returns whether the superclass is a model: the class conforms to each protocol already, and no protocol that it names is the
    /// reason.
    ///
    /// - Parameter missing: The protocols of the macro to which the class does not conform without it.
    func isSubclass(conformingTo missing: [TypeSyntax]) -> Bool {
        guard mayBeSubclass, missing.isEmpty else { return false }
        let named = (inheritanceClause?.inheritedTypes ?? []).map { inherited in
            (inherited.type.as(AttributedTypeSyntax.self)?.baseType ?? inherited.type).lastName
        }
        // A subclass may repeat its superclass's conformance to Sendable. Its initializers then call `super.init`.
        return !named.contains("PersistentModel") && (!named.contains("Sendable") || callsSuperclass)
    }

    /// Whether an initializer calls one of a superclass.
    private var callsSuperclass: Bool {
        memberBlock.members.initializers.contains { initializer in
            initializer.body?.tokens(viewMode: .sourceAccurate).contains { $0.tokenKind == .keyword(.super) } ?? false
        }
    }
}

extension MemberBlockItemListSyntax {
    /// The initializers, also those inside `#if`.
    fileprivate var initializers: [InitializerDeclSyntax] {
        flatMap { member -> [InitializerDeclSyntax] in
            if let found = member.decl.as(InitializerDeclSyntax.self) { return [found] }
            let clauses = member.decl.as(IfConfigDeclSyntax.self)?.clauses.map(\.elements) ?? []
            return clauses.flatMap { elements -> [InitializerDeclSyntax] in
                if case .decls(let members)? = elements { members.initializers } else { [] }
            }
        }
    }
}

/// The members of classes with subclasses or a superclass. A property of a type is computed there, so that subclasses can override it.
extension ModelClass {
    private var types: String { spelling.types }
    private var isHierarchical: Bool { superclass != nil || !isFinal }
    private var override: String { superclass == nil ? "" : "override " }

    /// Whether subclasses override the members of the type.
    var hasOverridableMembers: Bool { isHierarchical }

    /// The declaration of a property of the type: its name and type.
    func typeProperty(_ name: String, _ type: String, stored: String) -> DeclSyntax {
        "\(raw: override)\(raw: overridableAccess)class var \(raw: name): \(raw: type) { \(raw: stored) }"
    }

    /// The anchor, and a property whose initial value makes it known to the anchors of the superclass or the subclass. Swift calls the
    /// accessor with the initial value in each initializer. The anchor comes after it: Swift 6.3 creates a property again that the accessor of
    /// a later one uses, and the second anchor would not have the object to wrap.
    var linkedAnchor: [DeclSyntax] {
        let anchor =
            superclass == nil
            ? "\(types)ModelAnchor(for: \(sourceName).detachedEntity)"
            : "\(types)SubclassAnchor<\(sourceName)>(for: \(sourceName).detachedEntity)"
        let argument = superclass == nil ? "\(sourceName).self" : ""
        return [
            """
            private var __$link: Void = () {
                @storageRestrictions(initializes: __$linked, accesses: \(raw: anchorName))
                init(initialValue) {
                    \(raw: anchorName).link(\(raw: argument))
                    __$linked = \(raw: types)ModelPlaceholder()
                }
                get { () }
                set {}
            }
            """,
            "@exclusivity(unchecked) private var \(raw: anchorName) = \(raw: anchor)",
            "private var __$linked = \(raw: types)ModelPlaceholder()",
        ]
    }

    /// The name of each property by its key path, in the class and in subclasses. Key paths of an inherited property differ by their root.
    var inheritableColumns: [DeclSyntax] {
        let entries = persisted.map { "\\__$Subclass.\($0.keyPathName): \(literal($0.name))," }
        let own = "[\n        \(entries.isEmpty ? ":" : entries.joined(separator: "\n        "))\n    ]"
        let all = superclass.map { "\($0).inheritableColumns(of: __$Subclass.self).merging(\(own)) { first, _ in first }" } ?? own
        return [
            typeProperty("columnsByKeyPath", "[AnyKeyPath: String]", stored: "keyPaths"),
            """
            nonisolated(unsafe) private static let keyPaths: [AnyKeyPath: String] = inheritableColumns(of: \(raw: sourceName).self)
            """,
            """
            \(raw: access)static func inheritableColumns<__$Subclass: \(raw: sourceName)>(of type: __$Subclass.Type) -> [AnyKeyPath: String] {
                \(raw: all)
            }
            """,
        ]
    }

    /// The arguments of the entity's description about its place in the hierarchy.
    var inheritanceArguments: String {
        (superclass.map { ",\n    superentity: \($0).entityName" } ?? "") + (isAbstract ? ",\n    isAbstract: true" : "")
    }

    /// The expression of what objects need before they are inserted.
    var detachedEntity: String {
        superclass == nil ? "DetachedEntity(entityDescription)" : "DetachedEntity(subclass: \(sourceName).self)"
    }
}
