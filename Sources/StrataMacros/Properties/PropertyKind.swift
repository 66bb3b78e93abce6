import SwiftSyntax

/// The storage of a property, as far as its type's text shows it. The compiler decides the rest by overloads on the type.
struct PropertyKind: Equatable {
    /// The number of columns or relationships that a property has.
    enum Count: Equatable {
        case zero, one
        /// It depends on the type, which only the compiler knows.
        case byType
    }

    /// The accessors of a property.
    enum Access: Equatable {
        /// An attribute of a type that is stored as it is, read by its column.
        case plain
        case toOne
        case toMany
        /// The compiler chooses by the type.
        case byType
    }

    var columns = Count.byType
    var relationships = Count.byType
    var access = Access.byType

    static let plain = PropertyKind(columns: .one, relationships: .zero, access: .plain)
    /// An attribute of a type that is stored by its raw value or as JSON.
    static let attribute = PropertyKind(columns: .one, relationships: .zero)
    static let unknown = PropertyKind()

    /// Determines the kind of a property without a marker.
    init(unmarked type: TypeSyntax) {
        if type.isPlain {
            self = .plain
        } else if let element = type.unwrapped.element {
            let isNamed = element.is(IdentifierTypeSyntax.self) || element.is(MemberTypeSyntax.self)
            self = isNamed && !element.isPlain && element.element == nil && !element.isDictionary ? .unknown : .attribute
        } else if type.unwrapped.isDictionary {
            self = .attribute
        } else {
            self.init(columns: .one)
        }
    }

    /// Determines the kind of a property with `@Relationship`.
    init(relationship type: TypeSyntax) {
        if let element = type.unwrapped.element {
            let isArray = type.wrappedByArray != nil && element.wrappedByOptional == nil
            self.init(columns: .zero, relationships: .one, access: isArray ? .toMany : .byType)
        } else {
            self.init(columns: .one, relationships: .one, access: type.wrappedByOptional == nil ? .byType : .toOne)
        }
    }

    init(columns: Count = .byType, relationships: Count = .byType, access: Access = .byType) {
        self.columns = columns
        self.relationships = relationships
        self.access = access
    }
}

extension TypeSyntax {
    private static let plainNames: Set<String> = [
        "Bool", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double",
        "String", "Data", "Date", "UUID", "URL", "Decimal",
    ]

    /// Whether this is a type that a column stores as it is, or an optional of one.
    var isPlain: Bool {
        let wrapped = unwrapped
        guard let named = wrapped.as(IdentifierTypeSyntax.self), named.genericArgumentClause == nil else {
            guard let member = wrapped.as(MemberTypeSyntax.self), member.genericArgumentClause == nil else { return false }
            return ["Swift", "Foundation"].contains(member.baseType.trimmedDescription)
                && Self.plainNames.contains(member.name.text)
        }
        return Self.plainNames.contains(named.name.text)
    }

    /// The type without an optional around it.
    var unwrapped: TypeSyntax {
        self.as(ImplicitlyUnwrappedOptionalTypeSyntax.self)?.wrappedType.trimmed ?? wrappedByOptional ?? trimmed
    }

    /// The type with `?` for `!`, which is no part of a type.
    var spelledAsOptional: String {
        self.as(ImplicitlyUnwrappedOptionalTypeSyntax.self).map { "\($0.wrappedType.trimmed)?" } ?? trimmedDescription
    }

    /// The type `X` of `X?` or `Optional<X>`.
    var wrappedByOptional: TypeSyntax? {
        if let optional = self.as(OptionalTypeSyntax.self) { return optional.wrappedType.trimmed }
        return argument(of: "Optional")
    }

    /// The type `X` of `[X]` or `Array<X>`.
    var wrappedByArray: TypeSyntax? {
        if let array = self.as(ArrayTypeSyntax.self) { return array.element.trimmed }
        return argument(of: "Array")
    }

    /// The type `X` of an array or a set.
    var element: TypeSyntax? { wrappedByArray ?? argument(of: "Set") }

    var isDictionary: Bool { self.is(DictionaryTypeSyntax.self) || argument(of: "Dictionary") != nil }

    private func argument(of generic: String) -> TypeSyntax? {
        guard let named = self.as(IdentifierTypeSyntax.self), named.name.text == generic,
            let argument = named.genericArgumentClause?.arguments.first
        else { return nil }
        return TypeSyntax("\(argument.argument.trimmed)")
    }

    /// The last part of a dotted name, which is the name of the entity.
    var lastName: String {
        if let member = self.as(MemberTypeSyntax.self) { return member.name.plainName }
        return self.as(IdentifierTypeSyntax.self)?.name.plainName ?? trimmedDescription
    }
}
