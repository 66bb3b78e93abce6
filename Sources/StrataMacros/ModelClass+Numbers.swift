import SwiftSyntax

/// The numbers of properties: literals as long as the kinds of all properties before are known from the source. The other numbers
/// are members of a nested type, which the compiler computes from the types.
extension ModelClass {
    /// The name of the nested type with the numbers that are no literals.
    private static let namespace = "PropertyNumbers"

    /// A count over the properties in the order of their declaration.
    private struct Counter {
        /// "column" or "relationship", the name of the function that counts.
        let name: String
        let count: KeyPath<PropertyKind, PropertyKind.Count>
        let spelling: Spelling
        private var number = "0"
        /// The last property whose type decides whether it counts.
        private var undecided: String?
        private var others = 0
        private(set) var lines: [String] = []

        init(_ name: String, count: KeyPath<PropertyKind, PropertyKind.Count>, spelling: Spelling) {
            self.spelling = spelling
            self.name = name
            self.count = count
        }

        /// Returns the number of the next property, or nil if it has none.
        mutating func next(_ property: ModelProperty, in model: String) -> String? {
            let counted = property.kind[keyPath: count]
            guard counted != .zero else { return nil }
            let own: String
            if let undecided {
                own = "\(ModelClass.namespace).\(name)\(lines.count)"
                lines.append(
                    "@inline(__always) static var \(name)\(lines.count): Int { "
                        + "\(spelling.types)PropertyNumber.\(name)(\(number), \(undecided), then: \(others)) }")
            } else {
                own = "\(others)"
            }
            if counted == .byType {
                number = own
                // Only the compiler knows the type of an initial value such as `Box(1)`, which may be generic.
                undecided =
                    property.type.map { "after: \(property.metatype($0.trimmedDescription))" }
                    ?? "of: { (model: \(model)) in model.\(property.sourceName) }"
                others = 0
            } else {
                others += 1
            }
            return own
        }
    }

    /// Sets the numbers of all properties, and returns the nested type that computes those that are no literals.
    static func number(_ properties: inout [ModelProperty], of model: String, _ spelling: Spelling) -> String? {
        var columns = Counter("column", count: \.columns, spelling: spelling)
        var relationships = Counter("relationship", count: \.relationships, spelling: spelling)
        for position in properties.indices where !properties[position].isTransient {
            properties[position].column = columns.next(properties[position], in: model)
            properties[position].relationship = relationships.next(properties[position], in: model)
        }
        let lines = columns.lines + relationships.lines
        return lines.isEmpty ? nil : "private enum \(namespace) {\n    \(lines.joined(separator: "\n    "))\n}"
    }
}

extension ModelProperty {
    /// Returns the type as a value.
    fileprivate func metatype(_ text: String) -> String {
        if text.hasSuffix("!") { return "\(text.dropLast())?.self" }
        // In `any Shape.self` and `A & B.self`, the last part would belong to the inner type.
        let hasParts = type.map {
            $0.is(SomeOrAnyTypeSyntax.self) || $0.is(AttributedTypeSyntax.self) || $0.is(CompositionTypeSyntax.self)
        }
        return hasParts == true ? "(\(text)).self" : "\(text).self"
    }
}
